// The frames of HTTP/2 as tests make them, by hand.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace coppice::test {

// A frame as bytes.
inline std::string frame(int type, int flags, std::uint32_t stream, std::string_view payload) {
    std::string made;
    for (const int shift : {16, 8, 0}) made.push_back(static_cast<char>(payload.size() >> shift));
    made.push_back(static_cast<char>(type));
    made.push_back(static_cast<char>(flags));
    for (const int shift : {24, 16, 8, 0}) made.push_back(static_cast<char>(stream >> shift));
    return made.append(payload);
}
// A number of 32 bits as a frame has it.
inline std::string number(std::uint32_t value) {
    std::string made;
    for (const int shift : {24, 16, 8, 0}) made.push_back(static_cast<char>(value >> shift));
    return made;
}
inline std::string reset_frame(std::uint32_t stream, std::uint32_t code) {
    return frame(NGHTTP2_RST_STREAM, 0, stream, number(code));
}
inline std::string goaway(std::uint32_t last, std::uint32_t code = 0) {
    return frame(NGHTTP2_GOAWAY, 0, 0, number(last) + number(code));
}
inline std::string preface() {
    return std::string(NGHTTP2_CLIENT_MAGIC) + frame(NGHTTP2_SETTINGS, 0, 0, "");
}
// A field of HPACK that is not indexed: names and values are shorter than 127 bytes.
inline std::string literal(std::string_view name, std::string_view value) {
    std::string made(1, '\0');
    made.push_back(static_cast<char>(name.size()));
    made.append(name).push_back(static_cast<char>(value.size()));
    return made.append(value);
}
inline std::string get_block(std::string_view path = "/") {
    return literal(":method", "GET") + literal(":scheme", "http") + literal(":path", path) +
           literal(":authority", "a");
}
inline std::string get_frame(std::uint32_t stream, std::string_view path = "/") {
    return frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM | NGHTTP2_FLAG_END_HEADERS, stream,
                 get_block(path));
}

// The head of a WebSocket (RFC 8441), in the clear or over TLS.
inline std::string open_frame(std::uint32_t stream, std::string_view more = {},
                              std::string_view scheme = "http") {
    std::string block = literal(":method", "CONNECT") + literal(":protocol", "websocket") +
                        literal(":scheme", scheme) + literal(":path", "/") +
                        literal(":authority", "a") + literal("sec-websocket-version", "13");
    return frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, stream, block.append(more));
}

// Returns the code of the GOAWAY among these frames; ~0 if there is none.
inline std::uint32_t code_in(const std::string& all) {
    for (std::size_t at = 0; at + 9 <= all.size();) {
        const auto byte = [&](std::size_t i) {
            return static_cast<std::uint32_t>(static_cast<unsigned char>(all[at + i]));
        };
        const std::size_t size = byte(0) << 16 | byte(1) << 8 | byte(2);
        if (byte(3) == NGHTTP2_GOAWAY && at + 17 <= all.size()) {
            return byte(13) << 24 | byte(14) << 16 | byte(15) << 8 | byte(16);
        }
        at += 9 + size;
    }
    return ~0u;
}

}  // namespace coppice::test
