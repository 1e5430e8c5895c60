// use_await: the default completion token; the operation is an awaitable in the caller's frame.
#pragma once

#include <system_error>

namespace coppice {

// use_await[ec]: awaiting gives the result, and the error goes to `ec` instead of being thrown.
// Lifetime: `ec` outlives the await.
struct await_with_error {
    explicit await_with_error(std::error_code& target) noexcept : error(&target) {}
    std::error_code* error;
};

// Awaiting the operation gives its result, or throws std::system_error.
struct use_await_t {
    constexpr use_await_t() noexcept = default;
    await_with_error operator[](std::error_code& target) const noexcept {
        return await_with_error(target);
    }
};
inline constexpr use_await_t use_await{};

// What an awaiter does with an error: where it goes is decided by the token it was made from.
class await_errors {
public:
    await_errors(use_await_t) noexcept {}
    await_errors(await_with_error token) noexcept : target_(token.error) {}

    // `result` is a negative errno, or no error. Errors: throws std::system_error for use_await.
    void report(int result, const char* operation) const {
        const std::error_code error =
            result < 0 ? std::error_code(-result, std::system_category()) : std::error_code();
        if (target_ != nullptr) {
            *target_ = error;
        } else if (error) {
            throw_error(error, operation);
        }
    }

private:
    [[noreturn, gnu::cold, gnu::noinline]] static void throw_error(std::error_code error,
                                                                   const char* operation) {
        throw std::system_error(error, operation);
    }
    std::error_code* target_ = nullptr;  // nullptr: throw
};

}  // namespace coppice
