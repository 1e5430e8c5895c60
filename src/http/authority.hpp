// Hosts with ports, as targets and Host fields have them; used by the head machine.
#pragma once
#include <coppice/http/internal/scan.hpp>

#include <arpa/inet.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace coppice::http::internal {

// Returns true if `digits` are a port number: *DIGIT (RFC 3986 section 3.2.3).
inline bool fits_port(std::string_view digits) noexcept {
    if (digits.size() < 5) return true;
    while (digits.size() > 5 && digits.starts_with('0')) digits.remove_prefix(1);
    return digits.size() < 5 || (digits.size() == 5 && (digits[0] < '6' || digits <= "65535"));
}

// Checks the text between the brackets of an IPv6 address. The scans have excluded NUL.
inline bool valid_ipv6(std::string_view text) noexcept {
    char terminated[INET6_ADDRSTRLEN];
    if (text.size() >= sizeof terminated) return false;
    std::memcpy(terminated, text.data(), text.size());
    terminated[text.size()] = '\0';
    in6_addr address;
    return ::inet_pton(AF_INET6, terminated, &address) == 1;
}

enum class port_rule : bool { optional, required };

// Checks uri-host [ ":" port ], with a host that is not empty (RFC 9110 sections 4.2.1 and 7.2).
// Refuses user information (section 4.2.4). The bytes after `text`, up to `readable`, may be read,
// so that a vector scan can serve a short text too.
template <class Scan>
[[gnu::always_inline]] inline bool valid_authority(Scan& scan, std::string_view text,
                                                   port_rule rule, const char* readable) noexcept {
    const char* p = text.data();
    const char* const end = p + text.size();
    const auto host = [&](const char* from) { return std::min(scan.host(from, readable), end); };
    if (text.starts_with('[')) {
        const std::size_t bracket = text.find(']');
        if (bracket == text.npos || !valid_ipv6(text.substr(1, bracket - 1))) return false;
        p += bracket + 1;
    } else {
        p = host(p);
        while (end - p > 2 && *p == '%' && is(p[1], hex_byte) && is(p[2], hex_byte)) {
            p = host(p + 3);
        }
        if (p == text.data()) return false;
    }
    if (p == end) return rule == port_rule::optional;
    if (*p++ != ':') return false;
    if (p == end) return rule == port_rule::optional;
    return scan.digits(p, end) == end && fits_port({p, static_cast<std::size_t>(end - p)});
}

}  // namespace coppice::http::internal
