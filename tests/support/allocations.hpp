// Counts what the code under test allocates; linked into every test executable.
#pragma once

#include <cstddef>

namespace coppice::test {

// Calls of operator new on all threads since the process started. Threads: any.
std::size_t allocations() noexcept;

// What was allocated and is not yet given back. Threads: any.
std::size_t live_allocations() noexcept;

// Counts the allocations made on all threads while it lives.
class allocation_count {
public:
    allocation_count() noexcept : before_(allocations()) {}
    std::size_t so_far() const noexcept { return allocations() - before_; }

private:
    std::size_t before_;
};

}  // namespace coppice::test
