// HTTP/1.1 request heads and chunked bodies, from bytes to values; used by the server.
#pragma once
// Everything here is a function of bytes: no sockets, no clock, no allocation, and no exceptions,
// except for kept trailers. The grammar is that of RFC 9112 and RFC 9110, without their permissions
// to repair: what two parsers could read differently is refused (docs/http-parsing.md lists each
// case).
//
// Two rules hold for every input. The fuzzers check them.
//
// Prefixes decide. Each byte is judged when it is reached, and each field line at its end. The
// shortest prefix that is wrong, or that exceeds a limit, decides the error. Every longer input
// that starts with that prefix has the same error. One buffer, any split of it, and one byte at a
// time therefore all agree.
//
// `partial` means that some continuation may still be valid. Three judgments wait for more bytes
// than they strictly need. The form of a target waits for the space after it, the value of a field
// waits for the end of its line, and what the whole head lacks (Host, a final chunked coding) waits
// for the head's end.

#include <coppice/http/internal/chunk_state.hpp>
#include <coppice/http/internal/head_state.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace coppice::http {

// The limits of one request. In bytes, unless the name says otherwise.
struct limits {
    std::size_t target_bytes_max = 8 * 1024;       // beyond: 414
    std::size_t header_bytes_max = 32 * 1024;      // all field lines with their CRLFs; beyond: 431
    std::size_t fields_max = 100;                  // at most request_head::capacity; beyond: 431
    std::size_t body_bytes_max = 8 * 1024 * 1024;  // without chunk framing; beyond: 413
};

// The methods of RFC 9110 section 9 and PATCH; `other` is any other token, see method_text().
enum class method : unsigned char {
    get,
    head,
    post,
    put,
    del,
    connect,
    options,
    trace,
    patch,
    other
};
namespace internal {

inline constexpr std::size_t method_count = 10;
template <class Scan>
class head_machine;

}  // namespace internal

// Returns "GET" for get; "" for other.
std::string_view to_string(method) noexcept;

// One field line.
struct field {
    std::string_view name;   // in the sender's spelling
    std::string_view value;  // without the whitespace around it
};

// How far parsing came: to the end, to where more bytes are needed, or to an error.
enum class parse_status : unsigned char { complete, partial, error };

// The result of parsing a head.
struct parse_result {
    parse_status status = parse_status::partial;
    // if complete: bytes of the head, including a leading empty line; else 0
    std::size_t consumed = 0;
    int error = 0;            // if error: 400, 413, 414, 431, 501, or 505
    const char* reason = "";  // if error: one sentence, static text
};

// What a request says before its body: views into the parsed bytes. Lifetime: valid after
// `complete`, as long as the parsed bytes stay where they are. Cost: a fixed size of a few KiB;
// reusable, never allocates.
class request_head {
public:
    static constexpr std::size_t capacity = 100;  // fields

    // Returns the method. method_text() is the name as sent, for methods that are `other`.
    method verb() const noexcept { return verb_; }
    std::string_view method_text() const noexcept { return method_text_; }
    // Returns the request target as sent.
    std::string_view target() const noexcept { return target_; }
    // Returns the path, not decoded: "*" for OPTIONS of the server itself, "" for CONNECT,
    // otherwise a text that starts with '/'. Every '%' in path and query is followed by two
    // hexadecimal digits.
    std::string_view path() const noexcept { return path_; }
    // Returns what follows the first '?', not decoded; "" if nothing does.
    std::string_view query() const noexcept { return query_; }
    // Returns 0 or 1. HTTP/1.2 and later are read as 1.1 (RFC 9110 section 2.5).
    int minor_version() const noexcept { return minor_version_; }
    // Returns all fields, in order.
    std::span<const field> fields() const noexcept { return {fields_.data(), count_}; }
    // Returns the value of the first field of that name. Case is ignored. Cost: O(fields).
    std::optional<std::string_view> find(std::string_view name) const noexcept;
    // Returns the authority that the request is for, with its port: the target's if it has one (RFC
    // 9112 section 3.2.2), otherwise the Host field's. "" only in HTTP/1.0.
    std::string_view host() const noexcept { return host_; }
    // Returns "http" or "https", in the sender's spelling, if the target is in absolute-form;
    // otherwise "".
    std::string_view scheme() const noexcept { return scheme_; }
    // Returns true if the client allows another request after this one (RFC 9112 section 9.3).
    bool keep_alive() const noexcept { return keep_alive_; }
    // Returns true if the client waits for 100 (Continue) before it sends a body that it has
    // declared.
    bool expects_continue() const noexcept {
        return expects_continue_ && (chunked_ || length_.value_or(0) != 0);
    }
    // Returns true if the body comes in chunks.
    bool chunked() const noexcept { return chunked_; }
    // Returns the declared length in bytes. There is no body if there is neither a length nor
    // chunked().
    std::optional<std::uint64_t> content_length() const noexcept { return length_; }

private:
    template <class Scan>
    friend class internal::head_machine;

