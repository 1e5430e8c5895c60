// Frames of WebSocket: a state machine over headers; payload is unmasked and checked in bulk.
#include <coppice/http/internal/websocket_codec.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace coppice::http::internal {

namespace {

constexpr std::size_t spare_message_max = 64 * 1024;  // a larger buffer is not kept
constexpr std::size_t control_bytes_max = 125;
constexpr std::size_t room_min = 4096;       // a shorter rest of a frame gets no room
constexpr std::size_t room_max = 16 * 1024;  // or as much as the message has already

constexpr unsigned protocol_error = 1002;
constexpr unsigned bad_payload = 1007;
constexpr unsigned too_big = 1009;

// Returns true if so many bytes are ASCII.
template <std::size_t Size>
bool is_ascii(const char* bytes) noexcept {
    std::array<std::uint64_t, Size / 8> words;
    std::memcpy(words.data(), bytes, Size);
    std::uint64_t all = 0;
    for (const std::uint64_t word : words) all |= word;
    return (all & 0x8080808080808080) == 0;
}

// Returns the number of bytes before the first that is not ASCII, rounded down to eights.
std::size_t ascii_words(std::string_view bytes) noexcept {
    std::size_t at = 0;
    while (bytes.size() - at >= 64 && is_ascii<64>(bytes.data() + at)) at += 64;
    while (bytes.size() - at >= 8 && is_ascii<8>(bytes.data() + at)) at += 8;
    return at;
}

}  // namespace

bool utf8_check::add(std::string_view bytes) noexcept {
    while (!bytes.empty()) {
        if (left_ == 0) bytes.remove_prefix(ascii_words(bytes));
        if (bytes.empty()) break;
        const auto byte = static_cast<unsigned char>(bytes.front());
        bytes.remove_prefix(1);
        if (left_ != 0) {
            if (byte < low_ || byte > high_) return false;
            --left_;
            low_ = 0x80;
            high_ = 0xbf;
        } else if (byte >= 0x80) {
            // The second byte's range excludes longer spellings, surrogates, and what is beyond
            // U+10FFFF.
            if (byte < 0xc2 || byte > 0xf4) return false;
            left_ = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
            if (byte == 0xe0) low_ = 0xa0;
            if (byte == 0xed) high_ = 0x9f;
            if (byte == 0xf0) low_ = 0x90;
            if (byte == 0xf4) high_ = 0x8f;
        }
    }
    return true;
}

bool is_utf8(std::string_view text) noexcept {
    utf8_check check;
    return check.add(text) && check.is_complete();
}

void apply_mask(char* bytes, std::size_t size, std::array<unsigned char, 4> key,
                std::uint64_t offset) noexcept {
    std::array<unsigned char, 8> pattern;
    for (std::size_t i = 0; i != pattern.size(); ++i) pattern[i] = key[(offset + i) & 3];
    std::uint64_t mask;
    std::memcpy(&mask, pattern.data(), 8);
    std::size_t at = 0;
    for (; size - at >= 8; at += 8) {  // compilers make wider steps of this
        std::uint64_t word;
        std::memcpy(&word, bytes + at, 8);
        word ^= mask;
        std::memcpy(bytes + at, &word, 8);
    }
    for (; at != size; ++at) {
        bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ pattern[at & 7]);
    }
}

websocket_head::websocket_head(websocket_opcode opcode, std::uint64_t length,
                               bool compressed) noexcept {
    bytes_[0] = static_cast<char>(0x80 | (compressed ? 0x40 : 0) | static_cast<int>(opcode));
    if (length <= 125) {
        bytes_[1] = static_cast<char>(length);
    } else {
        const int bytes = length <= 0xffff ? 2 : 8;
        bytes_[1] = static_cast<char>(bytes == 2 ? 126 : 127);
        for (int i = bytes; i-- != 0;) bytes_[size_++] = static_cast<char>(length >> (8 * i));
    }
}

void append_frame(std::string& out, websocket_opcode opcode, std::string_view payload,
                  bool compressed) {
    const websocket_head head(opcode, payload.size(), compressed);
    out.reserve(std::max(out.size() + head.bytes().size() + payload.size(), out.capacity()));
    out.append(head.bytes()).append(payload);
}

websocket_decoder::websocket_decoder(sender from, const websocket_limits& limits,
                                     std::unique_ptr<message_inflater> inflater) noexcept
    : limits_(limits), inflater_(std::move(inflater)), masked_(from == sender::client) {}

