// server: an HTTP/1.1 server on one loop or several; owns its threads, connections and counts.
#pragma once
// A server listens from its construction on and serves while run() runs. Each loop is one thread
// with a context, an acceptor and its connections; loops share the port and nothing else. A
// connection reads what has come, answers every complete request in it, in order, and writes all
// the answers at once. Between requests it holds no buffer.
//
// The models of chapter 7 of the thesis differ in where handlers run. The handlers are the same.
//
//           loops     pool        a plain handler   a task        declared with offload()
//   single  1         none        the loop          the loop      the loop
//   multi   threads   if wanted   its loop          its loop      the pool
//   worker  a few     threads     the pool          the pool      the pool
//   async   threads   threads     the pool          its loop      the pool
//
// `worker` has a loop for eight threads of the pool, and at least one, besides them: loops accept
// and read, the pool computes and answers, and may fork. In `async` a loop runs only what suspends
// instead of waiting. A task may go on elsewhere than it began; an answer is always written in its
// turn.
//
// What a client can rely on is listed in docs/http-server.md: strict framing, limits, timeouts.

#include <coppice/base/clock.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/http/access_log.hpp>
#include <coppice/http/handler.hpp>
#include <coppice/http/parse.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/io/simulation.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/trace/histogram.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace coppice::http {

// The four ways to put requests on threads, see above.
enum class model { single, multi, worker, async };

// Totals: a client that sends or takes a byte now and then does not extend them.
struct timeouts {
    internal::duration header =
        std::chrono::seconds(10);  // from the first byte of a request to its head's end
    internal::duration idle = std::chrono::seconds(30);   // between requests
    internal::duration body = std::chrono::seconds(30);   // plus what has come of it at rate_min
    internal::duration write = std::chrono::seconds(30);  // plus the length at rate_min
    std::size_t rate_min = 16 * 1024;  // bytes per second; 0: the two have no end
    // each, until it has made its answer, without the time that it waits for the body that it reads
    internal::duration handler = std::chrono::seconds(60);
    // then it is stopped, and has so long to end
    internal::duration handler_stop = std::chrono::seconds(1);
    // for a request half received at drain()
    internal::duration drain_request = std::chrono::seconds(10);
};

// Where a server listens, in which model it serves, and its limits; each has a default.
struct server_options {
    // Where it listens; port 0 lets the system choose one.
    io::endpoint endpoint = io::loopback(8080);
    std::size_t threads = 1;  // of loops, for `worker` of the pool; 1 for `single`
    // Where handlers run; how loops wait for the network; what clients may send, and how slowly.
    http::model model = model::multi;
    io::backend backend = io::backend::automatic;
    http::limits limits = {};
    http::timeouts timeouts = {};
    // Beyond: the one that has waited longest for a request is closed; if none waits, a new one
    // gets 503. Also where the system's descriptors run out.
    std::size_t connections_max = 10'000;
    // Of one IPv4 address, or one /64 of IPv6; beyond: 503. Nothing: an eighth of connections_max,
    // and at least 8, looked at once a sixteenth of connections_max are open; clients on this
    // machine, a proxy for one, are not counted then.
    std::optional<std::size_t> connections_per_address_max = {};
    std::uint64_t requests_per_connection_max = 1'000'000;  // the last is answered with close
    // For handlers that read their body piece by piece; beyond: 413.
    std::uint64_t streamed_body_bytes_max = 8 * 1024 * 1024;
    // Of a request that is answered before its body has been received (by a filter, or without a
    // route): a longer rest is not waited for, the connection ends behind the answer. 0: it always
    // does.
    std::size_t dropped_body_bytes_max = 64 * 1024;
    // What may be kept for all clients together, in bytes: requests that have not come whole, what
    // handlers gather of bodies (body_reader::keep()), and answers that their clients do not read.
    // A request beyond it gets 503, a client that does not read beyond it a reset. Nothing: a
    // quarter of the memory that the process may use (the least of the machine's, the limits of its
    // cgroups and RLIMIT_AS), and at least 4 MiB.
    std::optional<std::size_t> buffered_bytes_max = {};
    // Whether a client that ends its sending side has gone, and its handler is stopped, as after a
    // reset. False: it may still wait for its answer.
    bool end_of_input_stops = false;
    // Where offloaded handlers run; the server makes one of its own if it needs it and this is
    // null. Lifetime: outlives the server.
    thread_pool* pool = nullptr;
    // Where each answered request leaves a line; see access_log.hpp. Lifetime: outlives the server.
    http::access_log* access_log = nullptr;
    // Called on each loop's thread before it serves: for what is to run beside the connections. The
    // server's run() also waits for what is started here. What it throws ends the server, as
    // drain(0s) does, and leaves run().
    std::function<void(io::context&)> on_loop = {};
    // The world that the server is in, instead of this machine: for tests. Needs one thread without
    // a pool, and is the loop's alone. Lifetime: outlives the server.
    io::simulation* simulation = nullptr;
    // Whether the constructor raises the soft limit of descriptors (RLIMIT_NOFILE) to what
    // connections_max needs, as far as the hard limit lets it.
    bool raise_descriptor_limit = true;
    // Called by the constructor with what may keep the server from serving as many as its options
    // say. Empty: it goes to stderr.
    std::function<void(std::string_view)> on_warning = {};
    // Called with what a handler or a filter threw, unless that is a status_error, and with a
    // std::logic_error for a handler that stopped by itself; its client gets 500, unless it is gone
    // or has got 503 meanwhile. Empty: the message goes to stderr.
    std::function<void(std::exception_ptr)> on_exception = {};
};

