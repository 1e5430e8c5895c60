// request_end: where the current request ends; only there can the next one begin.
#pragma once
// A request can be answered before its body has been received: by a filter, by the router, by a
// handler that stops reading. If the connection then continued after the head, the body would be
// read as the next request, which is request smuggling. Only this class therefore gives the
// position of the next request, and only after the end of the body has been seen.

#include <coppice/base/internal/check.hpp>
#include <coppice/http/parse.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice::http {

// The end of one request. Threads: those of its exchange.
class request_end {
public:
    // Called when a head of `head_bytes` has been parsed and `available` bytes of input lie after
    // it. Returns true if these hold the whole body without decoding.
    bool begin(const request_head& head, std::size_t head_bytes, std::size_t available) noexcept {
        const std::uint64_t length = head.content_length().value_or(0);
        const bool whole = !head.chunked() && length <= available;
        bytes_ = whole ? head_bytes + static_cast<std::size_t>(length) : head_bytes;
        state_ = whole ? state::here : state::to_come;
        return whole;
    }
    // Called when the body has been received to its end: the request is the first `bytes` of the
    // input.
    void found(std::size_t bytes) noexcept {
        bytes_ = bytes;
        state_ = state::here;
    }
    // Called when the body has been dropped to its end: the input begins with the next request.
    void dropped() noexcept { found(0); }
    // Called when the handler has read the body to its end: what follows is in exchange::rest.
    void read_to_end() noexcept { state_ = state::in_rest; }
    // Called when the handler has stopped reading in the middle of the body.
    void abandoned() noexcept { state_ = state::lost; }

    bool is_known() const noexcept { return state_ == state::here || state_ == state::in_rest; }
    bool is_in_rest() const noexcept { return state_ == state::in_rest; }
    // Returns true if the rest of the body can still be received and dropped.
    bool can_be_dropped() const noexcept { return state_ == state::to_come; }
    // Returns the number of bytes of the input that are the request. Errors: an end that is not
    // `here` stops the process.
    std::size_t bytes() const noexcept {
        COPPICE_CHECK(state_ == state::here, "the end of a request is not known");
        return bytes_;
    }

private:
    enum class state : unsigned char {
        here,     // the request is bytes_ of the input
        in_rest,  // a handler has read the body, and bytes after it
        to_come,  // the body has not been received to its end
        lost,     // a handler has read a part of the body
    };
    std::size_t bytes_ = 0;
    state state_ = state::here;
};

}  // namespace coppice::http
