// Memory for coroutine frames: a per-thread stack of free ones for each size class; for tasks.
#pragma once
// A frame is mostly freed by the thread that allocated it, and all frames of one coroutine have one
// size. A thread's own stack therefore answers almost every request with two loads and a store. A
// frame that is freed on another thread stays with that thread. Each stack is bounded, and frames
// beyond the bound go back to the system, so a thread that only frees cannot hoard memory. A frame
// has its cache lines to itself. Otherwise a frame that a thief freed and reuses would slow down
// the owner of the frame beside it.
//
// A stack is an array of pointers, not a list through the frames. With a list, each request would
// have to read a frame to find the next one, and recursion asks for a frame every few nanoseconds.
//
// Source: ours; the idea is as old as slab allocators.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/cold_call.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice::internal {

// Threads: any; a frame may be freed on another thread than the one that allocated it. Blocks:
// never, except where the system allocator does.
class [[gnu::visibility("default")]] frame_pool {
public:
    static constexpr std::size_t class_bytes = 64;  // step of the size classes, and alignment
    static constexpr std::size_t pooled_bytes_max = 2048;  // larger frames go to operator new
    static constexpr unsigned frames_per_class_max = 255;  // kept by one thread in one class

    // Returns at least `bytes` bytes, aligned to a cache line. Errors: std::bad_alloc. Cost: no
    // allocation if this thread has a free frame of the size class.
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

    // Takes back what allocate(bytes) returned.
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

    // The lowest place holds no frame: its null pointer says that the stack is empty. A stack is
    // aligned to its size, so it is full when the next place would be the lowest of another stack.
    struct alignas(2048) stack {
        void* places[1 + frames_per_class_max];
    };
    static_assert(sizeof(stack) == alignof(stack));
    // Stands for the missing stack of a thread, until the thread frees a frame of the class and
    // after the thread has ended. It is both empty and full.
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
    // Returns nullptr if there is no memory.
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
    // Pooled frames are poisoned for AddressSanitizer.
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
