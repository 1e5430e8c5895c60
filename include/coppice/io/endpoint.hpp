// endpoint: an IPv4 or IPv6 address with a port, parsed strictly; used by sockets and acceptors.
#pragma once

#include <coppice/base/result.hpp>

#include <netinet/in.h>
#include <sys/socket.h>
#include <cstdint>
#include <string>
#include <string_view>

namespace coppice::io {

// A value; threads do not matter to it.
struct endpoint {
    endpoint() noexcept : storage_{} { storage_.any.sa_family = AF_UNSPEC; }

    // "127.0.0.1", "::1" or "[::1]", and nothing looser: no names, no scopes, no spaces.
    // Errors: std::errc::invalid_argument. Allocates nothing.
    static result<endpoint> parse(std::string_view address, std::uint16_t port) noexcept;
    // What the kernel wrote. Errors: a family that is neither IPv4 nor IPv6 stops the process.
    static endpoint from(const sockaddr* address, socklen_t size) noexcept;

    std::uint16_t port() const noexcept;
    bool is_v6() const noexcept { return storage_.any.sa_family == AF_INET6; }
    // "127.0.0.1:8080" or "[::1]:8080"; "unspecified" for a default-constructed endpoint.
    std::string to_string() const;

    const sockaddr* data() const noexcept { return &storage_.any; }
    socklen_t size() const noexcept { return is_v6() ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }
    int family() const noexcept { return storage_.any.sa_family; }

    friend bool operator==(const endpoint& a, const endpoint& b) noexcept;

private:
    union {
        sockaddr any;
        sockaddr_in v4;
        sockaddr_in6 v6;
    } storage_;
};

// 127.0.0.1 with the port; 0 lets the system choose when it is bound.
endpoint loopback(std::uint16_t port) noexcept;

}  // namespace coppice::io
