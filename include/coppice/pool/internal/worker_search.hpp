// How the workers behind basic_pool find work, help, and sleep; for pool_members.hpp.
#pragma once
// A worker looks for work in its queues, then in the other workers' queues and published forked
// calls. If it finds none, it asks the other fork_deques to publish, then publishes for them
// (grab). Before it sleeps, it asks all of them. A request stands until the next fork, which
// publishes and wakes a sleeper. A worker that finds work while others sleep renews the requests.
// So no worker sleeps while a forked call waits (PROTOCOL.md).
//
// In a pool that uses timers, a worker also looks for timers that are due: between items, before it
// searches, and when it wakes as it has promised (pool_timers.hpp).

#include <coppice/base/internal/fork_deque.hpp>
#include <coppice/pool/internal/parking.hpp>
#include <coppice/pool/internal/pool_timers.hpp>
#include <coppice/pool/internal/work_queues.hpp>
#include <coppice/pool/internal/worker.hpp>

#include <cstddef>

namespace coppice::internal {

// After a steal. If it took nothing: `grabs` publishes for the victim, else asks it to publish.
template <class Queues>
bool basic_pool<Queues>::worker::stolen_call(worker& victim, fork_steal outcome,
                                             bool grabs) noexcept {
    if (outcome == fork_steal::taken) {
        count_steal(victim);
        return true;
    }
    if (outcome == fork_steal::lost) count_failed_steal(victim);
    if (grabs) {
        victim.forks.grab();
    } else {
        victim.forks.ask();
    }
    return false;
}

// Tries each of `count` workers from `first` on, modulo all, except the caller; begins at random.
template <class Queues>
template <class Try>
bool basic_pool<Queues>::worker::try_others(std::size_t first, std::size_t count,
                                            Try&& try_one) noexcept {
    if (count == 0) return false;
    std::size_t i = random_below(count);
    for (std::size_t tries = 0; tries != count; ++tries, i = i + 1 == count ? 0 : i + 1) {
        worker& victim = *owner.workers[(first + i) % owner.workers.size()];
        if (victim.index != index && try_one(victim)) return true;
    }
    return false;
}

template <class Queues>
template <class Try>
bool basic_pool<Queues>::worker::try_near_then_far(Try&& try_one) noexcept {
    const node& near = *owner.nodes[home];
    return try_others(near.first, near.count, try_one) ||
           try_others(near.first + near.count, owner.workers.size() - near.count, try_one);
}

template <class Queues>
found_work basic_pool<Queues>::worker::steal(bool grabs) noexcept {
    found_work found;
    try_near_then_far([this, &found, grabs](worker& victim) noexcept {
        const stolen<work_item> got = owner.queues.steal(index, victim.index);
        if (got.outcome == steal_outcome::taken) {
            count_steal(victim);
            found.item = got.item;
            return true;
        }
        if (got.outcome == steal_outcome::lost) count_failed_steal(victim);
        if ((found.item = victim.ready.steal()) != nullptr) {
            count_steal(victim);
            return true;
        }
        return steal_call(victim, found.call, grabs);
    });
    return found;
}

// Called for a join: runs a call that `victim`, the thief of `awaited`, forked below `awaited`. Any
// other call may want what the waiting function holds: a lock, or the space on this stack.
template <class Queues>
bool basic_pool<Queues>::worker::help(const fork_slot& awaited, worker& victim,
                                      bool urgent) noexcept {
    found_work found;
    const fork_steal outcome = victim.forks.steal_below(awaited, found.call, number());
    if (!stolen_call(victim, outcome, urgent)) return false;
    rouse();
    run(found);
    return true;
}

// Returns nothing if timers are due, which it adds to `due`.
template <class Queues>
found_work basic_pool<Queues>::worker::search(item_chain& due) noexcept {
    found_work found;
    if (owner.timers.are_used()) {
        take_timers(trace_time(), true, due);
        if (!due.empty()) return found;
    }
    for (unsigned round = 0; round != search_rounds; ++round) {
        found = next();
        if (!found) found = steal(round + 1 == search_rounds || round == 1);
        if (found) break;
        for (unsigned pauses = 0; pauses != (4u << round) / 4; ++pauses) spin_hint();
    }
    return found;
}

// Runs what is next in the worker's own queues. Returns false if there is nothing.
template <class Queues>
bool basic_pool<Queues>::worker::run_own() noexcept {
    if (owner.timers.are_used()) [[unlikely]]
        look_between_items();
    const found_work found = next();
    if (!found) return false;
    if (look_after_end(found)) run(found);
    return true;
}

// Called by a searcher that found nothing. Returns false if the worker ends.
template <class Queues>
bool basic_pool<Queues>::worker::sleep_or_end() noexcept {
    parking& lot = owner.lots[home];
    lot.announce_sleep();
    owner.ask_all();
    if (!owner.looks_idle(home)) {
        lot.cancel_sleep();
    } else if (owner.entry.is_closed()) {
        lot.cancel_sleep();
        (void)lot.end_search();
        item_chain stopped;
        take_timers(trace_time(), true, stopped);
        if (!stopped.empty()) {
            run_timers(stopped);
            wake_one();
        }
        // When no other thread is about to submit, an item that is not queued now will never be. A
        // worker that still runs takes care of what it submits itself.
        if (owner.entry.is_quiet() && owner.looks_idle(home) && !owner.timers.has_any_for(index)) {
            return false;
        }
        thread_yield();
        lot.begin_search();
    } else {
        const auto promised = owner.timers.promise();
        parks.add();
        const bool traced = log.enabled() && log.begin(trace_time(), "sleep");
        if (promised == pool_timers::never) {
            lot.sleep();
        } else {
            lot.sleep_or_wake_at(pool_timers::nanoseconds_of(promised));
            owner.timers.take_back(promised);
        }
        if (traced) log.end(traced, trace_time());
    }
    return true;
}

// Called by a searcher that has found work.
template <class Queues>
void basic_pool<Queues>::worker::end_search() noexcept {
    if (!owner.lots[home].end_search()) return;
    if (owner.timers.are_unwatched()) {
        watch(owner.timers.earliest_in_wheels());
    } else if (!owner.looks_idle(home)) {
        wake_one();
    }
}

template <class Queues>
void basic_pool<Queues>::worker::loop() noexcept {
    current_pool_worker() = this;
    fork_deque::current() = &forks;
    if (log.enabled()) trace::this_thread_log() = &log;
    parking& lot = owner.lots[home];
    for (;;) {
        while (run_own()) {
        }
        lot.begin_search();
        found_work found;
        item_chain due;
        while (!(found = search(due)) && due.empty()) {
            if (sleep_or_end()) continue;
            fork_deque::current() = nullptr;  // thread_local objects are destroyed outside the pool
            return;
        }
        end_search();
        if (!due.empty()) {
            run_timers(due);
            if (!found) found = next();
            if (!owner.looks_idle(home)) wake_one();
        }
        rouse();
        if (!found) continue;
        if (look_after_end(found)) run(found);
    }
}

}  // namespace coppice::internal
