// Replaces the global allocation functions with counting ones.
#include "allocations.hpp"

#include <coppice/base/internal/atomic.hpp>

#include <cstdlib>
#include <new>

namespace {

// Written by every allocating thread. Only the sums matter, so nothing depends on their order.
constinit coppice::internal::atomic<std::size_t> count{0};
constinit coppice::internal::atomic<std::size_t> returned{0};

// How many calls are left until one fails; 0 if none is to fail.
constinit coppice::internal::atomic<std::size_t> until_failure{0};
constinit thread_local bool spared = false;

void count_one() {
    count.fetch_add(1, coppice::internal::relaxed);
    if (until_failure.load(coppice::internal::relaxed) == 0 || spared) return;
    std::size_t left = until_failure.load(coppice::internal::relaxed);
    while (left != 0 &&
           !until_failure.compare_exchange_weak(left, left - 1, coppice::internal::relaxed,
                                                coppice::internal::relaxed)) {
    }
    if (left != 1) return;
    returned.fetch_add(1, coppice::internal::relaxed);  // there is nothing to free
    throw std::bad_alloc();
}

void* counted(std::size_t size) {
    count_one();
    if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
    throw std::bad_alloc();
}

void* counted_aligned(std::size_t size, std::align_val_t alignment) {
    count_one();
    const std::size_t unit = static_cast<std::size_t>(alignment);
    if (void* const memory = std::aligned_alloc(unit, (size + unit - 1) / unit * unit)) {
        return memory;
    }
    throw std::bad_alloc();
}

void give_back(void* memory) {
    if (memory == nullptr) return;
    returned.fetch_add(1, coppice::internal::relaxed);
    std::free(memory);
}

}  // namespace

std::size_t coppice::test::live_allocations() noexcept {
    return count.load(coppice::internal::relaxed) - returned.load(coppice::internal::relaxed);
}
std::size_t coppice::test::allocations() noexcept {
    return count.load(coppice::internal::relaxed);
}

bool coppice::test::fail_allocation(std::size_t n) noexcept {
    spared = true;
    until_failure.store(n, coppice::internal::relaxed);
    return true;
}
bool coppice::test::allocation_has_failed() noexcept {
    return until_failure.exchange(0, coppice::internal::relaxed) == 0;
}

void* operator new(std::size_t size) {
    return counted(size);
}
void* operator new[](std::size_t size) {
    return counted(size);
}
void* operator new(std::size_t size, std::align_val_t a) {
    return counted_aligned(size, a);
}
void* operator new[](std::size_t size, std::align_val_t a) {
    return counted_aligned(size, a);
}
void operator delete(void* memory) noexcept {
    give_back(memory);
}
void operator delete[](void* memory) noexcept {
    give_back(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    give_back(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    give_back(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    give_back(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
    give_back(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    give_back(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
    give_back(memory);
}
