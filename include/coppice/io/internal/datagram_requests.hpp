// The requests of datagram.hpp: what one send or receive of a datagram does on its loop.
#pragma once

#include <coppice/io/endpoint.hpp>
#include <coppice/io/internal/stream_requests.hpp>

#include <sys/socket.h>
#include <sys/uio.h>
#include <cerrno>
#include <cstddef>
#include <span>

namespace coppice::io {

struct received_datagram;

}  // namespace coppice::io

namespace coppice::io::internal {

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
    using arguments = transfer_arguments;
    static constexpr const char* name = "receive_from";
    explicit receive_from_request(const arguments& a) noexcept
        : descriptor_request<>(a.file, opcode::receive_message), piece_{a.data, a.size} {
        header_.msg_name = &from_;
        header_.msg_namelen = sizeof from_;
        header_.msg_iov = &piece_;
        header_.msg_iovlen = 1;
        message = &header_;
    }
    received_datagram take() const noexcept;

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

}  // namespace coppice::io::internal
