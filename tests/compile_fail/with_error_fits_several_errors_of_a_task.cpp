// expect: this error converts to several of Env's error_types: give one of them
// errors: 1
#include <coppice/task/task.hpp>

namespace ex = coppice::execution;

struct two_errors {
    using error_types = ex::completion_signatures<ex::set_error_t(int), ex::set_error_t(long)>;
};
coppice::task<void, two_errors> wrong() {
    co_yield coppice::with_error('c');
}
