// The fields that say how the body ends, and what follows it; read by the head machine.
#pragma once
#include <coppice/http/internal/scan.hpp>
#include <coppice/http/parse.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

#include "head_machine.hpp"

namespace coppice::http::internal {

// Returns true if a token of `Size` bytes is `name`, whatever its case. `name` has only small
// letters and '-': no other byte of a token becomes one of those when its bit 0x20 is set.
template <std::size_t Size>
bool is_token_of_letters(std::string_view token, const char (&name)[Size]) noexcept {
    unsigned differ = 0;
    for (std::size_t i = 0; i != Size - 1; ++i) {
        differ |= static_cast<unsigned char>((token[i] | 0x20) ^ name[i]);
    }
    return differ == 0;
}

// Handles fields that few requests have, out of line.
template <class Scan>
[[gnu::noinline]] typename head_machine<Scan>::complaint head_machine<Scan>::look_at(
    const field& f, head_state& state, request_head& out, const limits& limit) noexcept {
    switch (f.name.size()) {
        case 6:
            if (is_token_of_letters(f.name, "expect")) expect(f.value, out);
            return {};
        case 10:
            if (is_token_of_letters(f.name, "connection")) connection(f.value, state);
            return {};
        case 14:
            if (!is_token_of_letters(f.name, "content-length")) return {};
            return length(f.value, state, out, limit);
        default:
            if (!is_token_of_letters(f.name, "transfer-encoding")) return {};
            return coding(f.value, state, out);
    }
}

template <class Scan>
inline void head_machine<Scan>::expect(std::string_view list, request_head& out) noexcept {
    for_each_member(list, [&](std::string_view member) {
        if (equals_ignoring_case(member, "100-continue")) {
            // Ignored from a 1.0 client (RFC 9110 section 10.1.1).
            out.expects_continue_ = out.minor_version_ != 0;
        }
        return true;
    });
}

template <class Scan>
inline void head_machine<Scan>::connection(std::string_view list, head_state& state) noexcept {
    for_each_member(list, [&](std::string_view member) {
        if (equals_ignoring_case(member, "close")) state.close_seen = true;
        if (equals_ignoring_case(member, "keep-alive")) state.keep_alive_seen = true;
        return true;
    });
}

// Handles Content-Length: only digits, once, and not together with Transfer-Encoding (RFC 9110
// section 8.6).
template <class Scan>
inline typename head_machine<Scan>::complaint head_machine<Scan>::length(
    std::string_view digits, const head_state& state, request_head& out,
    const limits& limit) noexcept {
    if (out.length_) return {400, "there is more than one Content-Length"};
    if (state.coding_seen) return {400, both_lengths};
    std::uint64_t number = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, number);
    if (error != std::errc() || stop != end) return {400, "Content-Length is invalid"};
    if (number > limit.body_bytes_max) return {413, "the body is too large"};
    out.length_ = number;
    return {};
}

// Handles Transfer-Encoding: chunked, once and last (RFC 9112 sections 6.1, 6.3, and 7). Notes
// codings that are not implemented: only the head's end shows if they cause a 501 or, for lack
// of chunked, a 400.
template <class Scan>
inline typename head_machine<Scan>::complaint head_machine<Scan>::coding(
    std::string_view list, head_state& state, request_head& out) noexcept {
    if (out.minor_version_ == 0) return {400, "Transfer-Encoding in HTTP/1.0"};
    if (out.length_) return {400, both_lengths};
    state.coding_seen = true;
    complaint found;
    for_each_member(list, [&](std::string_view member) {
        const char* const end = member.data() + member.size();
        const std::string_view name = view(member.data(), Scan().token(member.data(), end));
        if (out.chunked_) {
            found = {400, "chunked is not the last transfer coding"};
        } else if (name.empty()) {
            found = {400, "Transfer-Encoding is invalid"};
        } else if (!equals_ignoring_case(name, "chunked")) {
            state.coding_unknown = true;
        } else if (name.size() != member.size()) {
            found = {400, "chunked has no parameters"};
        } else {
            out.chunked_ = true;
        }
        return found.error == 0;
    });
    return found;
}

}  // namespace coppice::http::internal
