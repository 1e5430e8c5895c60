// expect: awaited once, and only as an r-value: write co_await std::move\(object\)
// errors: 1
#include <coppice/task/task.hpp>

coppice::task<int> child();
coppice::task<int> wrong() {
    auto named = child();
    co_return co_await named;
}
