// trace_context: a request's place in a distributed trace, as the field traceparent tells it.
#pragma once
// A trace is everything that one cause makes happen on many machines. Each request in it is a span.
// A client sends the trace and its own span in the field traceparent. The server gives the request
// a span of its own in the same trace, which handlers send on to the services that they ask.
//
//   traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
//                   trace                            span             flags

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace coppice::http {

// Source: W3C Trace Context. Threads: a value.
struct trace_context {
    static constexpr std::size_t text_bytes = 55;

    std::array<unsigned char, 16> trace{};  // all zeros: none
    std::array<unsigned char, 8> span{};
    unsigned char flags = 0;  // bit 0: sampled; bit 1: the trace's number is random

    // Returns true if this names a trace.
    bool is_valid() const noexcept { return trace != decltype(trace)(); }
    // Returns true if the sender may have recorded its span.
    bool is_sampled() const noexcept { return (flags & 1) != 0; }
    // Returns the text for the field traceparent, in version 00.
    std::array<char, text_bytes> text() const noexcept;

    // Reads a value of the field. Of flags it keeps the two that are known. Text of a later version
    // is read as far as version 00 knows it. Returns nothing for other text: a wrong length,
    // capital letters, numbers that are all zeros, and version ff. Cost: no allocation.
    static std::optional<trace_context> parse(std::string_view text) noexcept;
};

}  // namespace coppice::http
