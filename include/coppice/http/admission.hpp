// Filters that refuse requests, so that others are answered in time: by client, by route, by load.
#pragma once
// A rate_limit, allowed_hosts, and named_host look at heads: they refuse before a body is received.
// The other two are tasks around the handler, which cost its route a coroutine frame. Each may be
// used by several routers and groups. It then counts for all of them together. Its clock is that of
// the request's loop, so a simulation drives it.

#include <coppice/base/clock.hpp>
#include <coppice/http/address_set.hpp>
#include <coppice/http/handler.hpp>
#include <coppice/http/next.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/task/task.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::http {

// How many requests one client may make: `burst` at once, then `per_second`.
struct rate_limit_options {
    double per_second = 50;   // requests, in the long run
    std::size_t burst = 100;  // requests at once, after a time without any
    // Addresses that are remembered at once, 24 bytes each.
    std::size_t addresses_max = 65'536;
    // Addresses without a limit: probes of a balancer, and "unix", whose clients count as one.
    address_set exempt = {};
};

// Refuses requests of clients that make too many, with 429 and Retry-After. A client is
// request::peer(), so one that a trusted proxy names: an IPv4 address, also one that a translator
// has put into 64:ff9b::/96 (RFC 6052), or a /64 of IPv6. A client that is refused does not lose
// more by asking again. If more clients ask than are remembered, the limit forgets those that have
// the most left, so a client may get more than its rate, and never less. Threads: any. Cost: a lock
// that few others share, no allocation; O(1) memory, allocated by the constructor. Source: the
// generic cell rate algorithm, which is a bucket of `burst` tokens.
class rate_limit final : public filter {
public:
    // Errors: std::invalid_argument for a rate that is not from 1e-6 to 1e9, and for a burst or a
    // number of addresses that is not from 1 to 2^30; std::bad_alloc.
    explicit rate_limit(rate_limit_options options);
    ~rate_limit() override;

    // Takes a token for the request's client. Misuse: a request that came from no server stops the
    // process.
    std::optional<response> before(const request& r) const override;
    // Takes a token of the client's. Returns how long it has to wait for one: zero if it has got
    // it.
    internal::duration take(const io::endpoint& client, internal::time_point now) const noexcept;
    // Returns how many requests were refused.
    std::uint64_t refused() const noexcept;

private:
    struct table;
    const address_set exempt_;
    std::unique_ptr<table> table_;
};

// How many requests may be in a handler at once, and how many may wait until they can be.
struct concurrency_limit_options {
    std::size_t in_flight_max = 0;                            // requests, at least 1
    std::size_t waiting_max = 0;                              // requests; 0: none waits
    internal::duration waited_max = std::chrono::seconds(1);  // 0 or less: none waits
    // What Retry-After tells those that are refused.
    std::chrono::seconds retry_after = std::chrono::seconds(1);
};

// Lets at most `in_flight_max` requests be in a handler at once: from the beginning of the filters
// behind this one to the answer, without the bytes of a streamed body. Of the others, up to
// `waiting_max` wait for their turn, first come, first served. A request that finds no place to
// wait gets 503 and Retry-After at once. A request that has waited for `waited_max` gets the same
// answer. Its body, unless the handler reads it itself, stays in memory while it waits. The wait is
// part of the handler's time, and of request::queued(). Copies count together. Threads: any; after
// a wait, a request goes on where its handler runs. Cost: a request that does not wait needs two
// atomic operations; one that waits needs a frame, a timer, and a turn of its loop or pool.
class concurrency_limit {
public:
    // Makes a limit without waiting. Errors: std::invalid_argument for a limit of 0.
    explicit concurrency_limit(std::size_t in_flight_max,
                               std::chrono::seconds retry_after = std::chrono::seconds(1));
    // Errors: std::invalid_argument for a limit of 0.
    explicit concurrency_limit(const concurrency_limit_options& options);

