// The phases of the head machine that read the field lines, and the end of the head.
#pragma once
#include <coppice/http/internal/scan.hpp>
#include <coppice/http/parse.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "authority.hpp"
#include "body_framing.hpp"
#include "head_machine.hpp"

namespace coppice::http::internal {

// Parses the field lines, each `name ":" value CRLF`, and the empty line after the last.
// `token` is where the line or its value begins, `p` how far it is known to be good.
template <class Scan>
[[gnu::always_inline]] inline bool head_machine<Scan>::fields() noexcept {
    phase at = s_.at;
    const char* token = base_ + s_.token;
    const char* p = base_ + s_.scanned;
    const char* const limit = block_limit();
    for (;;) {
        if (at == phase::line) {
            if (p == end_) return more(phase::line, p, p);
            if (*p == '\r') return last_line(p);
            if (!line_may_begin(*p)) return false;
            at = phase::name;
        }
        if (at == phase::name) {
            p = scan_.token(p, limit);
            if (p == limit) return cut(phase::name, token, p);
            if (p == token || *p != ':') return fail(400, "a field line has no valid name");
            out_.fields_[out_.count_].name = view(token, p);
            token = ++p;
        }
        p = scan_.value(p, limit);
        if (p == limit) return cut(phase::value, token, p);
        if (*p != '\r') return fail(400, "a field value has a control byte");
        if (p + 1 == limit) return cut(phase::value, token, p);
        if (p[1] != '\n') return fail(400, lone_cr);
        field& f = out_.fields_[out_.count_++];
        f.value = trim(view(token, p));
        if (!known_field(f)) return false;
        token = p += 2;
        at = phase::line;
    }
}

template <class Scan>
[[gnu::always_inline]] inline bool head_machine<Scan>::line_may_begin(char byte) noexcept {
    if (out_.count_ == std::min(limits_.fields_max, request_head::capacity)) {
        return fail(431, "there are too many fields");
    }
    if (byte == ' ' || byte == '\t') return fail(400, "a field line begins with a space");
    return true;
}

template <class Scan>
[[gnu::always_inline]] inline bool head_machine<Scan>::last_line(const char* p) noexcept {
    if (end_ - p < 2) return more(phase::line, p, p);
    if (p[1] != '\n') return fail(400, lone_cr);
    return head_ends(p + 2);
}

// Called when the bytes, or the limit for field lines, end inside a line.
template <class Scan>
inline bool head_machine<Scan>::cut(phase at, const char* token, const char* scanned) noexcept {
    const bool no_more_bytes = block_limit() == end_;
    return no_more_bytes ? more(at, token, scanned) : fail(431, too_large);
}

// Handles fields that decide how the message is read.
template <class Scan>
[[gnu::always_inline]] inline bool head_machine<Scan>::known_field(const field& f) noexcept {
    if (f.name.size() == 4) return !is_token_of_letters(f.name, "host") || host(f.value);
    constexpr unsigned others = 1u << 6 | 1u << 10 | 1u << 14 | 1u << 17;
    if (f.name.size() > 17 || (others >> f.name.size() & 1) == 0) return true;
    const complaint c = look_at(f, s_, out_, limits_);
    return c.error == 0 || fail(c.error, c.reason);
}

// Handles Host: exactly one, and valid; an authority in the target overrides it (RFC 9112
// section 3.2).
template <class Scan>
[[gnu::always_inline]] inline bool head_machine<Scan>::host(std::string_view text) noexcept {
    if (s_.host_seen) return fail(400, "there is more than one Host");
    if (!valid_authority(scan_, text, port_rule::optional, end_)) {
        return fail(400, "Host is invalid");
    }
    s_.host_seen = true;
    if (out_.host_.empty()) out_.host_ = text;
    return true;
}

// Checks what only the end of the head can show.
template <class Scan>
[[gnu::always_inline]] inline bool head_machine<Scan>::head_ends(const char* p) noexcept {
    if (!s_.host_seen && out_.minor_version_ != 0) return fail(400, "there is no Host");
    if (s_.coding_seen && !out_.chunked_) {
        return fail(400, "the last transfer coding is not chunked");
    }
    if (s_.coding_unknown) return fail(501, "the transfer coding is not implemented");
    out_.keep_alive_ = !s_.close_seen && (out_.minor_version_ != 0 || s_.keep_alive_seen);
    result_ = {parse_status::complete, static_cast<std::size_t>(p - base_), 0, ""};
    return false;
}

}  // namespace coppice::http::internal
