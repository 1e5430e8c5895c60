// async_generator_promise: how the body of an async_generator gives elements, and how it ends.
#pragma once
// A body lives through several awaits of next(). For each of them it is what a task is: it has a
// waiter, and a context that is made from the environment of that waiter (task_promise.hpp). A
// co_yield ends it as co_return ends a task, except that its frame stays:
//
//             next(): turn 1         next(): turn 2                next(): turn n
//   created ---------------> waits -----------------> waits ... ------------------> ended
//              co_yield a     |       co_yield b                   the body's end, an exception,
//                             |                                    or a stop
//                             +-- destroyed: as any suspended coroutine
//
// The frame of a body that has ended is destroyed before the waiter continues.

#include <coppice/base/internal/check.hpp>
#include <coppice/task/internal/task_promise.hpp>

#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace coppice::execution::internal {

template <class T, class Env>
class async_generator_promise;

// What next() gives: a T, or nothing at the end. A reference is given as a pointer.
template <class T>
struct item_of {
    using type = std::optional<T>;
    template <class... Args>
    static type make(Args&&... args) {
        return type(std::in_place, static_cast<Args&&>(args)...);
    }
};
template <class T>
    requires std::is_reference_v<T>
struct item_of<T> {
    using type = std::remove_reference_t<T>*;
    static type make(T element) noexcept { return __builtin_addressof(element); }
};
template <class T>
using item_of_t = typename item_of<T>::type;

// Owns the body of an async_generator; its base class. Threads: one at a time.
template <class T, class Env>
class async_generator_body {
public:
    using promise_type = async_generator_promise<T, Env>;
    using handle_type = std::coroutine_handle<promise_type>;

    bool has_ended() const noexcept { return !coroutine_; }
    // Called when a next() starts. Returns the coroutine to resume.
    handle_type begin_turn() noexcept {
        COPPICE_CHECK(
            !coroutine_.promise().is_running(),
            "next() of an async_generator whose last next() has not ended: await that one first");
        coroutine_.promise().set_running(true);
        return coroutine_;
    }
    // Called when the next() has ended, with `has_more` if it gave an element.
    void end_turn(bool has_more) noexcept {
        if (has_more) [[likely]] {
            coroutine_.promise().set_running(false);
        } else {
            end();
        }
    }
    // Destroys the body, whose next() was stopped, or gave no element.
    void end() noexcept { std::exchange(coroutine_, {}).destroy(); }

protected:
    explicit async_generator_body(handle_type coroutine) noexcept : coroutine_(coroutine) {}
    async_generator_body(async_generator_body&& other) noexcept
        : coroutine_(std::exchange(other.coroutine_, {})) {
        check();
    }
    ~async_generator_body() {
        check();
        if (coroutine_) coroutine_.destroy();
    }
    void swap(async_generator_body& other) noexcept {
        check();
        other.check();
        std::swap(coroutine_, other.coroutine_);
    }

private:
    void check() const noexcept {
        COPPICE_CHECK(!coroutine_ || !coroutine_.promise().is_running(),
                      "an async_generator was moved or destroyed before its next() had ended: "
                      "await the next() first");
    }
    handle_type coroutine_;  // null if the body has ended, or the object was moved from
};

template <class T, class Env>
class async_generator_promise final : public task_promise_base<Env> {
    using errors = typename task_errors<Env>::type;
    using handle_type = std::coroutine_handle<async_generator_promise>;
    using item = item_of<T>;

public:
    using outcome_type = task_outcome<item_of_t<T>, errors>;

    async_generator_promise() noexcept { this->add(this->kept_outcome); }
    template <class... Args>
        requires gives_frame<Args...>
    explicit async_generator_promise(const Args&... args) noexcept
        : task_promise_base<Env>(args...) {
        this->add(this->kept_outcome);
    }
    handle_type get_return_object() noexcept { return self(); }

    bool is_running() const noexcept { return is_running_; }
    void set_running(bool running) noexcept { is_running_ = running; }
    // Called before the body is resumed for a next(). `outcome` is where its waiter wants the
    // outcome.
    void begin(task_context<Env>& context, task_waiter& waiter, starts how,
               outcome_type& outcome) noexcept {
        this->begin_again(context, waiter, how);
        outcome_ = &outcome;
    }

    template <class Value>
    [[gnu::always_inline]] decltype(auto) await_transform(Value&& value) {
        return internal::await_in_task<Env>(static_cast<Value&&>(value), *this);
    }

    // Awaited where the body gives an element, and at its end: tells the waiter, unless that waits
    // for resume() to return.
    class end_of_turn {
    public:
        static bool await_ready() noexcept { return false; }
        [[gnu::always_inline]] static void await_suspend(handle_type self) noexcept {
            if (!self.promise().turn_ends_attached()) self.promise().end_turn(self);
        }
        static void await_resume() noexcept {}
    };
    // Errors: the co_yield throws what constructing the element throws.
    template <class U = T>
        requires std::is_constructible_v<T, U> && (!std::is_reference_v<T>)
    end_of_turn yield_value(U&& element) {
        outcome_->set_value(std::in_place, static_cast<U&&>(element));
        return {};
    }
    end_of_turn yield_value(T element) noexcept
        requires std::is_reference_v<T>
    {
        outcome_->set_value(item::make(static_cast<T>(element)));
        return {};
    }
    template <class E>
    auto yield_value(with_error<E> ended) {
        using Given = typename with_error<E>::type;
        using Found = fitting_error<Given, errors>;
        static_assert(Found::count == 1,
                      "with_error: Env's error_types name no error, or several, that this one "
                      "converts to");
        outcome_->template set_error<typename Found::type>(static_cast<Given&&>(ended.error));
        return typename task_promise_base<Env>::cut_short();
    }

    end_of_turn final_suspend() noexcept { return {}; }
    void return_void() noexcept { outcome_->set_value(); }
    void unhandled_exception() noexcept {
        if constexpr (outcome_type::holds_exceptions) {
            outcome_->set_current_exception();
            this->detach();
        } else {
            std::terminate();  // Env says that the body sends no exceptions
        }
    }
    std::coroutine_handle<> unhandled_stopped() noexcept { return this->stop(self()); }

private:
    handle_type self() noexcept { return handle_type::from_promise(*this); }
    bool turn_ends_attached() const noexcept {
        return this->has(this->attached) && !this->has(this->own_context);
    }
    // Resumes the waiter here, if there is room on the stack. The frame may be gone afterwards.
    [[gnu::noinline]] static void end_turn(handle_type self) noexcept {
        self.promise().end_or_go_home(self).resume();
    }

    outcome_type* outcome_;  // the waiter's
    bool is_running_ = false;
};

}  // namespace coppice::execution::internal
