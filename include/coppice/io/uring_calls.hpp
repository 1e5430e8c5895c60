// uring_calls: the three calls of io_uring, so that a test can stand in for a kernel that fails.
#pragma once
// A context on io_uring makes the kernel's calls. One that is made with calls of its own (context's
// constructor) shows what happens when the kernel is too old, forbids the ring, is out of memory,
// is interrupted, or ends a multishot request early.

#include <coppice/base/internal.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice::io::internal {

// Each gives what the kernel returns, or a negative errno. The base class makes the kernel's calls.
// Threads: the loop's; setup() also the one that makes the context.
class uring_calls {
public:
    // `parameters` is the kernel's struct io_uring_params; gives a file descriptor.
    virtual int setup(std::uint32_t entries, void* parameters) noexcept;
    virtual int enter(int ring, std::uint32_t submit, std::uint32_t least, std::uint32_t flags,
                      const void* argument, std::size_t size) noexcept;
    virtual int register_with(int ring, std::uint32_t what, void* argument,
                              std::uint32_t count) noexcept;

protected:
    ~uring_calls() = default;
};

// Those of the kernel that runs this program.
uring_calls& kernel_uring() noexcept;

}  // namespace coppice::io::internal
