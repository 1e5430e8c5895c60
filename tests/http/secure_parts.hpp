// What the tests of HTTP over TLS share: certificates, and contexts that trust them.
#pragma once

#include <coppice/http/client.hpp>
#include <coppice/http/server.hpp>
#include <coppice/tls.hpp>

#include "asking.hpp"
#include "certificates.hpp"
#include "running_server.hpp"
#include "scripted_server.hpp"
#include "secure_routes.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

namespace coppice::test {

inline const authority& the_authority() {
    static const authority made;
    return made;
}
inline tls::server_context context_of_server(
    const std::string& names = "DNS:localhost,IP:127.0.0.1",
    std::vector<std::string> protocols = {"http/1.1"}) {
    return tls::server_context({.certificates = {the_authority().issue({.names = names})},
                                .protocols = std::move(protocols)});
}
inline tls::client_context context_of_client(std::vector<std::string> protocols = {"http/1.1"}) {
    return tls::client_context({.system_authorities = false,
                                .authorities = the_authority().pem(),
                                .protocols = std::move(protocols)});
}

inline http::server_options secure(http::server_options o) {
    o.security = context_of_server();
    return o;
}
inline http::client_options secure_client() {
    http::client_options o;
    o.security = context_of_client();
    return o;
}
inline std::string secure_url(const http::server& server, std::string_view path,
                              std::string_view host = "127.0.0.1") {
    return "https://" + std::string(host) + ":" + std::to_string(server.port()) + std::string(path);
}

}  // namespace coppice::test
