// endpoint: an IPv4, IPv6, or Unix address, parsed strictly; used by sockets and acceptors.
#pragma once

#include <coppice/base/internal/result.hpp>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <cstdint>
#include <string>
#include <string_view>

namespace coppice::io {

// An address of one of the three families, or none. A value; no thread rules apply.
struct endpoint {
    // Makes an unspecified endpoint: no address of any family.
    endpoint() noexcept : storage_{}, size_(sizeof(sockaddr)) {
        storage_.any.sa_family = AF_UNSPEC;
    }

    // Parses "127.0.0.1", "::1", or "[::1]", and accepts nothing looser: no names, scopes, spaces,
    // or leading zeros. Errors: std::errc::invalid_argument. Cost: no allocation.
    static internal::result<endpoint> parse(std::string_view address, std::uint16_t port) noexcept;
    // Parses what to_string() returns: "127.0.0.1:80", "[::1]:80", "unix:/run/x", or
    // "unix:@abstract". The port is decimal, without a sign or leading zeros. Errors: as above.
    static internal::result<endpoint> parse(std::string_view text) noexcept;
    // Returns a Unix address for a path, or for "@name", a name without a file. At most 107 bytes,
    // none of them NUL. Errors: std::errc::invalid_argument, filename_too_long.
    static internal::result<endpoint> unix_path(std::string_view path) noexcept;
    // Converts an address that the kernel wrote. A family that is none of the three ends the
    // process.
    static endpoint from(const sockaddr* address, socklen_t size) noexcept;

    // Returns the port; 0 for a Unix address.
    std::uint16_t port() const noexcept;
    // Returns the same address with another port. Returns a Unix address unchanged.
    endpoint with_port(std::uint16_t port) const noexcept;
    // Tell the family. All three are false for an unspecified endpoint.
    bool is_v4() const noexcept { return family() == AF_INET; }
    bool is_v6() const noexcept { return family() == AF_INET6; }
    bool is_unix() const noexcept { return family() == AF_UNIX; }
    // Returns the path of a Unix address, or "@name". Returns an empty string for other families
    // and for an unnamed socket.
    std::string path() const;
    // Returns the text that parse() accepts, or "unspecified" for a default-constructed endpoint.
    std::string to_string() const;

    // Return the address as the kernel's calls take it. Lifetime: the endpoint's.
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

// Returns 127.0.0.1 with the port; 0 lets the system choose a port at bind.
endpoint loopback(std::uint16_t port) noexcept;

}  // namespace coppice::io
