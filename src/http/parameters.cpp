// Refusals of parameters, and their messages.
#include <coppice/base/internal/check.hpp>
#include <coppice/http/internal/parameter_value.hpp>
#include <coppice/http/internal/request_values.hpp>
#include <coppice/http/parameters.hpp>

#include <algorithm>

namespace coppice::http {

using namespace internal;

namespace {

constexpr std::size_t quoted_bytes_max = 64;

// Returns true for a byte that does not end the quotation, and that no page or terminal acts on.
bool is_harmless(char byte) noexcept {
    return byte >= ' ' && byte <= '~' &&
           std::string_view("'\"\\<>&").find(byte) == std::string::npos;
}

std::string quoted(std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out = "'";
    for (const char byte : text.substr(0, quoted_bytes_max)) {
        if (is_harmless(byte)) {
            out += byte;
        } else {
            const auto value = static_cast<unsigned char>(byte);
            out.append("\\x").append(1, digits[value / 16]).append(1, digits[value % 16]);
        }
    }
    return out += text.size() > quoted_bytes_max ? "...'" : "'";
}

std::string wanted(const value_form& form) {
    switch (form.kind) {
        case value_kind::boolean:
            return "must be true, false, 1 or 0";
        case value_kind::integer:
            return "must be an integer from " + std::to_string(form.least) + " to " +
                   std::to_string(form.most);
        case value_kind::number:
            return "must be a number";
        case value_kind::text:
            return "has a malformed escape";
        case value_kind::own:
            break;
    }
    return "is not valid";
}

}  // namespace

status_error::status_error(int status, const std::string& text)
    : std::runtime_error(text), status_(status) {
    COPPICE_CHECK(status >= 200 && status <= 599,
                  "the status of a status_error is out of range: it is 200 to 599");
}

status_error bad_request(const std::string& text) {
    return status_error(400, text);
}

namespace internal {

std::optional<bool> parse_bool(std::string_view text) noexcept {
    if (text == "true" || text == "1") return true;
    if (text == "false" || text == "0") return false;
    return std::nullopt;
}

void refuse_parameter(std::string_view kind, std::string_view name,
                      std::optional<std::string_view> raw, const value_form& form) {
    const std::string which = std::string(kind) + " parameter " + quoted(name);
    if (!raw) throw bad_request(which + " is missing");
    throw bad_request(which + " " + wanted(form) + ": " + quoted(*raw));
}

void refuse_unknown_parameter(std::string_view name) {
    throw std::out_of_range("the route's pattern has no parameter " + quoted(name));
}

void refuse_unset_value() {
    throw std::out_of_range("request::get(): no filter has set a value of this type");
}

}  // namespace internal

}  // namespace coppice::http
