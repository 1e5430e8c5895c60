// basic_pool: worker threads over a choice of queues; the base of thread_pool and queue_pool.
#pragma once
// Workers run what is queued. If there is nothing, they search briefly, then sleep (parking.hpp)
// and use no processor time. Each also has a fork_deque, so fork_join and tasks fork alike on any
// pool.
//
// The end: after request_stop(), or in the destructor, the workers run everything that is queued
// and everything that this submits. Then they end. Items that other threads submit afterwards run
// at once, on the submitter's thread. So every submitted item runs exactly once, and no thread
// waits for a worker that has ended. Timers that are pending then, or started later, complete
// with set_stopped on the workers.
//
// Nodes: on a machine with several memory nodes the workers are dealt to them. A worker looks for
// work, and wakes others, on its own node first. Work scheduled on a node starts there.
//
// Source: chapters 4 and 5 of the thesis; ours beyond.

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/any_scheduler.hpp>
#include <coppice/exec/internal/scheduled_sender.hpp>
#include <coppice/exec/internal/try_scheduled_sender.hpp>
#include <coppice/pool/internal/blocking_call.hpp>
#include <coppice/pool/internal/bulk.hpp>
#include <coppice/pool/internal/pool_timer.hpp>
#include <coppice/pool/internal/pool_timer_sender.hpp>
#include <coppice/pool/internal/work_item.hpp>
#include <coppice/pool/topology.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace coppice {

// What one worker has done so far. The counts are exact once the pool is idle.
struct worker_counts {
    std::uint64_t runs = 0;           // items and stolen calls run
    std::uint64_t steals = 0;         // items and forked calls taken from another worker
    std::uint64_t far_steals = 0;     // steals from a worker of another node
    std::uint64_t failed_steals = 0;  // attempts lost to another thief or to the owner
    std::uint64_t parks = 0;          // times it went to sleep
    std::uint64_t wakes = 0;          // times it woke another worker
};

namespace internal {

// Returns the number of processors that this process may use, at least 1.
std::size_t hardware_threads() noexcept;

}  // namespace internal

// Where the system may run a worker: anywhere, on its node's processors, or on one processor only.
enum class pinning { none, node, processor };

// How a pool is made.
struct pool_options {
    // The number of workers. 0: one per processor of `machine`, or of those that may be used.
    std::size_t threads = 0;
    // Where the system may run each worker.
    pinning pin = pinning::none;
    // The processors to which the workers are dealt, in turn. Without pinning they only say which
    // workers are near each other. Default: those of this process if the workers are pinned, else
    // one node.
    std::optional<topology> machine = std::nullopt;
    // How many events each worker keeps for write_trace(). Units: 40 bytes each. 0: no trace.
    std::size_t trace_events = 0;
};

namespace internal {

// Threads: any thread may call every member, unless it says otherwise. Lifetime: the pool outlives
// what is submitted to it. Its destructor waits for all of that, and must not run on one of its own
// workers.
template <class Queues>
class [[gnu::visibility("default")]] basic_pool : immovable {
public:
    // Returns how many processors this process may use; at least 1.
    static std::size_t hardware() noexcept { return hardware_threads(); }

    // Starts the workers. Errors: std::invalid_argument for 0 threads; std::system_error if the
    // system has no more threads. After an error no worker is left running.
    explicit basic_pool(std::size_t threads = hardware_threads());
    // Starts the workers as the options say. Errors: also std::invalid_argument if this process may
    // not use a processor to which it would pin a worker.
    explicit basic_pool(const pool_options& options);
    ~basic_pool();

    // Queues an item. Once the pool was told to end, only its own workers queue items; other
    // callers run the item here. Blocks: never, except for the short lock of a queue that has one,
    // and while the caller runs the item. Cost: no allocation; a fence and a load if no worker
    // sleeps, else one system call.
    void submit(work_item& item) noexcept;

    // Queues an item, first in, first out, for the workers of one node only: 0 to nodes() - 1. Once
    // the pool was told to end, a worker that submits the item queues it for itself. Otherwise as
    // above. Errors: a node out of range stops the process.
    void submit(std::size_t node, work_item& item) noexcept;

    // Submit likewise, but return false and do nothing if submit() would make the caller run the
    // item.
    [[nodiscard]] bool try_submit(work_item& item) noexcept;
    [[nodiscard]] bool try_submit(std::size_t node, work_item& item) noexcept;

    // Runs f on a worker and waits for its result. Runs f at once on the calling thread if that is
    // a worker of this pool, or if the pool was told to end. In either case f does not inherit the
    // fork_join token of the caller. Errors: rethrows what f throws. Blocks: until f has returned.
    template <class F>
    auto run(F f) -> std::invoke_result_t<F&> {
        if (is_current()) return call_here(f);
        function_call<F> call(f);
        if (!try_submit(call)) return call_here(f);
        return call.take();
    }

    // Tells the pool to end, as the destructor does, without waiting for the workers. They end once
    // nothing is queued. Items that other threads submit afterwards run on the submitter's thread.
    void request_stop() noexcept;

    // Returns the number of workers.
    std::size_t size() const noexcept;
    // Returns the counts of worker `index` of size(). Errors: an index out of range stops the
    // process.
    worker_counts counts(std::size_t index) const noexcept;
    // Returns true on a worker thread of this pool.
    bool is_current() const noexcept;
    // Returns true on a worker thread of that node of this pool.
    bool is_current(std::size_t node) const noexcept;

    // Return how many nodes have a worker, and the system's number of one of them, for binding
    // memory to it. Errors: a node out of range stops the process.
    std::size_t nodes() const noexcept;
    unsigned node_number(std::size_t node) const noexcept;

