// outcome_slot: where a token keeps an outcome until its waiter takes it; and names for messages.
#pragma once

#include <coppice/base/lifetime.hpp>

#include <exception>
#include <new>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

namespace coppice::internal {

// The type of the result for the waiter: void, the result, or a tuple of several.
template <class... R>
struct outcome_of {
    using type = std::tuple<R...>;
};
template <class R>
struct outcome_of<R> {
    using type = R;
};
template <>
struct outcome_of<> {
    using type = void;
};
template <class... R>
using outcome_t = typename outcome_of<R...>::type;

// Holds an outcome from its arrival until it is taken, once.
template <class... R>
class outcome_slot : immovable {
public:
    outcome_slot() noexcept {}
    ~outcome_slot() {
        if constexpr (remembers) {
            if (full_.value) values_.destroy();
        }
    }
    void put(std::error_code error, R... results) noexcept {
        error_.construct(error);
        values_.construct(static_cast<R&&>(results)...);
        if constexpr (remembers) full_.value = true;
    }
    // Returns the error. Call it after put().
    std::error_code error() const noexcept { return error_.get(); }
    outcome_t<R...> take() {
        if constexpr (sizeof...(R) == 1) {
            return static_cast<outcome_t<R...>&&>(std::get<0>(values_.get()));
        } else if constexpr (sizeof...(R) > 1) {
            return std::move(values_.get());
        }
    }
    std::tuple<R...>& values() noexcept { return values_.get(); }

private:
    manual_lifetime<std::error_code> error_;  // constructing a std::error_code is a call
    static constexpr bool remembers = !(std::is_trivially_destructible_v<R> && ...);
    struct flag {
        bool value = false;
    };
    struct no_flag {};

    manual_lifetime<std::tuple<R...>> values_;
    [[no_unique_address]] std::conditional_t<remembers, flag, no_flag> full_;
};

// Returns how the message of a std::system_error begins: the failure() of the initiation, or its
// `name`.
template <class Initiation>
constexpr const char* operation_name(const Initiation& initiation) noexcept {
    if constexpr (requires { static_cast<const char*>(initiation.failure()); }) {
        return initiation.failure();
    } else if constexpr (requires { static_cast<const char*>(Initiation::name); }) {
        return Initiation::name;
    } else {
        return "asynchronous operation";
    }
}
[[noreturn, gnu::cold, gnu::noinline]] inline void throw_error(std::error_code error,
                                                               const char* operation) {
    throw std::system_error(error, operation);
}

// Returns what a token throws for the error of an operation: the exception() of the initiation, if
// that has one and it is not null; otherwise a std::system_error, named after the operation, or
// std::bad_alloc if there is no memory for its text.
template <class Initiation>
[[gnu::cold, gnu::noinline]] std::exception_ptr exception_of(
    std::error_code error, const Initiation& initiation) noexcept {
    if constexpr (requires { initiation.exception(); }) {
        if (std::exception_ptr exception = initiation.exception()) return exception;
    }
    try {
        return std::make_exception_ptr(std::system_error(error, operation_name(initiation)));
    } catch (const std::bad_alloc&) {
        return std::current_exception();
    }
}

}  // namespace coppice::internal
