// Where the frame of a task comes from, and the allocator that its promise names.
#pragma once
// A frame comes from the thread's pool, or from the allocator that is given to the coroutine after
// std::allocator_arg. The std::allocator_arg is the first parameter, or the first one after the
// object whose member function the coroutine is. The allocator may be of any type; a copy is kept
// behind the frame. Frames of the pool begin at a cache line, and given frames in the middle of
// one, so the address of a frame tells where its memory goes back to. Source: [task.promise],
// operator new, as changed by P3980R0.

#include <coppice/base/internal/cold_call.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/task/internal/frame_pool.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>

namespace coppice::execution::internal {

// The unit in which an allocator is asked for memory.
struct alignas(std::max_align_t) frame_unit {
    std::byte bytes[alignof(std::max_align_t)];
};

// The alignment of a frame that an allocator gave. Frames of the pool are aligned to a cache line.
inline constexpr std::size_t given_frame_align = frame_pool::class_bytes / 2;

// What lies behind a frame that an allocator gave.
struct given_frame_end {
    void (*deallocate)(given_frame_end& end) noexcept;
    frame_unit* memory;
    std::size_t units;
};

// Allocates frames from allocators of type Allocator.
template <class Allocator>
class given_frame {
    using traits = typename std::allocator_traits<Allocator>::template rebind_traits<frame_unit>;
    using rebound = typename traits::allocator_type;
    static_assert(std::is_pointer_v<typename traits::pointer>,
                  "the allocator of a coroutine's frame must give plain pointers");
    struct end_type : given_frame_end {
        explicit end_type(rebound&& from) noexcept : allocator(static_cast<rebound&&>(from)) {}
        [[no_unique_address]] rebound allocator;
    };
    static constexpr std::size_t unit = sizeof(frame_unit);
    static constexpr std::size_t units_of(std::size_t bytes) noexcept {
        return (bytes + unit - 1) / unit;
    }

public:
    static constexpr std::size_t line = frame_pool::class_bytes;
    static_assert(given_frame_align < line && alignof(end_type) <= unit);

    static void* allocate(std::size_t bytes, const Allocator& given) {
        rebound allocator(given);
        // One line more, because the frame begins in the middle of a line.
        const std::size_t units = units_of(line) + units_of(bytes) + units_of(sizeof(end_type));
        frame_unit* const memory = traits::allocate(allocator, units);
        frame_unit* frame = memory;
        while (reinterpret_cast<std::uintptr_t>(frame) % line != given_frame_align) ++frame;
        auto* const end = ::new (static_cast<void*>(frame + units_of(bytes)))
            end_type(static_cast<rebound&&>(allocator));
        end->deallocate = &deallocate;
        end->memory = memory;
        end->units = units;
        return frame;
    }
    static given_frame_end& end_of(void* frame, std::size_t bytes) noexcept {
        return *static_cast<given_frame_end*>(
            static_cast<void*>(static_cast<frame_unit*>(frame) + units_of(bytes)));
    }

private:
    static void deallocate(given_frame_end& base) noexcept {
        end_type& end = static_cast<end_type&>(base);
        rebound allocator(static_cast<rebound&&>(end.allocator));
        frame_unit* const memory = end.memory;
        const std::size_t units = end.units;
        end.~end_type();
        traits::deallocate(allocator, memory, units);
    }
};

template <class Allocator>
concept frame_allocator = requires(Allocator allocator) {
    typename Allocator::value_type;
    allocator.allocate(std::size_t{1});
};

// Base class of the promises of tasks.
class task_frame {
public:
    static void* operator new(std::size_t bytes) { return frame_pool::allocate(bytes); }
    template <frame_allocator Alloc, class... Args>
    static void* operator new(std::size_t bytes, std::allocator_arg_t, const Alloc& alloc,
                              const Args&...) {
        return given_frame<Alloc>::allocate(bytes, alloc);
    }
    template <class This, frame_allocator Alloc, class... Args>
        requires(!std::same_as<This, std::allocator_arg_t>)
    static void* operator new(std::size_t bytes, const This&, std::allocator_arg_t,
                              const Alloc& alloc, const Args&...) {
        return given_frame<Alloc>::allocate(bytes, alloc);
    }
    static void operator delete(void* memory, std::size_t bytes) noexcept {
        if (is_of_the_pool(memory)) [[likely]] {
            frame_pool::deallocate(memory, bytes);
        } else {
            give_back(memory, bytes);
        }
    }
    static bool is_of_the_pool(const void* frame) noexcept {
        return reinterpret_cast<std::uintptr_t>(frame) % frame_pool::class_bytes == 0;
    }

private:
    COPPICE_COLD_CALL static void give_back(void* memory, std::size_t bytes) noexcept {
        given_frame_end& end = given_frame<std::allocator<std::byte>>::end_of(memory, bytes);
        end.deallocate(end);
    }
};

// True if a coroutine with these parameters gets its frame from an allocator.
template <class... Args>
inline constexpr bool gives_frame = false;
template <frame_allocator Alloc, class... Args>
inline constexpr bool gives_frame<std::allocator_arg_t, Alloc, Args...> = true;
template <class This, frame_allocator Alloc, class... Args>
    requires(!std::same_as<This, std::allocator_arg_t>)
inline constexpr bool gives_frame<This, std::allocator_arg_t, Alloc, Args...> = true;

// The allocator that the coroutine was given, converted to Env's allocator_type. Used where the
// environment around the task has none.
template <class Allocator>
class task_frame_allocator {
public:
    task_frame_allocator() = default;
    template <class... Args>
    explicit task_frame_allocator(const Args&... args) noexcept : allocator_(find(args...)) {}
    const Allocator& allocator() const noexcept { return allocator_; }

private:
    template <class Alloc, class... Rest>
        requires std::constructible_from<Allocator, const Alloc&>
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
    task_frame_allocator() = default;
    template <class... Args>
    explicit task_frame_allocator(const Args&...) noexcept {}
    static std::allocator<std::byte> allocator() noexcept { return {}; }
};

}  // namespace coppice::execution::internal
