// look_up: asks the system for the addresses of a name; tests put a function of their own there.
#pragma once

#include <coppice/io/endpoint.hpp>

#include <string>
#include <vector>

namespace coppice::io {

// Appends the host's endpoints to `found`; gives 0, or an error of getaddrinfo's. May block. Port 0
// becomes the one that is asked for.
using look_up_function = int (*)(const std::string& host, std::vector<endpoint>& found) noexcept;

// From now on workers ask this function; nullptr: the system. Threads: any. Lifetime: a worker may
// still be inside the former function when this returns.
void look_up_by(look_up_function function) noexcept;

}  // namespace coppice::io
