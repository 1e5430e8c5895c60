// The workers behind basic_pool, and what they share; for pool_members.hpp.
#pragma once
// worker_search.hpp has the loop of a worker, and how it finds work, helps, and sleeps.
// worker_timers.hpp has what it does for timers.

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/asymmetric.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/fork_deque.hpp>
#include <coppice/base/internal/gate.hpp>
#include <coppice/pool/basic_pool.hpp>
#include <coppice/pool/internal/parking.hpp>
#include <coppice/pool/internal/pool_timers.hpp>
#include <coppice/pool/internal/ready_timers.hpp>
#include <coppice/pool/internal/timer_guard.hpp>
#include <coppice/pool/internal/work_queues.hpp>
#include <coppice/trace/counter.hpp>
#include <coppice/trace/event_log.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace coppice::internal {

// The worker, of any pool, that this thread is; nullptr if it is not a worker.
inline void*& current_pool_worker() noexcept {
    return thread_slot<struct pool_worker_slot, void*>();
}

inline std::int64_t trace_time() noexcept {
    return monotonic_clock().now().time_since_epoch().count();
}

// An item, a forked call, or nothing.
struct found_work {
    work_item* item = nullptr;
    bool of_node = false;  // the item was in the inbox of the worker's node
    taken_call call;
    explicit operator bool() const noexcept { return item != nullptr || call.call != nullptr; }
};

// When a busy worker reads the clock, to look for timers that are due. It does so after each item
// that takes long, and after every sixteenth of those that take about a microsecond.
class timer_looks {
public:
    // Returns true if the worker should look at its own timers now.
    bool is_time() noexcept { return --left_ == 0; }
    // Called instead of a look: the worker looks after the next item.
    void put_off() noexcept { left_ = interval_ = 1; }
    // Called when it looks. Returns true if it should look at the other wheels too, whose workers
    // may be busy with long items.
    bool looked(std::int64_t now) noexcept {
        interval_ = now - last_ < busy_time ? std::min(2 * interval_, interval_max) : 1;
        left_ = interval_;
        last_ = now;
        if (now - last_at_all_ < all_time) return false;
        last_at_all_ = now;
        return true;
    }

private:
    static constexpr unsigned interval_max = 16;
    static constexpr std::int64_t busy_time = 20'000;  // for interval_max items; nanoseconds
    static constexpr std::int64_t all_time = 131'072;  // two ticks

    unsigned left_ = 1;
    unsigned interval_ = 1;  // items between two looks
    std::int64_t last_ = 0;
    std::int64_t last_at_all_ = 0;
};

template <class Queues>
struct alignas(64) basic_pool<Queues>::worker {
    // How often an idle worker looks through all queues before it sleeps. It pauses longer each
    // time, about five microseconds in all, which is less than a sleep and a wake cost.
    static constexpr unsigned search_rounds = 8;
    // Once in this many items, a worker looks into its inbox first, so that a worker that feeds
    // itself does not starve the inbox.
    static constexpr unsigned inbox_interval = 61;
    // Once in this many items, other work goes before timers that are ready, so that a timer that
    // starts itself again, with a time that has passed, does not starve it.
    static constexpr unsigned timer_interval = 8;
    // A worker that has so many timers ready leaves the others in the wheels.
    static constexpr std::size_t ready_enough = 768;

    worker(basic_pool::shared& pool, std::size_t number, std::size_t node, std::size_t trace_events)
        : owner(pool),
          index(number),
          home(node),
          random(number * 0x9E3779B97F4A7C15u + 1),
          log(trace_events),
          forks(pool, static_cast<std::uint32_t>(number)) {}

    basic_pool::shared& owner;
    const std::size_t index;
    const std::size_t home;  // its node
    std::uint64_t random;    // xorshift state; used by the worker only
    unsigned turns = 0;      // used by the worker only
    trace::counter runs;
    trace::counter steals;
    trace::counter far_steals;
    trace::counter failed_steals;
    trace::counter parks;
    trace::counter wakes;
    trace::event_log log;
    std::thread thread;
    fork_deque forks;
    timer_looks looks;  // used by the worker only
    ready_timers ready;

