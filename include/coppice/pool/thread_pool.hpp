// thread_pool: work-stealing workers that sleep when idle; the default place to run.
#pragma once
// Each worker owns a bounded deque: what a worker submits goes to its bottom and comes back last
// in, first out; idle workers steal the oldest item from the top of another's. What other threads
// submit, and what no longer fits into a deque, goes to the injector, a queue that all workers look
// into. Idle workers search briefly, then sleep (parking.hpp) and use no processor time.
//
// The end: the destructor lets the workers run everything that is queued, and whatever that
// submits, then joins them. Every item that was submitted is run exactly once.
//
// Source: chapters 4 and 5 of the thesis; ours beyond.

#include <coppice/base/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/scheduled_sender.hpp>
#include <coppice/pool/work_item.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace coppice {

// What one worker has done so far. Counts are exact once the pool is idle.
struct worker_counts {
    std::uint64_t runs = 0;           // items run
    std::uint64_t steals = 0;         // items taken from another worker
    std::uint64_t failed_steals = 0;  // lost to another thief or the owner
    std::uint64_t parks = 0;          // times it went to sleep
};

// Threads: every member by any thread, unless it says otherwise. Lifetime: outlives what is
// submitted to it; the destructor waits for all of it and must not run on one of its own workers.
class thread_pool : immovable {
public:
    // The number of threads that the machine runs at once, at least 1.
    static std::size_t hardware() noexcept;

    // Starts the workers. Errors: std::invalid_argument on 0, std::system_error when the system has
    // no more threads; nothing is left running then.
    explicit thread_pool(std::size_t threads = hardware());
    ~thread_pool();

    // Queues an item. Blocks: never, but for the injector's brief lock from outside the pool.
    // Cost: no allocation; a fence and a load when no worker sleeps, else one system call.
    void submit(work_item& item) noexcept;

    // Runs f on a worker and waits for its result; on a worker of this pool, runs it at once.
    // Errors: rethrows what f throws. Blocks: until f has returned.
    template <class F>
    auto run(F f) -> std::invoke_result_t<F&>;

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
    // Runs `item` on a worker and blocks until `done` says so.
    class blocking_call;

    std::unique_ptr<shared> shared_;
};

// A handle to the pool; models execution::scheduler. Two are equal if they are of one pool.
// Lifetime: the pool outlives its use.
class thread_pool::scheduler {
public:
    using scheduler_concept = execution::scheduler_tag;
    using item_type = work_item;

    explicit scheduler(thread_pool& pool) noexcept : pool_(&pool) {}
    execution::scheduled_sender<scheduler> schedule() const noexcept {
        return execution::scheduled_sender<scheduler>(*this);
    }
    void enqueue(work_item& item) const noexcept { pool_->submit(item); }

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
    thread_pool* pool_;
};

inline thread_pool::scheduler thread_pool::get_scheduler() noexcept {
    return scheduler(*this);
}

// The half of run() that is not a template: one item, and a futex to wait on.
class thread_pool::blocking_call : protected work_item {
public:
    explicit blocking_call(void (*function)(work_item*) noexcept) noexcept : work_item(function) {}

protected:
    ~blocking_call() = default;
    void submit_and_wait(thread_pool& pool) noexcept;
    void finish() noexcept;  // the last touch of the call by the worker

private:
    atomic<std::uint32_t> state_{0};  // 0: running, 1: running and the caller sleeps, 2: finished
};

template <class F>
auto thread_pool::run(F f) -> std::invoke_result_t<F&> {
    using result_type = std::invoke_result_t<F&>;
    if (is_current()) return f();
    struct call final : blocking_call {
        explicit call(F& function) noexcept : blocking_call(&invoke), function_(function) {}
        static void invoke(work_item* item) noexcept {
            call* const self = static_cast<call*>(item);
            try {
                if constexpr (std::is_void_v<result_type>) {
                    self->function_();
                } else {
                    self->result_.emplace(self->function_());
                }
            } catch (...) {
                self->error_ = std::current_exception();
            }
            self->finish();
        }
        using blocking_call::submit_and_wait;
        F& function_;
        std::exception_ptr error_;
        struct none {};
        std::optional<std::conditional_t<std::is_void_v<result_type>, none, result_type>> result_;
    };
    call c(f);
    c.submit_and_wait(*this);
    if (c.error_) std::rethrow_exception(c.error_);
    if constexpr (!std::is_void_v<result_type>) return std::move(*c.result_);
}

}  // namespace coppice
