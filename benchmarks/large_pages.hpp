// An allocator that asks the kernel for pages of 2 MB.
#pragma once
// With pages of 4 KiB, the same loop over the same array takes up to 1.3 times longer in one
// process than in another, by which physical pages the process got. Within a large page, neighbors
// in the array are neighbors in physical memory. Without such pages (the kernel's setting `never`,
// or none free) the memory is ordinary.

#include <cstddef>
#include <new>

#include <sys/mman.h>

namespace bench {

template <class T>
struct large_page_allocator {
    using value_type = T;

    large_page_allocator() = default;
    template <class U>
    // NOLINTNEXTLINE(google-explicit-constructor): the standard asks for the conversion
    large_page_allocator(const large_page_allocator<U>&) noexcept {}

    T* allocate(std::size_t n) {
        void* const p = ::operator new(n * sizeof(T), std::align_val_t{alignment(n)});
        if (alignment(n) == large) madvise(p, n * sizeof(T), MADV_HUGEPAGE);
        return static_cast<T*>(p);
    }
    void deallocate(T* p, std::size_t n) noexcept {
        ::operator delete(p, std::align_val_t{alignment(n)});
    }
    template <class U>
    bool operator==(const large_page_allocator<U>&) const noexcept {
        return true;
    }

private:
    static constexpr std::size_t large = std::size_t{1} << 21;
    static constexpr std::size_t alignment(std::size_t n) {
        return n * sizeof(T) < large ? alignof(std::max_align_t) : large;
    }
};

}  // namespace bench
