// A server over TLS, and its clients, in one simulation: with faults, and with peers that are slow.
#include <coppice/execution.hpp>
#include <coppice/io/option.hpp>
#include <coppice/io/simulation.hpp>
#include <coppice/io/timer.hpp>

#include "conversations.hpp"
#include "secure_parts.hpp"
#include "served_world.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;
namespace ex = coppice::execution;

const tls::server_context& usual_server() {
    static const tls::server_context made = context_of_server();
    return made;
}
const tls::client_context& usual_client() {
    static const tls::client_context made = context_of_client();
    return made;
}
http::client_options client_in_a_world() {
    http::client_options o;
    o.security = usual_client();
    return o;
}

http::server_statistics in_a_world(std::uint64_t seed, http::server_options o, http::router routes,
                                   const talk& client, const io::simulated_faults& faults = {}) {
    io::simulation world(seed, faults);
    o.security = usual_server();
    return serve_in(world, std::move(o), std::move(routes), client);
}

TEST(secure_server_in_a_simulation, every_kind_of_handler_answers_despite_short_and_late_calls) {
    for (std::uint64_t seed = 1; seed != 15; ++seed) {
        const talk client = [](io::context& loop, const io::endpoint& to) -> task<> {
            http::client c(loop, client_in_a_world());
            co_await ask_for_all_kinds(c, "https://" + to.to_string());
            EXPECT_EQ(c.connections_made(), 1u);
        };
        (void)in_a_world(seed, {}, routes_of_all_kinds(), client);
    }
}

// Sends one conversation in pieces, each a record of its own, and receives what is answered.
task<> ask(io::context& loop, io::endpoint to, std::string_view bytes, std::size_t first,
           std::size_t others, std::string& received) {
    tls::stream<> peer(io::tcp::socket(loop), usual_client(), "127.0.0.1");
    std::error_code ec;
    co_await peer.next().connect(to, use_await[ec]);
    if (!ec) co_await peer.handshake(use_await[ec]);
    for (std::size_t piece = first; !bytes.empty() && !ec; piece = others) {
        const std::string_view now = bytes.substr(0, piece);
        co_await peer.send_all(std::as_bytes(std::span(now)), use_await[ec]);
        bytes.remove_prefix(now.size());
        io::timer pause(loop);
        co_await pause.wait_for(5ms, use_await[ec]);  // longer than a segment takes to arrive
    }
    if (!ec) co_await peer.shutdown_send(use_await[ec]);
    for (std::error_code end; !end;) {
        std::array<char, 512> some;
        const std::size_t n =
            co_await peer.receive(std::as_writable_bytes(std::span(some)), use_await[end]);
        if (n == 0) break;
        received.append(some.data(), n);
    }
}

std::string simulate(std::uint64_t seed, const io::simulated_faults& faults,
                     const conformance::conversation& c, std::size_t first, std::size_t others) {
    std::string received;
    const talk client = [&](io::context& loop, const io::endpoint& to) {
        return ask(loop, to, c.sent, first, others, received);
    };
    (void)in_a_world(seed, {}, conformance::routes(), client, faults);
    return conformance::transcript(received, c.sent);
}

TEST(secure_server_in_a_simulation, the_answers_are_those_in_the_clear_however_bytes_arrive) {
    std::uint64_t seed = 1;
    for (const conformance::conversation& c : conformance::secure_conversations()) {
        const std::size_t step = 1 + c.sent.size() / 16;  // each is a handshake
        conformance::every_delivery(c.sent.size(), step, [&](std::size_t first, std::size_t rest) {
            EXPECT_EQ(simulate(++seed, {}, c, first, rest), c.answered)
                << c.section << "; seed " << seed << "; pieces of " << first << " and " << rest;
        });
    }
}

// With resets an answer may be missing, but never wrong, and nothing hangs or is left open.
TEST(secure_server_in_a_simulation, a_reset_connection_never_gets_a_wrong_answer) {
    io::simulated_faults faults;
    faults.resets = 100;
    std::uint64_t seed = 1000;
    for (const conformance::conversation& c : conformance::secure_conversations()) {
        for (int i = 0; i != 20; ++i) {
            const std::string got = simulate(++seed, faults, c, 1 + c.sent.size() / 3, 70);
            const std::string whole = got.substr(0, got.find("; garbage"));
            const std::size_t cut = whole.find("; a part");
            EXPECT_TRUE(c.answered.starts_with(whole.substr(0, cut)) ||
                        got.find("bad chunks") != got.npos)
                << c.section << "; seed " << seed << ": " << got;
        }
    }
}

// Connects, and sends these bytes every second; gives the time until the server has closed.
task<> wait_for_the_end(io::context& loop, io::endpoint to, std::string_view bytes,
                        duration& took) {
    const time_point began = loop.now();
    io::tcp::socket socket(loop);
    std::error_code ec;
    co_await socket.connect(to, use_await[ec]);
    const auto drip = [&]() -> task<> {
        std::error_code lost;
        for (std::string_view left = bytes; !lost;) {
            const std::string_view now = left.substr(0, 1);
            if (!now.empty())
                co_await socket.send_all(std::as_bytes(std::span(now)), use_await[lost]);
            left.remove_prefix(now.size());
            co_await io::timer(loop).wait_for(1s);
        }
    };
    const auto receive = [&]() -> task<> {
        std::array<std::byte, 100> some;
        std::error_code end;
        while (co_await socket.receive(some, use_await[end]) != 0 && !end) {
        }
    };
    co_await ex::when_any(drip(), receive());
    took = loop.now() - began;
}

