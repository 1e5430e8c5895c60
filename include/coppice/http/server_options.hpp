// The options of a server: where it listens, its model of threads, its limits, and its callbacks.
#pragma once

#include <coppice/base/clock.hpp>
#include <coppice/http/access_log.hpp>
#include <coppice/http/address_set.hpp>
#include <coppice/http/forwarding.hpp>
#include <coppice/http/multiplexer.hpp>
#include <coppice/http/parse.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/io/secure_engine.hpp>
#include <coppice/io/simulation.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace coppice::http {

// The four ways to assign requests to threads; see server.hpp.
enum class model { single, multi, worker, async };

// Each limits a whole phase: a client that sends or takes a byte now and then does not extend it.
struct timeouts {
    // from a request's first byte to its head's end; for an encrypted connection also from its
    // beginning to the end of its handshake
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
    // for all that has not come of a partly received request at drain(), also of a body that its
    // handler reads
    internal::duration drain_request = std::chrono::seconds(10);
    // at drain(), for the first request of a connection that has had none: its client may have sent
    // it already. 0: such a connection is closed at once, like one that waits for its next request
    internal::duration drain_first_request = internal::duration::zero();
};

// An endpoint at which a server listens.
struct listening_endpoint {
    io::endpoint endpoint;
    // Encrypts the connections that are accepted there: a tls::server_context (coppice/tls.hpp), or
    // tls::server_security_of(slot), whose context can be replaced. Empty: they are not encrypted.
    std::shared_ptr<const io::server_security> security = {};
    // Proxies that begin each connection with a header of the PROXY protocol (proxy_header.hpp), in
    // front of TLS. The client that the header names is then request::peer(), counts for the limits
    // per address, and is in the access log. A connection from one of them without a valid header
    // is closed. From all other addresses such a header is no HTTP and no TLS, and is refused as
    // that. The header has the time of a request's head.
    address_set proxies = {};
    // A socket that listens already, instead of `endpoint`: one of io::activated_sockets(). It
    // stays the caller's, and listens on when the server has drained. Use io::backend::epoll then,
    // since io_uring accepts connections ahead that a drain would have to close. -1: none.
    int already_listening = -1;
};

// Where a server listens, in which model it serves, and its limits. Each has a default.
struct server_options {
    // Where it listens. Port 0 lets the system choose one.
    io::endpoint endpoint = io::loopback(8080);
    // Encrypts the connections that are accepted there; see listening_endpoint::security.
    std::shared_ptr<const io::server_security> security = {};
    // Proxies that use the PROXY protocol; see listening_endpoint::proxies. Empty: none.
    address_set proxies = {};
    // A socket that listens already; see listening_endpoint::already_listening. -1: none.
    int already_listening = -1;
    // Proxies that speak HTTP, and the field in which they name their clients. For requests that
    // come from them, request::peer(), request::is_secure(), and the access log tell the client
    // that forwarded_from() finds. Limits of connections still count the connection's own peer.
    http::forwarding forwarding = {};
    // Where it listens besides: the handlers and the limits are the same.
    std::vector<listening_endpoint> more_listeners = {};
    // Lets clients speak HTTP/2 too: http2::for_server() (coppice/http2.hpp). Empty: only HTTP/1.1.
    std::shared_ptr<const multiplexing> http2 = {};
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
    // Connections of one IPv4 address, also one in 64:ff9b::/96 (RFC 6052), or of one /64 of IPv6;
    // beyond this they get 503. If not set: an eighth of connections_max, and at least 8. That
    // default applies only once a sixteenth of connections_max are open, and not to clients on this
    // machine, such as a proxy.
    std::optional<std::size_t> connections_per_address_max = {};
    std::uint64_t requests_per_connection_max = 1'000'000;  // the last answer says close
    // For handlers that read their body piece by piece; beyond this: 413.
    std::uint64_t streamed_body_bytes_max = 8 * 1024 * 1024;
    // For a request that is answered before its body has been received, by a filter or for lack of
    // a route. The server receives and drops at most this much of the remaining body. If more
    // remains, it closes the connection after the answer. 0: it always closes.
    std::size_t dropped_body_bytes_max = 64 * 1024;
    // What the server may keep for all clients together, in bytes: requests that have not arrived
    // completely, what handlers collect of bodies (body_reader::keep()), answers that clients do
    // not read, and what compresses streamed bodies. Beyond this, a request gets 503, and a client
    // that does not read gets a reset. If not set: a quarter of the memory that the process may use
    // (the least of the machine's memory, the limits of its cgroups, and RLIMIT_AS), and at least 4
    // MiB.
    std::optional<std::size_t> buffered_bytes_max = {};
    // If true, a client that ends its sending side counts as gone, and its handler is stopped, as
    // after a reset. If false, the client may still be waiting for its answer.
    bool end_of_input_stops = false;
    // Where offloaded handlers run. If this is null and the server needs a pool, it makes its own.
    // Lifetime: outlives the server.
    thread_pool* pool = nullptr;
    // Where the handshakes of encrypted connections are computed, so that no loop stands still for
    // one. A handler that blocks a thread of the pool delays them. nullptr: each loop computes its
    // own. Not in a simulation. Lifetime: outlives the server.
    thread_pool* handshake_pool = nullptr;
    // Gets a line for each answered request; see access_log.hpp. Lifetime: outlives the server.
    http::access_log* access_log = nullptr;
    // The form of these lines.
    http::access_log_format access_log_format = access_log_format::plain;
    // If true, each answer has request::id() in a field X-Request-Id, unless the handler has added
    // that field.
    bool send_request_id = false;
    // If true, statistics() tells what the requests to each route have come to. Costs a reading of
    // the clock and four atomic additions for each request, and 300 bytes for each route and loop.
    bool route_metrics = false;
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

}  // namespace coppice::http