    std::string_view method_text_;
    std::string_view target_;
    std::string_view path_;
    std::string_view query_;
    std::string_view host_;
    std::string_view scheme_;
    std::optional<std::uint64_t> length_;
    method verb_ = method::other;
    unsigned char minor_version_ = 1;
    bool keep_alive_ = false;
    bool expects_continue_ = false;
    bool chunked_ = false;
    std::size_t count_ = 0;
    std::array<field, capacity> fields_;
};

// Reads the head at the front of `bytes` (RFC 9112 sections 2 to 6). Pure: the same bytes give the
// same result. `out` is meaningful only after `complete`. Cost: O(bytes), no allocation. Calling it
// again for every byte of a slow sender is quadratic; head_parser is not.
parse_result parse_head(std::string_view bytes, request_head& out, const limits&) noexcept;

// parse_head for heads that arrive in pieces: reads each byte once.
class head_parser {
public:
    explicit head_parser(const limits& limit) noexcept : limits_(limit) {}

    // Parses as parse_head(bytes, head(), limits). While the result is `partial`, the next call's
    // bytes must begin with this call's. If the bytes have moved in memory, parsing starts over
    // automatically.
    parse_result parse(std::string_view bytes) noexcept;
    // Returns the head; meaningful after `complete`.
    const request_head& head() const noexcept { return head_; }
    // Forgets everything: the next bytes begin another head.
    void reset() noexcept {
        base_ = nullptr;
        state_ = {};
    }

private:
    limits limits_;
    const char* base_ = nullptr;  // where the bytes of the last call were
    internal::head_state state_;
    request_head head_;
};

// Removes the framing from a chunked body, in place (RFC 9112 section 7.1). Checks chunk extensions
// and trailer fields; together they may take header_bytes_max. Drops extensions, and trailers
// unless keep_trailers() was called. Cost: O(bytes), allocates only for trailers; a few words of
// state.
class chunk_decoder {
public:
    explicit chunk_decoder(const limits& limit) noexcept
        : body_left_(limit.body_bytes_max), overhead_left_(limit.header_bytes_max) {}

    // Appends trailer fields to `lines` as sent, each with its CRLF. Lifetime: `lines` outlives the
    // decoder.
    void keep_trailers(std::string& lines) noexcept { trailers_ = &lines; }

    struct result {
        parse_status status = parse_status::partial;
        std::size_t consumed = 0;  // partial: all; complete: up to the body's end; error: up to it
        std::size_t produced = 0;  // payload bytes, now at the front of the given bytes
        int error = 0;             // if error: 400, 413, or 431
        const char* reason = "";   // if error: one sentence, static text
    };
    // Decodes the next bytes of the body, any number of them. Bytes from `consumed` on are
    // untouched; what lies between `produced` and `consumed` is unspecified. After `complete` or
    // `error`, every call gives that status again and consumes nothing. Errors: std::bad_alloc,
    // only if trailers are kept; no further call is allowed then.
    result decode(std::span<char> bytes);

private:
    using state = internal::chunk_state;

    bool framing(char byte);
    bool extension(char byte) noexcept;
    bool trailer(char byte);
    bool size_ends() noexcept;
    bool enter(state next) noexcept {
        state_ = next;
        return true;
    }
    bool fail(int error, const char* reason) noexcept {
        error_ = error;
        reason_ = reason;
        state_ = state::failed;
        return false;
    }

    // the size being read, then the number of data bytes still to come
    std::uint64_t chunk_left_ = 0;
    std::size_t body_left_;
    std::size_t overhead_left_;
    std::string* trailers_ = nullptr;
    const char* reason_ = "";
    int error_ = 0;
    unsigned char digits_ = 0;
    state state_ = state::size_first;
};

}  // namespace coppice::http
