// The client with URLs: names, redirects, retries, limits of connections; against coppice's server.
#include <coppice/exec/deadline.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/http/client.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/io/resolver.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/stop/inplace.hpp>

#include "asking.hpp"
#include "running_server.hpp"
#include "scripted_server.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;
using http::request;
using http::response;

response redirect(int status, std::string_view to) {
    response r(status);
    r.add("Location", to).body("moved");
    return r;
}

// Returns what was requested, as text.
response echo(request& q) {
    std::string seen(q.head().method_text());
    seen.append(" ").append(q.target());
    for (const std::string_view name : {"Host", "Authorization", "Cookie", "Proxy-Authorization",
                                        "Content-Type", "Content-Length", "X-Other"}) {
        if (const auto value = q.find(name))
            seen.append("\n").append(name).append(": ").append(*value);
    }
    return response::text(seen.append("\n").append(q.body()));
}

class client_url : public testing::TestWithParam<io::backend> {
protected:
    http::router routes() {
        http::router r;
        const auto each = [&](std::string_view path, auto handler) {
            r.get(path, handler).post(path, handler).put(path, handler);
        };
        each("/echo", echo);
        each("/a/b/relative", [](request&) { return redirect(302, "../../echo?from=relative#x"); });
        for (const int status : {301, 302, 303, 307, 308}) {
            each("/to/" + std::to_string(status),
                 [status](request&) { return redirect(status, "/echo"); });
        }
        each("/loop", [](request&) { return redirect(302, "/loop"); });
        each("/https", [](request&) { return redirect(302, "https://localhost/"); });
        each("/nowhere", [](request&) { return response(302).body("no location"); });
        each("/wrong", [](request&) { return redirect(302, "http://u@localhost/"); });
        each("/large",
             [](request&) { return redirect(302, "/echo").body(std::string(200'000, 'x')); });
        each("/away", [this](request&) { return redirect(307, away); });
        each("/busy", [this](request& q) {
            if (busy.fetch_sub(1, relaxed) <= 0) return response::text("now");
            response later(503);
            if (const auto after = q.find("X-After")) later.add("Retry-After", *after);
            return later;
        });
        r.get("/stalls", [](request& q) {
            return response(503)
                .add("Retry-After", "3600")
                .body(http::stream(
                    [loop = &q.loop()](http::body_writer& out) -> task<> {
                        co_await out.write("part");
                        co_await out.flush();
                        io::timer never(*loop);
                        co_await never.wait_for(1h);
                    },
                    10));
        });
        r.get("/cookies", [](request&) {
            return response(200).add("Set-Cookie", "a=1").add("X", "y").add("Set-Cookie", "b=2");
        });
        r.get("/wait", [](request& q) -> task<response> {
            co_await http::pause(q, 1h);
            co_return response::text("never");
        });
        return r;
    }
    static http::server_options options() { return options_of(every_way[0]); }
    std::string away;
    atomic<int> busy{0};
};
INSTANTIATE_TEST_SUITE_P(rings, client_url, testing::Values(io::backend::epoll, io::backend::uring),
                         name_of_ring);

std::string at(std::uint16_t port, std::string_view target, std::string_view host = "127.0.0.1") {
    return "http://" + std::string(host) + ":" + std::to_string(port) + std::string(target);
}

TEST_P(client_url, a_name_is_looked_up_and_its_connection_is_kept_by_name_and_port) {
    running_server server(options(), routes());
    network net(GetParam());
    net.run([](io::context& loop, std::uint16_t port) -> task<> {
        http::client client(loop);
        for (int i = 0; i != 3; ++i) {
            const auto got = co_await client.get(at(port, "/echo?x#y", "LocalHost"));
            EXPECT_EQ(got.body(), "GET /echo?x\nHost: localhost:" + std::to_string(port) + "\n");
            EXPECT_EQ(got.url(), at(port, "/echo?x#y", "localhost"));
            const auto posted = co_await client.post(at(port, "/echo", "localhost"), "hello");
            EXPECT_TRUE(posted.body().ends_with("Content-Length: 5\nhello")) << posted.body();
        }
        EXPECT_EQ(client.connections_made(), 1u);
        // An address is a different key from the name, but the same as its endpoint.
        (void)co_await client.get(at(port, "/echo"));
        (void)co_await client.get(io::loopback(port), "/echo");
        EXPECT_EQ(client.connections_made(), 2u);
    }(net.loop, server.port()));
}

TEST_P(client_url, with_an_endpoint_the_name_is_not_looked_up) {
    running_server server(options(), routes());
    network net(GetParam());
    net.run([](io::context& loop, std::uint16_t port) -> task<> {
        http::client client(loop);
        http::client_request r = asks("http://no.such.host.invalid/to/302");
        r.to = io::loopback(port);
        r.redirects_max = 1;
        const auto got = co_await client.send(std::move(r));
        EXPECT_EQ(got.body(), "GET /echo\nHost: no.such.host.invalid\n");
        EXPECT_EQ(got.url(), "http://no.such.host.invalid/echo");
    }(net.loop, server.port()));
}

TEST_P(client_url, a_url_that_cannot_be_requested_is_an_error_before_any_connection) {
    network net(GetParam());
    net.run([](io::context& loop) -> task<> {
        http::client client(loop);
        for (const char* bad : {"a", "http://", "http://u:p@a/", "ftp://a/", "http://a b/",
                                "http://a/\r\nX: y", "http://a:0/", "http://127.1/"}) {
            const auto error = co_await error_of(client, asks(bad));
            EXPECT_EQ(error, std::errc::invalid_argument) << bad;
        }
        const auto tls = co_await error_of(client, asks("https://localhost/"));
        EXPECT_EQ(tls, std::errc::protocol_not_supported);
        http::client_request both = asks("http://localhost/");
        both.target = "/x";
        EXPECT_EQ(co_await error_of(client, std::move(both)), std::errc::invalid_argument);
        http::client_request host = asks("http://localhost/");
        host.host = "a";
        EXPECT_EQ(co_await error_of(client, std::move(host)), std::errc::invalid_argument);
        EXPECT_EQ(client.connections_made(), 0u);
        const auto unknown = co_await error_of(client, asks("http://no.such.host.invalid/"));
        EXPECT_EQ(&unknown.category(), &io::resolver_category()) << unknown.message();
    }(net.loop));
}

TEST_P(client_url, redirects_are_followed_only_on_request_as_rfc9110_15_4_says) {
    running_server server(options(), routes());
    network net(GetParam());
    net.run([](io::context& loop, std::uint16_t port) -> task<> {
        http::client client(loop);
        const auto kept = co_await client.get(at(port, "/to/302"));
        EXPECT_EQ(kept.status(), 302);
        EXPECT_EQ(kept.body(), "moved");
        EXPECT_EQ(kept.url(), at(port, "/to/302"));
        for (const std::string_view method : {"GET", "POST", "PUT", "HEAD"}) {
            for (const int status : {301, 302, 303, 307, 308}) {
                http::client_request r = asks(at(port, "/to/" + std::to_string(status)), method);
                r.redirects_max = 1;
                r.fields = "Content-Type: text/x\r\nX-Other: kept\r\nAuthorization: a\r\n";
                if (method == "POST" || method == "PUT") r.body = "body";
                const auto got = co_await client.send(std::move(r));
                EXPECT_EQ(got.status(), 200);
                EXPECT_EQ(got.url(), at(port, "/echo"));
                const std::string host = " /echo\nHost: 127.0.0.1:" + std::to_string(port);
                const std::string rest = "\nX-Other: kept\n";
                const std::string login = "\nAuthorization: a";
                const bool to_get = method == "POST" ? status <= 303 : status == 303;
                std::string expected;
                if (method == "GET") {
                    expected = "GET" + host + login + "\nContent-Type: text/x" + rest;
                } else if (method != "HEAD" && to_get) {
                    expected = "GET" + host + login + rest;
                } else if (method != "HEAD") {
                    expected = std::string(method) + host + login +
                               "\nContent-Type: text/x\nContent-Length: 4" + rest + "body";
                }
                EXPECT_EQ(got.body(), expected) << method << status;
            }
        }
        EXPECT_EQ(client.connections_made(), 1u)
            << "a redirect's body is read, and its connection kept";
        http::client_request relative = asks(at(port, "/a/b/relative"));
        relative.redirects_max = 1;
        const auto got = co_await client.send(std::move(relative));
        EXPECT_EQ(got.url(), at(port, "/echo?from=relative#x"));
        // A request without a URL is relative to its endpoint.
        http::client_request plain;
        plain.to = io::loopback(port);
        plain.target = "/to/302";
        plain.redirects_max = 1;
        EXPECT_EQ((co_await client.send(std::move(plain))).url(), at(port, "/echo"));
        // RFC 9110 section 10.2.2.
        http::client_request part = asks(at(port, "/to/302#part"));
        part.redirects_max = 1;
        EXPECT_EQ((co_await client.send(std::move(part))).url(), at(port, "/echo#part"));
    }(net.loop, server.port()));
}

TEST_P(client_url, credentials_stay_with_their_origin) {
    running_server other(options(), routes());
    away = at(other.port(), "/echo");
    running_server server(options(), routes());
    network net(GetParam());
    net.run([](io::context& loop, std::uint16_t port, std::uint16_t elsewhere) -> task<> {
        http::client_options o;
        o.redirects_max = 5;
        http::client client(loop, o);
        http::client_request r = asks(at(port, "/away"), "POST");
        r.fields =
            "authorization: a\r\nCOOKIE: b\r\nProxy-Authorization: c\r\nContent-Type: "
            "d\r\nX-Other: "
            "e\r\n";
        r.body = "body";
        const auto got = co_await client.send(std::move(r));
        EXPECT_EQ(got.body(), "POST /echo\nHost: 127.0.0.1:" + std::to_string(elsewhere) +
                                  "\nContent-Type: d\nContent-Length: 4\nX-Other: e\nbody");
        EXPECT_EQ(got.url(), at(elsewhere, "/echo"));
    }(net.loop, server.port(), other.port()));
}

TEST_P(client_url, redirects_that_lead_nowhere_are_errors_or_the_answer) {
    running_server server(options(), routes());
    network net(GetParam());
    net.run([](io::context& loop, std::uint16_t port) -> task<> {
        http::client_options o;
        o.redirects_max = 3;
        http::client client(loop, o);
        EXPECT_EQ(co_await error_of(client, asks(at(port, "/loop"))), std::errc::too_many_links);
        EXPECT_EQ(co_await error_of(client, asks(at(port, "/wrong"))), std::errc::bad_message);
        EXPECT_EQ(co_await error_of(client, asks(at(port, "/https"))),
                  std::errc::protocol_not_supported);
        const auto nowhere = co_await client.get(at(port, "/nowhere"));
        EXPECT_EQ(nowhere.status(), 302);
        EXPECT_EQ(nowhere.body(), "no location");
        EXPECT_EQ(client.connections_made(), 1u);
        // A streamed body cannot be sent twice.
        http::client_request streamed = asks(at(port, "/to/307"), "POST");
        streamed.source =
            http::stream([](http::body_writer& out) -> task<> { co_await out.write("body"); });
        const auto answer = co_await client.send(std::move(streamed));
        EXPECT_EQ(answer.status(), 307);
        http::client_request to_get = asks(at(port, "/to/303"), "POST");
        to_get.source =
            http::stream([](http::body_writer& out) -> task<> { co_await out.write("body"); });
        EXPECT_TRUE((co_await client.send(std::move(to_get))).body().starts_with("GET /echo\n"));
        // Nor if a 303 leaves the method as it is.
        int written = 0;
        http::client_request stays = asks(at(port, "/to/303"), "GET");
        stays.source = http::stream([&written](http::body_writer& out) -> task<> {
            ++written;
            co_await out.write("body");
        });
        const auto kept = co_await client.send(std::move(stays));
        EXPECT_EQ(kept.status(), 303);
        EXPECT_EQ(written, 1);
        // A long body costs its connection, not the request.
        const auto large = co_await client.get(at(port, "/large"));
        EXPECT_EQ(large.status(), 200);
    }(net.loop, server.port()));
}

// The body of a 503 is read to its end first, and this answer has none.
TEST_P(client_url, a_stop_ends_the_wait_for_a_retry) {
    running_server server(options(), routes());
    network net(GetParam());
    net.run([](io::context& loop, std::uint16_t port) -> task<> {
        http::client_options o;
        o.retries = 1;
        o.retry_after_max = 2h;
        http::client client(loop, o);
        inplace_stop_source source;
        const auto ask = [](http::client& c, std::string url, inplace_stop_token token) -> task<> {
            co_await c.get(url, token);
        };
        const auto stop = [](io::context& l, inplace_stop_source& s) -> task<> {
            co_await execution::schedule_after(l.get_scheduler(), 50ms);
            s.request_stop();
        };
        const std::string url = at(port, "/stalls");
        const auto ended = co_await execution::when_all(
            execution::stopped_as_optional(ask(client, url, source.get_token()) |
                                           execution::then([] { return 1; })),
            stop(loop, source));
        EXPECT_FALSE(ended.has_value());
    }(net.loop, server.port()));
}

TEST_P(client_url, a_request_with_a_temporary_error_is_retried) {
    running_server server(options(), routes());
    network net(GetParam());
    busy.store(2, relaxed);
    const auto ask = [](io::context& loop, std::uint16_t port, http::client_options o, int status,
                        std::string_view method = "GET", std::string fields = "") -> task<> {
        http::client client(loop, o);
        http::client_request r = asks(at(port, "/busy"), method);
        r.fields = fields;
        const auto got = co_await client.send(std::move(r));
        EXPECT_EQ(got.status(), status);
    };
    http::client_options o;
    o.retry_delay = 1ms;
    net.run(ask(net.loop, server.port(), o, 503));
    busy.store(2, relaxed);
    o.retries = 1;
    net.run(ask(net.loop, server.port(), o, 503));
    busy.store(2, relaxed);
    o.retries = 2;
    net.run(ask(net.loop, server.port(), o, 200));
    // A request that is not idempotent is never repeated.
    busy.store(1, relaxed);
    net.run(ask(net.loop, server.port(), o, 503, "POST"));
    // Retry-After is waited for up to its bound; an invalid value is ignored.
    for (const char* after : {"0", "Sun, 06 Nov 1994 08:49:37 GMT", "soon", "-1", ""}) {
        const std::string fields = "X-After: " + std::string(after) + "\r\n";
        busy.store(1, relaxed);
        net.run(ask(net.loop, server.port(), o, 200, "GET", fields));
    }
    for (const char* after : {"61", "99999999999999999999999", "Sun, 06 Nov 9994 08:49:37 GMT"}) {
        const std::string fields = "X-After: " + std::string(after) + "\r\n";
        busy.store(1, relaxed);
        net.run(ask(net.loop, server.port(), o, 503, "GET", fields));
    }
}

TEST_P(client_url, a_failed_connection_is_retried_up_to_the_deadline) {
    io::endpoint nobody;
    ::close(listen_anywhere(nobody));
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client_options o;
        o.retries = 3;
        o.retry_delay = 1ms;
        http::client client(loop, o);
        const auto refused = co_await error_of(client, asks(at(to.port(), "/")));
        EXPECT_EQ(refused, std::errc::connection_refused);
        EXPECT_EQ(client.connections_made(), 4u);
        // A request that is not idempotent is never retried.
        o.retry_delay = o.retry_delay_max = 1h;
        http::client patient(loop, o);
        const auto posted = co_await error_of(patient, asks(at(to.port(), "/"), "POST"));
        EXPECT_EQ(posted, std::errc::connection_refused);
        EXPECT_EQ(patient.connections_made(), 1u);
        // The client does not wait for a retry that would come after the deadline.
        const execution::instant soon = execution::monotonic_now() + 60s;
        const auto late =
            co_await execution::write_env(error_of(patient, asks(at(to.port(), "/"))),
                                          execution::prop(execution::get_deadline, soon));
        EXPECT_EQ(late, std::errc::connection_refused);
        EXPECT_EQ(patient.connections_made(), 2u);
    }(net.loop, nobody));
    // A stop of either kind ends the wait between two tries.
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client_options o;
        o.retries = 3;
        o.retry_delay = o.retry_delay_max = 1h;
        http::client client(loop, o);
        bool late = false;
        try {
            (void)co_await execution::timeout(client.get(at(to.port(), "/")), 5ms);
        } catch (const std::system_error& e) {
            late = e.code() == std::errc::timed_out;
        }
        EXPECT_TRUE(late);
        inplace_stop_source own;
        const auto stopping = [](io::context& l, inplace_stop_source& s) -> task<> {
            co_await l.get_scheduler().schedule_after(5ms);
            s.request_stop();
        };
        const auto asking = [](http::client& c, std::uint16_t port,
                               inplace_stop_token token) -> task<> {
            const auto got = co_await execution::stopped_as_optional(c.get(at(port, "/"), token));
            EXPECT_FALSE(got.has_value());
        };
        co_await execution::when_all(asking(client, to.port(), own.get_token()),
                                     stopping(loop, own));
    }(net.loop, nobody));
}

TEST_P(client_url, a_connection_lost_before_its_answer_is_retried) {
    scripted_server server({"", "", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"});
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client_options o;
        o.retries = 2;
        o.retry_delay = 1ms;
        http::client client(loop, o);
        EXPECT_EQ((co_await client.get(to, "/")).body(), "ok");
    }(net.loop, server.where));
}

TEST_P(client_url, all_fields_of_a_name_are_found_in_order) {
    running_server server(options(), routes());
    network net(GetParam());
    net.run([](io::context& loop, std::uint16_t port) -> task<> {
        http::client client(loop);
        const auto got = co_await client.get(at(port, "/cookies"));
        const std::vector<std::string_view> cookies = got.find_all("set-cookie");
        EXPECT_EQ(cookies, (std::vector<std::string_view>{"a=1", "b=2"}));
        EXPECT_TRUE(got.find_all("None").empty());
        std::size_t named_x = 0;
        for (const http::field& f : got.fields()) named_x += f.name == "X" && f.value == "y";
        EXPECT_EQ(named_x, 1u);
    }(net.loop, server.port()));
}

}  // namespace
