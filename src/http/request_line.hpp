// The phases of the head machine that read the request line (RFC 9112 section 3).
#pragma once
#include <coppice/http/parse.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "authority.hpp"
#include "head_machine.hpp"

namespace coppice::http::internal {

// Longer than any registered method. A longer one gets 501 (RFC 9112 section 3).
inline constexpr std::ptrdiff_t method_bytes_max = 32;

inline constexpr std::array<std::string_view, method_count> method_names = {
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", ""};

inline method method_of(std::string_view text) noexcept {
    for (std::size_t i = 0; i + 1 < method_count; ++i) {
        if (text == method_names[i]) return static_cast<method>(i);
    }
    return method::other;
}

// Skips at most one empty line in front (RFC 9112 section 2.2).
template <class Scan>
[[gnu::always_inline]] inline bool head_machine<Scan>::start() noexcept {
    const char* p = base_;
    if (p == end_) return more(phase::start, p, p);
    if (*p == '\r') {
        if (end_ - p < 2) return more(phase::start, p, p);
        if (p[1] != '\n') return fail(400, lone_cr);
        p += 2;
    }
    return enter(p);
}

// Parses the method and the space after it.
template <class Scan>
[[gnu::always_inline]] inline bool head_machine<Scan>::verb() noexcept {
    const char* const begin = base_ + s_.token;
    if (end_ - begin >= 4 && std::memcmp(begin, "GET ", 4) == 0) [[likely]] {
        out_.method_text_ = view(begin, begin + 3);
        out_.verb_ = method::get;
        return enter(begin + 4);
    }
    const char* const p =
        scan_.token(base_ + s_.scanned, begin + std::min(end_ - begin, method_bytes_max + 1));
    if (p - begin > method_bytes_max) return fail(501, "the method is too long");
    if (p == end_) return more(phase::verb, begin, p);
    if (p == begin || *p != ' ') return fail(400, "the request line has no valid method");
    out_.method_text_ = view(begin, p);
    out_.verb_ = method_of(out_.method_text_);
    return enter(p + 1);
}

// Scans to the space after the target, or to the first byte that makes it too long. A '%'
// escape that is cut off is scanned again.
template <class Scan>
[[gnu::always_inline]] inline bool head_machine<Scan>::target() noexcept {
    const char* const begin = base_ + s_.token;
    const bool too_long = static_cast<std::size_t>(end_ - begin) > limits_.target_bytes_max;
    const char* const limit = too_long ? begin + limits_.target_bytes_max + 1 : end_;
    const char* p = base_ + s_.scanned;
    const bool origin_form = begin != end_ && *begin == '/';
    for (;;) {
        p = origin_form && s_.query == 0 ? scan_.path(p, limit) : scan_.query(p, limit);
        if (p == limit) break;
        if (*p == ' ') [[likely]]
            return target_ends(begin, p);
        if (*p == '?') {
            s_.query = offset(p++);
            continue;
        }
        if (*p != '%') return fail(400, "the target has an invalid byte");
        if (limit - p > 1 && !is(p[1], hex_byte)) return fail(400, bad_escape);
        if (limit - p > 2 && !is(p[2], hex_byte)) return fail(400, bad_escape);
        if (limit - p <= 2) break;
        p += 3;
    }
    return too_long ? fail(414, "the target is too long") : more(phase::target, begin, p);
}

// Determines which of the four forms the target has (RFC 9112 section 3.2).
template <class Scan>
[[gnu::always_inline]] inline bool head_machine<Scan>::target_ends(const char* begin,
                                                                   const char* end) noexcept {
    const std::string_view text = view(begin, end);
    out_.target_ = text;
    out_.scheme_ = {};
    out_.host_ = {};
    out_.query_ = {};
    if (text.starts_with('/') && out_.verb_ != method::connect) [[likely]] {
        split(text, s_.query == 0 ? text.npos : s_.query - s_.token, out_);
    } else if (!is_other_form(text, end_, out_)) {
        return fail(400, "the target has no form that its method may use");
    }
    return enter(end + 1);
}

// Parses a target in any form except origin-form.
template <class Scan>
[[gnu::noinline]] bool head_machine<Scan>::is_other_form(std::string_view text,
                                                         const char* readable,
                                                         request_head& out) noexcept {
    Scan scan;
    if (out.verb_ == method::connect) {
        out.host_ = text;
        out.path_ = {};
        return valid_authority(scan, text, port_rule::required, readable);
    }
    if (out.verb_ != method::options || text != "*") return absolute(text, readable, out);
    out.path_ = text;
    return true;
}

// Parses scheme "://" authority path-abempty [ "?" query ]. The bytes were scanned as those of
// a query, so the path has to be checked again.
template <class Scan>
inline bool head_machine<Scan>::absolute(std::string_view text, const char* readable,
                                         request_head& out) noexcept {
    const std::size_t colon = text.find(':');
    const std::string_view scheme = text.substr(0, colon);
    if (!equals_ignoring_case(scheme, "http") && !equals_ignoring_case(scheme, "https")) {
        return false;
    }
    if (!text.substr(scheme.size()).starts_with("://")) return false;
    const std::string_view rest = text.substr(scheme.size() + 3);
    const std::size_t path = std::min(rest.find_first_of("/?"), rest.size());
    out.scheme_ = scheme;
    out.host_ = rest.substr(0, path);
    split(rest.substr(path), rest.substr(path).find('?'), out);
    if (out.path_.empty()) {
        // An empty path: RFC 9112 section 3.2.4 for OPTIONS, RFC 9110 section 4.2.3 for other
        // methods.
        out.path_ = out.verb_ == method::options && path == rest.size() ? "*" : "/";
    }
    Scan scan;
    return valid_authority(scan, out.host_, port_rule::optional, readable) &&
           std::ranges::all_of(out.path_, [](char c) { return is(c, path_byte) || c == '%'; });
}

template <class Scan>
[[gnu::always_inline]] inline void head_machine<Scan>::split(std::string_view text,
                                                             std::size_t question_mark,
                                                             request_head& out) noexcept {
    out.path_ = text.substr(0, question_mark);
    if (question_mark != text.npos) out.query_ = text.substr(question_mark + 1);
}

// Parses HTTP-version CRLF (RFC 9112 section 2.3). A minor version above 1 is read as 1.
template <class Scan>
[[gnu::always_inline]] inline bool head_machine<Scan>::version() noexcept {
    constexpr std::string_view pattern = "HTTP/1.1\r\n";
    const char* const p = base_ + s_.token;
    const std::size_t size = std::min(static_cast<std::size_t>(end_ - p), pattern.size());
    if (size < pattern.size() || std::memcmp(p, pattern.data(), pattern.size()) != 0) {
        for (std::size_t i = 0; i < size; ++i) {
            const bool digit = i == 5 || i == 7;
            if (digit ? !is(p[i], digit_byte) : p[i] != pattern[i]) {
                return fail(400, "the request line does not end in a version and CRLF");
            }
            if (i == 7 && p[5] != '1') return fail(505, "the major version is not 1");
        }
        if (size < pattern.size()) return more(phase::version, p, p);
    }
    out_.minor_version_ = p[7] == '0' ? 0 : 1;
    out_.length_.reset();
    out_.expects_continue_ = false;
    out_.chunked_ = false;
    out_.count_ = 0;
    s_.block = offset(p) + pattern.size();
    s_.at = phase::line;
    return enter(p + pattern.size());
}

}  // namespace coppice::http::internal
