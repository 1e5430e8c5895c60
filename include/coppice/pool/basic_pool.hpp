// basic_pool: worker threads over one choice of queues; thread_pool and queue_pool are made of it.
#pragma once
// Workers run what is queued, search briefly when there is nothing, then sleep (parking.hpp) and
// use no processor time. Each also has a fork_deque, so fork_join and tasks fork alike on any pool.
//
// The end: request_stop(), and the destructor, let the workers run everything that is queued, and
// whatever that submits; then they end. What other threads submit from then on runs at once, on
// the thread that submits it. So every item that was submitted is run exactly once, and nobody
// waits for a worker that is gone.
//
// Nodes: on a machine with several memory nodes the workers are dealt to them. They look for work,
// and wake others, near before far. What is scheduled on a node starts there.
//
// Source: chapters 4 and 5 of the thesis; ours beyond.

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/any_scheduler.hpp>
#include <coppice/exec/scheduled_sender.hpp>
#include <coppice/pool/blocking_call.hpp>
#include <coppice/pool/bulk.hpp>
#include <coppice/pool/topology.hpp>
#include <coppice/pool/work_item.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace coppice {

// What one worker has done so far. Counts are exact once the pool is idle.
struct worker_counts {
    std::uint64_t runs = 0;           // items and stolen calls run
    std::uint64_t steals = 0;         // items and forked calls taken from another worker
    std::uint64_t far_steals = 0;     // those of them that came from another node
    std::uint64_t failed_steals = 0;  // lost to another thief or the owner
    std::uint64_t parks = 0;          // times it went to sleep
    std::uint64_t wakes = 0;          // times it woke another worker
};

namespace internal {

// The number of processors that this process may use, at least 1.
std::size_t hardware_threads() noexcept;

}  // namespace internal

// Where the system may run a worker: anywhere, on its node's processors, or on one of them alone.
enum class pinning { none, node, processor };

// How a pool is made, beyond the number of its threads.
struct pool_options {
    std::size_t threads = 0;  // 0: one for each processor of `machine`, or that may be used
    pinning pin = pinning::none;
    // The processors to deal the workers to, around and around. Without pinning it only says who is
    // near whom. Nothing: this process's if the workers are pinned, else one node.
    std::optional<topology> machine = std::nullopt;
    // Events that each worker keeps for write_trace(), 40 bytes each; 0: no trace.
    std::size_t trace_events = 0;
};

namespace internal {

// Threads: every member by any thread, unless it says otherwise. Lifetime: outlives what is
// submitted to it; the destructor waits for all of it and must not run on one of its own workers.
template <class Queues>
class [[gnu::visibility("default")]] basic_pool : immovable {
public:
    // How many processors this process may use; at least 1.
    static std::size_t hardware() noexcept { return hardware_threads(); }

    // Starts the workers. Errors: std::invalid_argument on 0, std::system_error when the system has
    // no more threads; nothing is left running then.
    explicit basic_pool(std::size_t threads = hardware_threads());
    // Errors: also std::invalid_argument if a processor to pin to may not be used by this process.
    explicit basic_pool(const pool_options& options);
    ~basic_pool();

    // Queues an item. Once the pool was told to end, an item that is not submitted by one of its
    // workers is run by the caller instead.
    // Blocks: never, but for the brief lock of a queue that has one; and while the caller runs it.
    // Cost: no allocation; a fence and a load when no worker sleeps, else one system call.
    void submit(work_item& item) noexcept;

    // Queues an item for the workers of a node alone, 0 to nodes() - 1, first in, first out. Once
    // the pool was told to end, a worker that submits it queues it for itself. The rest as above.
    // Errors: a node out of range stops the process.
    void submit(std::size_t node, work_item& item) noexcept;

    // The same; but false, and nothing was done, where submit() would let the caller run it.
    [[nodiscard]] bool try_submit(work_item& item) noexcept;
    [[nodiscard]] bool try_submit(std::size_t node, work_item& item) noexcept;

    // Runs f on a worker and waits for its result; on a worker of this pool, and once it was told
    // to end, runs it at once, on the calling thread. A token of fork_join that is in force for the
    // caller is not for f, wherever it runs.
    // Errors: rethrows what f throws. Blocks: until f has returned.
    template <class F>
    auto run(F f) -> std::invoke_result_t<F&> {
        if (is_current()) return call_here(f);
        function_call<F> call(f);
        if (!try_submit(call)) return call_here(f);
        return call.take();
    }

    // Tells the pool to end, as the destructor does, without waiting for the workers: they end once
    // nothing is queued. What others submit afterwards runs on the thread that submits it.
    void request_stop() noexcept;

    // The number of workers.
    std::size_t size() const noexcept;
    // Worker `index` of size(). Errors: an index out of range stops the process.
    worker_counts counts(std::size_t index) const noexcept;
    // True on a worker thread of this pool.
    bool is_current() const noexcept;
    // True on a worker thread of that node of this pool.
    bool is_current(std::size_t node) const noexcept;

    // How many nodes have a worker, and the system's number of one, for binding memory to it.
    // Errors: a node out of range stops the process.
    std::size_t nodes() const noexcept;
    unsigned node_number(std::size_t node) const noexcept;

    class scheduler;
    scheduler get_scheduler() noexcept;
    // The same, for a node: what is scheduled starts on one of its workers, what that forks may be
    // stolen by any. Errors: a node out of range stops the process.
    scheduler get_scheduler(std::size_t node) noexcept;

    // What the workers have recorded so far, as a file for Chrome's about:tracing or
    // ui.perfetto.dev: a line for each worker, with its runs, sleeps, steals and wakes.
    // Without pool_options::trace_events there is nothing on the lines.
    // Errors: std::system_error if the file cannot be written; std::bad_alloc.
    void write_trace(const std::string& path) const;

private:
    struct worker;
    struct node;
    struct shared;
    const fork_team* team() const noexcept;

    std::unique_ptr<shared> shared_;
};

// A handle to the pool, or a node of it; models execution::scheduler. Two are equal if they are of
// the same.
// Lifetime: the pool outlives its use.
template <class Queues>
class basic_pool<Queues>::scheduler {
public:
    using scheduler_concept = execution::scheduler_tag;
    using item_type = work_item;

    explicit scheduler(basic_pool& pool, std::size_t node = any_node) noexcept
        : pool_(&pool), node_(node) {}
    execution::scheduled_sender<scheduler> schedule() const noexcept {
        return execution::scheduled_sender<scheduler>(*this);
    }
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
    // Tasks on it let its workers run those that they wait for (task/wait_for_tasks.hpp).
    const fork_team* query(execution::get_fork_team_t) const noexcept { return pool_->team(); }
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
    static constexpr std::size_t any_node = ~std::size_t{0};
    basic_pool* pool_;
    std::size_t node_;
};

template <class Queues>
typename basic_pool<Queues>::scheduler basic_pool<Queues>::get_scheduler() noexcept {
    return scheduler(*this);
}

}  // namespace internal

}  // namespace coppice