websocket_decoder::result websocket_decoder::decode(std::string_view bytes) {
    result r{found_, 0};
    if (found_ == found::close || found_ == found::error) return r;
    found_ = found::nothing;
    while (found_ == found::nothing) {
        const std::string_view left = bytes.substr(r.consumed);
        if (!in_payload_) {
            if (left.empty()) break;
            r.consumed += take_header(left);
        } else {
            const auto size =
                static_cast<std::size_t>(std::min<std::uint64_t>(left.size(), length_ - taken_));
            r.consumed += size;
            if (size != 0 && !take_payload(left.substr(0, size))) break;
            if (taken_ != length_) break;
            end_frame();
        }
    }
    r.what = found_;
    return r;
}

bool websocket_decoder::wants_room() const noexcept {
    return in_payload_ && !is_control() && !compressed_ && length_ - taken_ >= room_min &&
           found_ != found::close && found_ != found::error;
}

std::span<char> websocket_decoder::room() {
    if (!wants_room()) return {};
    const std::uint64_t missing = length_ - taken_;
    const auto most = static_cast<std::uint64_t>(std::max(room_max, size_));
    const auto size = static_cast<std::size_t>(missing <= most ? missing + behind_max : most);
    make_room(size);
    return std::span(message_).subspan(size_, size);
}

websocket_decoder::found websocket_decoder::filled(std::size_t size, std::string& behind) {
    const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(size, length_ - taken_));
    behind.assign(message_, size_ + taken, size - taken);
    found_ = found::nothing;
    if (took(taken) && taken_ == length_) end_frame();
    return found_;
}

// Makes the memory behind the message so far at least as long.
void websocket_decoder::make_room(std::size_t bytes) {
    if (message_.size() - size_ < bytes) message_.resize(size_ + bytes);
}

std::size_t websocket_decoder::header_size() const noexcept {
    if (header_have_ < 2) return 2;
    const unsigned length = header_[1] & 0x7f;
    return 2 + (length == 126 ? 2u : length == 127 ? 8u : 0u) + (masked_ ? 4u : 0u);
}

// Takes bytes of a header, and reads it when it is complete. Returns how many bytes it took.
std::size_t websocket_decoder::take_header(std::string_view bytes) noexcept {
    std::size_t taken = 0;
    while (taken != bytes.size()) {
        header_[header_have_++] = static_cast<unsigned char>(bytes[taken++]);
        if (!read_header(header_have_)) break;
        if (in_payload_) break;
    }
    return taken;
}

// Checks a header of which `size` bytes are here. Returns false if it is wrong.
bool websocket_decoder::read_header(std::size_t size) noexcept {
    if (size <= 2) {
        if (!check_first_bytes()) return false;
    }
    const unsigned short_length = header_[1] & 0x7f;
    const std::size_t length_end = 2 + (short_length == 126 ? 2u : short_length == 127 ? 8u : 0u);
    if (size < 2 || size < length_end) return true;
    if (size == length_end) {
        std::uint64_t length = short_length;
        if (short_length > 125) {
            length = 0;
            for (std::size_t i = 2; i != length_end; ++i) length = (length << 8) | header_[i];
            const std::uint64_t least = short_length == 126 ? 126 : 0x10000;
            if (length < least) return fail(protocol_error, "a length is not in its shortest form");
            if (length >> 63 != 0) return fail(protocol_error, "a length is too large");
        }
        length_ = length;
        if (!is_control() && !compressed_ && length > limits_.message_bytes_max - size_) {
            return fail(too_big, "a message is too long");
        }
    }
    if (size != header_size()) return true;
    if (masked_) std::copy_n(header_.begin() + static_cast<int>(length_end), 4, key_.begin());
    header_have_ = 0;
    taken_ = 0;
    in_payload_ = true;
    if (is_control()) control_size_ = 0;
    return true;
}

// Checks the first byte of a header, or the first two.
bool websocket_decoder::check_first_bytes() noexcept {
    const unsigned first = header_[0];
    const unsigned opcode = first & 0x0f;
    if (header_have_ == 1) {
        const bool known = opcode <= 2 || (opcode >= 8 && opcode <= 10);
        if (!known) return fail(protocol_error, "an opcode is unknown");
        if ((first & 0x30) != 0) return fail(protocol_error, "a reserved bit is set");
        const bool may_compress = inflater_ != nullptr && (opcode == 1 || opcode == 2);
        if ((first & 0x40) != 0 && !may_compress) {
            return fail(protocol_error, "a reserved bit is set");
        }
        if (is_control()) {
            const bool last = (first & 0x80) != 0;
            return last || fail(protocol_error, "a control frame is fragmented");
        }
        return begin_frame();
    }
    if (((header_[1] & 0x80) != 0) != masked_) {
        return fail(protocol_error, masked_ ? "a frame is not masked" : "a frame is masked");
    }
    if (is_control() && (header_[1] & 0x7f) > control_bytes_max) {
        return fail(protocol_error, "a control frame is longer than 125 bytes");
    }
    return true;
}

