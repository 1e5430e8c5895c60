// The endpoints of coppice-serve.
#pragma once

#include "live.hpp"
#include "options.hpp"

#include <coppice/http/admission.hpp>
#include <coppice/http/files.hpp>
#include <coppice/http/server.hpp>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace serve {

// The directory that is served, which SIGHUP reopens. Threads: any.
class served_files {
public:
    std::shared_ptr<const coppice::http::files> get() const {
        const std::lock_guard lock(mutex_);
        return files_;
    }
    // Requests in flight continue with the directory that they began with.
    void set(std::shared_ptr<const coppice::http::files> files) {
        const std::lock_guard lock(mutex_);
        files_.swap(files);
    }

private:
    mutable std::mutex mutex_;  // guards files_
    std::shared_ptr<const coppice::http::files> files_;
};

// What handlers use. Lifetime: outlives the server. `server` and `board` are set once the server
// exists, before it runs.
struct world {
    served_files files;  // empty: no files are served
    const coppice::http::server* server = nullptr;
    const coppice::http::access_log* log = nullptr;  // nullptr: none
    std::unique_ptr<live_board> board;
    std::shared_ptr<const coppice::http::rate_limit> rate;  // nullptr: none
    std::optional<coppice::http::load_shedding> shedding;
    std::deque<route_count> routes;  // filled by make_routes()
    // True once a drain was asked for. Written by the thread that takes signals, read by handlers;
    // nothing depends on its order.
    std::atomic<bool> draining{false};
};

// Opens the directory that the options name. Errors: std::system_error if it cannot be opened.
std::shared_ptr<const coppice::http::files> open_files(const options& o);

// Makes the routes that the options ask for. Errors: std::invalid_argument for an origin that no
// field may have.
coppice::http::router make_routes(world& w, const options& o);

// Makes the routes of the admin listener: /metrics, /livez, /readyz, and /healthz.
coppice::http::router make_admin_routes(const world& w);

// Returns the Prometheus text of /metrics.
std::string metrics(const world& w);

}  // namespace serve
