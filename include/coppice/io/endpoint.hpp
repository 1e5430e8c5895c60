// endpoint: an IPv4, IPv6 or Unix address, parsed strictly; used by sockets and acceptors.
#pragma once

#include <coppice/base/result.hpp>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <cstdint>
#include <string>
#include <string_view>

namespace coppice::io {

// A value; threads do not matter to it.
struct endpoint {
    // Unspecified: no address of any family.
    endpoint() noexcept : storage_{}, size_(sizeof(sockaddr)) {
        storage_.any.sa_family = AF_UNSPEC;
    }

    // "127.0.0.1", "::1" or "[::1]", and nothing looser: no names, no scopes, no spaces, no
    // leading zeros. Errors: std::errc::invalid_argument. Allocates nothing.
    static internal::result<endpoint> parse(std::string_view address, std::uint16_t port) noexcept;
    // What to_string() gives: "127.0.0.1:80", "[::1]:80", "unix:/run/x" or "unix:@abstract"; the
    // port is decimal, without sign or leading zeros. Errors: as above.
    static internal::result<endpoint> parse(std::string_view text) noexcept;
    // A Unix address: a path, or "@name" for a name without a file. Up to 107 bytes, none of them
    // NUL. Errors: std::errc::invalid_argument, filename_too_long.
    static internal::result<endpoint> unix_path(std::string_view path) noexcept;
    // What the kernel wrote. Errors: a family that is none of the three stops the process.
    static endpoint from(const sockaddr* address, socklen_t size) noexcept;

    std::uint16_t port() const noexcept;  // 0 for a Unix address
    // The same address with another port; a Unix address as it is.
    endpoint with_port(std::uint16_t port) const noexcept;
    // Of which family it is; none holds for an unspecified one.
    bool is_v4() const noexcept { return family() == AF_INET; }
    bool is_v6() const noexcept { return family() == AF_INET6; }
    bool is_unix() const noexcept { return family() == AF_UNIX; }
    // The path of a Unix address, or "@name"; empty for others, and for an unnamed socket.
    std::string path() const;
    // As parse() takes it; "unspecified" for a default-constructed endpoint.
    std::string to_string() const;

    // As the kernel's calls take it. Lifetime: the endpoint's.
    const sockaddr* data() const noexcept { return &storage_.any; }
    socklen_t size() const noexcept { return size_; }
    int family() const noexcept { return storage_.any.sa_family; }

    friend bool operator==(const endpoint& a, const endpoint& b) noexcept;

private:
    union {
        sockaddr any;
        sockaddr_in v4;
        sockaddr_in6 v6;
        sockaddr_un local;
    } storage_;
    socklen_t size_;
};

// 127.0.0.1 with the port; 0 lets the system choose when it is bound.
endpoint loopback(std::uint16_t port) noexcept;

}  // namespace coppice::io
