// Reads the head of an answer, for a client.
#include <coppice/http/client_message.hpp>
#include <coppice/http/internal/client_call.hpp>
#include <coppice/http/internal/scan.hpp>
#include <coppice/http/uri.hpp>

#include <algorithm>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "client_connection.hpp"
#include "lines.hpp"

namespace coppice::http {

using namespace internal;

namespace internal {

// Refuses input that cannot become a head, instead of waiting for more. `news`: what has arrived,
// with the three bytes before it.
void client_call::check_beginning(std::string_view news) const {
    constexpr std::string_view start = "HTTP/1.";
    const std::string_view begun = std::string_view(connection_->input).substr(0, start.size());
    bool good = start.starts_with(begun);
    for (std::size_t i = 1; i < news.size(); ++i)
        good = good && (news[i] != '\n' || news[i - 1] == '\r');
    if (!good)
        fail(std::make_error_code(std::errc::bad_message), "http request: the answer's head");
}

// Parses: status-line *( field-line CRLF ) (RFC 9112 sections 4 and 5).
void client_call::read_head(std::string_view head) {
    const auto require = [&](bool good) {
        if (!good)
            fail(std::make_error_code(std::errc::bad_message), "http request: the answer's head");
    };
    length_.reset();
    chunked_ = closes_ = keep_alive_ = false;
    const std::size_t line_end = head.find("\r\n");
    const std::string_view line = head.substr(0, line_end);
    // A higher minor version is read as 1.1 (RFC 9110 section 2.5).
    require(line.size() >= 12 && line.starts_with("HTTP/1.") && is(line[7], digit_byte) &&
            line[8] == ' ');
    require(line.size() == 12 || line[12] == ' ');
    require(std::ranges::all_of(line.substr(12), [](char c) { return is(c, value_byte); }));
    version_1_0_ = line[7] == '0';
    const std::optional<int> status = parse_integer<int>(line.substr(9, 3));
    require(status && *status >= 100 && *status <= 599 && is(line[9], digit_byte));
    answer_.status_ = *status;
    answer_.head_.assign(head.substr(line_end + 2));
    const std::size_t added =
        connection_->stream != nullptr ? connection_->stream->added_bytes() : 0;
    std::size_t fields = added != 0 ? 0 : 1;  // what was added is not the server's
    for (std::string_view left = answer_.head_; !left.empty();) {
        const std::size_t end = left.find("\r\n");
        const std::string_view each = left.substr(0, end);
        left.remove_prefix(end + 2);
        const std::size_t colon = each.find(':');
        if (fields++ > client_.options.limits.fields_max) {
            fail(std::make_error_code(std::errc::message_size),
                 "http request: the number of the answer's fields");
        }
        require(colon != each.npos && colon != 0);
        require(
            std::ranges::all_of(each.substr(0, colon), [](char c) { return is(c, token_byte); }));
        require(
            std::ranges::all_of(each.substr(colon + 1), [](char c) { return is(c, value_byte); }));
        read_framing_field(each.substr(0, colon), trim(each.substr(colon + 1)));
    }
    answer_.head_.resize(answer_.head_.size() - added);
}

void client_call::read_framing_field(std::string_view name, std::string_view value) {
    const auto require = [&](bool good) {
        if (!good)
            fail(std::make_error_code(std::errc::bad_message),
                 "http request: the answer's framing");
    };
    if (equals_ignoring_case(name, "content-length")) {
        require(!length_ && !chunked_);
        length_ = parse_integer<std::uint64_t>(value);
        require(length_.has_value());
    } else if (equals_ignoring_case(name, "transfer-encoding")) {
        // The client asks for no other coding, so only chunked is valid.
        require(!length_ && !chunked_ && !version_1_0_ && equals_ignoring_case(value, "chunked"));
        chunked_ = true;
    } else if (equals_ignoring_case(name, "connection")) {
        for_each_member(value, [&](std::string_view member) {
            closes_ = closes_ || equals_ignoring_case(member, "close");
            keep_alive_ = keep_alive_ || equals_ignoring_case(member, "keep-alive");
            return true;
        });
    }
}

}  // namespace internal

std::optional<std::string_view> client_head::find(std::string_view name) const noexcept {
    return find_line(head_, name);
}
std::optional<std::string_view> client_head::trailer(std::string_view name) const noexcept {
    return find_line(trailers_, name);
}
std::vector<field> client_head::fields() const {
    std::vector<field> all;
    for_each_line(head_, [&](const field& f) { all.push_back(f); });
    return all;
}
std::vector<std::string_view> client_head::find_all(std::string_view name) const {
    std::vector<std::string_view> values;
    for_each_line(head_, [&](const field& f) {
        if (equals_ignoring_case(f.name, name)) values.push_back(f.value);
    });
    return values;
}

}  // namespace coppice::http
