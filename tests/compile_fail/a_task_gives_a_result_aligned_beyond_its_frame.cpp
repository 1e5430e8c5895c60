// expect: results and errors may be aligned to 64 bytes at most
// errors: 1
#include <coppice/task/task.hpp>

struct alignas(128) two_lines {};

coppice::task<two_lines> wrong() {
    co_return two_lines();
}