    // Filters a request; see next.hpp. A stop ends what it awaits: its turn, or the handler. A
    // request that is stopped while it waits gives up its place, and no turn is lost. Misuse: a
    // request that has to wait and came from no server stops the process.
    task<response> operator()(request& r, next_handler next) const;
    // Return how many requests are in a handler now or about to begin, how many wait for that, and
    // how many were refused.
    std::size_t in_flight() const noexcept;
    std::size_t waiting() const noexcept;
    std::uint64_t refused() const noexcept;

private:
    struct state;
    std::shared_ptr<state> state_;
};

// Refuses requests that have waited for longer than `queued_max` until their handler can begin
// (request::queued()), with 503 and Retry-After. A server that is asked for more than it can do
// then answers what it can in time, instead of everything too late. What waits is the request of a
// loop that is busy with others, or of a pool without a free thread.
//
// A queue that stands would make each request wait for nearly `queued_max`. So the limit falls to a
// tenth of that after a time of `queued_max` in which each request of a loop or pool has waited for
// more than a twentieth. It rises again after such a time in which none had to be refused. A burst
// that the server works off is thus served, and under an overload that lasts, clients get what they
// get soon: an answer or a refusal. Which of the two does not depend on the client: put a
// rate_limit before this filter, so that one that asks for much does not take the place of others.
//
// Refusing costs little, but not nothing. It lessens no load that is not requests: let handshakes
// be computed on server_options::handshake_pool. Copies count together. Threads: any. Cost: two
// readings of the clock, and a few relaxed atomic operations on a cache line of the loop or pool; 4
// KiB of memory, allocated by the constructor. Source: the limits are those of CoDel (RFC 8289) as
// "Fail at Scale" (ACM Queue 13-8) applies it to servers; that the limit stays low until none is
// refused is ours.
class load_shedding {
public:
    // Makes a limit. A time below zero refuses every request. Errors: std::bad_alloc.
    explicit load_shedding(internal::duration queued_max = std::chrono::milliseconds(200),
                           std::chrono::seconds retry_after = std::chrono::seconds(1));

    // Filters a request; see next.hpp. A stop ends what it awaits, the handler.
    task<response> operator()(request& r, next_handler next) const;
    // Returns how many requests were refused.
    std::uint64_t refused() const noexcept;

private:
    struct state;
    std::shared_ptr<state> state_;
};

// Refuses requests for other hosts with 421 (RFC 9110 section 15.5.20), so that a page of another
// site that has been led to this address (DNS rebinding) reaches no handler, and no handler makes a
// link of a name that a client has invented. A host is "example.org"; "*.example.org" for every
// name below it, but not itself; "192.0.2.1" or "[::1]" as clients write it. With ":8080" it is for
// that port alone, else for any. Case is ignored, and so is a dot at the end of a name, of the list
// and of a request: "example.org." is "example.org". The target's authority, the field Host, and
// HTTP/2's :authority all have to be allowed; a request of HTTP/1.0 without a host is not.
// (HTTP/1.1 without Host, or with two, is 400 before any filter.) Threads: any. Cost: O(hosts), no
// allocation.
class allowed_hosts final : public filter {
public:
    // Errors: std::invalid_argument, which names the text, for other text, and for an
    // empty list.
    explicit allowed_hosts(std::vector<std::string> hosts);

    std::optional<response> before(const request& r) const override;
    // Returns true if the text, a host with or without a port, is allowed.
    bool contains(std::string_view host) const noexcept;

private:
    std::vector<std::string> hosts_;
};

// Refuses requests of an encrypted connection for another host than the one that the client has
// named in its handshake (SNI), with 421. A client that shares a connection among hosts then asks
// again on another one (RFC 9110 section 15.5.20). For a server with a certificate for each host
// whose handlers must not answer under another one's. The target's authority, the field Host, and
// HTTP/2's :authority are compared without their ports; case and a dot at the end are ignored. A
// client that resumes a session of TLS 1.2 has the host of that session, whatever it names (see
// io::agreed_security::host). Requests in the clear pass, and those of a client that has named no
// host, which has got the first certificate. Behind a proxy that encrypts, the host of the
// handshake is the proxy's choice. Threads: any. Cost: no allocation.
class named_host final : public filter {
public:
    std::optional<response> before(const request& r) const override;
};

}  // namespace coppice::http
