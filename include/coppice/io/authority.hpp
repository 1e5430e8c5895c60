// authority: a host and a port, parsed strictly from "host:port"; used by tcp::connect.
#pragma once

#include <coppice/base/internal/result.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace coppice::io {

// A place on the network by name: a host and a port. A value; no thread rules apply. Lifetime: the
// parsed text must outlive it, because `host` points into that text.
struct authority {
    // A name or an address, never empty. An IPv6 address is without its brackets, and with its zone
    // if it has one.
    std::string_view host;
    std::uint16_t port = 0;

    // Parses "localhost:80", "127.0.0.1:80", "[::1]:80", or "[fe80::1%eth0]:80", and accepts
    // nothing looser. The port is required: decimal, 0 to 65535, without a sign or leading zeros. A
    // name has labels of 1 to 63 ASCII letters, digits, '-', and '_', separated by dots. It may end
    // with a dot, and has at most 253 bytes without that dot. Its last label must not be a number,
    // as in "127.1" or "0x7f.1", because systems take such names for addresses. Write names in
    // other scripts in punycode.
    // Errors: std::errc::invalid_argument. Cost: no allocation.
    static internal::result<authority> parse(std::string_view text) noexcept;
    // Returns the text that parse() accepts.
    std::string to_string() const;

    friend bool operator==(const authority&, const authority&) noexcept = default;
};

}  // namespace coppice::io
