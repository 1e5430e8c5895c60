// head_text: a request's head as HTTP/2 has it, collected into the text that HTTP/1.1 has.
#pragma once

#include <coppice/http/parse.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace coppice::http2 {

// Collects one head, field by field. What exceeds a limit is not kept, but enough of it for the
// parser of HTTP/1.1 to refuse the head. It can be used again after clear().
class head_text {
public:
    void clear() noexcept;
    // Takes a field. Returns false if the request is malformed, or if so much has come that the
    // stream must end.
    bool add(std::string_view name, std::string_view value, const http::limits& limit);
    // Returns the head. `body`: a body, or what goes through a tunnel, follows. Returns "" if the
    // request is malformed.
    std::string_view finish(bool body, bool secure);
    // Returns true if the request is an extended CONNECT (RFC 8441): the stream is to become a
    // tunnel for another protocol. The head is then that of HTTP/1.1's upgrade to WebSocket, or, if
    // that is not the protocol, to one that is unknown.
    bool is_tunnel() const noexcept { return has_protocol_; }
    // Returns the field lines alone: of trailers.
    std::string_view lines() const noexcept { return lines_; }

private:
    bool add_pseudo(std::string_view name, std::string_view value, const http::limits& limit);
    bool put_target(std::string& to, bool secure) const;
    bool is_websocket() const noexcept;

    std::string method_, scheme_, authority_, path_, protocol_, host_, cookie_;
    std::string lines_;
    std::string text_;
    std::size_t fields_ = 0;
    std::size_t bytes_ = 0;  // of all that has come, also of what was not kept
    std::size_t no_length_at_ = std::string::npos;  // in lines_: of a content-length of 0
    bool has_protocol_ = false;
    bool has_authority_ = false;
    bool has_host_ = false;
    bool has_length_ = false;
};

}  // namespace coppice::http2