    class scheduler;
    // Returns a scheduler whose work starts on any worker. Lifetime: the pool outlives its use.
    scheduler get_scheduler() noexcept;
    // Returns a scheduler for one node. What is scheduled starts on a worker of the node; what it
    // forks may be stolen by any worker. Errors: a node out of range stops the process.
    scheduler get_scheduler(std::size_t node) noexcept;

    // Writes what the workers have recorded so far to a file for Chrome's about:tracing or
    // ui.perfetto.dev: a line for each worker, with its runs, sleeps, steals, and wakes. The lines
    // are empty without pool_options::trace_events. Errors: std::system_error if the file cannot be
    // written; std::bad_alloc.
    void write_trace(const std::string& path) const;

private:
    struct worker;
    struct node;
    struct shared;
    const fork_team* team() const noexcept;
    // Queues an item as submit() does, for one node or for any_node. Returns false, and does
    // nothing, if that would block or allocate, or if the caller would have to run the item.
    [[nodiscard]] bool submit_without_blocking(std::size_t node, work_item& item) noexcept;

    // The three steps of a timer's operation. begin_timer() chooses the wheel; it returns false if
    // the pool was told to end, and the operation has completed as stopped. Then the operation
    // registers for a stop, which calls stop_timer(), on any thread. arm_timer() follows on the
    // thread of begin_timer(); the operation may have completed when it returns. Units:
    // nanoseconds of the monotonic clock.
    [[nodiscard]] bool begin_timer(pool_timer& timer) noexcept;
    void arm_timer(pool_timer& timer, std::int64_t when, std::int64_t now) noexcept;
    void stop_timer(pool_timer& timer) noexcept;
    void enqueue_ended(pool_timer& timer) noexcept;
    void make_ready(pool_timer& timer) noexcept;
    template <class Scheduler>
    friend class pool_timer_sender;

    std::unique_ptr<shared> shared_;
};

// A handle to the pool, or to one of its nodes; models execution::timed_scheduler. Two are equal if
// they are for the same pool and node. Lifetime: the pool outlives its use.
template <class Queues>
class basic_pool<Queues>::scheduler {
public:
    using scheduler_concept = execution::scheduler_tag;
    using item_type = work_item;
    using timer_type = pool_timer;

    explicit scheduler(basic_pool& pool, std::size_t node = any_node) noexcept
        : pool_(&pool), node_(node) {}
    // Returns a sender that completes on a worker. It completes with set_stopped if the stop was
    // requested before a worker reached it. Once the pool was told to end, it completes inside
    // start() on a thread that is not a worker. Cost: no allocation.
    execution::internal::scheduled_sender<scheduler> schedule() const noexcept {
        return execution::internal::scheduled_sender<scheduler>(*this);
    }
    // Returns a sender for which scheduling neither blocks nor allocates; see try_schedule. It
    // sends would_block_t while another thread holds the lock of the queue, and once the pool was
    // told to end. On a worker of a thread_pool it does so only if 1,024 items wait there as well.
    execution::internal::try_scheduled_sender<scheduler> try_schedule() const noexcept {
        return execution::internal::try_scheduled_sender<scheduler>(*this);
    }
    // Used by the senders. Submit an item; try_enqueue() returns false, and does nothing, if that
    // would block or allocate, or if the caller would have to run the item.
    [[nodiscard]] bool try_enqueue(work_item& item) const noexcept {
        return pool_->submit_without_blocking(node_, item);
    }
    // Return senders that complete on the pool, not before their time. They complete with
    // set_stopped on a stop request, at the deadline of the environment if that is earlier, and
    // when the pool is told to end. Threads: any, for the start and for the stop. Late: by up to 66
    // microseconds and what the system adds; longer while every worker is busy with a long item.
    // A timeout stops its sender even then, about a millisecond late, from the thread of the
    // process's timer. Order: a worker runs the earliest timer that it has found due first; times
    // within 66 microseconds count as equal.
    // Cost: O(1); no allocation; no lock if a worker starts it and the same worker stops it.
    pool_timer_sender<scheduler> schedule_after(execution::time_span span) const noexcept {
        return pool_timer_sender<scheduler>(*this, span);
    }
    pool_timer_sender<scheduler> schedule_at(execution::instant when) const noexcept {
        return pool_timer_sender<scheduler>(*this, when);
    }
    // Returns the current CLOCK_MONOTONIC time.
    execution::instant now() const noexcept { return execution::monotonic_now(); }
    void enqueue(work_item& item) const noexcept {
        if (node_ == any_node) {
            pool_->submit(item);
        } else {
            pool_->submit(node_, item);
        }
    }

    execution::forward_progress_guarantee query(
        execution::get_forward_progress_guarantee_t) const noexcept {
        return execution::forward_progress_guarantee::parallel;
    }
    // Lets the pool's workers run the tasks for which a task on it waits (task/wait_for_tasks.hpp).
    const fork_team* query(execution::internal::get_fork_team_t) const noexcept {
        return pool_->team();
    }
    // Lets the functions of a bulk that follows run in parallel (internal/bulk.hpp).
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
    template <class Scheduler>
    friend class internal::pool_timer_sender;
    static constexpr std::size_t any_node = pool_timer::any_node;
    basic_pool* pool_;
    std::size_t node_;
};

template <class Queues>
typename basic_pool<Queues>::scheduler basic_pool<Queues>::get_scheduler() noexcept {
    return scheduler(*this);
}

}  // namespace internal

}  // namespace coppice
