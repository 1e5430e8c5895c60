// The workers behind basic_pool; included only where a pool is instantiated (src/pool).
#pragma once
// A worker looks for work in its queues, then in other workers' queues and published forked calls.
// One that finds none asks the others' fork_deques to publish, then grabs. One that falls asleep
// asks all: its request stands until the next fork, which publishes and wakes a sleeper. Who finds
// work while others sleep renews the requests and looks whether there is more. So none sleeps while
// a forked call waits (PROTOCOL.md).

#include <coppice/base/asymmetric.hpp>
#include <coppice/base/check.hpp>
#include <coppice/base/fork_deque.hpp>
#include <coppice/base/in_flight.hpp>
#include <coppice/pool/basic_pool.hpp>
#include <coppice/pool/parking.hpp>
#include <coppice/pool/work_queues.hpp>
#include <coppice/trace/counter.hpp>

#include <pthread.h>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace coppice {

// The worker that this thread is, or nullptr; a worker of any pool.
inline void*& current_pool_worker() noexcept {
    return thread_slot<struct pool_worker_slot, void*>();
}

// Either an item or a forked call.
struct found_work {
    work_item* item = nullptr;
    taken_call call;
    explicit operator bool() const noexcept { return item != nullptr || call.call != nullptr; }
};

template <class Queues>
struct alignas(64) basic_pool<Queues>::worker {
    // How often an idle worker looks through all queues before it sleeps, pausing longer each time:
    // about five microseconds in all, less than a sleep and wake cost.
    static constexpr unsigned search_rounds = 8;

    worker(basic_pool::shared& pool, std::size_t number) noexcept
        : owner(pool),
          index(number),
          random(number * 0x9E3779B97F4A7C15u + 1),
          forks(pool, static_cast<std::uint32_t>(number)) {}

    basic_pool::shared& owner;
    const std::size_t index;
    std::uint64_t random;  // xorshift state; the worker's own
    trace::counter runs;
    trace::counter steals;
    trace::counter failed_steals;
    trace::counter parks;
    trace::counter wakes;
    std::thread thread;
    fork_deque forks;

    std::size_t random_worker() noexcept {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return static_cast<std::size_t>(random % owner.workers.size());
    }
    void wake_one() noexcept {
        if (owner.lot.wake_one()) wakes.add();
    }

    // Work was found: none may sleep on while there is more.
    void rouse() noexcept {
        if (!owner.lot.has_sleepers()) return;
        owner.ask_all();
        if (!owner.looks_idle()) wake_one();
    }

    void loop() noexcept;
    bool sleep_or_end() noexcept;
    bool run_own() noexcept;
    found_work search() noexcept;
    found_work steal(bool grabs) noexcept;
    bool steal_call(worker& victim, taken_call& out, bool grabs) noexcept;
    bool help(std::uint32_t thief, bool urgent) noexcept;
    void run(const found_work& found) noexcept {
        runs.add();
        if (found.item != nullptr) {
            found.item->run(found.item);
        } else {
            found.call.run();
        }
    }
};

template <class Queues>
struct basic_pool<Queues>::shared final : fork_team {
    explicit shared(std::size_t threads) : queues(threads) {
        for (std::size_t i = 0; i != threads; ++i) {
            workers.push_back(std::make_unique<worker>(*this, i));
        }
    }
    ~shared() = default;

    Queues queues;
    std::vector<std::unique_ptr<worker>> workers;
    parking lot;
    in_flight calls;               // submissions that may still wake a worker
    atomic<bool> stopping{false};  // set once; read by workers before they sleep

    bool looks_idle() const noexcept {
        if (!queues.looks_empty()) return false;
        for (const auto& each : workers) {
            if (!each->forks.looks_empty() || !each->forks.looks_done()) return false;
        }
        return true;
    }
    // Forks that come later are published; those that came before are seen by looks_idle().
    void ask_all() noexcept {
        for (const auto& each : workers) each->forks.ask();
        heavy_fence();  // edge fork.request (heavy): asks, then looks at the heads
    }
    // By a worker that has just forked.
    void published() noexcept override { static_cast<worker*>(current_pool_worker())->wake_one(); }
    bool help(fork_deque& waiting, std::uint32_t thief, bool urgent) noexcept override {
        return workers[waiting.worker()]->help(thief, urgent);
    }
    void stop() noexcept {
        // Relaxed: ordered by the fences of parking, as work is. A worker that announces sleep sees
        // the flag, or wake_all() sees the worker.
        stopping.store(true, relaxed);
        lot.wake_all();
    }
    void join() noexcept {
        for (auto& each : workers) {
            if (each->thread.joinable()) each->thread.join();
        }
    }
};

// A call that the victim published; asks it if there is none, or publishes in its place.
template <class Queues>
bool basic_pool<Queues>::worker::steal_call(worker& victim, taken_call& out, bool grabs) noexcept {
    const fork_steal outcome = victim.forks.steal(out, static_cast<std::uint32_t>(index));
    if (outcome == fork_steal::taken) {
        steals.add();
        return true;
    }
    if (outcome == fork_steal::lost) failed_steals.add();
    if (grabs) {
        victim.forks.grab();
    } else {
        victim.forks.ask();
    }
    return false;
}

