// The frames of WebSocket as tests make and read them, by hand.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace coppice::test {

// What a frame says, as its sender may choose it.
struct frame_parts {
    unsigned first = 0x81;  // the first byte: FIN, the reserved bits, and the opcode
    std::string_view payload;
    bool masked = true;
    int length_bytes = 0;  // 2 or 8: a longer form than needed
};

inline std::string frame_of(const frame_parts& f) {
    const std::uint64_t size = f.payload.size();
    const int bytes = f.length_bytes != 0 ? f.length_bytes : size <= 125 ? 0 : size < 65536 ? 2 : 8;
    std::string out;
    out += static_cast<char>(f.first);
    const unsigned mask = f.masked ? 0x80 : 0;
    const std::uint64_t small = bytes == 0 ? size : bytes == 2 ? 126 : 127;
    out += static_cast<char>(mask | small);
    for (int i = bytes; i-- != 0;) out += static_cast<char>(size >> (8 * i));
    if (!f.masked) return out.append(f.payload);
    const std::array<unsigned char, 4> key = {0x37, 0xfa, 0x21, 0x3d};
    for (const unsigned char k : key) out += static_cast<char>(k);
    for (std::size_t i = 0; i != f.payload.size(); ++i) {
        out += static_cast<char>(static_cast<unsigned char>(f.payload[i]) ^ key[i % 4]);
    }
    return out;
}
inline std::string text_frame(std::string_view text) {
    return frame_of({0x81, text});
}
inline std::string close_payload(unsigned code, std::string_view reason = {}) {
    std::string out;
    out += static_cast<char>(code >> 8);
    out += static_cast<char>(code);
    return out.append(reason);
}
inline std::string close_frame(unsigned code, std::string_view reason = {}) {
    const std::string payload = close_payload(code, reason);
    return frame_of({0x88, payload});
}

inline std::string upgrade_request(std::string_view path = "/", std::string_view more = {}) {
    return "GET " + std::string(path) +
           " HTTP/1.1\r\nHost: a.example\r\nUpgrade: websocket\r\nConnection: keep-alive, "
           "Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: "
           "13\r\n" +
           std::string(more) + "\r\n";
}

// Returns the next frame as "<opcode in hexadecimal>:<payload>", with a '*' behind the opcode if
// the compression bit is set; "end" if the connection ends, "bad" for a wrong frame. `take` gives
// so many bytes, or "".
template <class Take>
std::string next_frame(Take take) {
    const std::string header = take(2);
    if (header.empty()) return "end";
    const auto first = static_cast<unsigned char>(header[0]);
    std::uint64_t size = static_cast<unsigned char>(header[1]);
    if ((first & 0xb0) != 0x80 || size > 127) return "bad";
    if (size > 125) {
        const std::string length = take(size == 126 ? 2 : 8);
        size = 0;
        for (const char c : length) size = size << 8 | static_cast<unsigned char>(c);
    }
    const std::string payload = size == 0 ? "" : take(static_cast<std::size_t>(size));
    if (payload.size() != size) return "end";
    std::string out(1, "0123456789abcdef"[first & 15]);
    if ((first & 0x40) != 0) out += '*';
    return out.append(":").append(payload);
}

}  // namespace coppice::test
