// http/admission.hpp: each filter refuses what is too much, and nothing else.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/http/admission.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/http/server.hpp>
#include <coppice/sync/event.hpp>

#include "allocations.hpp"
#include "answered.hpp"
#include "client.hpp"
#include "raw_peer.hpp"
#include "running_server.hpp"
#include "served_world.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
using namespace std::chrono_literals;
using http::request;
using http::response;

TEST(rate_limit, gives_each_client_its_burst_and_then_its_rate) {
    const http::rate_limit limit({.per_second = 10, .burst = 3, .exempt = {"192.0.2.9"}});
    const internal::time_point start{1000s};
    const auto take = [&](const char* text, internal::duration after) {
        return limit.take(io::endpoint::parse(text).value(), start + after);
    };
    for (int i = 0; i != 3; ++i) EXPECT_EQ(take("192.0.2.1:1", 0s), 0s);
    EXPECT_EQ(take("192.0.2.1:2", 0s), 100ms);   // another port is the same client
    EXPECT_EQ(take("192.0.2.1:1", 40ms), 60ms);  // asking has cost nothing
    EXPECT_EQ(take("192.0.2.1:1", 100ms), 0s);
    EXPECT_EQ(take("192.0.2.1:1", 100ms), 100ms);
    EXPECT_EQ(take("192.0.2.2:1", 100ms), 0s);
    EXPECT_EQ(take("[::ffff:192.0.2.1]:1", 100ms), 100ms);
    for (int i = 0; i != 3; ++i) EXPECT_EQ(take("[2001:db8::1]:1", 0s), 0s);
    EXPECT_EQ(take("[2001:db8::ffff:2]:1", 0s), 100ms);  // of one /64
    EXPECT_EQ(take("[2001:db8:0:1::1]:1", 0s), 0s);
    // An IPv4 address that a translator has put into IPv6 is the same client.
    EXPECT_EQ(take("[64:ff9b::192.0.2.1]:1", 100ms), 100ms);
    for (int i = 0; i != 2; ++i) EXPECT_EQ(take("[64:ff9b::192.0.2.2]:1", 100ms), 0s);
    EXPECT_EQ(take("192.0.2.2:1", 100ms), 100ms);
    for (int i = 0; i != 3; ++i) EXPECT_EQ(take("[64:ff9b:1::192.0.2.1]:1", 0s), 0s);
    EXPECT_EQ(take("[64:ff9b:1::192.0.2.2]:1", 0s), 100ms);  // a translator's own prefix
    for (int i = 0; i != 100; ++i) EXPECT_EQ(take("192.0.2.9:1", 0s), 0s);
    for (int i = 0; i != 3; ++i) EXPECT_EQ(take("192.0.2.1:1", 3600s), 0s);  // no more than a burst
    EXPECT_EQ(take("192.0.2.1:1", 3600s), 100ms);
    EXPECT_EQ(limit.refused(), 9u);
}

