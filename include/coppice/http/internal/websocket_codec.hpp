// The frames of WebSocket (RFC 6455) as bytes in and messages out; for http/websocket.hpp.
#pragma once
// websocket_decoder reads frames as they arrive, any number of bytes at a time, and collects the
// message. It refuses what RFC 6455 forbids at the first byte that shows it, so that the same bytes
// give the same result however they are cut. It knows no sockets and no time.

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace coppice::http::internal {

// RFC 6455 section 5.2. The control opcodes have the bit 8.
enum class websocket_opcode : unsigned char {
    continuation = 0,
    text = 1,
    binary = 2,
    close = 8,
    ping = 9,
    pong = 10,
};

// Checks text in UTF-8 that arrives in pieces (RFC 3629), and fails at the first byte that cannot
// continue it.
class utf8_check {
public:
    // Returns false if `bytes` cannot follow what was added before. No further call is allowed
    // then.
    bool add(std::string_view bytes) noexcept;
    // Returns true unless the text ends in the middle of a character.
    bool is_complete() const noexcept { return left_ == 0; }

private:
    unsigned char left_ = 0;     // bytes that the character still needs
    unsigned char low_ = 0x80;   // the least next byte
    unsigned char high_ = 0xbf;  // the greatest next byte
};

// Returns true if the whole text is UTF-8.
bool is_utf8(std::string_view text) noexcept;

// Returns true if a close frame may carry this code (RFC 6455 section 7.4, and IANA's registry).
constexpr bool is_close_code(unsigned code) noexcept {
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
           (code >= 3000 && code <= 4999);
}

// Masks or unmasks `bytes`, which begin at the byte `offset` of a payload (RFC 6455 section 5.3).
void apply_mask(char* bytes, std::size_t size, std::array<unsigned char, 4> key,
                std::uint64_t offset) noexcept;

// The head of an unmasked frame: what comes before its payload.
class websocket_head {
public:
    // `compressed`: sets the bit of RFC 7692.
    websocket_head(websocket_opcode opcode, std::uint64_t length, bool compressed) noexcept;
    std::string_view bytes() const noexcept { return {bytes_.data(), size_}; }

private:
    std::array<char, 10> bytes_;
    std::size_t size_ = 2;
};

// Appends an unmasked frame. Errors: std::bad_alloc.
void append_frame(std::string& out, websocket_opcode opcode, std::string_view payload,
                  bool compressed = false);

// Inflates the messages of one side of a connection (RFC 7692 section 7.2.2).
class message_inflater : immovable {
public:
    // `window_bits`: 8 to 15. `takes_over`: a message may refer to the one before. Errors:
    // std::bad_alloc.
    message_inflater(int window_bits, bool takes_over);
    ~message_inflater();
    enum class outcome : unsigned char { good, malformed, too_large };
    // Inflates the next bytes of a message, and appends the result to `out`, which does not become
    // larger than `most` bytes. Errors: std::bad_alloc.
    outcome add(std::string_view bytes, std::string& out, std::size_t most);
    // Called at the end of a message: inflates what remains.
    outcome finish(std::string& out, std::size_t most);

private:
    struct stream;
    const std::unique_ptr<stream> stream_;
    const bool takes_over_;
    bool ended_ = false;  // the message has a final block
};

// Deflates messages (RFC 7692 section 7.2.1).
class message_deflater : immovable {
public:
    // `window_bits`: 9 to 15. `level`: zlib's, 1 to 9. Errors: std::bad_alloc.
    message_deflater(int window_bits, bool takes_over, int level);
    ~message_deflater();
    // Appends the compressed form of a whole message. Errors: std::bad_alloc.
    void deflate(std::string_view message, std::string& out);

private:
    struct stream;
    const std::unique_ptr<stream> stream_;
    const bool takes_over_;
};

// What a decoder refuses.
struct websocket_limits {
    std::size_t message_bytes_max = 1024 * 1024;  // also after inflating
    std::size_t fragments_max = 65'536;           // of one message
};

// Decodes the frames of one side. Threads: one at a time. Cost: a copy of the payload; allocates
// for messages that are longer than the one before.
class websocket_decoder : immovable {
public:
    enum class sender : unsigned char { client, server };  // a client masks, a server does not
    // `inflater`: nullptr if compression was not negotiated.
    websocket_decoder(sender from, const websocket_limits& limits,
                      std::unique_ptr<message_inflater> inflater = nullptr) noexcept;

    enum class found : unsigned char { nothing, message, ping, pong, close, error };
    struct result {
        found what = found::nothing;
        std::size_t consumed = 0;  // all bytes if nothing was found
    };
    // Decodes up to the end of a message, a control frame, or the first error; the next call goes
    // on behind it. After a close or an error, every call finds that again and consumes nothing.
    // Errors: std::bad_alloc; no further call is allowed then.
    result decode(std::string_view bytes);

    // Returns memory for bytes that follow those decoded so far, if the frame under way lacks so
    // many that they are worth being received there; otherwise nothing. The memory has room for
    // the rest of the frame and `behind_max` bytes more, or for a part of a very long rest. The
    // caller calls filled() next. Errors: std::bad_alloc, as for decode().
    std::span<char> room();
    // Tells whether room() returns any.
    bool wants_room() const noexcept;
    static constexpr std::size_t behind_max = 14;  // the longest head of a frame
    // Decodes the first `size` bytes of the room, as decode() does; `size` may be 0. Bytes behind
    // the frame are copied to `behind`. Errors: std::bad_alloc, unless `behind` has room for
    // behind_max bytes.
    found filled(std::size_t size, std::string& behind);

    // Returns the message that was found; valid until the next call of decode().
    std::string_view message() const noexcept { return {message_.data(), size_}; }
    bool is_text() const noexcept { return text_; }
    // Returns the payload of the control frame that was found; of a close frame only its reason.
    // Valid until the next call of decode().
    std::string_view control() const noexcept { return {control_.data(), control_size_}; }
    // Returns the code of the close frame, 1005 if it has none; after an error, the code to close
    // with: 1002, 1007, or 1009.
    unsigned code() const noexcept { return code_; }
    // Returns why, after an error: one sentence, static text.
    const char* reason() const noexcept { return reason_; }

private:
    std::size_t take_header(std::string_view bytes) noexcept;
    bool read_header(std::size_t size) noexcept;
    bool check_first_bytes() noexcept;
    bool begin_frame() noexcept;
    bool take_payload(std::string_view bytes);
    bool took(std::size_t bytes) noexcept;
    void make_room(std::size_t bytes);
    bool add_compressed(std::string_view bytes);
    bool end_frame();
    bool end_message();
    bool end_close() noexcept;
    bool judge(message_inflater::outcome outcome) noexcept;
    bool check_text(std::size_t from) noexcept;
    bool fail(unsigned code, const char* reason) noexcept {
        found_ = found::error;
        code_ = code;
        reason_ = reason;
        return false;
    }
    bool is_control() const noexcept { return (header_[0] & 8) != 0; }
    std::size_t header_size() const noexcept;

    const websocket_limits limits_;
    const std::unique_ptr<message_inflater> inflater_;
    const bool masked_;
    std::array<unsigned char, 14> header_{};
    std::size_t header_have_ = 0;
    bool in_payload_ = false;
    bool in_message_ = false;  // a message has begun, and its last frame has not ended
    bool text_ = false;
    bool compressed_ = false;
    found found_ = found::nothing;
    std::uint64_t length_ = 0;  // of the frame's payload
    std::uint64_t taken_ = 0;   // of it
    std::array<unsigned char, 4> key_{};
    std::size_t fragments_ = 0;
    // The message so far is the first size_ bytes. The bytes behind it are what an earlier message
    // has left, so that memory is not filled before each receive.
    std::string message_;
    std::size_t size_ = 0;
    utf8_check utf8_;
    std::array<char, 125> control_{};
    std::size_t control_size_ = 0;
    unsigned code_ = 1005;
    const char* reason_ = "";
};

}  // namespace coppice::http::internal
