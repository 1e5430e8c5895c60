// The endpoints of coppice-serve.
#pragma once

#include "static_files.hpp"

#include <coppice/http/server.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <optional>
#include <string>

namespace serve {

// What handlers use. Lifetime: outlives the server, which is set once it exists.
struct world {
    coppice::thread_pool& pool;
    std::optional<static_files> files;
    const coppice::http::server* server = nullptr;
};

coppice::http::router make_routes(world& w);

// The Prometheus text of /metrics.
std::string metrics(const world& w);

}  // namespace serve
