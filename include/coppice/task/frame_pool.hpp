// Memory for coroutine frames: a per-thread free list for each size class; used by task promises.
#pragma once
// A frame is freed far more often by the thread that made it than by another, and frames of one
// coroutine have one size, so a thread's own list answers almost every request with two loads and a
// store. A frame freed on another thread stays with that thread. Each list is bounded; what exceeds
// it goes back to the system, so a thread that only frees cannot hoard. A frame has its cache lines
// to itself: one that a thief freed and uses again would else slow down its former neighbours.
//
// Source: ours; the idea is as old as slab allocators.

#include <coppice/base/atomic.hpp>

#include <cstddef>

namespace coppice {

// Threads: any; a frame may be freed on another thread than it was allocated on. Blocks: never,
// except where the system allocator does.
class frame_pool {
public:
    static constexpr std::size_t class_bytes = 64;         // of the size classes, and alignment
    static constexpr std::size_t pooled_bytes_max = 2048;  // larger frames go to operator new
    static constexpr unsigned frames_per_class_max = 256;  // kept by one thread in one class

    // At least `bytes` bytes, aligned to a cache line. Errors: std::bad_alloc.
    // Cost: no allocation when this thread has freed a frame of the class before.
    [[gnu::always_inline]] static void* allocate(std::size_t bytes) {
        const std::size_t index = class_of(bytes);
        if (index < class_count) [[likely]] {
            size_class& c = mine().classes[index];
            if (node* const frame = c.head) [[likely]] {
                unpoison(frame, index);
                c.head = frame->next;
                ++c.room;
                return frame;
            }
        }
        return allocate_slow(bytes);
    }

    // Takes back what allocate(bytes) gave.
    [[gnu::always_inline]] static void deallocate(void* memory, std::size_t bytes) noexcept {
        const std::size_t index = class_of(bytes);
        if (index < class_count) [[likely]] {
            size_class& c = mine().classes[index];
            if (c.room != 0) [[likely]] {
                push(c, memory, index);
                return;
            }
        }
        deallocate_slow(memory, bytes);
    }

private:
    static constexpr std::size_t class_count = pooled_bytes_max / class_bytes;

    struct node {
        node* next;
    };
    struct size_class {
        node* head = nullptr;
        unsigned room = 0;  // for so many more frames
    };
    // Trivially destructible, so that access needs no guard. There is no room before the thread's
    // clean-up is registered, nor after it (frame_pool.cpp): frames go straight back to the system.
    struct thread_lists {
        size_class classes[class_count];
        bool used = false;
    };
    struct cleanup;

    static std::size_t class_of(std::size_t bytes) noexcept { return (bytes - 1) / class_bytes; }
    static thread_lists& mine() noexcept { return thread_slot<frame_pool, thread_lists>(); }
    static void push(size_class& c, void* memory, std::size_t index) noexcept {
        node* const frame = static_cast<node*>(memory);
        frame->next = c.head;
        c.head = frame;
        --c.room;
        poison(frame, index);
    }
#if defined(__clang__)  // their callers then save no registers
    [[clang::preserve_most]] static void* allocate_slow(std::size_t bytes);
    [[clang::preserve_most]] static void deallocate_slow(void* memory, std::size_t bytes) noexcept;
#else
    static void* allocate_slow(std::size_t bytes);
    static void deallocate_slow(void* memory, std::size_t bytes) noexcept;
#endif

#if defined(__SANITIZE_ADDRESS__)
    static constexpr bool poisons = true;
#elif defined(__has_feature)
    static constexpr bool poisons = __has_feature(address_sanitizer);
#else
    static constexpr bool poisons = false;
#endif
    // A pooled frame is poisoned for AddressSanitizer, but for its link.
    static void poison(node* frame, std::size_t index) noexcept {
        if constexpr (poisons) poison_bytes(frame + 1, (index + 1) * class_bytes - sizeof(node));
    }
    static void unpoison(node* frame, std::size_t index) noexcept {
        if constexpr (poisons) unpoison_bytes(frame, (index + 1) * class_bytes);
    }
    static void poison_bytes(void* memory, std::size_t bytes) noexcept;
    static void unpoison_bytes(void* memory, std::size_t bytes) noexcept;
};

}  // namespace coppice
