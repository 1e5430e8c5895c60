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
#include <coppice/base/cold_call.hpp>

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
            node*& list = mine().lists[index];
            node* const frame = list;
            if (node* const next = frame->next) [[likely]] {
                list = next;
                unpoison(frame, index);
                return frame;
            }
        }
        return allocate_slow(bytes);
    }

    // Takes back what allocate(bytes) gave.
    [[gnu::always_inline]] static void deallocate(void* memory, std::size_t bytes) noexcept {
        const std::size_t index = class_of(bytes);
        if (index < class_count) [[likely]] {
            node*& list = mine().lists[index];
            unsigned room;
            if (!__builtin_sub_overflow(list->room, 1u, &room)) [[likely]] {
                push(list, memory, index, room);
                return;
            }
        }
        deallocate_slow(memory, bytes);
    }

private:
    static constexpr std::size_t class_count = pooled_bytes_max / class_bytes;

    struct node {
        node* next;
        unsigned room;  // how many frames may come in front of this one
    };
    // What ends a list, and is not a frame: only that has no next. No frame goes in front of the
    // first.
    static inline constinit node closed{nullptr, 0};
    static inline constinit node empty{nullptr, frames_per_class_max};
    // Trivially destructible, so that access needs no guard. The lists are closed before the
    // thread's clean-up is registered, and after it (frame_pool.cpp): frames go straight back to
    // the system.
    struct thread_lists {
        constexpr thread_lists() noexcept {
            for (node*& list : lists) list = &closed;
        }
        node* lists[class_count];
        bool used = false;
    };
    struct cleanup;

    static std::size_t class_of(std::size_t bytes) noexcept { return (bytes - 1) / class_bytes; }
    static thread_lists& mine() noexcept { return thread_slot<frame_pool, thread_lists>(); }
    static void push(node*& list, void* memory, std::size_t index, unsigned room) noexcept {
        node* const frame = static_cast<node*>(memory);
        frame->next = list;
        frame->room = room;
        list = frame;
        poison(frame, index);
    }
    COPPICE_COLD_CALL static void* allocate_slow(std::size_t bytes);
    COPPICE_COLD_CALL static void deallocate_slow(void* memory, std::size_t bytes) noexcept;

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
