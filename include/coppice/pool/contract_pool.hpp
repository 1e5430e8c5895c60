// contract_pool: threads that execute a group of work contracts; a scheduler over contracts.
#pragma once
// Senders, tasks and contracts of its group run on the same workers, fairly beside each other. It
// has no deques: fork_join on its workers calls in order.
//
// The end: request_stop(), and the destructor, begin to drain the group. The workers run what is
// pending, and then end; a contract runs once more at most. What is scheduled from then on by the
// pool's scheduler runs at once, on the thread that schedules it. The destructor joins the workers
// and destroys the group, which runs the release callables that have not run.

#include <coppice/base/lifetime.hpp>
#include <coppice/contract/blocking_group.hpp>
#include <coppice/contract/scheduler.hpp>
#include <coppice/pool/basic_pool.hpp>
#include <coppice/pool/blocking_call.hpp>

#include <cstddef>
#include <thread>
#include <type_traits>
#include <vector>

namespace coppice {

// Threads: every member by any thread. Lifetime: as thread_pool.
class contract_pool : immovable {
public:
    static constexpr std::size_t default_capacity = 1024;  // contracts of the group's users

    // Errors: std::invalid_argument on 0 threads or contracts, std::system_error without threads.
    explicit contract_pool(std::size_t threads = internal::hardware_threads(),
                           std::size_t capacity = default_capacity);
    ~contract_pool();

    // A scheduler whose operations are contracts of the group. Lifetime: the pool's.
    internal::contract_scheduler get_scheduler() noexcept { return group_.get_scheduler(); }
    // The group that the workers serve; make contracts there.
    blocking_work_contract_group& group() noexcept { return group_; }

    // Runs f on a worker and waits for its result; on a worker of this pool, and once it was told
    // to end, runs it at once, on the calling thread. A token of fork_join that is in force for the
    // caller is not for f, wherever it runs.
    // Errors: rethrows what f throws. Blocks: until f has returned.
    template <class F>
    auto run(F f) -> std::invoke_result_t<F&> {
        if (is_current()) return internal::call_here(f);
        internal::function_call<F, internal::contract_item> call(f);
        if (!get_scheduler().try_enqueue(call)) return internal::call_here(f);
        return call.take();
    }

    // Tells the pool to end, as the destructor does, without waiting for the workers: they end once
    // nothing is pending. The group is then as after begin_drain().
    void request_stop() noexcept { group_.begin_drain(); }
    std::size_t size() const noexcept { return threads_.size(); }
    bool is_current() const noexcept;

private:
    void work() noexcept;

    blocking_work_contract_group group_;
    std::vector<std::thread> threads_;
};

}  // namespace coppice
