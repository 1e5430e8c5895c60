// tcp: connects and listens by text such as "host:port".
#pragma once

#include <coppice/io/authority.hpp>
#include <coppice/io/initiate.hpp>
#include <coppice/io/internal/connecting.hpp>
#include <coppice/io/socket.hpp>

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

namespace coppice::io {

namespace internal {

// A base class, so that the socket is constructed before the request that connects it.
struct connected_socket {
    explicit connected_socket(context& owner) noexcept : made(owner) {}
    tcp::socket made;
};

}  // namespace internal

// Parses the text, looks the name up, and connects to the first address that answers. The value is
// the socket.
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

// Connects to "localhost:80", "127.0.0.1:80", or "[::1]:80", as authority::parse() accepts it. The
// value is the connected socket. The addresses of a name are tried as connecting.hpp describes.
// Threads: any. Errors: invalid_argument for other text; otherwise as socket::connect() of a name.
// An exception names the target: "connect localhost:1: Connection refused". Cost: allocates.
// Lifetime: the text must outlive the operation.
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

// Returns an acceptor at "0.0.0.0:8080" or "[::]:8080", as endpoint::parse() accepts it: an
// address, not a name.
// Errors: std::system_error, which names the endpoint: invalid_argument for other text,
// address_in_use.
acceptor listen(context& loop, std::string_view at, const acceptor_options& options = {});

}  // namespace tcp

}  // namespace coppice::io