// One look at every other worker, from a random one on.
template <class Queues>
found_work basic_pool<Queues>::worker::steal(bool grabs) noexcept {
    found_work found;
    const std::size_t count = owner.workers.size();
    std::size_t victim = random_worker();
    for (std::size_t i = 0; i != count; ++i, victim = victim + 1 == count ? 0 : victim + 1) {
        if (victim == index) continue;
        const stolen<work_item> got = owner.queues.steal(index, victim);
        if (got.outcome == steal_outcome::taken) {
            steals.add();
            found.item = got.item;
            break;
        }
        if (got.outcome == steal_outcome::lost) failed_steals.add();
        if (steal_call(*owner.workers[victim], found.call, grabs)) break;
    }
    return found;
}

// For a join: forked calls only, first of the worker that runs what is waited for.
template <class Queues>
bool basic_pool<Queues>::worker::help(std::uint32_t thief, bool urgent) noexcept {
    found_work found;
    const std::size_t count = owner.workers.size();
    std::size_t victim = thief;
    for (std::size_t i = 0; i != count; ++i, victim = victim + 1 == count ? 0 : victim + 1) {
        if (victim == index) continue;
        if (!steal_call(*owner.workers[victim], found.call, urgent)) continue;
        rouse();
        run(found);
        return true;
    }
    return false;
}

template <class Queues>
found_work basic_pool<Queues>::worker::search() noexcept {
    found_work found;
    for (unsigned round = 0; round != search_rounds; ++round) {
        found.item = owner.queues.next(index);
        if (found.item == nullptr) found = steal(round + 1 == search_rounds || round == 1);
        if (found) break;
        for (unsigned pauses = 0; pauses != (4u << round) / 4; ++pauses) spin_hint();
    }
    return found;
}

// False: it has nothing to do of its own.
template <class Queues>
bool basic_pool<Queues>::worker::run_own() noexcept {
    found_work found;
    found.item = owner.queues.next(index);
    if (!found) return false;
    run(found);
    return true;
}

// The caller searched in vain. False: the pool ends.
template <class Queues>
bool basic_pool<Queues>::worker::sleep_or_end() noexcept {
    parking& lot = owner.lot;
    lot.announce_sleep();
    owner.ask_all();
    if (!owner.looks_idle()) {
        lot.cancel_sleep();
    } else if (owner.stopping.load(relaxed)) {
        // Nothing is queued; whoever still runs looks after what it submits.
        lot.cancel_sleep();
        (void)lot.end_search();
        if (owner.looks_idle()) return false;
        lot.begin_search();
    } else {
        parks.add();
        lot.sleep();
    }
    return true;
}

template <class Queues>
void basic_pool<Queues>::worker::loop() noexcept {
    current_pool_worker() = this;
    fork_deque::current() = &forks;
    for (;;) {
        while (run_own()) {
        }
        owner.lot.begin_search();
        found_work found;
        while (!(found = search())) {
            if (!sleep_or_end()) return;
        }
        if (owner.lot.end_search() && !owner.looks_idle()) wake_one();
        rouse();
        run(found);
    }
}

template <class Queues>
basic_pool<Queues>::basic_pool(std::size_t threads) {
    if (threads == 0) throw std::invalid_argument("coppice: a pool of no threads was asked for");
    shared_ = std::make_unique<shared>(threads);
    try {
        for (std::size_t i = 0; i != threads; ++i) {
            worker& w = *shared_->workers[i];
            w.thread = std::thread([&w] { w.loop(); });
            const std::string name = "coppice-pool/" + std::to_string(i % 100);
            ::pthread_setname_np(w.thread.native_handle(), name.c_str());
        }
    } catch (...) {
        shared_->stop();
        shared_->join();
        throw;
    }
}

template <class Queues>
basic_pool<Queues>::~basic_pool() {
    COPPICE_CHECK(!is_current(), "a pool was destroyed on one of its own workers");
    shared_->stop();
    shared_->join();
    shared_->calls.wait();
    // Only what came after request_stop() and found every worker gone can be left.
    while (work_item* const item = shared_->queues.next(0)) item->run(item);
}

template <class Queues>
void basic_pool<Queues>::submit(work_item& item) noexcept {
    if (is_current()) {
        worker& mine = *static_cast<worker*>(current_pool_worker());
        shared_->queues.push(mine.index, &item);
        mine.wake_one();
        return;
    }
    basic_pool::shared& s = *shared_;
    const in_flight::entry call(s.calls);  // item may run, and end the pool, before this returns
    s.queues.push_outside(&item);
    s.lot.wake_one();
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
    COPPICE_CHECK(index < size(), "counts() of a pool: no such worker");
    const worker& w = *shared_->workers[index];
    return {w.runs.read(), w.steals.read(), w.failed_steals.read(), w.parks.read(), w.wakes.read()};
}

template <class Queues>
bool basic_pool<Queues>::is_current() const noexcept {
    // A worker of another kind of pool has another owner, wherever in it that is written.
    const fork_deque* const forks = fork_deque::current();
    return forks != nullptr && &forks->team() == shared_.get();
}

}  // namespace coppice
