// Parsing and printing of io/endpoint.hpp.
#include <coppice/io/endpoint.hpp>

#include <coppice/base/check.hpp>

#include <arpa/inet.h>
#include <cstring>

namespace coppice::io {

result<endpoint> endpoint::parse(std::string_view address, std::uint16_t port) noexcept {
    const bool bracketed = address.size() >= 2 && address.front() == '[' && address.back() == ']';
    if (bracketed) address = address.substr(1, address.size() - 2);
    char text[INET6_ADDRSTRLEN];
    // inet_pton reads up to a NUL: one inside the address would hide what follows it.
    if (address.size() >= sizeof text || address.find('\0') != std::string_view::npos) {
        return std::errc::invalid_argument;
    }
    std::memcpy(text, address.data(), address.size());
    text[address.size()] = '\0';
    endpoint made;
    if (!bracketed && ::inet_pton(AF_INET, text, &made.storage_.v4.sin_addr) == 1) {
        made.storage_.v4.sin_family = AF_INET;
        made.storage_.v4.sin_port = htons(port);
        return made;
    }
    made = endpoint();
    if (::inet_pton(AF_INET6, text, &made.storage_.v6.sin6_addr) == 1) {
        made.storage_.v6.sin6_family = AF_INET6;
        made.storage_.v6.sin6_port = htons(port);
        return made;
    }
    return std::errc::invalid_argument;
}

endpoint endpoint::from(const sockaddr* address, socklen_t size) noexcept {
    endpoint made;
    if (address->sa_family == AF_INET && size >= sizeof(sockaddr_in)) {
        std::memcpy(&made.storage_.v4, address, sizeof(sockaddr_in));
    } else {
        COPPICE_CHECK(address->sa_family == AF_INET6 && size >= sizeof(sockaddr_in6),
                      "an endpoint is neither IPv4 nor IPv6");
        std::memcpy(&made.storage_.v6, address, sizeof(sockaddr_in6));
    }
    return made;
}

std::uint16_t endpoint::port() const noexcept {
    if (family() == AF_UNSPEC) return 0;
    return ntohs(is_v6() ? storage_.v6.sin6_port : storage_.v4.sin_port);
}

std::string endpoint::to_string() const {
    if (family() == AF_UNSPEC) return "unspecified";
    char text[INET6_ADDRSTRLEN] = "";
    const void* const bytes = is_v6() ? static_cast<const void*>(&storage_.v6.sin6_addr)
                                      : static_cast<const void*>(&storage_.v4.sin_addr);
    ::inet_ntop(family(), bytes, text, sizeof text);
    const std::string host = is_v6() ? "[" + std::string(text) + "]" : std::string(text);
    return host + ":" + std::to_string(port());
}

bool operator==(const endpoint& a, const endpoint& b) noexcept {
    if (a.family() != b.family() || a.port() != b.port()) return false;
    if (a.is_v6()) {
        return std::memcmp(&a.storage_.v6.sin6_addr, &b.storage_.v6.sin6_addr, sizeof(in6_addr)) ==
                   0 &&
               a.storage_.v6.sin6_scope_id == b.storage_.v6.sin6_scope_id;
    }
    return a.family() == AF_UNSPEC ||
           a.storage_.v4.sin_addr.s_addr == b.storage_.v4.sin_addr.s_addr;
}

endpoint loopback(std::uint16_t port) noexcept {
    return endpoint::parse("127.0.0.1", port).value();
}

}  // namespace coppice::io
