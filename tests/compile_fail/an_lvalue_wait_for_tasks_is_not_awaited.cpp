// expect: awaited once, and only as an r-value: write co_await std::move\(object\)
// errors: 1
#include <coppice/task/wait_for_tasks.hpp>

coppice::task<int> child();
coppice::task<> wrong() {
    auto kept = child();
    auto named = coppice::wait_for_tasks(kept, child());
    co_await named;
}
