// answer_content: what the status of an answer says about its content.
#pragma once

#include <coppice/base/internal/namespaces.hpp>

namespace coppice::http::internal {

// What an answer's code says about its content, whatever the fields say (RFC 9110 sections 6.4.1
// and 15.3.6). The server frames by it what it sends, and the client what it receives.
enum class answer_content : unsigned char {
    any,     // framed by the fields
    empty,   // framed by the fields, but the sender sends no content: 205
    absent,  // the answer ends with its head: 1xx, 204, 304
};

// See http::content_of().
constexpr answer_content content_of_status(int status) noexcept {
    if (status == 200) [[likely]]
        return answer_content::any;
    if (status < 200 || status == 204 || status == 304) return answer_content::absent;
    return status == 205 ? answer_content::empty : answer_content::any;
}

// Returns true if an answer with this code ends with its head: 1xx, 204, 304.
inline bool bodyless(int status) noexcept {
    return content_of_status(status) == answer_content::absent;
}

}  // namespace coppice::http::internal
