// expect: where an allocator gives the frame
// errors: 1
#include <coppice/task/task.hpp>

#include <cstddef>
#include <memory>

struct alignas(64) line {};

coppice::task<line> wrong(std::allocator_arg_t, std::allocator<std::byte>) {
    co_return line();
}
