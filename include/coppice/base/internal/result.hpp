// result<T>: a value or a std::error_code, for failures that callers expect; used by io and http.
#pragma once

#include <coppice/base/internal/check.hpp>

#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

namespace coppice::internal {

// Holds either a T or the error_code that says why there is none. Errors: value() of an error stops
// the process; value_or_throw() throws std::system_error.
template <class T>
class [[nodiscard]] result {
public:
    result(T value) noexcept(std::is_nothrow_move_constructible_v<T>)
        : state_(std::in_place_index<0>, std::move(value)) {}
    result(std::error_code error) noexcept : state_(std::in_place_index<1>, error) {}
    result(std::errc error) noexcept : result(std::make_error_code(error)) {}

    bool has_value() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    std::error_code error() const noexcept {
        return has_value() ? std::error_code() : std::get<1>(state_);
    }
    T& value() & noexcept {
        COPPICE_CHECK(has_value(), "result::value() of an error");
        return *std::get_if<0>(&state_);
    }
    const T& value() const& noexcept {
        COPPICE_CHECK(has_value(), "result::value() of an error");
        return *std::get_if<0>(&state_);
    }
    T&& value() && noexcept { return std::move(value()); }
    T value_or_throw(const char* what) && {
        if (!has_value()) throw std::system_error(error(), what);
        return std::move(*std::get_if<0>(&state_));
    }
    T& operator*() & noexcept { return value(); }
    T&& operator*() && noexcept { return std::move(value()); }
    T* operator->() noexcept { return &value(); }

private:
    std::variant<T, std::error_code> state_;
};

// A result without a value: success or an error.
template <>
class [[nodiscard]] result<void> {
public:
    result() noexcept = default;
    result(std::error_code error) noexcept : error_(error) {}
    result(std::errc error) noexcept : error_(std::make_error_code(error)) {}

    bool has_value() const noexcept { return !error_; }
    explicit operator bool() const noexcept { return has_value(); }
    std::error_code error() const noexcept { return error_; }
    void value_or_throw(const char* what) const {
        if (error_) throw std::system_error(error_, what);
    }

private:
    std::error_code error_;
};

}  // namespace coppice::internal
