// wait_for_tasks: a task waits for several others, which run in parallel on a pool's workers.
#pragma once

#include <coppice/task/internal/waiter_for_tasks.hpp>
#include <coppice/task/task.hpp>

#include <type_traits>

namespace coppice::execution {

// `co_await wait_for_tasks(a, b, ...)` runs all tasks and continues when all have ended. They run
// in parallel if the scheduler of the waiting task is a pool and it runs on a worker of it;
// elsewhere they run one after the other. All have the same Env. Await the result in the expression
// that makes it.
//
// An l-value keeps its result; get it by co_await std::move(a) or std::move(a).get(). The results
// of the r-values are returned as a tuple, in order, with std::monostate for void. If there is no
// r-value, nothing is returned.
//
// Errors: throws the first error of an r-value, in order. The other tasks are not stopped. If a
// task is stopped, the waiting task is stopped too, when all have ended. Cost: no allocation; no
// atomic operation, except for children that run elsewhere.
template <class... Tasks>
    requires(sizeof...(Tasks) != 0) && (internal::is_task<std::remove_cvref_t<Tasks>> && ...)
internal::task_wait<Tasks...> wait_for_tasks(Tasks&&... tasks) noexcept {
    return internal::task_wait<Tasks...>(static_cast<Tasks&&>(tasks)...);
}

}  // namespace coppice::execution

namespace coppice {

using execution::wait_for_tasks;

}  // namespace coppice