// Called at the first byte of a frame of a message.
bool websocket_decoder::begin_frame() noexcept {
    const unsigned opcode = header_[0] & 0x0f;
    if (opcode == 0) {
        if (!in_message_) return fail(protocol_error, "a continuation continues nothing");
        if (++fragments_ > limits_.fragments_max) {
            return fail(too_big, "a message has too many fragments");
        }
        return true;
    }
    if (in_message_) return fail(protocol_error, "a message begins inside another one");
    in_message_ = true;
    text_ = opcode == 1;
    compressed_ = (header_[0] & 0x40) != 0;
    fragments_ = 1;
    utf8_ = {};
    size_ = 0;
    if (message_.capacity() > spare_message_max) std::string().swap(message_);
    if (compressed_) message_.clear();  // the inflater appends to it
    return true;
}

bool websocket_decoder::take_payload(std::string_view bytes) {
    if (!is_control() && !compressed_) {
        make_room(bytes.size());
        bytes.copy(message_.data() + size_, bytes.size());
        return took(bytes.size());
    }
    const std::uint64_t offset = std::exchange(taken_, taken_ + bytes.size());
    if (is_control()) {
        char* const at = control_.data() + control_size_;
        bytes.copy(at, bytes.size());
        if (masked_) apply_mask(at, bytes.size(), key_, offset);
        control_size_ += bytes.size();
        return true;
    }
    char plain[4096];
    for (std::uint64_t at = offset; !bytes.empty();) {
        const std::size_t size = std::min(bytes.size(), sizeof plain);
        bytes.copy(plain, size);
        if (masked_) apply_mask(plain, size, key_, at);
        if (!add_compressed({plain, size})) return false;
        bytes.remove_prefix(size);
        at += size;
    }
    return true;
}

// Takes payload that has been written behind the message so far.
bool websocket_decoder::took(std::size_t bytes) noexcept {
    const std::size_t before = std::exchange(size_, size_ + bytes);
    const std::uint64_t offset = std::exchange(taken_, taken_ + bytes);
    if (masked_) apply_mask(message_.data() + before, bytes, key_, offset);
    return check_text(before);
}

// What was inflated is checked before the outcome, so that the same bytes give the same error
// however they are cut.
bool websocket_decoder::add_compressed(std::string_view bytes) {
    const std::size_t before = size_;
    const auto outcome = inflater_->add(bytes, message_, limits_.message_bytes_max);
    size_ = message_.size();
    return check_text(before) && judge(outcome);
}

bool websocket_decoder::judge(message_inflater::outcome outcome) noexcept {
    if (outcome == message_inflater::outcome::malformed) {
        return fail(bad_payload, "a compressed message is malformed");
    }
    if (outcome == message_inflater::outcome::too_large) {
        return fail(too_big, "a message is too long");
    }
    return true;
}

// Checks the bytes of the message from `from` on.
bool websocket_decoder::check_text(std::size_t from) noexcept {
    if (!text_ || utf8_.add(message().substr(from))) return true;
    return fail(bad_payload, "a text is not UTF-8");
}

bool websocket_decoder::end_frame() {
    in_payload_ = false;
    switch (static_cast<websocket_opcode>(header_[0] & 0x0f)) {
        case websocket_opcode::ping:
            found_ = found::ping;
            return true;
        case websocket_opcode::pong:
            found_ = found::pong;
            return true;
        case websocket_opcode::close:
            return end_close();
        default:
            return (header_[0] & 0x80) == 0 || end_message();
    }
}

bool websocket_decoder::end_message() {
    in_message_ = false;
    if (compressed_) {
        const std::size_t before = size_;
        const auto outcome = inflater_->finish(message_, limits_.message_bytes_max);
        size_ = message_.size();
        if (!check_text(before) || !judge(outcome)) return false;
    }
    if (text_ && !utf8_.is_complete()) {
        return fail(bad_payload, "a text ends inside a character");
    }
    found_ = found::message;
    return true;
}

bool websocket_decoder::end_close() noexcept {
    if (control_size_ == 1) return fail(protocol_error, "a close frame has one byte");
    code_ = 1005;
    if (control_size_ != 0) {
        const auto byte = [this](std::size_t i) {
            return static_cast<unsigned>(static_cast<unsigned char>(control_[i]));
        };
        code_ = byte(0) << 8 | byte(1);
        if (!is_close_code(code_)) return fail(protocol_error, "a close code is invalid");
        if (!is_utf8(control().substr(2))) return fail(bad_payload, "a close reason is not UTF-8");
        control_size_ -= 2;
        std::memmove(control_.data(), control_.data() + 2, control_size_);
    }
    found_ = found::close;
    return true;
}

}  // namespace coppice::http::internal
