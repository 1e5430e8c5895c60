// tcp: connecting and listening by text, "host:port".
#pragma once

#include <coppice/io/authority.hpp>
#include <coppice/io/connecting.hpp>
#include <coppice/io/initiate.hpp>
#include <coppice/io/socket.hpp>

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

namespace coppice::io {

namespace internal {

// Before the request that connects it.
struct connected_socket {
    explicit connected_socket(context& owner) noexcept : made(owner) {}
    tcp::socket made;
};

}  // namespace internal

// Parses where, looks the name up, connects to the first address that answers; gives the socket.
class connect_text_request : internal::connected_socket, public connect_race_request {
public:
    using value_type = tcp::socket;
    static constexpr const char* name = "connect";
    struct arguments {
        arguments(context& c, std::string_view t, const connect_options& o) noexcept
            : owner(&c), to(t), options(o) {}
        context* owner;
        std::string_view to;
        connect_options options;
    };
    explicit connect_text_request(const arguments& a) noexcept
        : internal::connected_socket(*a.owner),
          connect_race_request(parsed(made, a)),
          text_(a.to) {}
    std::string subject() const;
    tcp::socket take() noexcept { return std::move(made); }

protected:
    ~connect_text_request() = default;

private:
    static connect_race_request::arguments parsed(tcp::socket& target, const arguments& a) noexcept;

    const std::string_view text_;
};

namespace tcp {

// Gives a connected socket: to "localhost:80", "127.0.0.1:80" or "[::1]:80", as authority::parse()
// takes it. The addresses of a name are tried as connecting.hpp says.
// Threads: any. Errors: invalid_argument for other text; else as socket::connect() of a name. What
// is thrown says where to: "connect localhost:1: Connection refused".
// Cost: allocates. Lifetime: the text outlives the operation.
template <class Token = use_await_t>
auto connect(context& loop, std::string_view to, const connect_options& options,
             Token&& token = {}) noexcept(nothrow_token<Token>) {
    return initiate<connect_text_request>({loop, to, options}, static_cast<Token&&>(token));
}
template <class Token = use_await_t>
    requires(!std::convertible_to<Token, const connect_options&>)
auto connect(context& loop, std::string_view to,
             Token&& token = {}) noexcept(nothrow_token<Token>) {
    return tcp::connect(loop, to, connect_options(), static_cast<Token&&>(token));
}

// An acceptor at "0.0.0.0:8080" or "[::]:8080", as endpoint::parse() takes it: an address, no name.
// Errors: std::system_error, which says where: invalid_argument for other text, address_in_use.
acceptor listen(context& loop, std::string_view at, const acceptor_options& options = {});

}  // namespace tcp

}  // namespace coppice::io