TEST(rate_limit, keeps_its_memory_when_more_clients_ask_than_it_remembers) {
    const http::rate_limit limit({.per_second = 1, .burst = 2, .addresses_max = 64});
    const internal::time_point now{1000s};
    const auto of = [](unsigned i) {
        return io::endpoint::parse(
                   "10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256), 1)
            .value();
    };
    const coppice::test::allocation_count count;
    std::size_t allocated = 0;
    for (unsigned i = 0; i != 5000; ++i) {
        const io::endpoint client = of(i);
        const std::size_t before = count.so_far();
        EXPECT_EQ(limit.take(client, now), 0s);  // one that is new is never refused
        allocated += count.so_far() - before;
    }
    EXPECT_EQ(allocated, 0u);
    EXPECT_EQ(limit.refused(), 0u);
}

TEST(rate_limit, refuses_options_that_mean_nothing) {
    using options = http::rate_limit_options;
    for (const options& wrong :
         {options{.per_second = 0}, options{.per_second = -1}, options{.per_second = 1e10},
          options{.per_second = std::numeric_limits<double>::quiet_NaN()}, options{.burst = 0},
          options{.addresses_max = 0}, options{.per_second = 1e-6, .burst = 1 << 30}}) {
        EXPECT_THROW(http::rate_limit{wrong}, std::invalid_argument);
    }
    EXPECT_THROW(http::concurrency_limit(0), std::invalid_argument);
    EXPECT_THROW(http::concurrency_limit({.waiting_max = 1}), std::invalid_argument);
}

TEST(rate_limit, answers_429_with_retry_after_and_a_forged_field_makes_no_other_client) {
    for (const bool trusts : {false, true}) {
        http::server_options o;
        if (trusts) o.forwarding.from = {"127.0.0.1"};
        http::router r = telling();
        const auto limit = std::make_shared<http::rate_limit>(
            http::rate_limit_options{.per_second = 0.5, .burst = 2});
        r.use(limit);
        std::string all;
        for (int i = 0; i != 5; ++i)
            all += get("X-Forwarded-For: 9.9.9." + std::to_string(i) + "\r\n");
        const answered a = serve(std::move(o), std::move(r), all);
        EXPECT_EQ(count_of(a.text, "HTTP/1.1 429 "), trusts ? 0 : 3) << a.text;
        EXPECT_EQ(count_of(a.text, "Retry-After: 2\r\n"), trusts ? 0 : 3) << a.text;
        EXPECT_EQ(limit->refused(), trusts ? 0u : 3u);
    }
}

TEST(concurrency_limit, refuses_what_is_too_much_at_once_and_lets_in_again_when_a_client_is_gone) {
    http::router r;
    const http::concurrency_limit limit(1, 7s);
    r.with(limit).get("/slow", [](request& q) -> task<response> {
        co_await http::pause(q, 1s);
        co_return response::text("slow");
    });
    const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
        raw_peer second(loop, to), third(loop, to);
        {
            raw_peer first(loop, to);
            co_await first.send(get("", "/slow"), 1000);
            EXPECT_EQ(limit.in_flight(), 1u);
            co_await second.send(get("", "/slow"), 1000);
            const std::string refused = co_await second.receive("flight");
            EXPECT_EQ(count_of(refused, " 503 "), 1) << refused;
            EXPECT_EQ(count_of(refused, "Retry-After: 7\r\n"), 1) << refused;
            EXPECT_NE((co_await first.receive("slow")).find(" 200 "), std::string::npos);
            co_await first.send(get("", "/slow"), 1000);
            EXPECT_EQ(limit.in_flight(), 1u);
        }
        co_await third.send(get("", "/slow"), 1000);
        EXPECT_NE((co_await third.receive("slow")).find(" 200 "), std::string::npos);
    };
    http::server_options o;
    o.end_of_input_stops = true;
    io::simulation world(3);
    (void)serve_in(world, std::move(o), std::move(r), client);
    EXPECT_EQ(limit.in_flight(), 0u);
    EXPECT_EQ(limit.refused(), 1u);
}

// Takes a second, and says when it has ended: seconds since the start of the simulation's clock.
task<response> slow(request& q) {
    co_await http::pause(q, 1s);
    co_return response::text(q.query<std::string>("name").value_or("") + " done");
}

TEST(concurrency_limit, lets_requests_wait_for_a_time_in_a_queue_that_is_bounded) {
    http::router r;
    const http::concurrency_limit limit(
        {.in_flight_max = 1, .waiting_max = 2, .waited_max = 1500ms, .retry_after = 7s});
    r.with(limit).get("/slow", slow);
    const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
        raw_peer first(loop, to), second(loop, to), third(loop, to), fourth(loop, to);
        const internal::time_point start = loop.now();
        co_await first.send(get("", "/slow?name=first"), 1000);
        co_await second.send(get("", "/slow?name=second"), 1000);
        co_await third.send(get("", "/slow?name=third"), 1000);
        EXPECT_EQ(limit.in_flight(), 1u);
        EXPECT_EQ(limit.waiting(), 2u);
        co_await fourth.send(get("", "/slow?name=fourth"), 1000);
        const std::string full = co_await fourth.receive("flight");
        EXPECT_LT(loop.now() - start, 200ms);
        EXPECT_EQ(count_of(full, " 503 "), 1) << full;
        EXPECT_EQ(count_of(full, "Retry-After: 7\r\n"), 1) << full;
        EXPECT_NE((co_await first.receive("done")).find("first done"), std::string::npos);
        EXPECT_EQ(limit.waiting(), 1u);
        const std::string late = co_await third.receive("flight");  // the second is in the handler
        EXPECT_GE(loop.now() - start, 1500ms);
        EXPECT_LT(loop.now() - start, 1700ms);
        EXPECT_EQ(count_of(late, " 503 "), 1) << late;
        EXPECT_NE((co_await second.receive("done")).find("second done"), std::string::npos);
        EXPECT_LT(loop.now() - start, 2200ms);
    };
    io::simulation world(3);
    (void)serve_in(world, {}, std::move(r), client);
    EXPECT_EQ(limit.in_flight(), 0u);
    EXPECT_EQ(limit.waiting(), 0u);
    EXPECT_EQ(limit.refused(), 2u);
}

