// contract_timers: the timers of a contract_pool, in one wheel that the process's timer watches.
#pragma once
// A worker of a contract_pool sleeps in its group, in which the user's threads may execute
// contracts too. So no worker promises to wake for a timer, as workers of other pools do. Instead
// there is an alarm: a node of the process's timer that is set for the earliest tick of the wheel.
// When it rings, it enqueues the round, an item of the pool. The round enqueues the timers that are
// due, and sets the alarm again.
//
//   watched_   the tick at which a round is enqueued; never if none is; 0 while the round is
//              queued or runs. The round looks at the wheel again before it ends
//   alarm_at_  the tick for which the alarm is set, which may be earlier than watched_; never if it
//              is not set
//
// While all workers compute, the round waits. So the alarm is set again while a round is queued.
// When it rings then, it tells the receivers of the timers that are due (due_notice.hpp), and puts
// the timers into late_, from which the round enqueues them. A notice runs stop callbacks of users,
// which may wait for another timer. So timers without a notice go first, and a round gives its
// notices when it no longer counts as running.
//
// A call that finds the group ended runs the timer's item itself, after it has left the gate. The
// pool may be gone by then. So before, inside the gate, it waits for the timer's stop callback,
// which enters the gate too.
//
// The end. Each worker that ends closes the gate, and stops all timers, one by one: an item or a
// stop callback may wait for another timer, which another worker takes then. It goes on until no
// thread is inside the gate: one may run such a callback. A timer that is
// started later is stopped at once, also by a worker that still runs: the worker may wait for the
// timer, and would otherwise never end. pool_timers.hpp has the phases of a timer. Source: ours.

#include <coppice/base/internal/gate.hpp>
#include <coppice/base/internal/process_timer.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/contract/internal/scheduler.hpp>
#include <coppice/pool/internal/pool_timer.hpp>
#include <coppice/pool/internal/pool_timers.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace coppice::internal {

// A timer whose item is one of the group.
struct [[gnu::visibility("default")]] contract_timer : pool_timer, contract_item {
    explicit contract_timer(void (*function)(work_item*) noexcept, std::size_t) noexcept
        : pool_timer(function, any_node), contract_item(&run_timer) {}

    // Waits for a stop callback that runs on another thread. Called inside the gate, if the item
    // will run outside of it. Set before the timer is armed.
    void (*deregister)(pool_timer& timer) noexcept = nullptr;

private:
    static void run_timer(contract_item* item) noexcept {
        work_item* const timer = static_cast<contract_timer*>(item);
        timer->run(timer);
    }
};

// Threads: any, for every member, except where noted.
class [[gnu::visibility("default")]] contract_timers : immovable {
public:
    explicit contract_timers(contract_scheduler group) noexcept;

    // The three steps of a timer's operation, as in basic_pool.
    [[nodiscard]] bool begin(contract_timer& timer) noexcept;
    void arm(contract_timer& timer, std::int64_t when, std::int64_t now) noexcept;
    void stop(contract_timer& timer) noexcept;

    // Called by each worker as it ends, when the group has ended: stops all timers.
    void stop_all() noexcept;
    // Called when the workers have ended. Blocks: while the alarm rings, and while a thread that
    // the gate rejected still leaves.
    void end_watch() noexcept;

private:
    struct alarm final : process_timer_node {
        explicit alarm(contract_timers& t) noexcept
            : process_timer_node(&ring, in_child::is_forgotten), timers(t) {
            outlive_caller();
        }
        static void ring(process_timer_node& node) noexcept;
        contract_timers& timers;
    };
    struct round final : contract_item {
        explicit round(contract_timers& t) noexcept : contract_item(&serve), timers(t) {}
        static void serve(contract_item* item) noexcept;
        contract_timers& timers;
    };
    static constexpr std::uint64_t in_round = 0;
    // How late the round may be, in ticks, before the alarm takes its place: 1 ms.
    static constexpr std::uint64_t patience = pool_timers::patience;

    void watch(item_chain& ended) noexcept;
    [[nodiscard]] bool try_watch() noexcept;
    bool set_alarm(std::uint64_t tick);
    enum class task { nothing, enqueue_round, tell_late };  // of the alarm
    task begin_round(std::uint64_t now) noexcept;
    void tell_late(std::uint64_t now) noexcept;
    void put_late(item_chain& ended) noexcept;
    void take_late(item_chain& ended) noexcept;
    void leave_late(item_chain& ended) noexcept;
    void run_late() noexcept;
    void run_rejected(item_chain& rejected) noexcept;
    work_item* take_stopped() noexcept;
    void serve_stopped(contract_timer& timer) noexcept;
    void enqueue(item_chain& ended, item_chain& rejected) noexcept;
    void enqueue_and_leave(item_chain& ended) noexcept;
    static void run_here(item_chain& rejected) noexcept;

    const contract_scheduler group_;
    gate entry_;  // for calls that arm or stop a timer; closed by the first worker that ends
    timer_shard wheel_{biased_lock::initially::shared};
    std::mutex watch_mutex_;
    // See above; guarded by watch_mutex_, all four.
    std::uint64_t watched_ = timer_shard::never;
    std::uint64_t alarm_at_ = timer_shard::never;
    item_chain late_;
    item_chain untold_;  // stopped by the end, and want a notice
    alarm alarm_;
    round round_;
};

}  // namespace coppice::internal
