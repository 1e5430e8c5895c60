// Chunked bodies: a state machine over the framing bytes; the payload is moved in bulk.
#include <coppice/http/internal/scan.hpp>
#include <coppice/http/parse.hpp>

#include <algorithm>
#include <cstring>

namespace coppice::http {

using namespace internal;

namespace {

// More digits would not fit into 64 bits, or would be leading zeros.
constexpr unsigned char size_digits_max = 16;

constexpr const char* bare_cr = "a CR is not followed by LF";
constexpr const char* bad_extension = "a chunk extension is invalid";
constexpr const char* too_large = "chunk extensions and trailer fields are too large";

}  // namespace

chunk_decoder::result chunk_decoder::decode(std::span<char> bytes) {
    char* const begin = bytes.data();
    char* const end = begin + bytes.size();
    const char* in = begin;
    char* out = begin;
    while (in != end && state_ != state::complete && state_ != state::failed) {
        if (state_ == state::data) {
            const std::size_t size = std::min(chunk_left_, static_cast<std::uint64_t>(end - in));
            if (out != in) std::memmove(out, in, size);
            in += size;
            out += size;
            chunk_left_ -= size;
            if (chunk_left_ == 0) state_ = state::data_cr;
        } else if (framing(*in)) {
            ++in;
        }
    }
    const parse_status status = state_ == state::complete ? parse_status::complete
                                : state_ == state::failed ? parse_status::error
                                                          : parse_status::partial;
    return {status, static_cast<std::size_t>(in - begin), static_cast<std::size_t>(out - begin),
            error_, reason_};
}

// Takes one byte that is not payload. Returns false if it is wrong, or exceeds a limit.
bool chunk_decoder::framing(char byte) {
    switch (state_) {
        case state::size_first:
        case state::size_digits:
            if (is(byte, hex_byte)) {
                if (digits_ == size_digits_max) return fail(400, "a chunk size is too long");
                ++digits_;
                chunk_left_ = chunk_left_ * 16 + static_cast<unsigned>(hex_value(byte));
                return enter(state::size_digits);
            }
            if (state_ == state::size_first || (byte != '\r' && byte != ';')) {
                return fail(400, "a chunk size is invalid");
            }
            if (!size_ends()) return false;
            return byte == '\r' ? enter(state::size_lf) : extension(byte);
        case state::size_lf:
            if (byte != '\n') return fail(400, bare_cr);
            return enter(chunk_left_ == 0 ? state::trailer_start : state::data);
        case state::data_cr:
            if (byte != '\r') return fail(400, "chunk data is longer than its size");
            return enter(state::data_lf);
        case state::data_lf:
            if (byte != '\n') return fail(400, bare_cr);
            digits_ = 0;
            return enter(state::size_first);
        case state::end_lf:
            if (byte != '\n') return fail(400, bare_cr);
            return enter(state::complete);
        case state::trailer_start:
        case state::trailer_name:
        case state::trailer_value:
        case state::trailer_lf:
            return trailer(byte);
        default:
            return extension(byte);
    }
}

bool chunk_decoder::size_ends() noexcept {
    if (chunk_left_ > body_left_) return fail(413, "the body is too large");
    body_left_ -= chunk_left_;
    return true;
}

// Parses *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] ) (RFC 9112 section 7.1.1),
// but permits no space between the size and the first ';'.
bool chunk_decoder::extension(char byte) noexcept {
    const bool space = byte == ' ' || byte == '\t';
    if (byte == '\r') {
        const bool may_end = state_ == state::extension_name || state_ == state::extension_value ||
                             state_ == state::extension_quoted_end;
        return may_end ? enter(state::size_lf) : fail(400, bad_extension);
    }
    if (overhead_left_ == 0) return fail(431, too_large);
    --overhead_left_;
    switch (state_) {
        case state::size_digits:
            return enter(state::extension_start);
        case state::extension_start:
            if (space) return true;
            if (is(byte, token_byte)) return enter(state::extension_name);
            break;
        case state::extension_name:
            if (is(byte, token_byte)) return true;
            [[fallthrough]];
        case state::extension_name_space:
            if (space) return enter(state::extension_name_space);
            if (byte == '=') return enter(state::extension_value_start);
            if (byte == ';') return enter(state::extension_start);
            break;
        case state::extension_value_start:
            if (space) return true;
            if (byte == '"') return enter(state::extension_quoted);
            if (is(byte, token_byte)) return enter(state::extension_value);
            break;
        case state::extension_quoted:
            if (byte == '"') return enter(state::extension_quoted_end);
            if (byte == '\\') return enter(state::extension_escape);
            if (is(byte, quoted_byte)) return true;
            break;
        case state::extension_escape:
            if (is(byte, value_byte)) return enter(state::extension_quoted);
            break;
        case state::extension_value:
            if (is(byte, token_byte)) return true;
            [[fallthrough]];
        case state::extension_quoted_end:
        case state::extension_value_space:
            if (space) return enter(state::extension_value_space);
            if (byte == ';') return enter(state::extension_start);
            break;
        default:
            break;
    }
    return fail(400, bad_extension);
}

// Parses *( field-line CRLF ) CRLF (RFC 9112 section 7.1.2).
bool chunk_decoder::trailer(char byte) {
    if (state_ == state::trailer_start && byte == '\r') return enter(state::end_lf);
    if (overhead_left_ == 0) return fail(431, too_large);
    --overhead_left_;
    if (trailers_ != nullptr) trailers_->push_back(byte);
    switch (state_) {
        case state::trailer_start:
            if (is(byte, token_byte)) return enter(state::trailer_name);
            break;
        case state::trailer_name:
            if (is(byte, token_byte)) return true;
            if (byte == ':') return enter(state::trailer_value);
            break;
        case state::trailer_value:
            if (is(byte, value_byte)) return true;
            if (byte == '\r') return enter(state::trailer_lf);
            break;
        default:
            if (byte == '\n') return enter(state::trailer_start);
            return fail(400, bare_cr);
    }
    return fail(400, "a trailer field is invalid");
}

}  // namespace coppice::http
