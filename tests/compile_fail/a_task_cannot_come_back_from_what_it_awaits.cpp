// expect: cannot come back to it from this awaitable: give its await_suspend\(\)
// errors: 1
#include <coppice/task/task.hpp>

struct wants_the_tasks_own_handle {
    wants_the_tasks_own_handle(wants_the_tasks_own_handle&&) = delete;
    wants_the_tasks_own_handle();
    bool await_ready();
    void await_suspend(std::coroutine_handle<coppice::task<>::promise_type>);
    void await_resume();
};
coppice::task<> wrong() {
    co_await wants_the_tasks_own_handle();
}
