// A malloc() that fails on demand for the files of this program that are linked with --wrap=malloc.
#pragma once
// One source of a program includes it. The copies that an environment gives MPI come from malloc().

#include <coppice/base/internal/atomic.hpp>

#include <cstddef>

namespace mpi_test {

inline constexpr std::size_t large_block = 4096;

// How many large blocks are left until one fails; 0 if none is to fail.
inline coppice::internal::atomic<std::size_t> blocks_until_failure{0};
inline thread_local bool blocks_fail_here = false;

// Makes the n-th call of malloc() for a large block from now on fail, on any thread.
inline void fail_large_block(std::size_t n) noexcept {
    blocks_until_failure.store(n, coppice::internal::relaxed);  // publishes nothing
}
// Revokes that. Returns true if the call has failed already.
inline bool large_block_has_failed() noexcept {
    return blocks_until_failure.exchange(0, coppice::internal::relaxed) == 0;
}
// Makes all calls of this thread fail, or none.
inline void fail_blocks_here(bool fail) noexcept {
    blocks_fail_here = fail;
}

inline bool block_fails(std::size_t size) noexcept {
    if (blocks_fail_here) return true;
    if (size < large_block) return false;
    std::size_t left = blocks_until_failure.load(coppice::internal::relaxed);
    while (left != 0 &&
           !blocks_until_failure.compare_exchange_weak(left, left - 1, coppice::internal::relaxed,
                                                       coppice::internal::relaxed)) {
    }
    return left == 1;
}

}  // namespace mpi_test

// The linker calls these two so.
extern "C" void* malloc_of_library(std::size_t size) asm("__real_malloc");
extern "C" void* malloc_of_program(std::size_t size) asm("__wrap_malloc");
extern "C" void* malloc_of_program(std::size_t size) {
    return mpi_test::block_fails(size) ? nullptr : malloc_of_library(size);
}
