// basic_pool: worker threads over one choice of queues; thread_pool and queue_pool are made of it.
#pragma once
// Workers run what is queued, search briefly when there is nothing, then sleep (parking.hpp) and
// use no processor time. Each also has a fork_deque, so fork_join and tasks fork alike on any pool.
//
// The end: the destructor lets the workers run everything that is queued, and whatever that
// submits, then joins them. Every item that was submitted is run exactly once.
//
// Source: chapters 4 and 5 of the thesis; ours beyond.

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/scheduled_sender.hpp>
#include <coppice/pool/blocking_call.hpp>
#include <coppice/pool/bulk.hpp>
#include <coppice/pool/work_item.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace coppice {

// What one worker has done so far. Counts are exact once the pool is idle.
struct worker_counts {
    std::uint64_t runs = 0;           // items and stolen calls run
    std::uint64_t steals = 0;         // items and forked calls taken from another worker
    std::uint64_t failed_steals = 0;  // lost to another thief or the owner
    std::uint64_t parks = 0;          // times it went to sleep
    std::uint64_t wakes = 0;          // times it woke another worker
};

// The number of threads that the machine runs at once, at least 1.
std::size_t hardware_threads() noexcept;

// Threads: every member by any thread, unless it says otherwise. Lifetime: outlives what is
// submitted to it; the destructor waits for all of it and must not run on one of its own workers.
template <class Queues>
class basic_pool : immovable {
public:
    static std::size_t hardware() noexcept { return hardware_threads(); }

    // Starts the workers. Errors: std::invalid_argument on 0, std::system_error when the system has
    // no more threads; nothing is left running then.
    explicit basic_pool(std::size_t threads = hardware_threads());
    ~basic_pool();

    // Queues an item. Blocks: never, but for the brief lock of a queue that has one.
    // Cost: no allocation; a fence and a load when no worker sleeps, else one system call.
    void submit(work_item& item) noexcept;

    // Runs f on a worker and waits for its result; on a worker of this pool, runs it at once.
    // Errors: rethrows what f throws. Blocks: until f has returned.
    template <class F>
    auto run(F f) -> std::invoke_result_t<F&> {
        if (is_current()) return f();
        function_call<F> call(f);
        submit(call);
        call.wait();
        return call.take();
    }

    // Lets workers end once nothing is queued, as the destructor does, without waiting for them.
    // What is submitted afterwards runs on a worker that has not ended, or in the destructor.
    void request_stop() noexcept;

    std::size_t size() const noexcept;
    // Worker `index` of size(). Errors: an index out of range stops the process.
    worker_counts counts(std::size_t index) const noexcept;
    // True on a worker thread of this pool.
    bool is_current() const noexcept;

    class scheduler;
    scheduler get_scheduler() noexcept;

private:
    struct worker;
    struct shared;

    std::unique_ptr<shared> shared_;
};

// A handle to the pool; models execution::scheduler. Two are equal if they are of one pool.
// Lifetime: the pool outlives its use.
template <class Queues>
class basic_pool<Queues>::scheduler {
public:
    using scheduler_concept = execution::scheduler_tag;
    using item_type = work_item;

    explicit scheduler(basic_pool& pool) noexcept : pool_(&pool) {}
    execution::scheduled_sender<scheduler> schedule() const noexcept {
        return execution::scheduled_sender<scheduler>(*this);
    }
    void enqueue(work_item& item) const noexcept { pool_->submit(item); }

    execution::forward_progress_guarantee query(
        execution::get_forward_progress_guarantee_t) const noexcept {
        return execution::forward_progress_guarantee::parallel;
    }
    // What follows runs bulk's functions side by side (bulk.hpp).
    pool_domain query(execution::get_domain_t) const noexcept { return {}; }
    pool_domain query(execution::get_completion_domain_t<execution::set_value_t>) const noexcept {
        return {};
    }
    template <class Tag>
        requires(!std::is_same_v<Tag, execution::set_error_t>)
    scheduler query(execution::get_completion_scheduler_t<Tag>) const noexcept {
        return *this;
    }
    friend bool operator==(const scheduler&, const scheduler&) noexcept = default;

private:
    basic_pool* pool_;
};

template <class Queues>
typename basic_pool<Queues>::scheduler basic_pool<Queues>::get_scheduler() noexcept {
    return scheduler(*this);
}

}  // namespace coppice
