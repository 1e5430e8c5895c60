// Converts any error to an exception_ptr, for consumers that throw: sync_wait and coroutines.
#pragma once
// Source: AS-EXCEPT-PTR of [exec.general] p8.

#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/namespaces.hpp>

#include <exception>
#include <system_error>
#include <type_traits>
#include <utility>

namespace coppice::execution::internal {

// Returns an exception_ptr as it is, an error_code as a system_error, and any other error wrapped.
// If copying or moving the error throws, returns that exception instead.
template <class Error>
std::exception_ptr as_exception(Error&& error) noexcept {
    using Plain = std::decay_t<Error>;
    if constexpr (std::is_same_v<Plain, std::exception_ptr>) {
        COPPICE_CHECK(error != nullptr,
                      "set_error was given a null exception_ptr: pass the exception");
        return static_cast<Error&&>(error);
    } else {
        // make_exception_ptr is noexcept, but constructing its parameter may throw here.
        try {
            if constexpr (std::is_same_v<Plain, std::error_code>) {
                return std::make_exception_ptr(std::system_error(error));
            } else if constexpr (std::is_copy_constructible_v<Plain>) {
                return std::make_exception_ptr(static_cast<Error&&>(error));
            } else {
                throw static_cast<Error&&>(error);  // make_exception_ptr would copy it
            }
        } catch (...) {
            return std::current_exception();
        }
    }
}

}  // namespace coppice::execution::internal
