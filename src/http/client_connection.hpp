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

#include "client_stream.hpp"
#include "secure_link.hpp"

namespace coppice::http::internal {

// An open connection, in use or kept.
struct client_connection : immovable {
    client_connection(io::context& loop, const client_target& target)
        : socket(loop),
          to(target.to != nullptr ? *target.to : io::endpoint()),
          name(target.name),
          port(target.port),
          proven(target.proven) {}
    // The server finds the end of TLS, and not a truncation.
    ~client_connection() {
        if (link != nullptr && socket.is_open()) link->say_end();
    }
    bool leads_to(const client_target& target) const noexcept {
        if (proven != target.proven) return false;
        if (target.name.empty()) return name.empty() && to == *target.to;
        return name == target.name && port == target.port;
    }
    // Returns false if the server has ended it, or bytes have arrived since its last use.
    bool is_reusable() noexcept {
        return socket.is_quiet() && (link == nullptr || link->is_quiet());
    }

    slotted_socket socket;
    // Returns what its bytes go through instead of the socket, or nullptr.
    http::link* through() const noexcept {
        if (stream != nullptr) return stream.get();
        return link.get();
    }

    secure_link::owned link;      // nullptr: not encrypted
    client_stream::owned stream;  // not nullptr: it is one of HTTP/2, and the socket stands for it
    io::endpoint to;
    std::string name;  // the host that was looked up; "": `to` was given
    std::uint16_t port;
    std::string proven;  // the host that the server has to prove; "": not encrypted
    std::string input;   // received, not yet consumed
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
    // Passes a place to the next waiter, whose task continues in a later turn.
    void give_back() noexcept;
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
