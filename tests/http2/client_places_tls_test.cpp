// Places at a server that changes its protocol between connections, in a simulation.
#include <coppice/execution.hpp>
#include <coppice/http2.hpp>
#include <coppice/io/simulation.hpp>

#include "allocations.hpp"

#include "../http/secure_parts.hpp"
#include "../http/served_world.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;
namespace ex = coppice::execution;

// What the server does with one connection.
enum class manner : char {
    http1 = '1',
    http2 = '2',
    once = 'o',    // HTTP/1.1: the connection breaks when a second request comes
    silent = 's',  // the server never answers the handshake
};

// The server's side of one connection, which behaves in one manner.
class mannered_engine final : public io::secure_engine {
public:
    mannered_engine(std::unique_ptr<io::secure_engine> of, manner how) noexcept
        : of_(std::move(of)), how_(how) {}
    void input(std::span<const std::byte> bytes) noexcept override {
        if (how_ != manner::silent) of_->input(bytes);
    }
    std::size_t unread() const noexcept override { return of_->unread(); }
    void end_input() noexcept override { of_->end_input(); }
    void output(std::span<std::byte> room) noexcept override { of_->output(room); }
    std::size_t written() const noexcept override { return of_->written(); }
    io::secure_progress handshake() noexcept override { return of_->handshake(); }
    io::secure_progress receive(std::span<std::byte> into) noexcept override {
        const io::secure_progress p = of_->receive(into);
        if (p.bytes == 0 || how_ != manner::once || std::exchange(is_first_, false)) return p;
        return {io::secure_step::failed, 0, std::make_error_code(std::errc::bad_message)};
    }
    io::secure_progress send(std::span<const std::byte> bytes) noexcept override {
        return of_->send(bytes);
    }
    io::secure_progress end() noexcept override { return of_->end(); }
    std::string_view protocol() const noexcept override { return of_->protocol(); }

private:
    const std::unique_ptr<io::secure_engine> of_;
    const manner how_;
    bool is_first_ = true;
};

// Makes the engines of connections, each in its manner.
class mannered_server final : public io::server_security {
public:
    explicit mannered_server(std::string_view manners) : left_(manners) {}
    std::unique_ptr<io::secure_engine> accept() const override {
        EXPECT_FALSE(left_.empty()) << "a connection that was not expected";
        const auto how = left_.empty() ? manner::silent : static_cast<manner>(left_.front());
        if (!left_.empty()) left_.remove_prefix(1);
        const auto& speaks = how == manner::http2 ? http2_ : http1_;
        return std::make_unique<mannered_engine>(speaks->accept(), how);
    }

private:
    static std::shared_ptr<const io::server_security> that_speaks(const char* protocol) {
        return context_of_server("DNS:a.example,DNS:b.example", {protocol});
    }
    const std::shared_ptr<const io::server_security> http1_ = that_speaks("http/1.1");
    const std::shared_ptr<const io::server_security> http2_ = that_speaks("h2");
    mutable std::string_view left_;  // one loop calls accept()
};

// A client of that server, whose names share the places at its endpoint.
struct asker {
    asker(io::context& on, const io::endpoint& where, const http::client_options& o)
        : loop(on), to(where), client(on, o) {}
    // `name` is "a" or "b".
    http::client_request request(std::string_view name, std::string_view path) const {
        http::client_request r =
            asks("https://" + std::string(name) + ".example" + std::string(path));
        r.to = to;
        return r;
    }
    task<> hello(std::string_view name) {
        try {
            EXPECT_EQ((co_await client.send(request(name, "/"))).body(), "hello");
        } catch (const std::system_error& error) {
            ADD_FAILURE() << name << ": " << error.what();
        }
    }
    // Begins a request that keeps its stream, or its connection, until the answer is destroyed.
    task<> hold(std::string_view name, std::optional<http::client_answer>& held) {
        held.emplace(co_await client.open(request(name, "/large")));
    }
    task<> pass(duration time) { co_await loop.get_scheduler().schedule_after(time); }

    io::context& loop;
    const io::endpoint to;
    http::client client;
};