TEST(secure_server_in_a_simulation, a_handshake_that_never_ends_has_the_time_of_a_head) {
    // What a client hello begins with: a record of 512 bytes.
    const std::string hello("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
    for (std::uint64_t seed = 1; seed != 10; ++seed) {
        for (const std::string_view sent : {std::string_view(), std::string_view(hello)}) {
            duration took{};
            const talk client = [&](io::context& loop, const io::endpoint& to) {
                return wait_for_the_end(loop, to, sent, took);
            };
            http::server_options o;
            o.timeouts.header = 4s;
            o.timeouts.idle = 20s;
            const http::server_statistics s = in_a_world(seed, o, routes_of_all_kinds(), client);
            EXPECT_EQ(s.timed_out, 1u) << seed;
            EXPECT_GE(took, 4s) << seed;
            EXPECT_LT(took, 6s) << seed;
        }
    }
}

// Shakes hands by hand, and stops after so many bytes. Gives how many there were.
enum class stopping { end, reset, silence };

task<std::size_t> shake_in_part(io::context& loop, io::endpoint to, std::size_t most,
                                stopping how) {
    tls::engine engine(usual_client(), "127.0.0.1");
    std::vector<std::byte> room(tls::engine::room_min);
    std::array<std::byte, 4096> come;
    io::tcp::socket socket(loop);
    co_await socket.connect(to);
    std::size_t sent = 0;
    std::error_code ec;
    for (tls::step what = tls::step::needs_input; what == tls::step::needs_input && !ec;) {
        engine.output(room);
        what = engine.handshake().what;
        const std::size_t n = std::min(engine.written(), most - sent);
        co_await socket.send_all(std::span(room).first(n), use_await[ec]);
        sent += n;
        if (n != engine.written() || what != tls::step::needs_input || ec) break;
        const std::size_t got = co_await socket.receive(come, use_await[ec]);
        if (got == 0) break;
        engine.input(std::span(come).first(got));
    }
    if (how == stopping::reset) (void)socket.set(io::linger(0s));
    if (how == stopping::end) socket.shutdown_send();
    if (how == stopping::reset) co_return sent;
    while (co_await socket.receive(come, use_await[ec]) != 0 && !ec) {
    }
    co_return sent;
}

TEST(secure_server_in_a_simulation, a_client_that_stops_at_any_byte_of_its_handshake_is_let_go) {
    std::uint64_t seed = 50;
    for (const stopping how : {stopping::end, stopping::reset, stopping::silence}) {
        std::size_t clients = 0, late = 0;
        const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
            for (std::size_t n = 0; co_await shake_in_part(loop, to, n, how) == n; ++n, ++clients) {
            }
            late = clients + 1;  // the last one has shaken hands, and is idle for too long
        };
        http::server_options o;
        o.timeouts.header = 4s;
        o.timeouts.idle = 20s;
        const http::server_statistics s = in_a_world(++seed, o, routes_of_all_kinds(), client);
        EXPECT_GT(clients, 300u);
        EXPECT_EQ(s.accepted, clients + 1);
        EXPECT_EQ(s.requests, 0u);
        if (how == stopping::silence) {
            EXPECT_EQ(s.timed_out, late);
        }
    }
}

TEST(secure_server_in_a_simulation, a_client_that_has_shaken_hands_may_be_idle) {
    duration took{};
    const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
        tls::stream<> peer(io::tcp::socket(loop), usual_client(), "127.0.0.1");
        co_await peer.next().connect(to);
        co_await peer.handshake();
        const time_point began = loop.now();
        std::array<std::byte, 100> some;
        EXPECT_EQ(co_await peer.receive(some), 0u);  // with close_notify
        took = loop.now() - began;
    };
    http::server_options o;
    o.timeouts.header = 4s;
    o.timeouts.idle = 20s;
    const http::server_statistics s = in_a_world(1, o, routes_of_all_kinds(), client);
    EXPECT_EQ(s.timed_out, 1u);
    EXPECT_GE(took, 19s);
    EXPECT_LT(took, 26s);
}

TEST(secure_server_in_a_simulation, a_silent_handshake_gives_its_place_to_a_new_client) {
    const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
        io::tcp::socket silent(loop);
        co_await silent.connect(to);
        http::client c(loop, client_in_a_world());
        EXPECT_EQ((co_await c.get("https://" + to.to_string() + "/plain")).body(), "secure");
    };
    http::server_options o;
    o.connections_max = 1;
    const http::server_statistics s = in_a_world(1, o, routes_of_all_kinds(), client);
    EXPECT_EQ(s.shed, 1u);
}

}  // namespace
