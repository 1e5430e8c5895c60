// code_of: the error code that stands for an exception, for tokens that know only codes.
#pragma once

#include <coppice/base/version.hpp>

#include <exception>
#include <new>
#include <system_error>

namespace coppice::internal {

// Returns the code of a std::system_error, not_enough_memory for std::bad_alloc, and
// state_not_recoverable for anything else.
[[gnu::cold]] inline std::error_code code_of(const std::exception_ptr& exception) noexcept {
    try {
        std::rethrow_exception(exception);
    } catch (const std::system_error& e) {
        return e.code();
    } catch (const std::bad_alloc&) {
        return std::make_error_code(std::errc::not_enough_memory);
    } catch (...) {
        return std::make_error_code(std::errc::state_not_recoverable);
    }
}

}  // namespace coppice::internal
