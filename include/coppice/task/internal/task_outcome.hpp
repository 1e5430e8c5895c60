// Holds the outcome of a task until its waiter takes it: a value, an error, or nothing yet.
#pragma once

#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/cold_call.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/completion_signatures.hpp>
#include <coppice/exec/internal/as_exception.hpp>
#include <coppice/exec/sender.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

namespace coppice::execution::internal {

struct no_task_value {};  // the result of a task<void>

// The outcome of a task that gives a T, an object type. If the destructor of T does nothing, an
// outcome counts as a value until an error is set: the waiter knows whether there is a value, so
// neither side records it. Threads: one at a time.
template <class T, class... Errors>
class outcome_of_task : immovable {
public:
    static constexpr bool is_plain = std::is_trivially_destructible_v<T>;
    static constexpr bool holds_exceptions =
        (std::is_same_v<std::decay_t<Errors>, std::exception_ptr> || ...);

    outcome_of_task() noexcept {}
    ~outcome_of_task() {
        if constexpr (is_plain) {
            if (which_ > value) [[unlikely]]
                destroy_error();
        } else {
            if (which_ != none) destroy();
        }
    }

    template <class... Args>
    void set_value(Args&&... args) noexcept(std::is_nothrow_constructible_v<T, Args...>) {
        ::new (memory()) T(static_cast<Args&&>(args)...);
        if constexpr (!is_plain) which_ = value;
    }
    template <class Error, class From>
    void set_error(From&& error) {
        clear();  // destroys a value: after co_return, the destructor of a local variable may throw
        ::new (memory()) Error(static_cast<From&&>(error));
        which_ = number<Error>();
    }
    [[gnu::noinline, gnu::cold]] void set_current_exception() noexcept {
        set_error<std::exception_ptr>(std::current_exception());
    }
    bool is_error() const noexcept { return which_ > value; }

    // Errors: throws the error as an exception. Stops the process if the task has no result.
    void check() {
        if (which_ != value) [[unlikely]]
            rethrow();
    }
    // Takes the value. Call it only if there is one.
    T take_value() noexcept(std::is_nothrow_move_constructible_v<T>) {
        return static_cast<T&&>(object<T>());
    }
    // Throws the error as an exception. Stops the process if there is no outcome.
    [[noreturn, gnu::noinline, gnu::cold]] void rethrow() {
        (rethrow_if<std::decay_t<Errors>>(), ...);
        check_failed("which_ != none", "a task's result was taken before it ended", __FILE__,
                     __LINE__);
    }
    // Moves the outcome out, and calls with_value(T&&) or with_error(E&&) with it. If the move
    // throws, calls with_error with what was thrown; if the errors include no exception_ptr, the
    // object is passed without a move.
    template <class WithValue, class WithError>
    void deliver(WithValue with_value, [[maybe_unused]] WithError with_error) {
        if (which_ == value) {
            deliver_object<T>(with_value, with_error);
        } else {
            COPPICE_CHECK(which_ != none, "a task ended without a result");
            static_cast<void>((deliver_error<std::decay_t<Errors>>(with_error) || ...));
        }
    }
    // Moves the outcome of `other`, which has one, into this object, which has none.
    void move_from(outcome_of_task& other) {
        other.deliver([this](T&& moved) { this->set_value(static_cast<T&&>(moved)); },
                      [this](auto&& error) {
                          this->template set_error<std::decay_t<decltype(error)>>(
                              static_cast<decltype(error)>(error));
                      });
    }

private:
    static constexpr unsigned char none = 0, value = 1;
    template <class Error>
    static constexpr unsigned char number() noexcept {
        unsigned char n = value;
        bool found = false;
        static_cast<void>(
            ((++n, found = std::is_same_v<Error, std::decay_t<Errors>>, found) || ...));
        return n;
    }
    void* memory() noexcept { return static_cast<void*>(storage_); }
    template <class U>
    U& object() noexcept {
        return *std::launder(reinterpret_cast<U*>(storage_));
    }
    template <class U>
    bool clear_if(unsigned char n) noexcept {
        if (which_ != n) return false;
        object<U>().~U();
        return true;
    }
    void clear() noexcept {
        destroy();
        which_ = none;
    }
    COPPICE_COLD_CALL void destroy_error() noexcept { destroy(); }
    void destroy() noexcept {
        if (clear_if<T>(value)) return;
        static_cast<void>((clear_if<std::decay_t<Errors>>(number<std::decay_t<Errors>>()) || ...));
    }
    template <class Error>
    void rethrow_if() {
        if (which_ == number<Error>()) {
            std::rethrow_exception(as_exception(static_cast<Error&&>(object<Error>())));
        }
    }
    template <class Error, class WithError>
    bool deliver_error(WithError& with_error) {
        if (which_ != number<Error>()) return false;
        deliver_object<Error>(with_error, with_error);
        return true;
    }
    template <class U, class With, class WithError>
    void deliver_object(With& with, [[maybe_unused]] WithError& with_error) {
        if constexpr (std::is_nothrow_move_constructible_v<U>) {
            U moved(static_cast<U&&>(object<U>()));
            with(static_cast<U&&>(moved));
        } else if constexpr (holds_exceptions) {
            std::optional<U> moved;
            std::exception_ptr thrown;
            try {
                moved.emplace(static_cast<U&&>(object<U>()));
            } catch (...) {
                thrown = std::current_exception();
            }
            if (moved) {
                with(static_cast<U&&>(*moved));
            } else {
                with_error(static_cast<std::exception_ptr&&>(thrown));
            }
        } else {
            with(static_cast<U&&>(object<U>()));
        }
    }

