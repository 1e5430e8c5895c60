// What load_shedding gives to the clients of a loop that is asked for far more than it can do. All
// times are those of a simulation, in which clients and server share one loop.
#include <coppice/exec/let_async_scope.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/http/admission.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>

#include "served_world.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;
using http::request;
using http::response;

constexpr duration soon = 120ms;  // with the time that a segment travels, up to 10 ms each way

constexpr duration served = 3s;  // how long clients ask

// What the clients of one kind got.
struct outcome {
    std::size_t answers = 0;
    std::size_t refusals = 0;
    std::size_t late = 0;  // of both, those that did not come soon
    std::size_t all() const { return answers + refusals; }
};

io::simulated_faults travel() {
    io::simulated_faults faults = io::simulated_faults::none();
    faults.delay_max = 10ms;
    return faults;
}

// Sends a request on the connection, and notes what comes.
task<> ask(io::context& loop, io::tcp::socket& socket, std::string_view path, outcome& o) {
    std::error_code ec;
    const std::string get = "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n";
    const time_point began = loop.now();
    co_await socket.send_all(std::as_bytes(std::span(get)), use_await[ec]);
    std::array<char, 512> some;
    const std::size_t n =
        co_await socket.receive(std::as_writable_bytes(std::span(some)), use_await[ec]);
    const std::string answer(some.data(), n);
    ++(answer.find(" 200 ") != answer.npos ? o.answers : o.refusals);
    if (loop.now() - began > soon) ++o.late;
}

// Sends one request after another until `end`, each `pause` after the answer before it.
task<> keep_asking(io::context& loop, io::endpoint to, duration pause, time_point end, outcome& o) {
    io::tcp::socket socket(loop);
    co_await socket.connect(to);
    while (loop.now() < end) {
        io::timer timer(loop);
        if (pause != duration::zero()) co_await timer.wait_for(pause);
        co_await ask(loop, socket, "/", o);
    }
}

// Sends two requests in one segment, again and again until `end`.
task<> keep_asking_twice(io::context& loop, io::endpoint to, time_point end) {
    io::tcp::socket socket(loop);
    co_await socket.connect(to);
    const std::string one = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    const std::string two = one + one;
    std::array<char, 1024> some;
    while (loop.now() < end) {
        std::error_code ec;
        co_await socket.send_all(std::as_bytes(std::span(two)), use_await[ec]);
        for (std::string got; got.find("HTTP/1.1", got.find("HTTP/1.1") + 1) == got.npos;) {
            const std::size_t n =
                co_await socket.receive(std::as_writable_bytes(std::span(some)), use_await[ec]);
            if (n == 0) co_return;
            got.append(some.data(), n);
        }
    }
}

struct load {
    std::size_t honest = 0;   // clients that ask ten times a second
    std::size_t hostile = 0;  // clients that ask as fast as they are answered
    std::size_t pairs = 0;    // clients that send two requests at a time, likewise
    duration cost = 5ms;      // of a request that is not refused, on the loop
};

// Serves the clients for some seconds. Returns what the honest ones got, and then the others.
std::array<outcome, 2> serve(const load& l, http::router r) {
    io::simulation world(1, travel());
    r.get("/", [&](request&) {
        world.pass(l.cost);
        return response::text("x");
    });
    outcome honest, hostile;
    const talk clients = [&](io::context& loop, const io::endpoint& to) -> task<> {
        const time_point end = loop.now() + served;
        co_await execution::scoped([&](auto scope) -> task<> {
            const auto ended = [](auto&&) noexcept {};
            for (std::size_t i = 0; i != l.hostile; ++i) {
                execution::spawn(keep_asking(loop, to, 0s, end, hostile), scope, ended);
            }
            for (std::size_t i = 0; i != l.pairs; ++i) {
                execution::spawn(keep_asking_twice(loop, to, end), scope, ended);
            }
            for (std::size_t i = 0; i != l.honest; ++i) {
                execution::spawn(keep_asking(loop, to, 100ms, end, honest), scope, ended);
            }
            co_return;
        });
    };
    (void)serve_in(world, {}, std::move(r), clients);
    return {honest, hostile};
}

class overload_of : public testing::TestWithParam<std::size_t> {};

// More connections than a turn takes (64 in a simulation), too.
INSTANTIATE_TEST_SUITE_P(clients, overload_of, testing::Values(50, 200));

