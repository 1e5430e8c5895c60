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
// docs/http-server.md lists what a client can rely on: strict framing, limits, and timeouts.

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

// The four ways to assign requests to threads; see above.
enum class model { single, multi, worker, async };

// Each limits a whole phase: a client that sends or takes a byte now and then does not extend it.
struct timeouts {
    // from a request's first byte to its head's end
    internal::duration header = std::chrono::seconds(10);
    internal::duration idle = std::chrono::seconds(30);  // between requests
    // for a body, plus the time for the bytes received, at rate_min
    internal::duration body = std::chrono::seconds(30);
    // for an answer, plus the time for its length, at rate_min
    internal::duration write = std::chrono::seconds(30);
    std::size_t rate_min = 16 * 1024;  // bytes per second; 0: `body` and `write` do not limit
    // for each handler, until it has made its answer, without the time that it waits for the body
    // that it reads
    internal::duration handler = std::chrono::seconds(60);
    // for a handler that was stopped because its time was up, to end
    internal::duration handler_stop = std::chrono::seconds(1);
    // for a partly received request at drain()
    internal::duration drain_request = std::chrono::seconds(10);
};

// Where a server listens, in which model it serves, and its limits. Each has a default.
struct server_options {
    // Where it listens. Port 0 lets the system choose one.
    io::endpoint endpoint = io::loopback(8080);
    std::size_t threads = 1;  // of loops, or of the pool for `worker`; 1 for `single`
    // Where handlers run; how loops wait for the network; what clients may send, and how slowly.
    http::model model = model::multi;
    io::backend backend = io::backend::automatic;
    http::limits limits = {};
    http::timeouts timeouts = {};
    // Beyond this, the server closes the connection that has waited longest for a request. If none
    // is waiting, a new connection gets 503. The same happens when the system's descriptors run
    // out.
    std::size_t connections_max = 10'000;
    // Connections of one IPv4 address or one /64 of IPv6; beyond this they get 503. If not set: an
    // eighth of connections_max, and at least 8. That default applies only once a sixteenth of
    // connections_max are open, and not to clients on this machine, such as a proxy.
    std::optional<std::size_t> connections_per_address_max = {};
    std::uint64_t requests_per_connection_max = 1'000'000;  // the last answer says close
    // For handlers that read their body piece by piece; beyond this: 413.
    std::uint64_t streamed_body_bytes_max = 8 * 1024 * 1024;
    // For a request that is answered before its body has been received, by a filter or for lack of
    // a route. The server receives and drops at most this much of the remaining body. If more
    // remains, it closes the connection after the answer. 0: it always closes.
    std::size_t dropped_body_bytes_max = 64 * 1024;
    // What the server may keep for all clients together, in bytes: requests that have not arrived
    // completely, what handlers collect of bodies (body_reader::keep()), and answers that clients
    // do not read. Beyond this, a request gets 503, and a client that does not read gets a reset.
    // If not set: a quarter of the memory that the process may use (the least of the machine's
    // memory, the limits of its cgroups, and RLIMIT_AS), and at least 4 MiB.
    std::optional<std::size_t> buffered_bytes_max = {};
    // If true, a client that ends its sending side counts as gone, and its handler is stopped, as
    // after a reset. If false, the client may still be waiting for its answer.
    bool end_of_input_stops = false;
    // Where offloaded handlers run. If this is null and the server needs a pool, it makes its own.
    // Lifetime: outlives the server.
    thread_pool* pool = nullptr;
    // Gets a line for each answered request; see access_log.hpp. Lifetime: outlives the server.
    http::access_log* access_log = nullptr;
    // Called on each loop's thread before it serves, to start what is to run beside the
    // connections. The server's run() also waits for that work. An exception ends the server, as
    // drain(0s) does, and leaves run().
    std::function<void(io::context&)> on_loop = {};
    // The simulated network and clock in which the server runs, instead of this machine; for tests.
    // Needs model::single, and only this loop may use it. Lifetime: outlives the server.
    io::simulation* simulation = nullptr;
    // If true, the constructor raises the soft limit of descriptors (RLIMIT_NOFILE) to what
    // connections_max needs, as far as the hard limit permits.
    bool raise_descriptor_limit = true;
    // Called by the constructor with each reason why the server may not be able to serve as many
    // clients as its options say. Empty: the text goes to stderr.
    std::function<void(std::string_view)> on_warning = {};
    // Called with an exception of a handler or a filter, unless it is a status_error, and with a
    // std::logic_error if a handler's task was stopped by something of its own. The client gets
    // 500, unless it is gone or has got 503 already. Empty: the message goes to stderr.
    std::function<void(std::exception_ptr)> on_exception = {};
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
    std::uint64_t timed_out = 0;       // connections closed by a timeout
    std::uint64_t exceptions = 0;      // exceptions that left handlers
    std::uint64_t stopped = 0;         // handlers whose client went away, or whose time was up
    std::uint64_t bytes_received = 0;  // from clients
    std::uint64_t bytes_sent = 0;      // to clients
    std::array<std::uint64_t, 500> by_status{};  // answers with status 100 + index
    std::vector<loop> loops;                     // one for each thread that has a loop
    trace::histogram_snapshot latency;  // nanoseconds, from a request's bytes to its answer's write
};

// Threads: drain() and statistics() on any; everything else on the owner's.
class server : immovable {
public:
    // Listens. Errors: std::system_error (the port is in use, the address is not this machine's);
    // std::invalid_argument for no threads, more than 65,536, more than one with `single`, another
    // model than `single` in a simulation, a negative time, or no requests per connection. Any
    // other number is accepted: duration::max() and the largest numbers mean no limit.
    server(server_options options, router routes);
    // Destroys the router and the callbacks, and after them the loops, so what a handler owns (a
    // client, for example) may use its loop. Errors: destroying a running server stops the process.
    ~server();

    // Returns the port that it listens on, also if port 0 was asked for.
    std::uint16_t port() const noexcept;
    io::endpoint local() const noexcept;
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
