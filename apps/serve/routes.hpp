// The endpoints of coppice-serve.
#pragma once

#include <coppice/http/files.hpp>
#include <coppice/http/server.hpp>

#include <optional>
#include <string>

namespace serve {

// What handlers use. Lifetime: outlives the server, which is set once it exists.
struct world {
    std::optional<coppice::http::files> files;  // nothing: no files are served
    const coppice::http::server* server = nullptr;
};

coppice::http::router make_routes(world& w);

// The Prometheus text of /metrics.
std::string metrics(const world& w);

}  // namespace serve
