// TCP and Unix sockets and acceptors.
#pragma once
// A socket belongs to one context. What a connected one does is in stream.hpp.

#include <coppice/base/internal.hpp>
#include <coppice/io/connecting.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/io/stream.hpp>

#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>

namespace coppice::io {

// Accepts a connection; gives its socket. A failure leaves the acceptor open: with too many files
// open (EMFILE, ENFILE) wait before the next accept.
template <class Socket>
class accept_request : public descriptor_request<> {
public:
    using value_type = Socket;
    static constexpr const char* name = "accept";
    struct arguments {
        explicit arguments(const descriptor_reference& f) noexcept : file(f) {}
        descriptor_reference file;
    };
    explicit accept_request(const arguments& a) noexcept
        : descriptor_request<>(a.file, opcode::accept) {}
    Socket take() noexcept {
        return Socket(internal::open_socket(owner(), std::exchange(accepted_, nullptr)));
    }

protected:
    ~accept_request() {
        if (accepted_ != nullptr) owner().close(*accepted_);
    }

private:
    int judge(int returned) noexcept final {
        if (returned < 0) return returned;
        const coppice::internal::result<internal::descriptor*> adopted = owner().adopt(returned);
        if (!adopted) {
            owner().system().close(returned);
            return -adopted.error().value();
        }
        accepted_ = adopted.value();
        return 0;
    }

    internal::descriptor* accepted_ = nullptr;  // until it is taken
};

// How an acceptor listens; the defaults are a server's.
struct acceptor_options {
    // A server's.
    acceptor_options() noexcept {}
    // Several acceptors may listen on the port, and the kernel spreads connections over them. The
    // first of them is told so: it binds alone, so that a port in use is an error even if its owner
    // shares it, and opens the port to the others afterwards.
    bool share_port = false;
    bool first_sharer = false;
    int backlog = 4096;  // connections that wait to be accepted
    // A descriptor of this process that listens already, on a Unix endpoint for one: the acceptor
    // takes connections from it too, through a copy of it. -1: none.
    int already_listening = -1;
};

namespace internal {

// A socket that listens on an endpoint; for the acceptors below. Errors: std::system_error.
open_socket listen_at(context& owner, const endpoint& at, const acceptor_options& options);

}  // namespace internal

namespace tcp {

// A TCP connection, over IPv4 or IPv6. A moved-from socket is closed. TCP_NODELAY is on.
class socket : public stream {
public:
    // Not yet open: connect() opens it.
    explicit socket(context& owner) noexcept : stream(owner) {}

    // Connects to the endpoint; a socket that was open is closed first. The socket stays where it
    // is until the operation has ended. Errors: besides the network's, those of opening a socket.
    template <class Token = use_await_t>
    auto connect(const endpoint& to, Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<connect_request>({*this, to}, static_cast<Token&&>(token));
    }
    // Connects to a host by its name, or by its address as text: tries the addresses that the name
    // has as connecting.hpp says. Errors: of resolver_category() if there are none; if all of them
    // fail, the error of the first that says more than that this machine has no way to its family.
    // Cost: allocates. Lifetime: as above; the name outlives the operation. What ends it early is a
    // stop or a deadline: nothing is open that could be closed.
    template <class Token = use_await_t>
        requires(!std::convertible_to<Token, const connect_options&>)
    auto connect(std::string_view host, std::uint16_t port,
                 Token&& token = {}) noexcept(nothrow_token<Token>) {
        return connect(host, port, connect_options(), static_cast<Token&&>(token));
    }
    template <class Token = use_await_t>
    auto connect(std::string_view host, std::uint16_t port, const connect_options& options,
                 Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<connect_race_request>({*this, host, port, options},
                                              static_cast<Token&&>(token));
    }
    // The same for addresses that are known, in the order of preference; at least one. The list
    // outlives the operation.
    template <class Token = use_await_t>
    auto connect(std::span<const endpoint> addresses, const connect_options& options = {},
                 Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<connect_race_request>({*this, addresses, options},
                                              static_cast<Token&&>(token));
    }

private:
    friend accept_request<socket>;
    explicit socket(internal::open_socket&& accepted) noexcept : stream(std::move(accepted)) {}
};

using io::acceptor_options;
using io::connect_options;

// Listens on an endpoint. Errors of the constructor: std::system_error, e.g. address_in_use.
class acceptor : public internal::open_socket {
public:
    acceptor(context& owner, const endpoint& at, const acceptor_options& options = {})
        : internal::open_socket(internal::listen_at(owner, at, options)) {}

    // Gives the socket of a connection that has come in.
    template <class Token = use_await_t>
    auto accept(Token&& token = {}) noexcept(nothrow_token<Token>) {
        using request = accept_request<socket>;
        return initiate<request>(request::arguments(reference()), static_cast<Token&&>(token));
    }
};

}  // namespace tcp

// Unix sockets: connections within this machine. (`unix` is a macro of the compilers.)
namespace local {

class socket : public stream {
public:
    // Not yet open: connect() opens it.
    explicit socket(context& owner) noexcept : stream(owner) {}
    template <class Token = use_await_t>
    auto connect(const endpoint& to, Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<connect_request>({*this, to}, static_cast<Token&&>(token));
    }

private:
    friend accept_request<socket>;
    explicit socket(internal::open_socket&& accepted) noexcept : stream(std::move(accepted)) {}
};

// Listens on a Unix endpoint. The file of a path is made by the constructor, and is the user's to
// remove; one that exists is an error, address_in_use.
class acceptor : public internal::open_socket {
public:
    acceptor(context& owner, const endpoint& at, const acceptor_options& options = {})
        : internal::open_socket(internal::listen_at(owner, at, options)) {}
    // Gives the socket of a connection that has come in.
    template <class Token = use_await_t>
    auto accept(Token&& token = {}) noexcept(nothrow_token<Token>) {
        using request = accept_request<socket>;
        return initiate<request>(request::arguments(reference()), static_cast<Token&&>(token));
    }
};

}  // namespace local

}  // namespace coppice::io
