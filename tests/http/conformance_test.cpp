// A server's answers to whole conversations, each named after its section, however the bytes
// arrive: whole, split at each point, and byte by byte, on both rings, and in simulations with
// faults.
#include <coppice/http/server.hpp>
#include <coppice/io/simulation.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>

#include "conversations.hpp"
#include "detached.hpp"
#include "running_server.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
using namespace coppice::test;
using namespace coppice::test::conformance;

class conformance_on : public testing::TestWithParam<way> {};
INSTANTIATE_TEST_SUITE_P(ways, conformance_on, testing::ValuesIn(every_way), name_of_way);

TEST_P(conformance_on, the_answers_are_the_same_however_the_bytes_arrive) {
    running_server server(options_of(GetParam()), routes());
    for (const conversation& c : conversations) {
        // Long conversations repeat the same thing.
        every_delivery(c.sent.size(), 1 + c.sent.size() / 64,
                       [&](std::size_t first, std::size_t others) {
                           client peer(server.port());
                           std::string_view left = c.sent;
                           for (std::size_t piece = first; !left.empty(); piece = others) {
                               const std::string_view now = left.substr(0, piece);
                               if (!peer.send(now))
                                   break;  // the server has refused meanwhile, as its answer says
                               left.remove_prefix(now.size());
                           }
                           peer.finish_sending();
                           EXPECT_EQ(transcript(peer.receive_all(), c.sent), c.answered)
                               << c.section << "; pieces of " << first << " and " << others;
                       });
    }
}

// A client in the same simulation as the server, on the server's loop.
struct simulated_client {
    io::context& loop;
    io::endpoint to;
    std::string received;
    bool ended = false;

    detached ask(std::string_view bytes, std::size_t first, std::size_t others,
                 std::function<void()> done) {
        co_await talk(bytes, first, others);
        ended = true;
        done();
    }
    task<> talk(std::string_view bytes, std::size_t first, std::size_t others) {
        io::tcp::socket socket(loop);
        std::error_code ec;
        co_await socket.connect(to, use_await[ec]);
        for (std::size_t piece = first; !bytes.empty() && !ec; piece = others) {
            const std::string_view now = bytes.substr(0, piece);
            co_await socket.send_all(std::as_bytes(std::span(now)), use_await[ec]);
            bytes.remove_prefix(now.size());
            io::timer pause(loop);
            co_await pause.wait_for(5ms, use_await[ec]);  // longer than a segment takes to arrive
        }
        socket.shutdown_send();
        for (;;) {
            std::byte buffer[512];
            std::error_code end;
            const std::size_t n = co_await socket.receive(buffer, use_await[end]);
            if (end || n == 0) break;
            received.append(reinterpret_cast<const char*>(buffer), n);
        }
    }
};

// Runs one conversation in its own simulation; returns what the client received.
std::string simulate(std::uint64_t seed, const io::simulated_faults& faults, const conversation& c,
                     std::size_t first, std::size_t others) {
    io::simulation world(seed, faults);
    std::optional<simulated_client> peer;
    std::optional<http::server> server;
    http::server_options o;
    o.endpoint = io::loopback(0);
    o.model = http::model::single;
    o.simulation = &world;
    o.on_loop = [&](io::context& loop) {
        peer.emplace(loop, server->local());
        peer->ask(c.sent, first, others, [&] { server->drain(10s); });
    };
    server.emplace(std::move(o), routes());
    server->run();
    EXPECT_TRUE(peer->ended) << c.section;
    EXPECT_EQ(server->statistics().open, 0u);
    return transcript(peer->received, c.sent);
}

TEST(conformance_in_a_simulation, the_answers_survive_short_late_and_interrupted_calls) {
    std::uint64_t seed = 1;
    for (const conversation& c : conversations) {
        every_delivery(c.sent.size(), 1 + c.sent.size() / 64,
                       [&](std::size_t first, std::size_t others) {
                           EXPECT_EQ(simulate(++seed, {}, c, first, others), c.answered)
                               << c.section << "; seed " << seed << "; pieces of " << first
                               << " and " << others;
                       });
    }
}

// With resets an answer may be missing, but never wrong, and nothing hangs or is left open.
TEST(conformance_in_a_simulation, a_reset_connection_never_gets_a_wrong_answer) {
    io::simulated_faults faults;
    faults.resets = 100;
    std::uint64_t seed = 1000;
    for (const conversation& c : conversations) {
        for (int i = 0; i != 50; ++i) {
            const std::string got = simulate(++seed, faults, c, 1 + c.sent.size() / 3, 7);
            // What arrived is a beginning of what was expected, except for a last answer that was
            // cut off.
            const std::string whole = got.substr(0, got.find("; garbage"));
            const std::size_t cut = whole.find("; a part");
            EXPECT_TRUE(c.answered.starts_with(whole.substr(0, cut)) ||
                        got.find("bad chunks") != got.npos)
                << c.section << "; seed " << seed << ": " << got;
        }
    }
}

}  // namespace
