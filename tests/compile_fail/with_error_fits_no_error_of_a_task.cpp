// expect: Env's error_types name no error that this one converts to
// errors: 1
#include <coppice/task/task.hpp>

coppice::task<> wrong() {
    co_yield coppice::with_error(5);
}
