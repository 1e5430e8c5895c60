// What readers of whole bodies share: they begin at the start, and count what they keep.
#pragma once

#include <coppice/http/body.hpp>
#include <coppice/http/message.hpp>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace coppice::http::internal {

// Returns the body of a request of which nothing has been read. Errors: std::logic_error if
// something has, since a body that is read from its middle would look malformed by the client.
inline body_reader& unread_body(const request& r) {
    body_reader& body = r.incoming();
    if (body.has_begun()) {
        throw std::logic_error(
            "this needs the whole body, but something was read before: call only one of "
            "read_json(), read_multipart(), and multipart_reader, once, before other reads");
    }
    return body;
}

// Makes room in `text` for `more` bytes, and counts it. The room grows with what has arrived, up to
// `most`, never with what was promised. Errors: http::refused, 503; std::bad_alloc.
inline void make_counted_room(body_reader& body, std::string& text, std::size_t more,
                              std::size_t most) {
    const std::size_t needed = text.size() + more;
    if (needed <= text.capacity()) return;
    const std::size_t room = std::max(needed, std::min(2 * text.capacity(), most));
    body.keep(room - text.capacity());
    std::string larger;  // reserve() of a non-empty string may take twice as much
    larger.reserve(room);
    larger.assign(text);
    text.swap(larger);
}

}  // namespace coppice::http::internal