TEST(concurrency_limit, stops_requests_that_wait_when_their_client_or_their_time_is_gone) {
    http::router r;
    const http::concurrency_limit limit({.in_flight_max = 1, .waiting_max = 2, .waited_max = 1h});
    r.with(limit).get("/slow", slow);
    const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
        raw_peer first(loop, to), third(loop, to), fourth(loop, to);
        co_await first.send(get("", "/slow"), 1000);
        {
            raw_peer second(loop, to);
            co_await second.send(get("", "/slow"), 1000);
            EXPECT_EQ(limit.waiting(), 1u);
        }
        co_await third.send(get("", "/slow"), 1000);
        co_await fourth.send(get("", "/slow"), 1000);
        EXPECT_EQ(limit.waiting(), 2u);  // the second has left
        EXPECT_NE((co_await first.receive("done")).find(" 200 "), std::string::npos);
        EXPECT_NE((co_await third.receive("done")).find(" 200 "), std::string::npos);
        const std::string late = co_await fourth.receive("\r\n\r\n");
        EXPECT_EQ(count_of(late, " 503 "), 1) << late;  // the handler's time counts from the start
    };
    http::server_options o;
    o.end_of_input_stops = true;
    o.timeouts.handler = 2500ms;
    io::simulation world(3);
    EXPECT_EQ(serve_in(world, std::move(o), std::move(r), client).timed_out, 1u);
    EXPECT_EQ(limit.in_flight(), 0u);
    EXPECT_EQ(limit.waiting(), 0u);
    EXPECT_EQ(limit.refused(), 0u);
}

class waiting_requests_on : public testing::TestWithParam<way> {
protected:
    static void await_counts(const http::concurrency_limit& limit, std::size_t in_flight,
                             std::size_t waiting) {
        while (limit.in_flight() != in_flight || limit.waiting() != waiting) {
            std::this_thread::yield();
        }
    }
    static std::string request_for(const std::string& target, const std::string& body = "") {
        return "POST " + target +
               " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
               "\r\n\r\n" + body;
    }
};

INSTANTIATE_TEST_SUITE_P(ways, waiting_requests_on, testing::ValuesIn(every_way), name_of_way);

TEST_P(waiting_requests_on, go_on_where_their_handlers_run_in_the_order_of_their_arrival) {
    for (const char* const path : {"/plain", "/task", "/offloaded", "/read", "/read-offloaded"}) {
        SCOPED_TRACE(path);
        async_event go;
        internal::atomic<bool> holds{true};
        internal::atomic<int> elsewhere{0};
        const http::concurrency_limit limit(
            {.in_flight_max = 1, .waiting_max = 2, .waited_max = 1h});
        const auto holding = [&](request&, http::next_handler next) -> task<response> {
            if (holds.exchange(false, internal::acq_rel)) co_await go.wait();
            co_return co_await next();
        };
        // Counts requests that go on in another kind of thread than they came in.
        const auto before = [&](request& q, http::next_handler next) -> task<response> {
            q.set<bool>(q.loop().is_current());
            co_return co_await next();
        };
        const auto behind = [&](request& q, http::next_handler next) -> task<response> {
            if (q.get<bool>() != q.loop().is_current()) elsewhere.fetch_add(1, internal::relaxed);
            co_return co_await next();
        };
        const auto echo = [](request& q) { return response::text(std::string(q.body())); };
        const auto echo_later = [](request& q) -> task<response> {
            co_return response::text(std::string(co_await q.incoming().read()));
        };
        http::router r;
        r.with(before)
            .with(limit)
            .with(behind)
            .with(holding)
            .post("/plain", echo)
            .post("/task", [echo](request& q) -> task<response> { co_return echo(q); })
            .post("/offloaded", http::offload(echo))
            .post("/read", http::read_body(echo_later))
            .post("/read-offloaded", http::offload(http::read_body(echo_later)));
        running_server server(options_of(GetParam()), std::move(r));
        client first(server.port()), second(server.port()), fourth(server.port());
        {
            ASSERT_TRUE(first.send(request_for(path, "first")));
            await_counts(limit, 1, 0);
            client third(server.port());
            ASSERT_TRUE(third.send(request_for(path, "third")));
            await_counts(limit, 1, 1);
            ASSERT_TRUE(second.send(request_for(path, "second")));
            await_counts(limit, 1, 2);
            ASSERT_TRUE(fourth.send(request_for(path, "fourth")));
            EXPECT_TRUE(has_status(fourth.receive(), 503));
            third.reset();
        }
        await_counts(limit, 1, 1);
        go.set();
        EXPECT_EQ(body_of(first.receive()), "first");
        EXPECT_EQ(body_of(second.receive()), "second");
        await_counts(limit, 0, 0);
        EXPECT_EQ(limit.refused(), 1u);
        EXPECT_EQ(elsewhere.load(internal::relaxed), 0);
    }
}

