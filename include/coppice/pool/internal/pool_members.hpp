// The members of basic_pool; included only where a pool is instantiated (src/pool).
#pragma once

#include <coppice/base/internal/caller_runs.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/fork_deque.hpp>
#include <coppice/pool/basic_pool.hpp>
#include <coppice/pool/internal/worker.hpp>
#include <coppice/pool/internal/worker_search.hpp>
#include <coppice/pool/internal/worker_timers.hpp>
#include <coppice/trace/chrome.hpp>

#include <pthread.h>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace coppice::internal {

// The node of a worker, and the processors to which it is pinned, if any.
struct worker_place {
    unsigned node;
    std::vector<unsigned> processors;
};
// Deals the workers to the processors, and sorts them by node. Errors: as the pool's constructor.
std::vector<worker_place> places_of(const pool_options& options);
// Pins the thread, if `processors` is not empty. Errors: std::system_error.
void pin(::pthread_t thread, const std::vector<unsigned>& processors);

inline pool_options options_of_threads(std::size_t threads) {
    if (threads == 0) throw std::invalid_argument("coppice: a pool needs a thread, got 0");
    return {.threads = threads};
}

template <class Queues>
basic_pool<Queues>::basic_pool(std::size_t threads) : basic_pool(options_of_threads(threads)) {}

template <class Queues>
basic_pool<Queues>::basic_pool(const pool_options& options) {
    const std::vector<worker_place> places = places_of(options);
    std::vector<unsigned> homes;
    for (const worker_place& each : places) homes.push_back(each.node);
    shared_ = std::make_unique<shared>(homes, options.trace_events);
    try {
        for (std::size_t i = 0; i != places.size(); ++i) {
            worker& w = *shared_->workers[i];
            w.thread = std::thread([&w] { w.loop(); });
            const std::string name = "coppice-pool/" + std::to_string(i % 100);
            ::pthread_setname_np(w.thread.native_handle(), name.c_str());
            pin(w.thread.native_handle(), places[i].processors);
        }
    } catch (...) {
        shared_->stop();
        shared_->join();
        throw;
    }
}

template <class Queues>
basic_pool<Queues>::~basic_pool() {
    COPPICE_CHECK(!is_current(),
                  "a pool was destroyed on one of its own workers: destroy it on another thread");
    COPPICE_CHECK(!notice_scope::is_inside(&shared_->guard),
                  "a pool was destroyed in a stop callback of one of its own timeouts, for whose "
                  "end the pool waits: destroy it on another thread");
    shared_->stop();
    shared_->join();
    shared_->guard.retire();
    shared_->entry.wait();  // a thread whose entry was rejected may still be leaving
}

template <class Queues>
bool basic_pool<Queues>::try_submit(work_item& item) noexcept {
    basic_pool::shared& s = *shared_;
    if (is_current()) {
        worker& mine = *static_cast<worker*>(current_pool_worker());
        s.queues.push(mine.index, &item);
        mine.wake_one_lightly();
        return true;
    }
    // Keeps the pool alive until leave(): the item may run and let its owner destroy the pool.
    if (!s.entry.enter()) return false;
    s.queues.push_outside(&item);
    s.lots.wake_one(0);
    s.entry.leave();
    return true;
}

template <class Queues>
bool basic_pool<Queues>::try_submit(std::size_t home, work_item& item) noexcept {
    basic_pool::shared& s = *shared_;
    COPPICE_CHECK(home < s.nodes.size(),
                  "submit() to a pool: no such node: nodes are 0 to nodes() - 1");
    // The workers of that node may have ended. A worker of another node still runs.
    if (!s.entry.enter()) return is_current() && try_submit(item);
    s.nodes[home]->inbox.push(&item);
    s.lots[home].wake_one();
    s.entry.leave();
    return true;
}

template <class Queues>
void basic_pool<Queues>::submit(work_item& item) noexcept {
    if (!try_submit(item)) caller_runs<work_item>::run(item);
}

template <class Queues>
void basic_pool<Queues>::submit(std::size_t home, work_item& item) noexcept {
    if (!try_submit(home, item)) caller_runs<work_item>::run(item);
}

template <class Queues>
bool basic_pool<Queues>::submit_without_blocking(std::size_t home, work_item& item) noexcept {
    basic_pool::shared& s = *shared_;
    const bool any = home == pool_timer::any_node;
    if (any && is_current()) {
        worker& mine = *static_cast<worker*>(current_pool_worker());
        if (!s.queues.try_push(mine.index, &item)) return false;
        mine.wake_one_lightly();
        return true;
    }
    if (!s.entry.enter()) return false;
    const bool queued =
        any ? s.queues.try_push_outside(&item) : s.nodes[home]->inbox.try_push(&item);
    if (queued && any) s.lots.wake_one(0);
    if (queued && !any) s.lots[home].wake_one();
    s.entry.leave();
    return queued;
}

template <class Queues>
bool basic_pool<Queues>::begin_timer(pool_timer& timer) noexcept {
    basic_pool::shared& s = *shared_;
    if (is_current()) {
        timer.shard = &s.timers[static_cast<worker*>(current_pool_worker())->index];
        return true;
    }
    if (s.entry.enter()) {  // until the end of arm_timer()
        timer.shard = &s.timers.outside();
        return true;
    }
    timer.stopped.write(true);
    caller_runs<work_item>::run(timer);
    return false;
}

