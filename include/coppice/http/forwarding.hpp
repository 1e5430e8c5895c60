// Forwarded and X-Forwarded-For: what trusted proxies that speak HTTP say of their clients.
#pragma once

#include <coppice/http/address_set.hpp>
#include <coppice/http/parse.hpp>
#include <coppice/io/endpoint.hpp>

namespace coppice::http {

// The field that proxies write. A client can send the other one through a proxy that does not know
// it, so only the field that is chosen is read.
enum class forwarding_field : unsigned char {
    x_forwarded_for,  // X-Forwarded-For, and X-Forwarded-Proto
    forwarded,        // Forwarded (RFC 7239), its parameters `for` and `proto`
};

// Which proxies are believed, and how they say it. Each of them has to append its client to the
// field that it received; one that passes the field on unchanged lets its clients choose their
// addresses.
struct forwarding {
    address_set from = {};  // the proxies; empty: the fields mean nothing
    forwarding_field kind = forwarding_field::x_forwarded_for;  // which field they write
};

// A client, as its connection or the proxies in front of it tell.
struct forwarded_client {
    io::endpoint address;    // port 0 if the proxy did not tell it
    bool is_secure = false;  // its own connection is encrypted
};

// Returns the client of a request that arrived on a connection of `last`. Unless that is one of the
// trusted proxies, it is `last` itself. Otherwise the elements of the field are read from the last
// one on, each by the word of the proxy after it: the first address that is no trusted proxy is the
// client. An element that is malformed or names no address (unknown, _hidden) ends this early, at
// the proxy that wrote it. A `proto` of http or https says whether the client's connection is
// encrypted; X-Forwarded-Proto is read as its last element. Threads: any. Cost: O(bytes of the
// fields), no allocation.
forwarded_client forwarded_from(const request_head& head, const forwarding& trusted,
                                const forwarded_client& last) noexcept;

}  // namespace coppice::http