// What a server has done so far, summed over its loops; a recent value while it runs.
struct server_statistics {
    struct loop {
        std::uint64_t requests = 0;
        std::uint64_t connections = 0;  // open now
        // Where work can be posted, to measure how late it runs. Lifetime: the server's.
        io::context* context = nullptr;
    };
    std::uint64_t accepted = 0;        // connections
    std::uint64_t refused = 0;         // over a limit of connections, or no file was left for them
    std::uint64_t shed = 0;            // idle ones that were closed to make room for others
    std::uint64_t open = 0;            // connections now
    std::uint64_t requests = 0;        // answered, errors included
    std::uint64_t timed_out = 0;       // connections closed by a timeout
    std::uint64_t exceptions = 0;      // that left handlers
    std::uint64_t stopped = 0;         // handlers whose client went away, or whose time was up
    std::uint64_t bytes_received = 0;  // from clients
    std::uint64_t bytes_sent = 0;      // to clients
    std::array<std::uint64_t, 500> by_status{};  // answers with status 100 + index
    std::vector<loop> loops;                     // one of each thread that has a loop
    trace::histogram_snapshot latency;           // ns, from a request's bytes to its answer's write
};

// Threads: drain() and statistics() by any; everything else by its owner.
class server : immovable {
public:
    // Listens. Errors: std::system_error (the port is in use, the address is not this machine's);
    // std::invalid_argument for no threads, more than one with `single` or in a simulation, more
    // than 65,536, a negative time, or no request per connection. Any other number is accepted: a
    // duration::max() and a largest number are no limit.
    server(server_options options, router routes);
    // Destroys the router and the callbacks, and then the loops: what a handler owns may use its
    // loop, a client for one. Errors: destroying a running server stops the process.
    ~server();

    // The port it listens on, also when 0 was asked for.
    std::uint16_t port() const noexcept;
    io::endpoint local() const noexcept;
    io::backend backend() const noexcept;

    // Serves on this thread and threads - 1 others. Blocks: until drain() has ended. Call once.
    // Errors: std::system_error if a thread cannot be started; what on_loop throws. The server has
    // ended then.
    void run();

    // Stops accepting, closes idle connections, answers what is under way with Connection: close,
    // and makes run() return. What is left after `hard_stop` is cut off, and its handlers are
    // stopped; run() waits for those that do not listen. Safe before and after run(), and in a
    // handler; further calls change nothing.
    void drain(internal::duration hard_stop = std::chrono::seconds(30)) noexcept;

    // The first of these signals drains, as drain(hard_stop) does; the second cuts off what is left
    // at once, and stops its handlers. run() waits for those that do not listen. `told` is called
    // before either, on the server's first loop, with the signal and how many have come. Call once,
    // before run(). The signals are received until the drain has ended, see io/signal_set.hpp.
    // Errors: std::system_error.
    void drain_on(std::initializer_list<int> signals,
                  internal::duration hard_stop = std::chrono::seconds(30),
                  std::function<void(int signal, int count)> told = {});

    // A sum over the loops, of this moment or one shortly before it.
    server_statistics statistics() const;
    // Where offloaded handlers run; nullptr if there is no pool.
    thread_pool* pool() const noexcept;

private:
    struct shared;
    std::unique_ptr<shared> shared_;
};

}  // namespace coppice::http
