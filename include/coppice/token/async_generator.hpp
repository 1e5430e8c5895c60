// async_generator<T>: a coroutine that yields elements, and awaits between them.
#pragma once
// The body may co_await everything that a task may, and yields an element by `co_yield x`. The
// consumer requests the next element by `next()`, and the body runs only during that call:
//
//   while (std::optional<T> item = co_await numbers.next()) use(*item);
//
// During a next(), the body behaves like a task that the waiter awaits. It is affine: it runs on
// the scheduler of the waiter for this element. It observes the stop token, the deadline, and the
// timed scheduler of that waiter. A stop ends the body where it waits; the next() is then stopped,
// and the generator has ended. A generator that has ended yields no element.
//
// It is in this room, not in task, because next() takes a completion token. Source: ours; P2300R10
// names the need, and cppcoro had the type, whose iterators only coroutines can use.

#include <coppice/task/internal/async_generator_next.hpp>
#include <coppice/token/internal/next_initiation.hpp>
#include <coppice/token/transform.hpp>

#include <coroutine>
#include <type_traits>
#include <utility>

namespace coppice {

// A coroutine of elements of type T, an object type or a reference. Env is that of a task. Frames
// come from the thread's pool, or from an allocator that follows std::allocator_arg.
//
// Move-only. Threads: one at a time; several may take turns. Cost: a frame; nothing is allocated
// for an element. Lifetime: may be destroyed between two calls of next(), which destroys the
// variables of the body where it waits. Misuse: moving or destroying it during a next() stops the
// process.
template <class T, class Env = execution::env<>>
class [[nodiscard]] async_generator : execution::internal::async_generator_body<T, Env> {
    using base_type = execution::internal::async_generator_body<T, Env>;
    static_assert(std::is_reference_v<T> ||
                      (std::is_object_v<T> && std::is_same_v<T, std::remove_cv_t<T>>),
                  "async_generator<T>: T is a reference, or an object type without const or "
                  "volatile");

public:
    using promise_type = typename base_type::promise_type;
    // The result of next(): std::optional<T>, or for a reference a pointer, null at the end.
    using item_type = execution::internal::item_of_t<T>;

    async_generator(async_generator&& other) noexcept = default;
    async_generator& operator=(async_generator&& other) noexcept {
        async_generator(std::move(other)).swap(*this);
        return *this;
    }
    void swap(async_generator& other) noexcept { base_type::swap(other); }

    // Completes with the next element, or with nothing at the end and each time after it. An
    // element that is returned by pointer lives until the following next(). What a stop loses: the
    // rest of the elements. Threads: one next() at a time. Errors: what the body throws, which ends
    // the generator: an await, use_future, and block throw it, and a sender sends it. A callback,
    // use_await[ec], and block[ec] get the code of a std::system_error, not_enough_memory for
    // std::bad_alloc, and state_not_recoverable for any other. A stop or a deadline ends the
    // generator too, and is reported as for any operation. So does an exception of the move of the
    // element; tokens other than use_await take only elements whose move does not throw. Cost: no
    // allocation. Lifetime: the generator outlives the operation.
    template <class Token = use_await_t>
    auto next(Token&& token = {}) noexcept(nothrow_token<Token>) {
        if constexpr (std::is_same_v<std::remove_cvref_t<Token>, use_await_t>) {
            return execution::internal::next_element<T, Env>(*this);
        } else {
            static_assert(std::is_nothrow_move_constructible_v<item_type>,
                          "next(token) needs elements whose move does not throw: await next(), or "
                          "connect it as a sender");
            return completion_token_transform<void(std::error_code, item_type)>(
                static_cast<Token&&>(token), internal::next_initiation<T, Env>(*this));
        }
    }

    // For the library: takes ownership of the coroutine.
    async_generator(std::coroutine_handle<promise_type> coroutine) noexcept
        : base_type(coroutine) {}
};

}  // namespace coppice
