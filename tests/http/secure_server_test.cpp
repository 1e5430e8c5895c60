// http::server through the seam io/secure_engine.hpp: a toy that encrypts, in a simulation, with a
// fault at every byte.
#include <coppice/io/option.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>

#include "asking.hpp"
#include "conversations.hpp"
#include "secure_routes.hpp"
#include "served_world.hpp"
#include "toy_security.hpp"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;

http::client_options toy_options() {
    http::client_options o;
    o.security = std::make_shared<toy_client>();
    return o;
}

http::server_statistics in_a_world(std::uint64_t seed, http::server_options o, http::router routes,
                                   const talk& client, const io::simulated_faults& faults = {}) {
    io::simulation world(seed, faults);
    if (o.security == nullptr) o.security = std::make_shared<toy_server>();
    return serve_in(world, std::move(o), std::move(routes), client);
}

TEST(a_server_behind_the_seam, answers_every_kind_of_request_despite_short_and_late_calls) {
    for (std::uint64_t seed = 1; seed != 10; ++seed) {
        const talk client = [](io::context& loop, const io::endpoint& to) -> task<> {
            http::client c(loop, toy_options());
            co_await ask_for_all_kinds(c, "https://" + to.to_string());
            EXPECT_EQ(c.connections_made(), 1u);
        };
        (void)in_a_world(seed, {}, routes_of_all_kinds(), client);
    }
}

// How a client stops that has sent a part of its bytes.
enum class stopping { end, reset, silence };

// Sends encrypted bytes in pieces of these sizes, and stops. Receives what is answered.
task<> send_raw(io::context& loop, io::endpoint to, std::string_view bytes, std::size_t first,
                std::size_t others, stopping how, std::string& received) {
    io::tcp::socket peer(loop);
    std::error_code ec;
    co_await peer.connect(to, use_await[ec]);
    for (std::size_t piece = first; !bytes.empty() && !ec; piece = others) {
        const std::string_view now = bytes.substr(0, piece);
        co_await peer.send_all(std::as_bytes(std::span(now)), use_await[ec]);
        bytes.remove_prefix(now.size());
        io::timer pause(loop);
        co_await pause.wait_for(5ms, use_await[ec]);  // longer than a segment takes to arrive
    }
    if (how == stopping::reset) {
        (void)peer.set(io::linger(0s));
        peer.close();
        co_return;
    }
    if (how == stopping::end) peer.shutdown_send();
    for (std::error_code end; !end;) {
        std::array<char, 512> some;
        const std::size_t n =
            co_await peer.receive(std::as_writable_bytes(std::span(some)), use_await[end]);
        if (n == 0) break;
        received.append(some.data(), n);
    }
}

struct answers {
    explicit answers(std::string_view received, std::string_view sent) {
        const std::string in_the_clear = toy_text("127.0.0.1", received, ended);
        text = conformance::transcript(in_the_clear, sent);
    }
    std::string text;
    bool ended = false;  // the server has said its end
};

TEST(a_server_behind_the_seam, answers_as_in_the_clear_wherever_the_encrypted_bytes_are_cut) {
    std::uint64_t seed = 1;
    for (const conformance::conversation& c : conformance::secure_conversations()) {
        const std::string bytes = toy_bytes_of_client("127.0.0.1", c.sent);
        const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
            std::vector<std::pair<std::size_t, std::size_t>> cuts;
            conformance::every_delivery(
                bytes.size(), 1 + bytes.size() / 80,
                [&](std::size_t first, std::size_t others) { cuts.emplace_back(first, others); });
            for (const auto& [first, others] : cuts) {
                std::string received;
                co_await send_raw(loop, to, bytes, first, others, stopping::end, received);
                const answers got(received, c.sent);
                EXPECT_EQ(got.text, c.answered)
                    << c.section << "; pieces of " << first << " and " << others;
                if (c.answered.ends_with("close")) {
                    EXPECT_TRUE(got.ended) << c.section;
                }
            }
        };
        (void)in_a_world(++seed, {}, conformance::routes(), client);
    }
}

// The client stops, in the handshake or behind it, after each number of bytes.
TEST(a_server_behind_the_seam, lets_every_client_go_that_stops_at_any_byte) {
    const std::string sent =
        conformance::get("/a") + conformance::post("Content-Length: 3\r\n", "abc");
    const std::string bytes = toy_bytes_of_client("127.0.0.1", sent);
    std::uint64_t seed = 100;
    for (const stopping how : {stopping::end, stopping::reset, stopping::silence}) {
        const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
            for (std::size_t n = 0; n <= bytes.size(); ++n) {
                const time_point began = loop.now();
                std::string received;
                co_await send_raw(loop, to, std::string_view(bytes).substr(0, n), n, n, how,
                                  received);
                const duration took = loop.now() - began;
                if (how == stopping::reset) continue;
                // Both requests are in one frame; only the end follows.
                const bool all = n + toy_frames::head_bytes >= bytes.size();
                EXPECT_EQ(answers(received, sent).text, all ? "200 a; 200 abc" : "") << n;
                if (how == stopping::end) {
                    EXPECT_LT(took, 1s) << n;
                } else if (n < toy_handshake_bytes()) {
                    EXPECT_GE(took, 4s) << n;  // the time of a head, from the beginning
                    EXPECT_LT(took, 6s) << n;
                } else {
                    EXPECT_LT(took, 26s) << n;
                }
            }
        };
        http::server_options o;
        o.timeouts.header = 4s;
        o.timeouts.idle = 20s;
        const http::server_statistics s = in_a_world(++seed, o, conformance::routes(), client);
        EXPECT_EQ(s.accepted, bytes.size() + 1);
        if (how == stopping::silence) {
            EXPECT_EQ(s.timed_out, bytes.size());
        }
        EXPECT_EQ(s.exceptions, 0u);
    }
}

