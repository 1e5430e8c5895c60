// use_await: the default completion token; makes the operation an awaitable and a sender.
#pragma once
// Initiating makes one object. It holds the initiation and everything that the operation needs
// while it runs. If the object is awaited, it is in the coroutine's frame and starts there: no
// allocation, no type erasure except one pointer, no atomic operation. If it is connected, it
// becomes the operation state.
//
// If the waiter's stop request or deadline ends the operation, a task is stopped (by its promise's
// unhandled_stopped), and a sender completes with set_stopped. Other errors are thrown as
// std::system_error, or sent as std::error_code. use_await[ec] stores every error in ec, including
// operation_canceled.

#include <coppice/token/internal/await_operation.hpp>
#include <coppice/token/internal/outcome.hpp>
#include <coppice/token/signature.hpp>

#include <system_error>

namespace coppice {

namespace internal {

// use_await[ec]: the await returns the result, and stores the error in `ec` instead of throwing it.
// Lifetime: `ec` outlives the await.
class await_with_error {
public:
    static constexpr bool throws = false;
    explicit await_with_error(std::error_code& target) noexcept : target_(&target) {}
    void report(std::error_code error, const char*) const noexcept { *target_ = error; }

    template <class... R, class Initiation>
    auto initiate(signature<R...>, Initiation&& initiation) const noexcept {
        return await_operation<std::remove_cvref_t<Initiation>, await_with_error, R...>(
            static_cast<Initiation&&>(initiation), *this);
    }

private:
    std::error_code* target_;
};

}  // namespace internal

// The await returns the operation's result, or throws std::system_error.
struct use_await_t {
    // Says that report() throws, so that the object can also be stopped.
    static constexpr bool throws = true;
    constexpr use_await_t() noexcept = default;
    // Returns the token that stores the error in `target`. Lifetime: `target` outlives the await.
    internal::await_with_error operator[](std::error_code& target) const noexcept {
        return internal::await_with_error(target);
    }
    // Called by the await with the outcome: throws std::system_error, named after the operation, if
    // there is an error.
    void report(std::error_code error, const char* operation) const {
        if (error.value() != 0) [[unlikely]]
            internal::throw_error(error, operation);
    }

    // Returns the awaitable. Nothing begins before it is awaited or its operation is started.
    // Called by completion_token_transform. Cost: no allocation.
    template <class... R, class Initiation>
    auto initiate(signature<R...>, Initiation&& initiation) const noexcept {
        return internal::await_operation<std::remove_cvref_t<Initiation>, use_await_t, R...>(
            static_cast<Initiation&&>(initiation), *this);
    }
};
inline constexpr use_await_t use_await{};

}  // namespace coppice
