// UDP sockets: they send and receive whole datagrams, each with the address of its peer.
#pragma once

#include <coppice/io/endpoint.hpp>
#include <coppice/io/stream.hpp>

namespace coppice::io {

// A received datagram: its size and its sender's address.
struct received_datagram {
    // bytes received
    std::size_t size = 0;
    endpoint from;
};

class send_to_request : public descriptor_request<> {
public:
    using value_type = std::size_t;
    static constexpr const char* name = "send_to";
    struct arguments {
        arguments(const descriptor_reference& f, std::span<const std::byte> b,
                  const endpoint& t) noexcept
            : file(f), bytes(b), to(t) {}
        descriptor_reference file;
        std::span<const std::byte> bytes;
        endpoint to;
    };
    explicit send_to_request(const arguments& a) noexcept
        : descriptor_request<>(a.file, opcode::send_message),
          to_(a.to),
          piece_{const_cast<std::byte*>(a.bytes.data()), a.bytes.size()} {
        header_.msg_name = const_cast<sockaddr*>(to_.data());
        header_.msg_namelen = to_.size();
        header_.msg_iov = &piece_;
        header_.msg_iovlen = 1;
        message = &header_;
    }
    std::size_t take() const noexcept { return bytes(); }

protected:
    ~send_to_request() = default;

private:
    endpoint to_;
    iovec piece_;
    msghdr header_{};
};

class receive_from_request : public descriptor_request<> {
public:
    using value_type = received_datagram;
    using arguments = internal::transfer_arguments;
    static constexpr const char* name = "receive_from";
    explicit receive_from_request(const arguments& a) noexcept
        : descriptor_request<>(a.file, opcode::receive_message), piece_{a.data, a.size} {
        header_.msg_name = &from_;
        header_.msg_namelen = sizeof from_;
        header_.msg_iov = &piece_;
        header_.msg_iovlen = 1;
        message = &header_;
    }
    received_datagram take() const noexcept {
        received_datagram got;
        if (outcome() < 0) return got;
        got.size = bytes();
        got.from = endpoint::from(reinterpret_cast<const sockaddr*>(&from_), header_.msg_namelen);
        return got;
    }

protected:
    ~receive_from_request() = default;

private:
    int judge(int returned) noexcept final {
        return returned >= 0 && (header_.msg_flags & MSG_TRUNC) != 0 ? -EMSGSIZE : returned;
    }
    sockaddr_storage from_{};
    iovec piece_;
    msghdr header_{};
};

// Opens a UDP socket bound to an endpoint. Errors: std::system_error.
internal::open_socket bind_datagrams(context& owner, const endpoint& at);

namespace udp {

// Sends and receives datagrams at an endpoint; port 0 lets the system choose one. At most one send
// and one receive may be pending.
// Errors of the constructor: std::system_error, for example address_in_use.
class socket : public internal::open_socket {
public:
    socket(context& owner, const endpoint& at) : internal::open_socket(bind_datagrams(owner, at)) {}

    // Sends `bytes` as one datagram; the value is its size. Errors: message_size if it is too long.
    template <class Token = use_await_t>
    auto send_to(std::span<const std::byte> bytes, const endpoint& to,
                 Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<send_to_request>({reference(), bytes, to}, static_cast<Token&&>(token));
    }
    // Receives one datagram. Errors: message_size if it did not fit; the rest of it is lost.
    template <class Token = use_await_t>
    auto receive_from(std::span<std::byte> bytes,
                      Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<receive_from_request>({reference(), bytes}, static_cast<Token&&>(token));
    }
};

}  // namespace udp

}  // namespace coppice::io
