// UDP sockets: they send and receive whole datagrams, each with the address of its peer.
#pragma once

#include <coppice/io/endpoint.hpp>
#include <coppice/io/initiate.hpp>
#include <coppice/io/internal/datagram_requests.hpp>
#include <coppice/io/open_file.hpp>

#include <cstddef>
#include <span>

namespace coppice::io {

// A received datagram: its size and its sender's address.
struct received_datagram {
    std::size_t size = 0;  // bytes received
    endpoint from;         // its sender
};

namespace internal {

// Opens a UDP socket bound to an endpoint. Errors: std::system_error.
open_socket bind_datagrams(context& owner, const endpoint& at);

}  // namespace internal

namespace udp {

// Sends and receives datagrams at an endpoint; port 0 lets the system choose one. At most one send
// and one receive may be pending. A stopped receive has taken no datagram. Lifetime: the memory
// given to an operation must live until the operation has ended.
// Errors of the constructor: std::system_error, for example address_in_use.
class socket : public internal::open_socket {
public:
    socket(context& owner, const endpoint& at)
        : internal::open_socket(internal::bind_datagrams(owner, at)) {}

    // Sends `bytes` as one datagram; the value is its size. Does not wait for the peer. Errors:
    // message_size if it is too long.
    template <class Token = use_await_t>
    auto send_to(std::span<const std::byte> bytes, const endpoint& to,
                 Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<internal::send_to_request>({reference(), bytes, to},
                                                   static_cast<Token&&>(token));
    }
    // Receives one datagram. Errors: message_size if it did not fit; the rest of it is lost.
    template <class Token = use_await_t>
    auto receive_from(std::span<std::byte> bytes,
                      Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<internal::receive_from_request>({reference(), bytes},
                                                        static_cast<Token&&>(token));
    }
};

}  // namespace udp

}  // namespace coppice::io
