// How servers and clients check their options before they begin.
#pragma once

#include <coppice/http/client.hpp>
#include <coppice/http/server.hpp>

namespace coppice::http {

// Returns the options, limited to what a machine can do. Errors: std::invalid_argument that names
// the option, its value, and what is allowed.
server_options checked(server_options options);
client_options checked(client_options options);

}  // namespace coppice::http
