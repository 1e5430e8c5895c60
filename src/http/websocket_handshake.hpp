// The opening handshake of WebSocket (RFC 6455 section 4.2), for a server.
#pragma once

#include <coppice/http/websocket.hpp>

#include <string>
#include <string_view>

namespace coppice::http::internal {

// Returns the value of Sec-WebSocket-Accept for a key.
std::string accept_value(std::string_view key);
// Returns true if the text is 16 bytes in base64.
bool is_websocket_key(std::string_view text) noexcept;
// Chooses among the offers of Sec-WebSocket-Extensions, and notes in `source` what was chosen.
// Appends the answer's value to `chosen`, which stays "" if no offer fits. Returns false if the
// field is malformed.
bool negotiate_extensions(std::string_view offers, const websocket_options& options,
                          websocket_source& source, std::string& chosen);

}  // namespace coppice::http::internal
