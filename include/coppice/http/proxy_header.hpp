// The PROXY protocol, versions 1 and 2: what a proxy says of its client before the client's bytes.
#pragma once
// A proxy that passes bytes on (HAProxy, nginx's stream module, load balancers of clouds) can begin
// each connection with a header that has its client's address. server_options::proxies says from
// which addresses a server takes it. The parser is a function of bytes, for programs that accept
// connections themselves. docs/http-server.md says what a server makes of a header.
//
// Source: "The PROXY protocol, versions 1 & 2", of HAProxy. Strict: what it calls a must of a
// sender is demanded, and unassigned values are refused.

#include <coppice/http/parse.hpp>
#include <coppice/io/endpoint.hpp>

#include <cstddef>
#include <string_view>

namespace coppice::http {

// The longest header that is accepted, in bytes. Version 1 has at most 107.
inline constexpr std::size_t proxy_header_bytes_max = 4096;

// What a header says.
struct proxy_header {
    // The client of the proxy, and the endpoint at which the proxy accepted it. Unspecified if the
    // header names none: the connection is the proxy's own, such as a health check (LOCAL), or the
    // proxy does not know (UNKNOWN). The addresses of the connection itself are the right ones
    // then. A Unix client without a name is unspecified too.
    io::endpoint client;
    io::endpoint server;
};

// Reads the header at the front of `bytes`. `consumed` is its length after `complete`; `error` is
// 400. As in parse.hpp, the same bytes give the same result, and an error of a prefix is the error
// of all that begins with it. `out` is meaningful only after `complete`. The extensions of version
// 2 (TLVs) are checked, the checksum among them, and otherwise dropped. Cost: O(bytes) for a whole
// header, O(1) for a part of version 2; no allocation.
parse_result parse_proxy_header(std::string_view bytes, proxy_header& out) noexcept;

}  // namespace coppice::http
