// What both engines of HTTP/2 need: limits, and helpers for fields.
#pragma once

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

namespace coppice::http2 {

inline constexpr unsigned continuations_most = 8;  // frames of one head, after its first
// Fewer frames that carry nothing would not do for a peer that only begins.
inline constexpr std::size_t idle_frames_least = 16;
// The connection's window. It opens as bytes arrive, so a stream that is not read closes only its
// own.
inline constexpr std::int32_t connection_window = 1 << 20;

// Checks what the limits of both sides have in common. `of`: their type's name. Errors:
// std::invalid_argument.
template <class Limits>
void check_limits(const Limits& limits, const std::string& of) {
    const auto refuse = [&](const char* name, const std::string& allowed, std::size_t value) {
        throw std::invalid_argument("http2::" + of + "::" + name + " must be " + allowed +
                                    ", got " + std::to_string(value));
    };
    const std::size_t streams = limits.streams_max, window = limits.stream_window_bytes;
    if (streams < 1 || streams > 10'000) refuse("streams_max", "1 to 10000", streams);
    if (window < 1 || window > NGHTTP2_MAX_WINDOW_SIZE) {
        refuse("stream_window_bytes", "1 to 2147483647", window);
    }
    if (limits.idle_frames_max < idle_frames_least) {
        refuse("idle_frames_max", "at least " + std::to_string(idle_frames_least),
               limits.idle_frames_max);
    }
}

// Adds to what a peer may still waste. `most` may be the largest number there is.
inline void earn(std::size_t& left, std::size_t n, std::size_t most) noexcept {
    left += std::min(n, most - left);
}

inline std::string_view text_of(const std::uint8_t* bytes, std::size_t size) noexcept {
    return {reinterpret_cast<const char*>(bytes), size};
}

// Returns true for fields that HTTP/2 does not have.
inline bool is_of_connection(std::string_view name) noexcept {
    constexpr std::string_view names[] = {"connection", "keep-alive", "proxy-connection",
                                          "transfer-encoding", "upgrade"};
    return std::ranges::find(names, name) != std::end(names);
}

// Views the texts.
inline nghttp2_nv pair_of(std::string_view name, std::string_view value) noexcept {
    const auto bytes = [](std::string_view text) {
        return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
    };
    return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

inline bool is_one_line(std::string_view text) noexcept {
    return text.find_first_of(std::string_view("\r\n\0", 3)) == text.npos;
}

}  // namespace coppice::http2
