// The frames of the raw echo servers: only what a message of one masked frame needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace bench_edge {

// The frame at the beginning of some bytes.
struct raw_frame {
    std::size_t head = 0;     // bytes, with the masking key; 0 if the head is incomplete
    std::size_t payload = 0;  // bytes
    std::size_t size() const { return head + payload; }
};

// Reads lengths of up to 65,535 bytes, as the client sends them: RFC 6455, section 5.2.
inline raw_frame raw_frame_at(const char* bytes, std::size_t size) {
    if (size < 2) return {};
    const auto at = [bytes](int i) { return static_cast<unsigned char>(bytes[i]); };
    const std::size_t length = at(1) & 0x7f;
    if (length < 126) return {6, length};
    if (size < 4) return {};
    return {8, static_cast<std::size_t>(at(2) << 8 | at(3))};
}

// Unmasks a whole frame in place, and makes it the server's: the answer has no key, so that its
// head ends where the key did. Returns the answer, which lies in the same bytes.
inline std::string_view raw_echo(char* frame, raw_frame f) {
    std::uint32_t key;
    std::memcpy(&key, frame + f.head - 4, 4);
    const std::uint64_t mask = std::uint64_t{key} << 32 | key;
    char* const payload = frame + f.head;
    std::size_t at = 0;
    for (; f.payload - at >= 8; at += 8) {
        std::uint64_t word;
        std::memcpy(&word, payload + at, 8);
        word ^= mask;
        std::memcpy(payload + at, &word, 8);
    }
    for (; at != f.payload; ++at)
        payload[at] = static_cast<char>(payload[at] ^ frame[f.head - 4 + (at & 3)]);
    frame[1] = static_cast<char>(frame[1] & 0x7f);
    std::memmove(frame + 4, frame, f.head - 4);
    return {frame + 4, f.size() - 4};
}

inline constexpr std::string_view raw_switch =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

// What a raw server keeps of a client, which sends one message at a time, of up to 16 KiB.
struct raw_peer {
    bool open = false;     // its request was answered
    std::size_t have = 0;  // bytes of what comes
    std::vector<char> bytes = std::vector<char>(std::size_t{20} * 1024);
};

// Returns the answer to what has come; nothing if it is not whole.
inline std::string_view raw_answer(raw_peer& p) {
    if (!p.open) {
        if (!std::string_view(p.bytes.data(), p.have).ends_with("\r\n\r\n")) return {};
        p.open = true;
        p.have = 0;
        return raw_switch;
    }
    const raw_frame f = raw_frame_at(p.bytes.data(), p.have);
    if (f.head == 0 || f.size() > p.have) return {};
    p.have = 0;
    return raw_echo(p.bytes.data(), f);
}

}  // namespace bench_edge
