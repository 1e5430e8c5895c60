// uring_calls: the three system calls of io_uring, so that a test can imitate a kernel that fails.
#pragma once
// A context on io_uring normally makes the kernel's calls. A test passes its own calls to the
// context's constructor, to show what happens when the kernel is too old, forbids the ring, is out
// of memory, is interrupted, or ends a multishot request early.

#include <coppice/base/internal/namespaces.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice::io::internal {

// Each call returns what the kernel returns, or a negative errno. The base class makes the kernel's
// calls. Threads: the loop's; setup() also by the thread that makes the context.
class uring_calls {
public:
    // `parameters` points to the kernel's struct io_uring_params. Returns a file descriptor.
    virtual int setup(std::uint32_t entries, void* parameters) noexcept;
    virtual int enter(int ring, std::uint32_t submit, std::uint32_t least, std::uint32_t flags,
                      const void* argument, std::size_t size) noexcept;
    virtual int register_with(int ring, std::uint32_t what, void* argument,
                              std::uint32_t count) noexcept;

protected:
    ~uring_calls() = default;
};

// Returns the calls of the kernel that runs this program.
uring_calls& kernel_uring() noexcept;

}  // namespace coppice::io::internal