    std::size_t random_below(std::size_t n) noexcept {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return static_cast<std::size_t>(random % n);
    }
    void note(const char* name, std::uint64_t value = trace::event::no_value) noexcept {
        if (log.enabled()) log.instant(trace_time(), name, value);
    }
    void wake_one() noexcept {
        if (!owner.lots.wake_one(home)) return;
        wakes.add();
        note("wake");
    }
    // Called after fence A or B: a timer that is due at `tick` may be unwatched. Wakes a worker
    // that will watch; if all are busy, the guard backs them.
    void watch(pool_timers::tick_type tick) noexcept {
        const parking_wake met = owner.lots.wake_one_fenced(home);
        if (met == parking_wake::busy) owner.guard.back(tick);
        if (met != parking_wake::woken) return;
        wakes.add();
        note("wake");
    }
    // Wakes likewise, after an item was pushed to this worker's queue. sleep_or_end() and rouse()
    // have the heavy fences.
    void wake_one_lightly() noexcept {
        if (!owner.lots.wake_one_lightly(home)) return;
        wakes.add();
        note("wake");
    }
    void count_steal(const worker& victim) noexcept {
        steals.add();
        if (victim.home != home) far_steals.add();
        note("steal", victim.index);
    }
    void count_failed_steal(const worker& victim) noexcept {
        failed_steals.add();
        note("failed steal", victim.index);
    }

    // Called when work was found. While there is more, no worker may continue to sleep.
    void rouse() noexcept {
        if (!owner.lots.has_sleepers()) return;
        owner.ask_all();
        if (!owner.looks_idle(home)) wake_one();
    }
    // Returns what the worker should do next from its own queues, without stealing.
    found_work next() noexcept {
        mutex_queue& inbox = owner.nodes[home]->inbox;
        if (++turns % inbox_interval == 0) {
            if (work_item* const item = inbox.pop()) return {item, true, {}};
        }
        if (ready.count() != 0 && turns % timer_interval != 0) {
            if (work_item* const item = ready.take()) return {item, false, {}};
        }
        const next_work got = owner.queues.next(index);
        if (got.others_too) wake_one();
        if (got.item != nullptr) return {got.item, false, {}};
        if (work_item* const item = inbox.pop()) return {item, true, {}};
        return {ready.take(), false, {}};
    }
    // Queues an item again that was found. The caller then wakes a worker.
    void put_back(const found_work& found) noexcept {
        if (found.of_node) {
            owner.nodes[home]->inbox.push(found.item);
        } else {
            owner.queues.push(index, found.item);
        }
    }

    template <class Try>
    bool try_others(std::size_t first, std::size_t count, Try&& try_one) noexcept;
    template <class Try>
    bool try_near_then_far(Try&& try_one) noexcept;
    void loop() noexcept;
    bool sleep_or_end() noexcept;
    bool run_own() noexcept;
    found_work search(item_chain& due) noexcept;
    found_work steal(bool grabs) noexcept;
    void take_timers(std::int64_t now, bool all, item_chain& due) noexcept;
    void make_ready(item_chain& due) noexcept;
    void run_timers(item_chain& due) noexcept;
    void end_search() noexcept;
    void look_between_items() noexcept;
    [[nodiscard]] bool look_after_end(const found_work& found) noexcept;
    void enqueue_at_node(pool_timer& timer) noexcept;
    bool steal_call(worker& victim, taken_call& out, bool grabs) noexcept {
        return stolen_call(victim, victim.forks.steal(out, number()), grabs);
    }
    bool stolen_call(worker& victim, fork_steal outcome, bool grabs) noexcept;
    std::uint32_t number() const noexcept { return static_cast<std::uint32_t>(index); }
    bool help(const fork_slot& awaited, worker& victim, bool urgent) noexcept;
    void run(const found_work& found) noexcept {
        runs.add();
        const bool traced = log.enabled() && log.begin(trace_time(), "run");
        if (found.item != nullptr) {
            found.item->run(found.item);
        } else {
            forks.run(found.call);
        }
        if (traced) log.end(traced, trace_time());
    }
};

