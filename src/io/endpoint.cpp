// Parsing and printing of io/endpoint.hpp.
#include <coppice/io/endpoint.hpp>

#include <coppice/base/internal/check.hpp>

#include <arpa/inet.h>
#include <cstddef>
#include <cstring>

#include "port.hpp"

namespace coppice::io {

using namespace internal;

namespace {

constexpr std::string_view unix_prefix = "unix:";

}  // namespace

result<endpoint> endpoint::parse(std::string_view address, std::uint16_t port) noexcept {
    const bool bracketed = address.size() >= 2 && address.front() == '[' && address.back() == ']';
    if (bracketed) address = address.substr(1, address.size() - 2);
    char text[INET6_ADDRSTRLEN];
    // inet_pton reads up to a NUL, so a NUL inside the address would hide what follows it.
    if (address.empty() || address.size() >= sizeof text ||
        address.find('\0') != std::string_view::npos) {
        return std::errc::invalid_argument;
    }
    std::memcpy(text, address.data(), address.size());
    text[address.size()] = '\0';
    endpoint made;
    if (!bracketed && ::inet_pton(AF_INET, text, &made.storage_.v4.sin_addr) == 1) {
        made.storage_.v4.sin_family = AF_INET;
        made.storage_.v4.sin_port = htons(port);
        made.size_ = sizeof(sockaddr_in);
        return made;
    }
    made = endpoint();
    if (::inet_pton(AF_INET6, text, &made.storage_.v6.sin6_addr) == 1) {
        made.storage_.v6.sin6_family = AF_INET6;
        made.storage_.v6.sin6_port = htons(port);
        made.size_ = sizeof(sockaddr_in6);
        return made;
    }
    return std::errc::invalid_argument;
}

result<endpoint> endpoint::parse(std::string_view text) noexcept {
    if (text.starts_with(unix_prefix)) return unix_path(text.substr(unix_prefix.size()));
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return std::errc::invalid_argument;
    const std::string_view address = text.substr(0, colon);
    // An IPv6 address needs brackets here: "::1:80" would itself be an address.
    if (address.find(':') != std::string_view::npos && address.front() != '[') {
        return std::errc::invalid_argument;
    }
    const result<std::uint16_t> port = parse_port(text.substr(colon + 1));
    if (!port) return port.error();
    return parse(address, port.value());
}

result<endpoint> endpoint::unix_path(std::string_view path) noexcept {
    endpoint made;
    if (path.empty() || path == "@" || path.find('\0') != std::string_view::npos) {
        return std::errc::invalid_argument;
    }
    if (path.size() >= sizeof made.storage_.local.sun_path) return std::errc::filename_too_long;
    made.storage_.local = {};
    made.storage_.local.sun_family = AF_UNIX;
    std::memcpy(made.storage_.local.sun_path, path.data(), path.size());
    const bool abstract = path.front() == '@';
    if (abstract) made.storage_.local.sun_path[0] = '\0';
    // The size of a path includes its NUL; an abstract name has none.
    made.size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + !abstract);
    return made;
}

endpoint endpoint::from(const sockaddr* address, socklen_t size) noexcept {
    endpoint made;
    if (address->sa_family == AF_INET && size >= sizeof(sockaddr_in)) {
        std::memcpy(&made.storage_.v4, address, sizeof(sockaddr_in));
        made.size_ = sizeof(sockaddr_in);
    } else if (address->sa_family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
        std::memcpy(&made.storage_.v6, address, sizeof(sockaddr_in6));
        made.size_ = sizeof(sockaddr_in6);
    } else {
        COPPICE_CHECK(address->sa_family == AF_UNIX && size <= sizeof(sockaddr_un),
                      "an endpoint is neither IPv4 nor IPv6 nor Unix");
        made.storage_.local = {};
        std::memcpy(&made.storage_.local, address, size);
        made.size_ = size;
    }
    return made;
}

std::uint16_t endpoint::port() const noexcept {
    if (is_v4()) return ntohs(storage_.v4.sin_port);
    return is_v6() ? ntohs(storage_.v6.sin6_port) : std::uint16_t{0};
}

endpoint endpoint::with_port(std::uint16_t port) const noexcept {
    endpoint other = *this;
    if (is_v4()) other.storage_.v4.sin_port = htons(port);
    if (is_v6()) other.storage_.v6.sin6_port = htons(port);
    return other;
}

std::string endpoint::path() const {
    constexpr std::size_t begin = offsetof(sockaddr_un, sun_path);
    if (!is_unix() || size_ <= begin) return {};
    const char* const text = storage_.local.sun_path;
    if (text[0] == '\0') return "@" + std::string(text + 1, size_ - begin - 1);
    return std::string(text, ::strnlen(text, size_ - begin));
}

std::string endpoint::to_string() const {
    if (family() == AF_UNSPEC) return "unspecified";
    if (is_unix()) return std::string(unix_prefix) + path();
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
    if (a.is_unix()) {
        return a.size_ == b.size_ &&
               std::memcmp(&a.storage_.local, &b.storage_.local, a.size_) == 0;
    }
    return !a.is_v4() || a.storage_.v4.sin_addr.s_addr == b.storage_.v4.sin_addr.s_addr;
}

endpoint loopback(std::uint16_t port) noexcept {
    return endpoint::parse("127.0.0.1", port).value();
}

}  // namespace coppice::io
