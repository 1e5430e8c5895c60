// The kernel's side of io/internal/uring_calls.hpp.
#include <coppice/io/internal/uring_calls.hpp>

#include "uring_abi.hpp"

#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>

namespace coppice::io::internal {

namespace {

int outcome(long returned) noexcept {
    return returned < 0 ? -errno : static_cast<int>(returned);
}

class kernel_uring_calls final : public uring_calls {};

}  // namespace

int uring_calls::setup(std::uint32_t entries, void* parameters) noexcept {
    return outcome(::syscall(uring::syscall_setup, entries, parameters));
}
int uring_calls::enter(int ring, std::uint32_t submit, std::uint32_t least, std::uint32_t flags,
                       const void* argument, std::size_t size) noexcept {
    return outcome(::syscall(uring::syscall_enter, ring, submit, least, flags, argument, size));
}
int uring_calls::register_with(int ring, std::uint32_t what, void* argument,
                               std::uint32_t count) noexcept {
    return outcome(::syscall(uring::syscall_register, ring, what, argument, count));
}

uring_calls& kernel_uring() noexcept {
    static kernel_uring_calls calls;
    return calls;
}

}  // namespace coppice::io::internal