TEST_P(waiting_requests_on, lose_no_turn_while_clients_come_and_go) {
    internal::atomic<int> inside{0}, most{0}, answers{0};
    const http::concurrency_limit limit({.in_flight_max = 2, .waiting_max = 64, .waited_max = 1h});
    const auto counts = [&](request&) {
        const int now = inside.fetch_add(1, internal::relaxed) + 1;
        int seen = most.load(internal::relaxed);
        while (seen < now &&
               !most.compare_exchange_weak(seen, now, internal::relaxed, internal::relaxed)) {
        }
        inside.fetch_sub(1, internal::relaxed);
        return response::text("x");
    };
    http::router r;
    r.with(limit).post("/plain", counts).post("/offloaded", http::offload(counts));
    running_server server(options_of(GetParam()), std::move(r));
    std::vector<std::thread> threads;
    for (int t = 0; t != 4; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i != 25; ++i) {
                const char* const path = (i + t) % 2 == 0 ? "/plain" : "/offloaded";
                client c(server.port());
                for (int k = 0; k != 3; ++k) (void)c.send(request_for(path));
                if (i % 5 == t) {
                    c.reset();
                    continue;
                }
                for (int k = 0; k != 3; ++k) {
                    if (has_status(c.receive(), 200)) answers.fetch_add(1, internal::relaxed);
                }
            }
        });
    }
    for (std::thread& t : threads) t.join();
    await_counts(limit, 0, 0);
    EXPECT_LE(most.load(internal::relaxed), 2);
    EXPECT_EQ(answers.load(internal::relaxed), 4 * 20 * 3);
    EXPECT_EQ(limit.refused(), 0u);
}

// Delays the handler, as a loop that is busy does.
task<response> late(request& r, http::next_handler next) {
    co_await http::pause(r, std::chrono::milliseconds(r.query<int>("ms").value_or(0)));
    co_return co_await next();
}

TEST(load_shedding, refuses_only_requests_whose_handlers_begin_late) {
    http::router r;
    const http::load_shedding shedding(200ms, 3s);
    r.use(late).use(shedding);
    r.post("/", [](request& q) { return response::text(std::string(q.body())); });
    const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
        const auto post = [](const char* ms) {
            return "POST /?ms=" + std::string(ms) +
                   " HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n";
        };
        raw_peer peer(loop, to);
        co_await peer.send(post("150") + "good", 1000);
        EXPECT_NE((co_await peer.receive("good")).find(" 200 "), std::string::npos);
        // One that does not wait: no queue stands.
        co_await peer.send(post("0") + "soon", 1000);
        EXPECT_NE((co_await peer.receive("soon")).find(" 200 "), std::string::npos);
        co_await peer.send(post("250") + "late", 1000);
        const std::string refused = co_await peer.receive("to do");
        EXPECT_EQ(count_of(refused, " 503 "), 1) << refused;
        EXPECT_EQ(count_of(refused, "Retry-After: 3\r\n"), 1) << refused;
        // A client that is slow itself does not count, in the head or in the body, nor does the
        // request before.
        co_await peer.send(post("8") + "good" + post("8") + "more", 2);
        EXPECT_NE((co_await peer.receive("more")).find(" 200 "), std::string::npos);
    };
    io::simulation world(3);
    (void)serve_in(world, {}, std::move(r), client);
    EXPECT_EQ(shedding.refused(), 1u);
}