TEST(a_server_behind_the_seam, answers_nothing_wrong_when_any_byte_is_changed) {
    const std::string sent = conformance::get("/a") + conformance::get("/stream");
    const std::string good = toy_bytes_of_client("127.0.0.1", sent);
    const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
        for (std::size_t at = 0; at != good.size(); ++at) {
            std::string bytes = good;
            bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
            std::string received;
            co_await send_raw(loop, to, bytes, 1 + at, good.size(), stopping::end, received);
            const bool all = at + toy_frames::head_bytes >= good.size();
            EXPECT_EQ(answers(received, sent).text, all ? "200 a; 200 one two" : "") << at;
        }
    };
    (void)in_a_world(7, {}, conformance::routes(), client);
}

TEST(a_server_behind_the_seam, survives_resets_of_connections) {
    io::simulated_faults faults;
    faults.resets = 20;
    for (std::uint64_t seed = 1; seed != 20; ++seed) {
        const talk client = [](io::context& loop, const io::endpoint& to) -> task<> {
            http::client c(loop, toy_options());
            const std::string url = "https://" + to.to_string();
            for (const char* const path : {"/plain", "/long", "/stream", "/task", "/close"}) {
                http::client_request r = asks(url + path);
                try {
                    const http::client_response got = co_await c.send(r);
                    EXPECT_EQ(got.status(), 200);
                    if (got.body().size() > 1000) {
                        EXPECT_TRUE(got.body() == long_text(300'000));
                    }
                } catch (const std::system_error&) {  // a reset
                }
            }
        };
        (void)in_a_world(seed, {}, routes_of_all_kinds(), client, faults);
    }
}

// Each system call of a request over a new connection fails in one of the runs.
TEST(a_server_behind_the_seam, and_a_client_survive_an_error_of_any_system_call) {
    bool failed = true;
    std::uint64_t n = 1;
    for (; failed; ++n) {
        ASSERT_LT(n, 2000u);
        io::simulation world(n, io::simulated_faults::none());
        const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
            const std::string url = "https://" + to.to_string();
            world.fail_call(n);
            for (int i = 0; i != 2; ++i) {
                const bool before = world.failed().has_value();
                http::client c(loop, toy_options());
                const std::string text = long_text(9000);
                std::string got;
                try {
                    got = (co_await c.post(url + "/echo", text)).body();
                } catch (const std::system_error& error) {
                    EXPECT_TRUE(world.failed()) << n << ": " << error.what();
                }
                EXPECT_TRUE(got == text || (got.empty() && !before)) << n;
            }
            failed = world.failed().has_value();
            world.fail_call(0);
        };
        http::server_options o;
        o.security = std::make_shared<toy_server>();
        (void)serve_in(world, std::move(o), routes_of_all_kinds(), client);
        EXPECT_EQ(world.open_descriptors(), 0u) << n;
    }
    EXPECT_GT(n, 20u);
}

TEST(a_server_behind_the_seam, closes_a_connection_without_memory_for_its_engine) {
    const talk client = [](io::context& loop, const io::endpoint& to) -> task<> {
        http::client c(loop, toy_options());
        const std::string url = "https://" + to.to_string() + "/plain";
        for (int i = 0; i != 2; ++i) EXPECT_TRUE(co_await error_of(c, asks(url)));
        EXPECT_EQ((co_await c.get(url)).body(), "secure");
    };
    http::server_options o;
    o.security = std::make_shared<toy_server>("127.0.0.1", "http/1.1", 2);
    EXPECT_EQ(in_a_world(1, o, routes_of_all_kinds(), client).accepted, 3u);
}

TEST(a_server_behind_the_seam, speaks_no_other_protocol_and_needs_none) {
    for (const std::string protocol : {"h2", "http/1.0", ""}) {
        const bool speaks = protocol.empty();
        const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
            http::client c(loop, toy_options());
            const std::string url = "https://" + to.to_string() + "/plain";
            const std::error_code error = co_await error_of(c, asks(url));
            EXPECT_EQ(!error, speaks) << protocol;
            if (!speaks) {
                EXPECT_EQ(error, std::errc::wrong_protocol_type);
            }
        };
        http::server_options o;
        o.security = std::make_shared<toy_server>("127.0.0.1", protocol);
        EXPECT_EQ(in_a_world(1, o, routes_of_all_kinds(), client).requests, speaks ? 1u : 0u);
    }
}

}  // namespace