// Makes a timer ready whose time had come when it was started, on a worker or inside the gate.
template <class Queues>
void basic_pool<Queues>::make_ready(pool_timer& timer) noexcept {
    basic_pool::shared& s = *shared_;
    item_chain ended;
    ended.push_back(&timer);
    if (is_current()) {
        worker& mine = *static_cast<worker*>(current_pool_worker());
        mine.make_ready(ended);
        mine.wake_one();
    } else {
        s.timers.put_late(ended);
        s.lots.wake_one(0);
    }
}

// Enqueues a timer that a stop has ended, on a worker or inside the gate.
template <class Queues>
void basic_pool<Queues>::enqueue_ended(pool_timer& timer) noexcept {
    basic_pool::shared& s = *shared_;
    const bool any = timer.node == pool_timer::any_node;
    timer.tell = nullptr;
    if (is_current()) {
        worker& mine = *static_cast<worker*>(current_pool_worker());
        if (any) {
            mine.ready.add_stopped(timer);
        } else {
            mine.enqueue_at_node(timer);
        }
        mine.wake_one();
    } else if (any) {
        timer.due = 0;  // goes before those whose time has come
        item_chain ended;
        ended.push_back(&timer);
        s.timers.put_late(ended);
        s.lots.wake_one(0);
    } else {
        const std::size_t home = timer.node;
        s.nodes[home]->inbox.push(&timer);
        s.lots[home].wake_one();
    }
}

template <class Queues>
void basic_pool<Queues>::arm_timer(pool_timer& timer, std::int64_t when,
                                   std::int64_t now) noexcept {
    basic_pool::shared& s = *shared_;
    const bool inside = timer.shard == &s.timers.outside();
    const auto due = pool_timers::tick_of(when);
    timer.due = due;
    const wheel_user user = inside ? wheel_user::other : wheel_user::owner;
    switch (s.timers.arm(timer, pool_timers::tick_at(now), user)) {
        case timer_shard::armed::waits:
            break;  // it may have ended, and be gone
        case timer_shard::armed::earliest:
            if (!s.timers.must_wake(due)) break;
            if (!inside) {
                static_cast<worker*>(current_pool_worker())->watch(due);
            } else if (s.lots.wake_one_fenced(0) == parking_wake::busy) {
                s.guard.back(due);
            }
            break;
        case timer_shard::armed::ended:
            if (timer.stopped.read()) {
                enqueue_ended(timer);
                break;
            }
            {
                const notice_scope here(&s.guard);
                timer.give_notice();
            }
            make_ready(timer);
            break;
    }
    if (inside) s.entry.leave();
}

template <class Queues>
void basic_pool<Queues>::stop_timer(pool_timer& timer) noexcept {
    basic_pool::shared& s = *shared_;
    if (is_current()) {
        const bool mine =
            timer.shard == &s.timers[static_cast<worker*>(current_pool_worker())->index];
        if (timer.shard->cancel(timer, mine ? wheel_user::owner : wheel_user::other)) {
            enqueue_ended(timer);
        }
        return;
    }
    // The workers of a pool that was told to end stop all timers themselves. While this runs, the
    // timer's item waits for it, so the pool is there.
    if (!s.entry.enter()) return;
    if (timer.shard->cancel(timer, wheel_user::other)) enqueue_ended(timer);
    s.entry.leave();
}

template <class Queues>
void basic_pool<Queues>::request_stop() noexcept {
    shared_->stop();
}

template <class Queues>
std::size_t basic_pool<Queues>::size() const noexcept {
    return shared_->workers.size();
}

template <class Queues>
worker_counts basic_pool<Queues>::counts(std::size_t index) const noexcept {
    COPPICE_CHECK(index < size(),
                  "counts() of a pool: no such worker: workers are 0 to size() - 1");
    const worker& w = *shared_->workers[index];
    return {w.runs.read(),          w.steals.read(), w.far_steals.read(),
            w.failed_steals.read(), w.parks.read(),  w.wakes.read()};
}

template <class Queues>
const fork_team* basic_pool<Queues>::team() const noexcept {
    return shared_.get();
}

template <class Queues>
bool basic_pool<Queues>::is_current() const noexcept {
    // A worker of another kind of pool has a different team, whatever the layout of that pool is.
    const fork_deque* const forks = fork_deque::current();
    return forks != nullptr && &forks->team() == shared_.get();
}

template <class Queues>
bool basic_pool<Queues>::is_current(std::size_t home) const noexcept {
    return is_current() && static_cast<worker*>(current_pool_worker())->home == home;
}

template <class Queues>
std::size_t basic_pool<Queues>::nodes() const noexcept {
    return shared_->nodes.size();
}

template <class Queues>
unsigned basic_pool<Queues>::node_number(std::size_t home) const noexcept {
    COPPICE_CHECK(home < nodes(),
                  "node_number() of a pool: no such node: nodes are 0 to nodes() - 1");
    return shared_->nodes[home]->number;
}

template <class Queues>
typename basic_pool<Queues>::scheduler basic_pool<Queues>::get_scheduler(
    std::size_t home) noexcept {
    COPPICE_CHECK(home < nodes(),
                  "get_scheduler() of a pool: no such node: nodes are 0 to nodes() - 1");
    return scheduler(*this, home);
}

template <class Queues>
void basic_pool<Queues>::write_trace(const std::string& path) const {
    std::vector<trace::track> tracks;
    for (const auto& each : shared_->workers) {
        tracks.push_back({"worker " + std::to_string(each->index), &each->log});
    }
    trace::write_file(path, trace::chrome_json(tracks, trace_time()));
}

}  // namespace coppice::internal
