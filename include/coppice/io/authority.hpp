// authority: "host:port" in its parts, parsed strictly; used by tcp::connect.
#pragma once

#include <coppice/base/result.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace coppice::io {

// Where something is, by name: a host and a port. A value; threads do not matter to it.
// Lifetime: the text that was parsed outlives it.
struct authority {
    // A name, or an address: IPv6 without its brackets, with its zone if it has one. Not empty.
    std::string_view host;
    std::uint16_t port = 0;

    // "localhost:80", "127.0.0.1:80", "[::1]:80" or "[fe80::1%eth0]:80", and nothing looser. The
    // port is there, decimal, 0 to 65535, without sign or leading zeros. A name has labels of 1 to
    // 63 ASCII letters, digits, '-' and '_', with dots between them and maybe one at its end, 253
    // bytes without that. Its last label is not a number, as "127.1" or "0x7f.1" have it, which
    // systems take for addresses. Other languages are written in punycode.
    // Errors: std::errc::invalid_argument. Cost: no allocation.
    static internal::result<authority> parse(std::string_view text) noexcept;
    // As parse() takes it.
    std::string to_string() const;

    friend bool operator==(const authority&, const authority&) noexcept = default;
};

}  // namespace coppice::io