TEST(allowed_hosts, compares_names_without_case_and_ports_only_if_told) {
    const http::allowed_hosts hosts({"example.org", "*.example.net", "[::1]:8080", "10.0.0.1"});
    for (const char* const good : {"example.org", "EXAMPLE.org", "example.org:1", "a.example.net",
                                   "a.b.example.net:80", "[::1]:8080", "10.0.0.1:5"}) {
        EXPECT_TRUE(hosts.contains(good)) << good;
    }
    for (const char* const bad :
         {"", "example.com", "xexample.org", "example.org.evil", "example.net", ".example.net",
          "xexample.net", "[::1]", "[::1]:80", "[::2]:8080", "10.0.0.10", ":80"}) {
        EXPECT_FALSE(hosts.contains(bad)) << bad;
    }
    for (const char* const wrong : {"", "*", "*.", "a b", "http://a", "a/b", "a:", "a:x", "a:8 ",
                                    "[::1", "a*.b", "*.*.b", "a@b"}) {
        EXPECT_THROW(http::allowed_hosts({wrong}), std::invalid_argument) << wrong;
    }
    EXPECT_THROW(http::allowed_hosts({}), std::invalid_argument);
}

TEST(allowed_hosts, ignores_one_dot_at_the_end_of_a_name) {
    const http::allowed_hosts hosts({"a.org", "B.org.", "*.c.org", "*.d.org.", "e.org.:80"});
    for (const char* const good :
         {"a.org", "a.org.", "A.ORG.", "a.org.:80", "a.org:80", "b.org", "b.org.", "b.org.:1",
          "x.c.org", "x.c.org.", "x.c.org.:80", "x.d.org", "x.d.org.", "e.org:80", "e.org.:80"}) {
        EXPECT_TRUE(hosts.contains(good)) << good;
    }
    for (const char* const bad : {"a.org..", "a.org..:80", ".a.org.", ".", "..", ".:80", "c.org.",
                                  "d.org.", "e.org.", "e.org.:81", "org.", "x.a.org."}) {
        EXPECT_FALSE(hosts.contains(bad)) << bad;
    }
}

TEST(allowed_hosts, refuses_a_list_with_what_no_client_can_ask_for) {
    for (const char* const wrong :
         {"a:0",    "a:65536", "a:99999", "a:080",       "a:123456789012345678901",
          "a:-1",   "a:+1",    "[::1]:0", "[::1]:65536", ".",
          "*..",    "..",      "a..",     "a..b",        ".a",
          "*..a",   "[]",      "[::1",    "[::g]",       "[127.0.0.1]",
          "[::1].", "*.[::1]", "::1",     "a:1:2"}) {
        EXPECT_THROW(http::allowed_hosts({wrong}), std::invalid_argument) << wrong;
    }
    for (const char* const good : {"a:1", "a:65535", "[::1]:65535", "a_b.c-d", "*.a:1", "[::]"}) {
        EXPECT_NO_THROW(http::allowed_hosts({good})) << good;
    }
}

TEST(allowed_hosts, answers_421_before_a_handler_sees_the_request) {
    const auto status = [](const std::string& bytes) {
        http::router r = telling();
        r.use(std::make_shared<http::allowed_hosts>(std::vector<std::string>{"a"}));
        return serve({}, std::move(r), bytes).text.substr(9, 3);
    };
    EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: A:80\r\n\r\n"), "200");
    EXPECT_EQ(status("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"), "200");
    EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: b\r\n\r\n"), "421");
    EXPECT_EQ(status("GET /none HTTP/1.1\r\nHost: b\r\n\r\n"), "421");
    EXPECT_EQ(status("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n"), "421");
    EXPECT_EQ(status("GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n"), "421");
    EXPECT_EQ(status("GET / HTTP/1.0\r\n\r\n"), "421");
    EXPECT_EQ(status("GET / HTTP/1.1\r\n\r\n"), "400");
    EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), "400");
}

}  // namespace