// Runs `work` with a client, against a server whose connections have these manners.
void ask_in(std::uint64_t seed, std::string_view manners, std::size_t places,
            const std::function<task<>(asker&)>& work, std::uint32_t streams_max = 100) {
    SCOPED_TRACE(seed);
    io::simulation world(seed);
    http::server_options o;
    o.http2 = http2::for_server({.streams_max = streams_max});
    o.security = std::make_shared<mannered_server>(manners);
    http::router routes;
    routes.get("/", [](http::request&) { return http::response::text("hello"); });
    routes.get("/large",
               [](http::request&) { return http::response::text(std::string(10'000'000, 'x')); });
    const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
        http::client_options with;
        with.http2 = http2::for_client();
        with.security = context_of_client({"h2", "http/1.1"});
        with.connections_per_host_max = places;
        with.connect = 10s;
        with.total = 100s;
        asker a(loop, to, with);
        co_await work(a);
    };
    (void)serve_in(world, std::move(o), std::move(routes), client);
}

// The client knows that the server speaks HTTP/1.1, so the first two requests decide nothing. The
// third one decides, and the second one's connection is ready before it. Then nothing keeps what
// the client knows of the server, except the request that decides.
TEST(http2_client_places, a_request_that_decides_what_a_server_speaks_is_not_forgotten) {
    ask_in(1, "122s1", 1, [](asker& a) -> task<> {
        co_await a.hello("a");
        a.client.close_idle();
        std::error_code error;
        const auto decides = [&]() -> task<> {
            error = co_await error_of(a.client, a.request("a", "/"));
        };
        const auto second = [&]() -> task<> {
            co_await a.hello("a");
            co_await a.pass(1s);  // the third one has the place
            co_await a.hello("b");
        };
        const auto first = [&]() -> task<> {
            co_await a.hello("a");
            while (a.client.connections_made() != 3) co_await a.pass(100us);
            co_await decides();
        };
        co_await ex::when_all(first(), second());
        EXPECT_EQ(error, std::errc::timed_out);
        EXPECT_EQ(a.client.connections_made(), 5u);
    });
}

// Both connections of HTTP/1.1 break when they are used again, one after the other. The first
// request then connects, and finds HTTP/2. The second one has a place, and has to ask again, while
// the third one decides and waits for a place.
TEST(http2_client_places, a_request_that_asks_again_gives_its_place_back) {
    ask_in(1, "oo122", 2, [](asker& a) -> task<> {
        co_await ex::when_all(a.hello("a"), a.hello("a"));
        std::optional<http::client_answer> held;  // the other place
        co_await a.hold("b", held);
        const auto first = [&]() -> task<> {
            co_await a.hello("a");
            co_await a.hello("a");  // the third one
        };
        co_await ex::when_all(first(), a.hello("a"));
        EXPECT_EQ(a.client.connections_made(), 5u);
    });
}

TEST(http2_client_places, a_request_shares_a_connection_that_another_name_no_longer_waits_for) {
    for (std::uint64_t seed = 1; seed != 10; ++seed) {
        ask_in(seed, "2", 1, [](asker& a) -> task<> {
            std::optional<http::client_answer> held;
            co_await a.hold("a", held);
            const auto leaves = [&]() -> task<> {
                co_await ex::when_any(a.hello("b"), a.pass(2s));
            };
            const auto later = [&]() -> task<> {
                co_await a.pass(1s);
                co_await a.hello("a");
            };
            co_await ex::when_all(leaves(), later(), later());
            EXPECT_EQ(a.client.connections_made(), 1u);
        });
    }
}

// The other name's request gets a place of another connection that has ended.
TEST(http2_client_places, a_request_shares_a_connection_once_another_name_has_a_place) {
    for (std::uint64_t seed = 1; seed != 10; ++seed) {
        ask_in(seed, "212", 2, [](asker& a) -> task<> {
            std::optional<http::client_answer> held, other;
            co_await a.hold("a", held);
            co_await a.hold("b", other);
            const auto waits = [&]() -> task<> { co_await a.hello("b"); };
            const auto later = [&]() -> task<> {
                co_await a.pass(1s);
                co_await a.hello("a");
            };
            const auto ends = [&]() -> task<> {
                co_await a.pass(2s);
                other.reset();
            };
            co_await ex::when_all(waits(), later(), ends());
            EXPECT_EQ(a.client.connections_made(), 3u);
        });
    }
}

