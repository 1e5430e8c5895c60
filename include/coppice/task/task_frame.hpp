// Where the frame of a task comes from, and the allocator that its promise answers with.
#pragma once

#include <coppice/task/frame_pool.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace coppice::execution {

// Frames: from the thread's pool, or from the allocator that Env asks for and the caller passes
// behind std::allocator_arg. The allocator is kept behind the frame.
template <class Allocator>
class task_frame {
    using traits =
        typename std::allocator_traits<Allocator>::template rebind_traits<std::max_align_t>;
    using rebound = typename traits::allocator_type;

public:
    static void* operator new(std::size_t bytes)
        requires std::default_initializable<Allocator>
    {
        return allocate(bytes, Allocator());
    }
    template <class Alloc, class... Args>
        requires std::constructible_from<Allocator, const Alloc&>
    static void* operator new(std::size_t bytes, std::allocator_arg_t, const Alloc& alloc,
                              const Args&...) {
        return allocate(bytes, Allocator(alloc));
    }
    template <class This, class Alloc, class... Args>
        requires(!std::same_as<This, std::allocator_arg_t>) &&
                std::constructible_from<Allocator, const Alloc&>
    static void* operator new(std::size_t bytes, const This&, std::allocator_arg_t,
                              const Alloc& alloc, const Args&...) {
        return allocate(bytes, Allocator(alloc));
    }
    static void operator delete(void* memory, std::size_t bytes) noexcept {
        rebound* const kept = allocator_of(memory, bytes);
        rebound allocator(std::move(*kept));
        kept->~rebound();
        traits::deallocate(allocator, static_cast<std::max_align_t*>(memory), units(bytes));
    }

private:
    static constexpr std::size_t unit = sizeof(std::max_align_t);
    static std::size_t units(std::size_t bytes) noexcept {
        return (bytes + unit - 1) / unit + (sizeof(rebound) + unit - 1) / unit;
    }
    static rebound* allocator_of(void* memory, std::size_t bytes) noexcept {
        return static_cast<rebound*>(
            static_cast<void*>(static_cast<std::max_align_t*>(memory) + (bytes + unit - 1) / unit));
    }
    static void* allocate(std::size_t bytes, const Allocator& given) {
        rebound allocator(given);
        void* const memory = traits::allocate(allocator, units(bytes));
        ::new (static_cast<void*>(allocator_of(memory, bytes))) rebound(std::move(allocator));
        return memory;
    }
};
template <>
class task_frame<std::allocator<std::byte>> {
public:
    static void* operator new(std::size_t bytes) { return frame_pool::allocate(bytes); }
    static void operator delete(void* memory, std::size_t bytes) noexcept {
        frame_pool::deallocate(memory, bytes);
    }
};

// The allocator that a promise answers with.
template <class Allocator>
class task_frame_allocator {
public:
    task_frame_allocator() = default;
    template <class... Args>
    explicit task_frame_allocator(const Args&... args) noexcept : allocator_(find(args...)) {}
    const Allocator& allocator() const noexcept { return allocator_; }

private:
    template <class Alloc, class... Rest>
    static Allocator find(std::allocator_arg_t, const Alloc& alloc, const Rest&...) noexcept {
        return Allocator(alloc);
    }
    template <class First, class... Rest>
    static Allocator find(const First&, const Rest&... rest) noexcept {
        return find(rest...);
    }
    static Allocator find() noexcept { return Allocator(); }
    [[no_unique_address]] Allocator allocator_;
};
template <>
class task_frame_allocator<std::allocator<std::byte>> {
public:
    static std::allocator<std::byte> allocator() noexcept { return {}; }
};

}  // namespace coppice::execution
