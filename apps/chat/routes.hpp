// The endpoints of coppice-chat: the page, and the WebSocket that it opens.
#pragma once

#include "hall.hpp"
#include "options.hpp"

#include <coppice/http/router.hpp>

namespace chat {

// `in` outlives the server.
coppice::http::router make_routes(hall& in, const options& o);

}  // namespace chat