// The workers of one node, which have consecutive numbers, and the queue that only they take from.
template <class Queues>
struct basic_pool<Queues>::node : immovable {
    explicit node(unsigned system_number, std::size_t first_worker) noexcept
        : number(system_number), first(first_worker) {}
    const unsigned number;
    const std::size_t first;
    std::size_t count = 0;  // workers of this node; set before any of them starts
    mutex_queue inbox;
};

template <class Queues>
struct basic_pool<Queues>::shared final : fork_team {
    // `homes` has the node of each worker, ascending.
    shared(const std::vector<unsigned>& homes, std::size_t trace_events)
        : queues(homes.size()),
          nodes(nodes_of(homes)),
          lots(nodes.size()),
          timers(homes.size()),
          guard(timers, lots) {
        for (std::size_t n = 0; n != nodes.size(); ++n) {
            for (std::size_t i = 0; i != nodes[n]->count; ++i) {
                workers.push_back(std::make_unique<worker>(*this, workers.size(), n, trace_events));
            }
        }
    }
    ~shared() = default;

    Queues queues;
    const std::vector<std::unique_ptr<node>> nodes;
    std::vector<std::unique_ptr<worker>> workers;
    parking_lots lots;
    pool_timers timers;
    gate entry;  // for submissions by other threads; closed by stop()
    timer_guard guard;

    static std::vector<std::unique_ptr<node>> nodes_of(const std::vector<unsigned>& homes) {
        std::vector<std::unique_ptr<node>> all;
        for (std::size_t i = 0; i != homes.size(); ++i) {
            if (all.empty() || all.back()->number != homes[i]) {
                all.push_back(std::make_unique<node>(homes[i], i));
            }
            ++all.back()->count;
        }
        return all;
    }
    // True if a worker of `home` would find nothing to do. May be stale.
    bool looks_idle(std::size_t home) const noexcept {
        if (!queues.looks_empty() || !nodes[home]->inbox.looks_empty()) return false;
        for (const auto& each : workers) {
            if (!each->forks.looks_empty() || !each->forks.looks_done()) return false;
            if (each->ready.count() != 0) return false;
        }
        return true;
    }
    // Asks all deques. Later forks are published; looks_idle() sees the earlier ones. A lone worker
    // is not asked: no other worker could take its calls.
    void ask_all() noexcept {
        if (workers.size() != 1) {
            for (const auto& each : workers) each->forks.ask();
        }
        // edge fork.request (heavy), edge parking.light (heavy): asks, then looks at the heads
        heavy_fence();
    }
    // Called on a worker that has just forked.
    void published() noexcept override { static_cast<worker*>(current_pool_worker())->wake_one(); }
    bool help(fork_deque& waiting, const fork_slot& awaited, std::uint32_t thief,
              bool urgent) noexcept override {
        return workers[waiting.worker()]->help(awaited, *workers[thief], urgent);
    }
    std::size_t size() const noexcept override { return workers.size(); }
    bool enqueue(work_item& item) noexcept override {
        worker& mine = *static_cast<worker*>(current_pool_worker());
        queues.push(mine.index, &item);
        mine.wake_one();
        return true;
    }
    void stop() noexcept {
        // The fences of parking order the closed gate as they order work: either a worker that
        // announces sleep sees it, or wake_all() sees the worker.
        entry.close();
        lots.wake_all();
    }
    void join() noexcept {
        for (auto& each : workers) {
            if (each->thread.joinable()) each->thread.join();
        }
    }
};

}  // namespace coppice::internal
