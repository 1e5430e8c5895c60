// Where http::client goes when it is redirected, and where it never goes.
#include <coppice/http/client.hpp>

#include "asking.hpp"
#include "scripted_server.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;

class client_redirect : public testing::TestWithParam<io::backend> {
protected:
    network net{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(rings, client_redirect,
                         testing::Values(io::backend::epoll, io::backend::uring), name_of_ring);

TEST_P(client_redirect, rfc9110_7_1_references_are_relative_to_the_requested_target_in_any_form) {
    const std::string moved = "HTTP/1.1 307 A\r\nLocation: next?x\r\nContent-Length: 0\r\n\r\n";
    const std::string done = "HTTP/1.1 200 A\r\nContent-Length: 0\r\n\r\n";
    struct {
        std::string_view method, target, host, base;
    } constexpr forms[] = {
        {"GET", "/a/b", "", ""},
        {"GET", "/a/b", "name.invalid:81", "http://name.invalid:81/a/"},
        {"GET", "http://name.invalid:82/a/b?c", "", "http://name.invalid:82/a/"},
        {"GET", "http://name.invalid:82/a/b?c", "other", "http://name.invalid:82/a/"},
        {"OPTIONS", "*", "", ""},
        {"OPTIONS", "*", "name.invalid", "http://name.invalid/"},
    };
    for (const auto& each : forms) {
        std::vector<std::string> asked;
        {
            const server_of server(
                [&](accepted& a) {
                    a.receive_head();
                    asked.push_back(a.received);
                    a.send(asked.size() == 1 ? moved : done);
                },
                2);
            net.run([](io::context& loop, io::endpoint to, const auto& form) -> task<> {
                http::client client(loop);
                http::client_request r = asks(to, form.target, form.method);
                r.host = form.host;
                r.redirects_max = 1;
                const auto got = co_await client.send(std::move(r));
                std::string expected(form.base);
                if (expected.empty()) {
                    expected = "http://" + to.to_string() + (form.target == "*" ? "/" : "/a/");
                }
                EXPECT_EQ(got.url(), expected + "next?x");
            }(net.loop, server.where, each));
        }
        const std::string next = each.target == "*" ? " /next?x " : " /a/next?x ";
        EXPECT_TRUE(asked.back().starts_with(std::string(each.method) + next)) << asked.back();
    }
}

std::string redirect_to(std::string_view location) {
    return "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nConnection: close\r\n" +
           std::string(location) + "\r\n";
}

TEST_P(client_redirect, a_redirect_leads_to_no_other_protocol_user_or_form) {
    const std::pair<std::string, std::errc> locations[] = {
        {"file:///etc/passwd", std::errc::bad_message},
        {"ftp://127.0.0.1/", std::errc::bad_message},
        {"gopher://127.0.0.1:70/x", std::errc::bad_message},
        {"unix:/tmp/socket", std::errc::bad_message},
        {"javascript:alert(1)", std::errc::bad_message},
        {"http://user:pass@127.0.0.1/", std::errc::bad_message},
        {"//user@127.0.0.1/", std::errc::bad_message},
        {"http://127.1/", std::errc::bad_message},
        {"http://0x7f000001/", std::errc::bad_message},
        {"http://127.0.0.1:0/", std::errc::bad_message},
        {"http://127.0.0.1:65536/", std::errc::bad_message},
        {"http:/.//127.0.0.1/", std::errc::bad_message},
        {"http://a\tb/", std::errc::bad_message},
        {"/a b", std::errc::bad_message},
        {"/%", std::errc::bad_message},
        {"/\x80", std::errc::bad_message},
        {std::string(70'000, 'a'), std::errc::message_size},
        {"https://127.0.0.1/", std::errc::protocol_not_supported},
        {"/a\r\nLocation: /b", std::errc::bad_message},
    };
    for (const auto& [location, expected] : locations) {
        SCOPED_TRACE(location.substr(0, 60));
        const scripted_server server({redirect_to("Location: " + location + "\r\n")});
        net.run([](io::context& loop, io::endpoint to, std::errc error) -> task<> {
            http::client_options o;
            o.redirects_max = 5;
            http::client client(loop, o);
            const std::error_code got = co_await error_of(client, asks(to));
            EXPECT_EQ(got, error) << got.message();
            EXPECT_EQ(client.connections_made(), 1u);
            EXPECT_EQ(client.idle_connections(), 0u);
        }(net.loop, server.where, expected));
    }
}

}  // namespace
