// tcp: connects and listens by text such as "host:port".
#pragma once

#include <coppice/io/authority.hpp>
#include <coppice/io/initiate.hpp>
#include <coppice/io/internal/connect_text_request.hpp>
#include <coppice/io/socket.hpp>

#include <concepts>
#include <string_view>

namespace coppice::io {

namespace tcp {

// Connects to "localhost:80", "127.0.0.1:80", or "[::1]:80", as authority::parse() accepts it. The
// value is the connected socket. The addresses of a name are tried as connect_options describes.
// Threads: any. Errors: invalid_argument for other text; otherwise as socket::connect() of a name.
// An exception names the target: "connect localhost:1: Connection refused". Cost: allocates.
// Lifetime: the text must outlive the operation.
template <class Token = use_await_t>
auto connect(context& loop, std::string_view to, const connect_options& options,
             Token&& token = {}) noexcept(nothrow_token<Token>) {
    return initiate<internal::connect_text_request>({loop, to, options.attempt_delay},
                                                    static_cast<Token&&>(token));
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