    static constexpr std::size_t size = std::max({sizeof(T), sizeof(std::decay_t<Errors>)...});
    alignas(T) alignas(std::exception_ptr) alignas(Errors...) std::byte storage_[size];
    unsigned char which_ = is_plain ? value : none;
};

// Maps Sigs, completion_signatures<set_error_t(E)...>, to the type of the outcome.
template <class T, class Sigs>
struct task_outcome_for;
template <class T, class... Errors>
struct task_outcome_for<T, completion_signatures<set_error_t(Errors)...>> {
    using type = outcome_of_task<T, Errors...>;
};
template <class T, class Sigs>
using task_outcome = typename task_outcome_for<T, Sigs>::type;

// Finds the error of a task that E becomes: E itself if the task has it, otherwise the first error
// that E converts to. `count` is the number of errors that E could become.
// Source: [task.promise], yield_value; preferring E itself is ours.
template <class E, class... Errors>
struct first_fitting {
    using type = E;
};
template <class E, class First, class... Rest>
struct first_fitting<E, First, Rest...> {
    using type =
        typename std::conditional_t<std::is_convertible_v<E, First>, std::type_identity<First>,
                                    first_fitting<E, Rest...>>::type;
};
template <class E, class Sigs>
struct fitting_error;
template <class E, class... Errors>
struct fitting_error<E, completion_signatures<set_error_t(Errors)...>> {
    static constexpr bool named = (std::is_same_v<E, std::decay_t<Errors>> || ...);
    static constexpr std::size_t count =
        named ? 1 : (std::size_t{0} + ... + std::is_convertible_v<E, std::decay_t<Errors>>);
    using type =
        std::conditional_t<named, E, typename first_fitting<E, std::decay_t<Errors>...>::type>;
};

// Takes the result of a task of type T that is known to have one.
template <class T, class Outcome>
[[gnu::always_inline]] inline T take_known_result(Outcome& outcome) {
    if constexpr (std::is_void_v<T>) {
        outcome.take_value();
    } else if constexpr (std::is_reference_v<T>) {
        return *outcome.take_value();
    } else {
        return outcome.take_value();
    }
}
// Takes the result of a task of type T that may have failed. Errors: throws the task's error.
template <class T, class Outcome>
[[gnu::always_inline]] inline T take_result(Outcome& outcome) {
    outcome.check();
    return take_known_result<T>(outcome);
}

}  // namespace coppice::execution::internal
