// contract_pool: threads that execute a group of work contracts; has a scheduler over contracts.
#pragma once
// Senders, tasks, and contracts of its group run on the same workers, and share them fairly. The
// workers have no fork_deques, so fork_join there is made by the default pool, while the worker
// waits.
//
// The end: request_stop() and the destructor begin to drain the group. The workers run what is
// pending, and then end; a contract runs at most once more. Work that is scheduled afterwards by
// the pool's scheduler runs at once, on the thread that schedules it. The destructor joins the
// workers and destroys the group, which runs the release callables that have not run.

#include <coppice/base/lifetime.hpp>
#include <coppice/contract/blocking_group.hpp>
#include <coppice/contract/internal/scheduler.hpp>
#include <coppice/pool/basic_pool.hpp>
#include <coppice/pool/internal/blocking_call.hpp>

#include <cstddef>
#include <thread>
#include <type_traits>
#include <vector>

namespace coppice {

// Threads: any thread may call every member. Lifetime: as thread_pool.
class contract_pool : immovable {
public:
    static constexpr std::size_t default_capacity = 1024;  // contracts that users make in the group

    // Errors: std::invalid_argument for 0 threads or contracts; std::system_error if the system has
    // no more threads.
    explicit contract_pool(std::size_t threads = internal::hardware_threads(),
                           std::size_t capacity = default_capacity);
    ~contract_pool();

    // Returns a scheduler whose operations run as items of the group.
    // Lifetime: the pool outlives its use.
    internal::contract_scheduler get_scheduler() noexcept { return group_.get_scheduler(); }
    // Returns the group that the workers execute; make contracts there.
    blocking_work_contract_group& group() noexcept { return group_; }

    // Runs f on a worker and waits for its result. Runs f at once on the calling thread if that is
    // a worker of this pool, or if the pool was told to end. In either case f does not inherit the
    // fork_join token of the caller. Errors: rethrows what f throws. Blocks: until f has returned.
    template <class F>
    auto run(F f) -> std::invoke_result_t<F&> {
        if (is_current()) return internal::call_here(f);
        internal::function_call<F, internal::contract_item> call(f);
        if (!get_scheduler().try_enqueue(call)) return internal::call_here(f);
        return call.take();
    }

    // Tells the pool to end, as the destructor does, without waiting for the workers. They end once
    // nothing is pending. The group is then in the state after begin_drain().
    void request_stop() noexcept { group_.begin_drain(); }
    std::size_t size() const noexcept { return threads_.size(); }
    bool is_current() const noexcept;

private:
    void work() noexcept;

    blocking_work_contract_group group_;
    std::vector<std::thread> threads_;
};

}  // namespace coppice
