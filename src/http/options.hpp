// What servers and clients say about their options before they begin.
#pragma once

#include <coppice/http/client.hpp>
#include <coppice/http/server.hpp>

namespace coppice::http {

// Errors: std::invalid_argument that names the option, its value, and what is allowed.
// What is returned has the options brought to what a machine can do.
server_options checked(server_options options);
client_options checked(client_options options);

}  // namespace coppice::http