// Two connections to one server, since the client knew it to speak HTTP/1.1. One of them is full.
TEST(http2_client_places, a_request_takes_a_stream_of_any_connection_that_has_room) {
    for (const bool newest_is_full : {true, false}) {
        const auto work = [newest_is_full](asker& a) -> task<> {
            co_await a.hello("a");
            a.client.close_idle();
            std::optional<http::client_answer> held[2];
            co_await ex::when_all(a.hold("a", held[0]), a.hold("a", held[1]));
            held[newest_is_full ? 0 : 1].reset();
            co_await a.hello("a");
            EXPECT_EQ(a.client.connections_made(), 3u);
        };
        for (std::uint64_t seed = 1; seed != 10; ++seed) ask_in(seed, "122", 0, work, 1);
    }
}

// The second request decides nothing, and has a connection while the third one still connects. The
// fourth one waits for a stream of it.
TEST(http2_client_places, a_request_that_waits_for_a_stream_does_not_fail_with_one_that_connects) {
    const auto work = [](asker& a) -> task<> {
        co_await a.hello("a");
        a.client.close_idle();
        std::optional<http::client_answer> place, stream;
        co_await a.hold("b", place);
        std::error_code error;
        const auto first = [&]() -> task<> {
            co_await a.hello("a");
            while (a.client.connections_made() != 4) co_await a.pass(100us);
            place.reset();
            error = co_await error_of(a.client, a.request("a", "/"));
        };
        const auto last = [&]() -> task<> {
            co_await a.pass(5s);
            co_await a.hello("a");
        };
        const auto frees = [&]() -> task<> {
            co_await a.pass(20s);
            EXPECT_EQ(error, std::errc::timed_out);
            stream.reset();
        };
        co_await ex::when_all(first(), a.hold("a", stream), last(), frees());
        EXPECT_EQ(a.client.connections_made(), 5u);
    };
    ask_in(1, "1122s", 2, work, 1);
}

// Asks for two names at once, which share one place. Returns how many were answered.
task<int> ask_for_two(http::client& client, const io::endpoint& to) {
    int answered = 0;
    const auto ask = [&](std::string_view name) -> task<> {
        try {
            http::client_request r = asks("https://" + std::string(name) + ".example/");
            r.to = to;
            if ((co_await client.send(std::move(r))).body() == "hello") ++answered;
        } catch (const std::bad_alloc&) {
        } catch (const std::system_error&) {
        }
    };
    co_await ex::when_all(ask("a"), ask("b"), ask("a"), ask("b"));
    co_return answered;
}
// One allocation of the first round may fail.
task<> ask_twice(io::context& loop, http::server& server, const http::client_options& o,
                 bool& failed) {
    std::optional<http::client> client;
    try {
        client.emplace(loop, o);
        (void)co_await ask_for_two(*client, server.local());
    } catch (const std::bad_alloc&) {
    }
    failed = allocation_has_failed();
    if (client) {
        EXPECT_EQ(co_await ask_for_two(*client, server.local()), 4);
        EXPECT_LE(client->sessions(), 1u);
    }
    client.reset();
    server.drain(10s);
}

// The server is on the thread whose allocations succeed.
TEST(http2_client_places, requests_succeed_after_an_allocation_that_has_failed) {
    if (!fail_allocation(0)) GTEST_SKIP() << "operator new is the sanitizer's";
    for (const char* const protocol : {"h2", "http/1.1"}) {
        http::server_options o;
        o.endpoint = io::loopback(0);
        o.model = http::model::single;
        o.http2 = http2::for_server();
        o.security = context_of_server("DNS:a.example,DNS:b.example", {protocol});
        http::client_options with;
        with.http2 = http2::for_client();
        with.security = context_of_client({"h2", "http/1.1"});
        with.connections_per_host_max = 1;
        with.sessions_max = 1;
        with.total = 20s;  // instead of forever
        bool failed = true;
        for (std::size_t n = 1; failed; ++n) {
            SCOPED_TRACE(n);
            ASSERT_LT(n, 2000u);
            http::router routes;
            routes.get("/", [](http::request&) { return http::response::text("hello"); });
            http::server server(o, std::move(routes));
            network net(io::backend::epoll);
            ex::counting_scope scope;
            fail_allocation(n);
            ex::spawn(
                ex::starts_on(net.loop.get_scheduler(), ask_twice(net.loop, server, with, failed)) |
                    ex::upon_error([](auto&&) noexcept { ADD_FAILURE(); }),
                scope.get_token());
            server.run();
            this_thread::sync_wait(scope.join());
        }
    }
}

}  // namespace
