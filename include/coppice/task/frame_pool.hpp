// Memory for coroutine frames: a per-thread stack of free ones for each size class; for tasks.
#pragma once
// A frame is freed far more often by the thread that made it than by another, and frames of one
// coroutine have one size, so a thread's own stack answers almost every request with two loads and
// a store. A frame freed on another thread stays with that thread. Each stack is bounded; what
// exceeds it goes back to the system, so a thread that only frees cannot hoard. A frame has its
// cache lines to itself: one that a thief freed and uses again would else slow down its former
// neighbours.
//
// A stack is an array of pointers, no list through the frames: a list has to read the next frame
// before it can give the one after it, and recursion asks for one every few nanoseconds.
//
// Source: ours; the idea is as old as slab allocators.

#include <coppice/base/atomic.hpp>
#include <coppice/base/cold_call.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice::internal {

// Threads: any; a frame may be freed on another thread than it was allocated on. Blocks: never,
// except where the system allocator does.
class [[gnu::visibility("default")]] frame_pool {
public:
    static constexpr std::size_t class_bytes = 64;         // of the size classes, and alignment
    static constexpr std::size_t pooled_bytes_max = 2048;  // larger frames go to operator new
    static constexpr unsigned frames_per_class_max = 255;  // kept by one thread in one class

    // At least `bytes` bytes, aligned to a cache line. Errors: std::bad_alloc.
    // Cost: no allocation when this thread has freed a frame of the class before.
    [[gnu::always_inline]] static void* allocate(std::size_t bytes) {
        const std::size_t index = class_of(bytes);
        if (index < class_count) [[likely]] {
            void**& top = mine().tops[index];
            if (void* const frame = *top) [[likely]] {
                --top;
                unpoison(frame, index);
                return frame;
            }
        }
        void* const frame = allocate_slow(bytes);
        if (frame == nullptr) [[unlikely]]
            out_of_memory();
        return frame;
    }

    // Takes back what allocate(bytes) gave.
    [[gnu::always_inline]] static void deallocate(void* memory, std::size_t bytes) noexcept {
        const std::size_t index = class_of(bytes);
        if (index < class_count) [[likely]] {
            void**& top = mine().tops[index];
            void** const above = top + 1;
            if (reinterpret_cast<std::uintptr_t>(above) % sizeof(stack) != 0) [[likely]] {
                top = above;
                *above = memory;
                poison(memory, index);
                return;
            }
        }
        deallocate_slow(memory, bytes);
    }

private:
    static constexpr std::size_t class_count = pooled_bytes_max / class_bytes;

    // The lowest place holds no frame, and tells that the stack is empty. Aligned to its size: it
    // is full where the next place would be the lowest of another.
    struct alignas(2048) stack {
        void* places[1 + frames_per_class_max];
    };
    static_assert(sizeof(stack) == alignof(stack));
    // What a thread has that has no stack, before it frees a frame of the class and when it has
    // ended: empty and full.
    static inline constinit stack none{};
    static constexpr void** no_stack() noexcept { return none.places + frames_per_class_max; }
    // Trivially destructible, so that access needs no guard.
    struct thread_stacks {
        constexpr thread_stacks() noexcept {
            for (void**& top : tops) top = no_stack();
        }
        void** tops[class_count];
        bool ended = false;
    };
    struct cleanup;

    static std::size_t class_of(std::size_t bytes) noexcept { return (bytes - 1) / class_bytes; }
    static thread_stacks& mine() noexcept { return thread_slot<frame_pool, thread_stacks>(); }
    // nullptr: there is no memory.
    COPPICE_COLD_CALL static void* allocate_slow(std::size_t bytes) noexcept {
        return allocate_anew(bytes);
    }
    [[noreturn, gnu::cold]] static void out_of_memory();
    COPPICE_COLD_CALL static void deallocate_slow(void* memory, std::size_t bytes) noexcept {
        keep_or_free(memory, bytes);
    }
    static void* allocate_anew(std::size_t bytes) noexcept;
    static void keep_or_free(void* memory, std::size_t bytes) noexcept;

#if defined(__SANITIZE_ADDRESS__)
    static constexpr bool poisons = true;
#elif defined(__has_feature)
    static constexpr bool poisons = __has_feature(address_sanitizer);
#else
    static constexpr bool poisons = false;
#endif
    // A pooled frame is poisoned for AddressSanitizer.
    static void poison(void* frame, std::size_t index) noexcept {
        if constexpr (poisons) poison_bytes(frame, (index + 1) * class_bytes);
    }
    static void unpoison(void* frame, std::size_t index) noexcept {
        if constexpr (poisons) unpoison_bytes(frame, (index + 1) * class_bytes);
    }
    static void poison_bytes(void* memory, std::size_t bytes) noexcept;
    static void unpoison_bytes(void* memory, std::size_t bytes) noexcept;
};

}  // namespace coppice::internal
