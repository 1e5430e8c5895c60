// The slow paths of task/internal/frame_pool.hpp: the system allocator, and the end of a thread.
#include <coppice/base/lifetime.hpp>
#include <coppice/task/internal/frame_pool.hpp>

#include <new>
#include <utility>

// The runtime of the sanitizer, if the program is linked with it.
extern "C" {
[[gnu::weak]] void __asan_poison_memory_region(void const volatile*, std::size_t);
[[gnu::weak]] void __asan_unpoison_memory_region(void const volatile*, std::size_t);
}

namespace coppice::internal {

namespace {

void give_back(void* memory) noexcept {
    ::operator delete(memory, std::align_val_t(frame_pool::class_bytes));
}

}  // namespace

// Gives the frames of a thread back when the thread ends. Constructed only by threads that pool
// frames.
struct frame_pool::cleanup {
    ~cleanup() {
        thread_stacks& stacks = mine();
        stacks.ended = true;
        for (std::size_t i = 0; i != class_count; ++i) {
            void** top = std::exchange(stacks.tops[i], no_stack());
            if (top == no_stack()) continue;
            for (; *top != nullptr; --top) {
                unpoison(*top, i);
                give_back(*top);
            }
            delete reinterpret_cast<stack*>(top);
        }
    }
};

void* frame_pool::allocate_anew(std::size_t bytes) noexcept {
    const std::size_t index = class_of(bytes);
    try {
        return ::operator new(index < class_count ? (index + 1) * class_bytes : bytes,
                              std::align_val_t(class_bytes));
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void frame_pool::out_of_memory() {
    throw std::bad_alloc();
}

void frame_pool::keep_or_free(void* memory, std::size_t bytes) noexcept {
    const std::size_t index = class_of(bytes);
    thread_stacks& stacks = mine();
    const bool pools = index < class_count && !stacks.ended && stacks.tops[index] == no_stack();
    stack* const first = pools ? try_new<stack>() : nullptr;
    if (first == nullptr) {
        give_back(memory);  // too large, too late, full, or no memory for a stack
        return;
    }
    static thread_local cleanup at_thread_exit;
    (void)at_thread_exit;
    stacks.tops[index] = first->places;
    deallocate(memory, bytes);
}

void frame_pool::poison_bytes(void* memory, std::size_t bytes) noexcept {
    if (__asan_poison_memory_region != nullptr) __asan_poison_memory_region(memory, bytes);
}
void frame_pool::unpoison_bytes(void* memory, std::size_t bytes) noexcept {
    if (__asan_unpoison_memory_region != nullptr) __asan_unpoison_memory_region(memory, bytes);
}

}  // namespace coppice::internal
