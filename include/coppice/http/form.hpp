// Forms without files: application/x-www-form-urlencoded bodies, read as typed values.
#pragma once
// Values have the types of query parameters, including your own types; see request::query().

#include <coppice/http/internal/parameter_value.hpp>
#include <coppice/http/message.hpp>
#include <coppice/http/parameters.hpp>
#include <coppice/http/uri.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::http {

// The fields of a request's body. Lifetime: it holds views into the body, which outlives it.
class urlencoded_form {
public:
    // The most fields that a form may have by default.
    static constexpr std::size_t fields_max_default = 1000;

    // Reads the form, for handlers that get the body whole. Errors: status_error: 415 unless the
    // media type is application/x-www-form-urlencoded; 413 for more than `fields_max` fields; 400
    // for a malformed escape or a NUL in any field, and for two Content-Type fields. Cost:
    // O(bytes), no allocation.
    explicit urlencoded_form(const request& r, std::size_t fields_max = fields_max_default);

    // Returns the number of fields. Fields with the same name count separately.
    std::size_t size() const noexcept { return size_; }
    // Returns the first value of that name as sent: "" for a name without '=', nothing if it is
    // absent.
    std::optional<std::string_view> find(std::string_view name) const noexcept {
        return query_value(text_, name);
    }
    // Returns the first value of that name as a T, or nothing if it is absent or not a T; find()
    // tells which.
    template <class T = std::string>
    std::optional<T> get(std::string_view name) const {
        const std::optional<std::string_view> raw = find(name);
        if (!raw) return std::nullopt;
        return internal::parse_value<T>(*raw, internal::plus_sign::space);
    }
    // Returns the value of a field that must be present. Errors: status_error, 400, if it is absent
    // or not a T.
    template <class T = std::string>
    T require(std::string_view name) const {
        return checked<T>(name, find(name));
    }
    // Returns the value of a field that may be absent, or nothing. Errors: status_error, 400, if it
    // is not a T.
    template <class T = std::string>
    std::optional<T> get_optional(std::string_view name) const {
        const std::optional<std::string_view> raw = find(name);
        if (!raw) return std::nullopt;
        return checked<T>(name, raw);
    }
    // Returns every value of that name, in order. Errors: status_error, 400, if one is not a T.
    template <class T = std::string>
    std::vector<T> get_all(std::string_view name) const {
        std::vector<T> all;
        std::string_view rest = text_;
        while (const auto raw = internal::next_query_value(rest, name))
            all.push_back(checked<T>(name, raw));
        return all;
    }

private:
    template <class T>
    static T checked(std::string_view name, std::optional<std::string_view> raw) {
        std::optional<T> value;
        if (raw) value = internal::parse_value<T>(*raw, internal::plus_sign::space);
        if (!value) internal::refuse_parameter("form", name, raw, internal::form_of<T>());
        return *std::move(value);
    }

    std::string_view text_;
    std::size_t size_ = 0;
};

}  // namespace coppice::http
