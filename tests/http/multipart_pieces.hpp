// What a multipart parser returns for a body, however it is cut, as one comparable text.
#pragma once
// Shared by the tests and the fuzzer.

#include <coppice/http/multipart.hpp>
#include <coppice/http/parameters.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "guarded_bytes.hpp"

namespace coppice::test {

// Delivers the first `first` bytes at once, then `step` at a time, each piece flush against a guard
// page.
inline std::string parse_in_pieces(std::string_view body, std::string_view boundary,
                                   const http::multipart_limits& limits, guarded_bytes& memory,
                                   std::size_t first, std::size_t step) {
    using event = http::multipart_parser::event;
    http::multipart_parser parser(boundary, limits);
    std::string said;
    const auto take = [&](std::string_view bytes) {
        std::string_view input = memory.place_view(bytes);
        for (;;) {
            switch (parser.next(input)) {
                case event::wants_more:
                    if (!input.empty()) said += "(left over)";
                    return;
                case event::part: {
                    const http::multipart_head& head = parser.head();
                    said.append("[").append(head.name).append("|");
                    said.append(head.filename.value_or("-")).append("|");
                    said.append(head.content_type).append("]");
                    break;
                }
                case event::data:
                    if (parser.data().empty()) said += "(empty piece)";
                    said += parser.data();
                    break;
                case event::part_end:
                    said += "[/]";
                    break;
                case event::end:
                    said += "[end]";
                    break;
            }
        }
    };
    try {
        if (first != 0) take(body.substr(0, first));
        for (std::size_t at = first; at < body.size(); at += std::min(step, body.size() - at))
            take(body.substr(at, step));
        parser.finish();
    } catch (const http::status_error& error) {
        said.append("(").append(std::to_string(error.status())).append(" ");
        said.append(error.what()).append(")");
        try {
            std::string_view more = "more";
            parser.next(more);
            // A body that only lacks its end may continue.
            if (said.find("ends before") == said.npos) said += "(goes on)";
        } catch (const http::status_error&) {
        }
    }
    return said;
}

}  // namespace coppice::test
