// TCP and Unix sockets, and their acceptors.
#pragma once
// A socket belongs to one context. The operations of a connected socket are in stream.hpp.

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/io/initiate.hpp>
#include <coppice/io/internal/accept_request.hpp>
#include <coppice/io/internal/connecting.hpp>
#include <coppice/io/open_file.hpp>
#include <coppice/io/resolver.hpp>
#include <coppice/io/stream.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>

namespace coppice::io {

// How the addresses of a name are tried.
//
// A name has several addresses, and some of them may not work: a broken IPv6 network can swallow
// packets for minutes. The addresses are therefore tried as RFC 8305 ("happy eyeballs") describes.
// The address families alternate, beginning with the family of the first address. The next address
// is tried when the previous attempt has failed, or has not answered for `attempt_delay`; in the
// second case both attempts continue. The first connection wins. The other attempts
// are canceled, and their sockets are closed before the operation completes. One call of
// getaddrinfo asks for both families, so section 3 (one family's answer arriving before the
// other's) does not apply.
struct connect_options {
    // How long to wait for an answer before also trying the next address (RFC 8305, section 5). 0
    // or less: try all at once. duration::max(): try the next address only after a failure.
    internal::duration attempt_delay = std::chrono::milliseconds(250);
};

// How an acceptor listens. The defaults suit a server.
struct acceptor_options {
    // Makes options that have the values below.
    acceptor_options() noexcept {}
    // Lets several acceptors listen on the port; the kernel distributes connections among them. Set
    // `first_sharer` on the first of them: it binds before it shares the port, so that it fails if
    // the port is in use, even by a program that shares it.
    bool share_port = false;
    bool first_sharer = false;
    int backlog = 4096;  // how many connections may wait to be accepted
    // A descriptor of this process that already listens, for example on a Unix endpoint. The
    // acceptor takes connections from it too, through a duplicate. -1: none.
    int already_listening = -1;
};

namespace internal {

// Opens a socket that listens on an endpoint; used by the acceptors below. Errors:
// std::system_error.
open_socket listen_at(context& owner, const endpoint& at, const acceptor_options& options);

}  // namespace internal

namespace tcp {

// A TCP connection, over IPv4 or IPv6. TCP_NODELAY is on. A moved-from socket is closed.
class socket : public stream {
public:
    // Makes a socket that is not open; connect() opens it.
    explicit socket(context& owner) noexcept : stream(owner) {}

    // Connects to the endpoint, after closing the socket if it was open. A stop leaves no socket
    // open; the peer may have seen a connection that ended.
    // Errors: the network's, and those of opening a socket. Lifetime: the socket must stay where it
    // is until the operation has ended.
    template <class Token = use_await_t>
    auto connect(const endpoint& to, Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<internal::connect_request>({*this, to}, static_cast<Token&&>(token));
    }
    // Connects to a host by its name, or by its address as text. Tries the addresses of the name as
    // connect_options describes.
    // Errors: of resolver_category() if the name has no address. If all attempts fail, the error of
    // the first one that did not fail merely because this machine cannot reach the address family.
    // Cost: allocates. Lifetime: as above, and the name must outlive the operation. To end it
    // early, use a stop or a deadline: close() does not end it, because the socket is not open
    // until it is connected.
    template <class Token = use_await_t>
        requires(!std::convertible_to<Token, const connect_options&>)
    auto connect(std::string_view host, std::uint16_t port,
                 Token&& token = {}) noexcept(nothrow_token<Token>) {
        return connect(host, port, connect_options(), static_cast<Token&&>(token));
    }
    template <class Token = use_await_t>
    auto connect(std::string_view host, std::uint16_t port, const connect_options& options,
                 Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<internal::connect_race_request>({*this, host, port, options.attempt_delay},
                                                        static_cast<Token&&>(token));
    }
    // Connects likewise to known addresses, at least one, in order of preference. Lifetime: the
    // list must outlive the operation.
    template <class Token = use_await_t>
    auto connect(std::span<const endpoint> addresses, const connect_options& options = {},
                 Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<internal::connect_race_request>({*this, addresses, options.attempt_delay},
                                                        static_cast<Token&&>(token));
    }

private:
    friend internal::accept_request<socket>;
    explicit socket(internal::open_socket&& accepted) noexcept : stream(std::move(accepted)) {}
};

using io::acceptor_options;
using io::connect_options;

// Listens on an endpoint. Errors of the constructor: std::system_error, for example address_in_use.
class acceptor : public internal::open_socket {
public:
    acceptor(context& owner, const endpoint& at, const acceptor_options& options = {})
        : internal::open_socket(internal::listen_at(owner, at, options)) {}

    // Accepts a connection. The value is its socket. Errors: the system's. An accept that is
    // stopped has taken no connection: the next accept gets it.
    template <class Token = use_await_t>
    auto accept(Token&& token = {}) noexcept(nothrow_token<Token>) {
        using request = internal::accept_request<socket>;
        return initiate<request>(request::arguments(reference()), static_cast<Token&&>(token));
    }
};

}  // namespace tcp

// Unix sockets: connections within this machine. The namespace is not named `unix` because
// compilers define a macro of that name.
namespace local {

// A Unix connection. A moved-from socket is closed.
class socket : public stream {
public:
    // Makes a socket that is not open; connect() opens it.
    explicit socket(context& owner) noexcept : stream(owner) {}
    // Connects to the endpoint, after closing the socket if it was open. A stop leaves no socket
    // open. Errors: the system's. Lifetime: the socket must stay where it is until the operation
    // has ended.
    template <class Token = use_await_t>
    auto connect(const endpoint& to, Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<internal::connect_request>({*this, to}, static_cast<Token&&>(token));
    }

private:
    friend internal::accept_request<socket>;
    explicit socket(internal::open_socket&& accepted) noexcept : stream(std::move(accepted)) {}
};

// Listens on a Unix endpoint. The constructor creates the file of a path; removing it is up to the
// user. If the file exists, the error is address_in_use.
class acceptor : public internal::open_socket {
public:
    acceptor(context& owner, const endpoint& at, const acceptor_options& options = {})
        : internal::open_socket(internal::listen_at(owner, at, options)) {}
    // Accepts a connection. The value is its socket. Errors: the system's. An accept that is
    // stopped has taken no connection: the next accept gets it.
    template <class Token = use_await_t>
    auto accept(Token&& token = {}) noexcept(nothrow_token<Token>) {
        using request = internal::accept_request<socket>;
        return initiate<request>(request::arguments(reference()), static_cast<Token&&>(token));
    }
};

}  // namespace local

}  // namespace coppice::io
