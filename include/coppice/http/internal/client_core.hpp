// client_core: what the requests of one client share: its options and its connections.
#pragma once

#include <coppice/base/lifetime.hpp>
#include <coppice/http/client_message.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/io/secure_engine.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::http::internal {

// Both are the library's own: src/http/client_connection.hpp.
struct client_connection;
struct client_hosts;

}  // namespace coppice::http::internal

namespace coppice::http {

// The library's own, too: src/http/client_origins.hpp.
struct client_origins;

}  // namespace coppice::http

namespace coppice::http::internal {

// Where a connection leads.
struct client_target {
    const io::endpoint* to = nullptr;  // nullptr: `name` is looked up
    std::string_view name = {};        // the host's; "": `to` is given
    std::uint16_t port = 0;
    std::string_view proven = {};  // the host that the server has to prove; "": without TLS
};

// Threads: the loop's. Lifetime: outlives its calls.
class client_core : immovable {
public:
    enum class connections : unsigned char { kept_or_new, new_only };

    // Errors: std::invalid_argument for an option out of its range.
    client_core(io::context& owner, client_options o);
    ~client_core();

    // Takes a kept connection to the target. Without one, it makes a connection that is still to be
    // connected.
    std::unique_ptr<client_connection> take(const client_target& target, connections which);
    // Keeps a connection for later requests.
    void keep(std::unique_ptr<client_connection> used) noexcept;
    // Closes the oldest of the connections that are kept until there are not too many, whatever
    // they speak.
    void close_surplus() noexcept;
    void close_idle() noexcept;
    // Keeps what a connection to this host and port has left for later ones. nullptr: nothing.
    void keep_session(std::string_view proven, std::uint16_t port,
                      std::shared_ptr<const io::secure_session> left) noexcept;
    // Takes the newest of that host and port, or nullptr.
    std::shared_ptr<const io::secure_session> take_session(std::string_view proven,
                                                           std::uint16_t port) noexcept;
    std::size_t sessions() const noexcept { return sessions_.size(); }
    std::size_t idle_connections() const noexcept;
    std::uint64_t random() noexcept;

    io::context& loop;
    const client_options options;
    const std::shared_ptr<client_hosts> hosts;  // if the connections to each host are limited
    std::size_t made = 0;                       // connections
    std::size_t resumed = 0;                    // of these
    std::unique_ptr<client_origins> origins;    // if HTTP/2 may be spoken

private:
    struct kept_session {
        std::string host;
        std::uint16_t port;
        std::shared_ptr<const io::secure_session> of;
    };
    std::vector<std::unique_ptr<client_connection>> idle_;  // oldest first
    std::vector<kept_session> sessions_;                    // oldest first
    std::uint64_t random_;
};

}  // namespace coppice::http::internal
