// server: an HTTP/1.1 server on one loop or several; owns its threads, connections, and counts.
#pragma once
// A server listens from its construction on, and serves while run() runs. Each loop is one thread
// with an io::context, an acceptor, and its connections. Loops share only the port. A connection
// reads what has arrived, answers every complete request in it, in order, and writes all the
// answers at once. Between requests it holds no buffer.
//
// The models of chapter 7 of the thesis differ in where handlers run. The same handlers work in
// every model.
//
//           loops     pool        a plain handler   a task        declared with offload()
//   single  1         none        the loop          the loop      the loop
//   multi   threads   if wanted   its loop          its loop      the pool
//   worker  a few     threads     the pool          the pool      the pool
//   async   threads   threads     the pool          its loop      the pool
//
// `worker` has one loop for every eight threads of the pool, and at least one, in addition to those
// threads. Loops accept and read; the pool computes, answers, and may fork. In `async`, a loop runs
// only handlers that suspend instead of blocking. A task may move to another thread; its answer is
// still written in the order of the requests.
//
// server_options.hpp has the options. docs/http-server.md lists what a client can rely on: strict
// framing, limits, and timeouts.

#include <coppice/base/clock.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/http/message.hpp>
#include <coppice/http/router.hpp>
#include <coppice/http/server_options.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/trace/histogram.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

namespace coppice::http {

// What the requests to one route have come to.
struct route_statistics {
    static constexpr std::size_t bounds = 24;

    // The latency in microseconds that the answers of latency_up_to[i] do not exceed: 1, 2, 4, to
    // 2^23, which is 8.4 seconds.
    static constexpr std::uint64_t bound(std::size_t i) noexcept { return std::uint64_t{1} << i; }

    route_name name;  // "" and "" for what no route answers: 404, 405, 400, and OPTIONS
    std::array<std::uint64_t, 5> by_class{};  // answers: 1xx, 2xx, 3xx, 4xx, 5xx
    // Requests whose handler is awaited or runs on the pool, or whose body is being produced.
    std::uint64_t in_flight = 0;
    std::array<std::uint64_t, bounds> latency_up_to{};  // answers; each includes those before it
    std::uint64_t latency_sum = 0;  // nanoseconds, from requests' bytes to answers
};

// What a server has done so far, summed over its loops. While the server runs, the values are
// recent rather than exact.
struct server_statistics {
    struct loop {
        std::uint64_t requests = 0;
        std::uint64_t connections = 0;  // open now
        // For posting work, to measure how late it runs. Lifetime: the server's.
        io::context* context = nullptr;
    };
    std::uint64_t accepted = 0;        // connections
    std::uint64_t refused = 0;         // over a limit of connections, or no descriptor was left
    std::uint64_t shed = 0;            // idle connections that were closed to make room
    std::uint64_t open = 0;            // connections now
    std::uint64_t requests = 0;        // answered, errors included
    std::uint64_t timed_out = 0;       // connections, streams, and handlers ended by a timeout
    std::uint64_t exceptions = 0;      // exceptions that left handlers
    std::uint64_t stopped = 0;         // handlers whose client went away, or whose time was up
    std::uint64_t bytes_received = 0;  // from clients
    std::uint64_t bytes_sent = 0;      // to clients
    std::array<std::uint64_t, 500> by_status{};  // answers with status 100 + index
    std::vector<loop> loops;                     // one for each thread that has a loop
    std::vector<route_statistics> routes;        // only with server_options::route_metrics
    trace::histogram_snapshot latency;  // nanoseconds, from a request's bytes to its answer's write
};

// Threads: drain() and statistics() on any; everything else on the owner's.
class server : immovable {
public:
    // Starts to listen. Errors: std::system_error (the port is in use, the address is not this
    // machine's); std::invalid_argument for no threads, more than 65,536, more than one with
    // `single`, another model than `single` in a simulation, a negative time, or no requests per
    // connection. Any other number is accepted: duration::max() and the largest numbers mean no
    // limit.
    server(server_options options, router routes);
    // Destroys the router and the callbacks, and after them the loops, so what a handler owns (a
    // client, for example) may use its loop. Errors: destroying a running server stops the process.
    ~server();

    // Return the port that it listens on, also if port 0 was asked for; its endpoint; and the part
    // of the system that its loops wait in. `listener`: 0 is that of server_options::endpoint, and
    // those of more_listeners follow.
    std::uint16_t port(std::size_t listener = 0) const noexcept;
    io::endpoint local(std::size_t listener = 0) const noexcept;
    io::backend backend() const noexcept;

    // Serves on this thread and on `threads` - 1 others. Blocks: until drain() has ended. Call it
    // once. Errors: std::system_error if a thread cannot be started; what on_loop throws. The
    // server has ended then.
    void run();

    // Stops accepting, closes idle connections, answers the requests in flight with Connection:
    // close, and makes run() return. After `hard_stop` it cuts off the remaining connections and
    // stops their handlers; run() still waits for handlers that ignore the stop. May be called
    // before and after run(), and in a handler. Further calls change nothing.
    void drain(internal::duration hard_stop = std::chrono::seconds(30)) noexcept;

    // Makes the first of these signals drain, as drain(hard_stop) does. The second cuts off the
    // remaining connections at once and stops their handlers; run() still waits for handlers that
    // ignore the stop. `told` is called before either, on the server's first loop, with the signal
    // and the number of signals so far. Call it once, before run(). The signals are received until
    // the drain has ended; see io/signal_set.hpp. Errors: std::system_error.
    void drain_on(std::initializer_list<int> signals,
                  internal::duration hard_stop = std::chrono::seconds(30),
                  std::function<void(int signal, int count)> told = {});

    // Returns the sums over the loops, at this moment or shortly before.
    server_statistics statistics() const;
    // Returns the pool on which offloaded handlers run, or nullptr if there is none.
    thread_pool* pool() const noexcept;

private:
    struct shared;
    std::unique_ptr<shared> shared_;
};

}  // namespace coppice::http
