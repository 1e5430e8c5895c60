// A callable as a completion token: it is called with the error and the results.
#pragma once
// The operation's state is allocated with the callable's allocator, or with recycling_allocator if
// it has none. It is deallocated before the callable is called, so an operation that the callable
// initiates gets the same memory.
//
// The environment of the callable, execution::get_env(callable), may answer:
//   get_stop_token, get_deadline   when the operation gives up, with operation_canceled
//   get_allocator                  where the state is allocated
//   get_scheduler                  where the callable is called; otherwise the thread that
//                                  completes the operation calls it
//
// If an operation completes inside its initiating function, the callable is called before that
// function returns. Such a callable may initiate the next operation, which completes inside as
// well. That callable is called after the first one has returned, so a chain of any length uses
// constant stack. If the first one blocks in a function of this library, such as sync_wait or
// block, those that are queued behind it are called there, on top of it: so it must not hold a lock
// that they take, and a chain of callbacks that all block takes stack for each. They are not if it
// blocks by other means, such as std::future::get(): what it waits for must then not be behind it.
// A callback must not throw, because no caller could catch the exception.
//
// The thread that calls it may also be one on which it must not block: an event loop, the thread
// that made a stop request, or the thread of the process's timer. That thread calls the callbacks
// of the waits of room sync that a deadline has ended; while one of them blocks, no deadline of the
// process is noticed. Name a scheduler for a callback that may block.

#include <coppice/task/internal/frame_pool.hpp>

#include <cstddef>
#include <new>

namespace coppice {

// Allocates from the thread's frame_pool, which hands out freed memory again. Types that need more
// than its alignment of a cache line use operator new. Errors: std::bad_alloc.
template <class T>
class recycling_allocator {
    static constexpr bool is_pooled = alignof(T) <= internal::frame_pool::class_bytes;

public:
    using value_type = T;
    recycling_allocator() noexcept = default;
    template <class U>
    recycling_allocator(const recycling_allocator<U>&) noexcept {}
    // Returns uninitialized memory for `count` objects, aligned for T.
    T* allocate(std::size_t count) {
        if (count > ~std::size_t{0} / sizeof(T)) throw std::bad_array_new_length();
        if constexpr (is_pooled) {
            return static_cast<T*>(internal::frame_pool::allocate(count * sizeof(T)));
        } else {
            return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t(alignof(T))));
        }
    }
    // Gives back what allocate(count) returned, on any thread.
    void deallocate(T* memory, std::size_t count) noexcept {
        if constexpr (is_pooled) {
            internal::frame_pool::deallocate(memory, count * sizeof(T));
        } else {
            ::operator delete(memory, std::align_val_t(alignof(T)));
        }
    }
    template <class U>
    bool operator==(const recycling_allocator<U>&) const noexcept {
        return true;
    }
};

}  // namespace coppice