TEST_P(overload_of, a_loop_makes_all_clients_wait_without_shedding_and_few_with_it) {
    const load l{.honest = 10, .hostile = GetParam()};
    const outcome waiting = serve(l, http::router()).front();
    EXPECT_EQ(waiting.refusals, 0u);
    EXPECT_GE(waiting.late * 10, waiting.all() * 8) << waiting.late << " of " << waiting.all();
    http::router r;
    const http::load_shedding shedding(200ms);
    r.use(shedding);
    const auto [honest, hostile] = serve(l, std::move(r));
    EXPECT_EQ(shedding.refused(), honest.refusals + hostile.refusals);
    EXPECT_LE(honest.late * 10, honest.all()) << honest.late << " of " << honest.all();
    EXPECT_GE(honest.answers, 1u);
    // The loop spends its time on answers, not on refusals.
    EXPECT_GE((honest.answers + hostile.answers) * l.cost, served * 4 / 5);
}

TEST_P(overload_of, a_loop_is_not_hidden_by_clients_that_send_two_requests_at_a_time) {
    http::router r;
    r.use(http::load_shedding(200ms));
    const load l{.honest = 10, .hostile = GetParam(), .pairs = 5};
    const outcome honest = serve(l, std::move(r)).front();
    EXPECT_LE(honest.late * 10, honest.all()) << honest.late << " of " << honest.all();
}

TEST(load_shedding_of, a_loop_that_can_do_what_it_is_asked_for_refuses_nothing) {
    http::router r;
    const http::load_shedding shedding(200ms);
    r.use(shedding);
    const auto [honest, hostile] = serve({.honest = 10, .hostile = 1}, std::move(r));
    EXPECT_EQ(shedding.refused(), 0u);
    EXPECT_EQ(honest.refusals + hostile.refusals, 0u);
}

// Delays the handler, as a queue does.
task<response> wait_first(request& r, http::next_handler next) {
    co_await http::pause(r, std::chrono::milliseconds(r.query<int>("ms").value_or(0)));
    co_return co_await next();
}

TEST(load_shedding_of, a_queue_that_stands_falls_to_a_tenth_until_none_is_refused) {
    http::router r;
    const http::load_shedding shedding(200ms);
    r.use(wait_first).use(shedding);
    r.get("/", [](request&) { return response::text("x"); });
    io::simulation world(1, io::simulated_faults::none());
    (void)serve_in(world, {}, std::move(r),
                   [&](io::context& loop, const io::endpoint& to) -> task<> {
                       io::tcp::socket socket(loop);
                       co_await socket.connect(to);
                       // Returns how many of `n` requests that wait for so long are refused.
                       const auto refused_of = [&](int n, const char* path) -> task<std::size_t> {
                           outcome o;
                           for (int i = 0; i != n; ++i) co_await ask(loop, socket, path, o);
                           co_return o.refusals;
                       };
                       // A request that does not wait ends the doubt: the queue does not stand.
                       for (int i = 0; i != 10; ++i) {
                           EXPECT_EQ(co_await refused_of(4, "/?ms=30"), 0u);
                           EXPECT_EQ(co_await refused_of(1, "/"), 0u);
                       }
                       // Without one, it stands after a whole period at the latest, the second from
                       // now.
                       (void)co_await refused_of(14, "/?ms=30");
                       EXPECT_EQ(co_await refused_of(10, "/?ms=30"), 10u);
                       EXPECT_EQ(co_await refused_of(10, "/?ms=15"), 0u);  // less than a tenth
                       // After a period without a refusal the whole time is permitted again.
                       EXPECT_EQ(co_await refused_of(30, "/?ms=8"), 0u);
                       EXPECT_EQ(co_await refused_of(2, "/?ms=150"), 0u);
                       // After a period without a request, too.
                       (void)co_await refused_of(14, "/?ms=30");
                       EXPECT_EQ(co_await refused_of(1, "/?ms=30"), 1u);
                       io::timer timer(loop);
                       co_await timer.wait_for(500ms);
                       EXPECT_EQ(co_await refused_of(2, "/?ms=150"), 0u);
                   });
}

TEST(load_shedding_of, requests_that_come_while_a_loop_is_busy_have_waited_since_then) {
    std::size_t fresh = 0, waited = 0;
    io::simulation world(1, travel());
    http::router r;
    r.get("/", [&](request& q) {
        ++(q.queued() < 5ms ? fresh : waited);
        world.pass(40ms);
        return response::text("x");
    });
    const talk clients = [&](io::context& loop, const io::endpoint& to) -> task<> {
        outcome o;
        std::deque<io::tcp::socket> sockets;
        for (int i = 0; i != 8; ++i) {
            co_await sockets.emplace_back(loop).connect(to);
        }
        co_await execution::scoped([&](auto scope) -> task<> {
            const auto ended = [](auto&&) noexcept {};
            for (io::tcp::socket& s : sockets) {
                execution::spawn(ask(loop, s, "/", o), scope, ended);
            }
            co_return;
        });
        EXPECT_EQ(o.answers, 8u);
    };
    (void)serve_in(world, {}, std::move(r), clients);
    EXPECT_EQ(fresh, 1u);
    EXPECT_EQ(waited, 7u);
}

}  // namespace
