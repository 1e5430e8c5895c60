// Counts the allocations of the code under test; linked into every test executable.
#pragma once

#include <cstddef>

namespace coppice::test {

// Returns the calls of operator new on all threads since the process started. Threads: any.
std::size_t allocations() noexcept;

// Returns the number of allocations that are not freed yet. Threads: any.
std::size_t live_allocations() noexcept;

// Makes the n-th call of operator new from now on, on any other thread than the calling one, throw
// std::bad_alloc; the others succeed. Returns false under a sanitizer, which owns operator new.
bool fail_allocation(std::size_t n) noexcept;
// Revokes that. Returns true if the call has failed already.
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
