// look_up: asks the system for the addresses of a name; tests can replace the function that does.
#pragma once

#include <coppice/io/endpoint.hpp>

#include <string>
#include <vector>

namespace coppice::io {

// Appends the host's endpoints to `found`. Returns 0, or an error of getaddrinfo. Blocks: it may.
// An endpoint with port 0 gets the port that was asked for.
using look_up_function = int (*)(const std::string& host, std::vector<endpoint>& found) noexcept;

// Makes workers call this function from now on; nullptr restores the system's. Threads: any.
// Lifetime: a worker may still be inside the former function when this returns.
void look_up_by(look_up_function function) noexcept;

}  // namespace coppice::io
