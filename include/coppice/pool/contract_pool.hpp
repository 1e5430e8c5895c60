// contract_pool: threads that execute a group of work contracts; has a scheduler over contracts.
#pragma once
// Senders, tasks, and contracts of its group run on the same workers, and share them fairly. The
// workers have no fork_deques, so fork_join there is made by the default pool, while the worker
// waits.
//
// The end: request_stop() and the destructor begin to drain the group. The workers run what is
// pending, and then end; a contract runs at most once more. Work that a worker schedules afterwards
// by the pool's scheduler runs when the worker has returned from its item, or before it sleeps in
// this library. On any other thread it runs at once, where it is scheduled. The destructor joins
// the workers and destroys the group, which runs the release callables that have not run. Timers
// that are pending then, or started later, complete with set_stopped.

#include <coppice/base/lifetime.hpp>
#include <coppice/contract/blocking_group.hpp>
#include <coppice/contract/internal/scheduler.hpp>
#include <coppice/exec/internal/scheduled_sender.hpp>
#include <coppice/exec/internal/try_scheduled_sender.hpp>
#include <coppice/pool/basic_pool.hpp>
#include <coppice/pool/internal/blocking_call.hpp>
#include <coppice/pool/internal/contract_timers.hpp>
#include <coppice/pool/internal/pool_timer_sender.hpp>

#include <cstddef>
#include <thread>
#include <type_traits>
#include <vector>

namespace coppice {

// Threads: any thread may call every member. Lifetime: as thread_pool.
class contract_pool : immovable {
public:
    static constexpr std::size_t default_capacity = 1024;  // contracts that users make in the group

    // Starts the workers. Errors: std::invalid_argument for 0 threads or contracts;
    // std::system_error if the system has no more threads.
    explicit contract_pool(std::size_t threads = internal::hardware_threads(),
                           std::size_t capacity = default_capacity);
    ~contract_pool();

    class scheduler;
    // Returns a scheduler whose operations run as items of the group. Unlike that of the group, it
    // has timers. Lifetime: the pool outlives its use.
    scheduler get_scheduler() noexcept;
    // Returns the group that the workers execute; make contracts there.
    blocking_work_contract_group& group() noexcept { return group_; }

    // Runs f on a worker and waits for its result. Runs f at once on the calling thread if that is
    // a worker of this pool, or if the pool was told to end. In either case f does not inherit the
    // fork_join token of the caller. Errors: rethrows what f throws. Blocks: until f has returned.
    template <class F>
    auto run(F f) -> std::invoke_result_t<F&> {
        if (is_current()) return internal::call_here(f);
        internal::function_call<F, internal::contract_item> call(f);
        if (!group_.get_scheduler().enqueue_if_open(call)) return internal::call_here(f);
        return call.take();
    }

    // Tells the pool to end, as the destructor does, without waiting for the workers. They end once
    // nothing is pending. The group is then in the state after begin_drain().
    void request_stop() noexcept { group_.begin_drain(); }
    // Returns the number of workers.
    std::size_t size() const noexcept { return threads_.size(); }
    // Returns true on a worker thread of this pool.
    bool is_current() const noexcept;

private:
    template <class Scheduler>
    friend class internal::pool_timer_sender;

    void work() noexcept;
    void enqueue(internal::contract_item& item) noexcept;
    // As in basic_pool.
    [[nodiscard]] bool begin_timer(internal::contract_timer& timer) noexcept {
        return timers_.begin(timer);
    }
    void arm_timer(internal::contract_timer& timer, std::int64_t when, std::int64_t now) noexcept {
        timers_.arm(timer, when, now);
    }
    void stop_timer(internal::contract_timer& timer) noexcept { timers_.stop(timer); }

    blocking_work_contract_group group_;
    internal::contract_timers timers_{group_.get_scheduler()};
    std::vector<std::thread> threads_;
};

// A handle to the pool; models execution::timed_scheduler. Two are equal if they are for the same
// pool. Lifetime: the pool outlives its use.
class contract_pool::scheduler {
public:
    using scheduler_concept = execution::scheduler_tag;
    using item_type = internal::contract_item;
    using timer_type = internal::contract_timer;

    explicit scheduler(contract_pool& pool) noexcept : pool_(&pool) {}
    execution::internal::scheduled_sender<scheduler> schedule() const noexcept {
        return execution::internal::scheduled_sender<scheduler>(*this);
    }
    // Returns a sender for which scheduling neither blocks nor allocates; see try_schedule. It
    // sends would_block_t while 32 operations wait and another thread holds the lock of the queue
    // behind them, and once the pool was told to end.
    execution::internal::try_scheduled_sender<scheduler> try_schedule() const noexcept {
        return execution::internal::try_scheduled_sender<scheduler>(*this);
    }
    [[nodiscard]] bool try_enqueue(item_type& item) const noexcept {
        return pool_->group_.get_scheduler().try_enqueue(item);
    }
    // Used by the senders: has a thread that executes the group run the item. Once the pool was
    // told to end, a worker runs what it enqueues itself, when it has returned from its item.
    void enqueue(item_type& item) const noexcept { pool_->enqueue(item); }
    // Return senders that complete on a thread that executes the group, not before their time. They
    // complete with set_stopped on a stop request, at the deadline of the environment if that is
    // earlier, when the pool is told to end, and if the system has no thread for the timer of the
    // process, which wakes the pool. Threads: any, for the start and for the stop. Late: by up to
    // 66 microseconds and what the system adds; longer while every worker is busy. Cost: O(1); no
    // allocation; a short lock of the pool.
    internal::pool_timer_sender<scheduler> schedule_after(
        execution::time_span span) const noexcept {
        return internal::pool_timer_sender<scheduler>(*this, span);
    }
    internal::pool_timer_sender<scheduler> schedule_at(execution::instant when) const noexcept {
        return internal::pool_timer_sender<scheduler>(*this, when);
    }
    // Returns the current CLOCK_MONOTONIC time.
    execution::instant now() const noexcept { return execution::monotonic_now(); }

    execution::forward_progress_guarantee query(
        execution::get_forward_progress_guarantee_t) const noexcept {
        return execution::forward_progress_guarantee::parallel;
    }
    template <class Tag>
        requires(!std::is_same_v<Tag, execution::set_error_t>)
    scheduler query(execution::get_completion_scheduler_t<Tag>) const noexcept {
        return *this;
    }
    friend bool operator==(const scheduler&, const scheduler&) noexcept = default;

private:
    template <class Scheduler>
    friend class internal::pool_timer_sender;
    static constexpr std::size_t node_ = internal::pool_timer::any_node;
    contract_pool* pool_;
};

inline contract_pool::scheduler contract_pool::get_scheduler() noexcept {
    return scheduler(*this);
}

}  // namespace coppice
