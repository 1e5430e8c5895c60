// The ways in which bytes can reach the parsers, and the results as one comparable text.
#pragma once
// Shared by the tests and the fuzzers. The result must be the same for every delivery.

#include <coppice/http/internal/head_machines.hpp>
#include <coppice/http/parse.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "guarded_bytes.hpp"

namespace coppice::test {

// Everything that a parse returned: for `complete`, the whole head.
inline std::string describe(const http::parse_result& result, const http::request_head& head) {
    const auto number = [](std::uint64_t n) { return std::to_string(n); };
    if (result.status == http::parse_status::partial) return "partial";
    if (result.status == http::parse_status::error) {
        return number(static_cast<std::uint64_t>(result.error)) + " " + result.reason;
    }
    std::string text = "complete " + number(result.consumed) + "\n";
    for (const std::string_view part : {head.method_text(), head.target(), head.path(),
                                        head.query(), head.host(), head.scheme()}) {
        text.append("[").append(part).append("]");
    }
    text += " verb " + number(static_cast<std::uint64_t>(head.verb()));
    text += " 1." + number(static_cast<std::uint64_t>(head.minor_version()));
    if (head.keep_alive()) text += " keep-alive";
    if (head.expects_continue()) text += " expects";
    if (head.chunked()) text += " chunked";
    if (head.content_length()) text += " length " + number(*head.content_length());
    for (const http::field& f : head.fields()) {
        text.append("\n").append(f.name).append(": ").append(f.value);
    }
    return text;
}

// Parses `bytes` whole, and every prefix whose length is a multiple of `step`, in every possible
// way, and returns the result for the whole. Reports disagreements to `complain`.
inline std::string parse_every_way(std::string_view bytes, const http::limits& limit,
                                   guarded_bytes& memory, std::size_t step,
                                   const std::function<void(const std::string&)>& complain) {
    http::request_head head;
    const auto pure = [&](std::string_view text) {
        const std::string_view flush = memory.place_view(text);
        const http::parse_result result = http::parse_head(flush, head, limit);
        return describe(result, head);
    };
    const std::string whole = pure(bytes);
    // Every instruction set reads as the one in use does.
    for (const http::internal::named_machine& machine : http::internal::head_machines()) {
        http::internal::head_state state;
        const std::string_view flush = memory.place_view(bytes);
        const std::string got = describe(machine.run(flush, state, head, limit), head);
        if (got != whole)
            complain(std::string(machine.name) + ": " + got + "\ninstead of " + whole);
    }
    const auto expect = [&](const std::string& what, std::size_t at, const std::string& got,
                            const std::string& wanted) {
        if (got != wanted) {
            complain(what + " at " + std::to_string(at) + ": " + got + "\ninstead of " + wanted);
        }
    };

    // A buffer that grows in place. Its bytes end in the middle of memory, so pure() is the test
    // for over-reads.
    http::head_parser growing(limit);
    bool decided = false;
    for (std::size_t size = 0; size <= bytes.size(); size += step) {
        const std::string_view prefix = bytes.substr(0, size);
        const std::string answer = pure(prefix);
        if (answer != "partial" || decided) expect("a decided prefix", size, answer, whole);
        if (!decided) {
            expect("growing", size, describe(growing.parse(prefix), growing.head()), answer);
        }
        decided = decided || answer != "partial";

        http::head_parser split(limit);
        if (split.parse(prefix).status == http::parse_status::partial) {
            expect("split", size, describe(split.parse(bytes), split.head()), whole);
        }
        // Moved between the two calls, and used for a second head after its answer.
        http::head_parser moved(limit);
        std::string copy(prefix);
        if (moved.parse(copy).status == http::parse_status::partial) {
            copy.assign(size, 'x');
            expect("moved", size, describe(moved.parse(bytes), moved.head()), whole);
            if (whole != "partial") {
                expect("again", size, describe(moved.parse(bytes), moved.head()), whole);
            }
        }
    }
    return whole;
}

// Everything that a decoder returned for a body in pieces of the given sizes, the last size
// repeated.
inline std::string decode_in_pieces(std::string_view bytes, const http::limits& limit,
                                    guarded_bytes& memory, std::size_t first, std::size_t others) {
    http::chunk_decoder decoder(limit);
    std::string payload;
    std::size_t consumed = 0;
    http::chunk_decoder::result result;
    do {
        const std::string_view left = bytes.substr(consumed);
        const std::string_view piece = left.substr(0, consumed == 0 && first != 0 ? first : others);
        const std::span<char> flush = memory.place(piece);
        result = decoder.decode(flush);
        payload.append(flush.data(), result.produced);
        consumed += result.consumed;
        if (result.produced > result.consumed || result.consumed > piece.size()) return "overrun";
        if (piece.substr(result.consumed) !=
            std::string_view(flush.data(), flush.size()).substr(result.consumed)) {
            return "bytes behind the body were touched";
        }
        if (result.status == http::parse_status::partial && result.consumed != piece.size()) {
            return "a partial answer left bytes";
        }
    } while (result.status == http::parse_status::partial && consumed < bytes.size());

    std::string text = result.status == http::parse_status::partial    ? "partial"
                       : result.status == http::parse_status::complete ? "complete"
                                                                       : "error ";
    if (result.status == http::parse_status::error) {
        text += std::to_string(result.error) + " " + result.reason;
    }
    return text + " after " + std::to_string(consumed) + ": " + payload;
}

// Decodes whole, at each split point, and byte by byte; returns the result for the whole.
inline std::string decode_every_way(std::string_view bytes, const http::limits& limit,
                                    guarded_bytes& memory,
                                    const std::function<void(const std::string&)>& complain) {
    const std::string whole = decode_in_pieces(bytes, limit, memory, 0, bytes.npos);
    const auto expect = [&](const std::string& what, const std::string& got) {
        if (got != whole) complain(what + ": " + got + "\ninstead of " + whole);
    };
    for (std::size_t first = 1; first < bytes.size(); ++first) {
        expect("split at " + std::to_string(first),
               decode_in_pieces(bytes, limit, memory, first, bytes.npos));
    }
    for (const std::size_t size : {1, 2, 3, 7}) {
        expect("pieces of " + std::to_string(size),
               decode_in_pieces(bytes, limit, memory, 0, size));
    }
    return whole;
}

}  // namespace coppice::test
