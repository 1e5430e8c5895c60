// An allocator of tests that logs how much was made of it and is alive, and fails on request.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace probes {

// An allocator's log: counts live allocations; allocating throws if `fails`.
struct allocation_log {
    int made = 0;
    int live = 0;
    bool fails = false;
};
template <class T>
struct logging_allocator {
    using value_type = T;
    explicit logging_allocator(allocation_log& l) noexcept : log(&l) {}
    template <class U>
    logging_allocator(const logging_allocator<U>& other) noexcept : log(other.log) {}
    T* allocate(std::size_t n) {
        if (log->fails) throw std::bad_alloc();
        ++log->made;
        ++log->live;
        return std::allocator<T>().allocate(n);
    }
    void deallocate(T* p, std::size_t n) noexcept {
        --log->live;
        std::allocator<T>().deallocate(p, n);
    }
    template <class U>
    bool operator==(const logging_allocator<U>& other) const noexcept {
        return log == other.log;
    }
    allocation_log* log;
};

}  // namespace probes
