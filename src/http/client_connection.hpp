// What the calls of a client share: connections, the hosts that limit them, and routes.
#pragma once

#include <coppice/base/clock.hpp>
#include <coppice/base/intrusive.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/http/internal/client_call.hpp>
#include <coppice/http/url.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/io/socket.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace coppice::http::internal {

// An open connection, in use or kept.
struct client_connection : immovable {
    client_connection(io::context& loop, const io::endpoint& peer, std::string_view host,
                      std::uint16_t port_of_host)
        : socket(loop), to(peer), name(host), port(port_of_host) {}

    io::tcp::socket socket;
    io::endpoint to;
    std::string name;  // the host that was looked up; "": `to` was given
    std::uint16_t port;
    std::string input;  // received, not yet consumed
    time_point used{};
    bool fresh = true;
};

struct client_hosts;

// A call that waits for a connection to one host. It lies in the call's task.
struct client_waiter : list_hook<> {
    explicit client_waiter(client_call& c) noexcept : call(&c) {}
    client_call* call;
};

// The connections in use to one host.
struct client_host {
    client_hosts* all = nullptr;
    const std::string* name = nullptr;  // its key in `all`
    std::size_t in_use = 0;
    intrusive_list<client_waiter> waiting;  // empty while in_use is below the maximum
};

// All hosts, if their connections are limited. Used on the loop.
struct client_hosts {
    std::size_t in_use_max = 0;
    std::size_t hosts_max = 0;  // hosts that stay here without a connection in use
    std::unordered_map<std::string, client_host> by_name;
};

// Where a request with a URL goes: at first, or after a redirect.
struct client_route {
    explicit client_route(http::url u) : url(std::move(u)) {}
    http::url url;
    io::endpoint to;     // unspecified: the host is looked up
    std::string fields;  // what a redirect leaves of the request's fields
};

}  // namespace coppice::http::internal
