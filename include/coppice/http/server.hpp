// server: an HTTP/1.1 server on one loop or several; owns its threads, connections and counts.
#pragma once
// A server listens from its construction on and serves while run() runs. Each loop is one thread
// with a context, an acceptor and its connections; loops share the port and nothing else. A
// connection reads what has come, answers every complete request in it, in order, and writes all
// the answers at once. Between requests it holds no buffer.
//
// What a client can rely on is listed in docs/http-server.md: strict framing, limits, timeouts.

#include <coppice/base/clock.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/http/handler.hpp>
#include <coppice/http/parse.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/trace/histogram.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

namespace coppice::http {

// The thesis's four ways to put requests on threads. `worker` and `async` are not there yet.
enum class model { single, multi, worker, async };

// Totals: a client that sends or takes a byte now and then does not extend them.
struct timeouts {
    duration header =
        std::chrono::seconds(10);              // from the first byte of a request to its head's end
    duration idle = std::chrono::seconds(30);  // between requests
    duration body = std::chrono::seconds(30);  // plus the length at rate_min
    duration write = std::chrono::seconds(30);          // plus the length at rate_min
    std::size_t rate_min = 16 * 1024;                   // bytes per second
    duration drain_request = std::chrono::seconds(10);  // for a request half received at drain()
};

struct server_options {
    io::endpoint endpoint = io::loopback(8080);
    std::size_t threads = 1;  // loops; `single` has one
    http::model model = model::multi;
    io::backend backend = io::backend::automatic;
    http::limits limits = {};
    http::timeouts timeouts = {};
    std::size_t connections_max = 10'000;  // beyond: closed as soon as they are accepted
    // Called with what a handler threw; its client gets 500. Empty: the message goes to stderr.
    std::function<void(std::exception_ptr)> on_exception = {};
};

// What a server has done so far, summed over its loops; a recent value while it runs.
struct server_statistics {
    struct loop {
        std::uint64_t requests = 0;
        std::uint64_t connections = 0;  // open now
    };
    std::uint64_t accepted = 0;
    std::uint64_t refused = 0;    // over connections_max, or no file was left for them
    std::uint64_t open = 0;       // connections now
    std::uint64_t requests = 0;   // answered, errors included
    std::uint64_t timed_out = 0;  // connections closed by a timeout
    std::uint64_t exceptions = 0;
    std::uint64_t bytes_received = 0;
    std::uint64_t bytes_sent = 0;
    std::array<std::uint64_t, 500> by_status{};  // answers with status 100 + index
    std::vector<loop> loops;
    trace::histogram_snapshot latency;  // ns, from a request's bytes to its answer's write
};

// Threads: drain() and statistics() by any; everything else by its owner.
class server : immovable {
public:
    // Listens. Errors: std::system_error (the port is in use, the address is not this machine's);
    // std::invalid_argument for no threads, more than one with `single`, or a model that is not
    // there.
    server(server_options options, router routes);
    // Errors: destroying a running server stops the process.
    ~server();

    // The port it listens on, also when 0 was asked for.
    std::uint16_t port() const noexcept;
    io::endpoint local() const noexcept;
    io::backend backend() const noexcept;

    // Serves on this thread and threads - 1 others. Blocks: until drain() has ended. Call once.
    void run();

    // Stops accepting, closes idle connections, answers what is under way with Connection: close,
    // and makes run() return. What is left after `hard_stop` is cut off. Safe before and after
    // run(), and in a handler; further calls change nothing.
    void drain(duration hard_stop = std::chrono::seconds(30)) noexcept;

    server_statistics statistics() const;

private:
    struct shared;
    std::unique_ptr<shared> shared_;
};

}  // namespace coppice::http
