// Counts what the code under test allocates; linked into every test executable.
#pragma once

#include <cstddef>

namespace coppice::test {

// Calls of operator new on all threads since the process started. Threads: any.
std::size_t allocations() noexcept;

// What was allocated and is not yet given back. Threads: any.
std::size_t live_allocations() noexcept;

// The n-th call of operator new from now on, on any other thread than the calling one, throws
// std::bad_alloc; the others succeed. False: under a sanitizer, which owns operator new.
bool fail_allocation(std::size_t n) noexcept;
// Takes that back. True: it has failed already.
bool allocation_has_failed() noexcept;

// Counts the allocations made on all threads while it lives.
class allocation_count {
public:
    allocation_count() noexcept : before_(allocations()) {}
    std::size_t so_far() const noexcept { return allocations() - before_; }

private:
    std::size_t before_;
};

}  // namespace coppice::test
