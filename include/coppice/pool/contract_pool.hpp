// contract_pool: threads that execute a group of work contracts; a scheduler over contracts.
#pragma once
// Senders, tasks and contracts of its group run on the same workers, fairly beside each other. It
// has no deques: fork_join on its workers calls in order.
//
// The end: the destructor lets the workers go, runs what is scheduled on the destroying thread, and
// then destroys the group, which runs the release callables that have not run.

#include <coppice/base/lifetime.hpp>
#include <coppice/contract/blocking_group.hpp>
#include <coppice/contract/scheduler.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/pool/basic_pool.hpp>
#include <coppice/stop/inplace.hpp>

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
    explicit contract_pool(std::size_t threads = hardware_threads(),
                           std::size_t capacity = default_capacity);
    ~contract_pool();

    // A scheduler whose operations are contracts of the group. Lifetime: the pool's.
    contract_scheduler get_scheduler() noexcept { return group_.get_scheduler(); }
    // The group that the workers serve; make contracts there.
    blocking_work_contract_group& group() noexcept { return group_; }

    // Runs f on a worker and waits for its result; on a worker of this pool, runs it at once.
    // Errors: rethrows what f throws. Blocks: until f has returned.
    template <class F>
    auto run(F f) -> std::invoke_result_t<F&> {
        if (is_current()) return f();
        auto work = execution::then(execution::schedule(get_scheduler()),
                                    [&f]() -> std::invoke_result_t<F&> { return f(); });
        if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
            this_thread::sync_wait(std::move(work));
        } else {
            return std::get<0>(*this_thread::sync_wait(std::move(work)));
        }
    }

    // Lets the workers end after what they are at. What is scheduled afterwards runs in the
    // destructor.
    void request_stop() noexcept { stop_.request_stop(); }
    std::size_t size() const noexcept { return threads_.size(); }
    bool is_current() const noexcept;

private:
    void work() noexcept;

    blocking_work_contract_group group_;
    inplace_stop_source stop_;
    std::vector<std::thread> threads_;
};

}  // namespace coppice
