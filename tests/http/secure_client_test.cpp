// http::client through the seam io/secure_engine.hpp: a toy that encrypts, in a simulation, with a
// fault at every byte, and a stop at every moment.
#include <coppice/execution.hpp>
#include <coppice/io/option.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>

#include "asking.hpp"
#include "secure_routes.hpp"
#include "served_world.hpp"
#include "toy_security.hpp"

#include <array>
#include <functional>
#include <memory>
#include <string>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;
namespace ex = coppice::execution;

http::client_options toy_options() {
    http::client_options o;
    o.security = std::make_shared<toy_client>();
    return o;
}

// Answers one connection with these encrypted bytes, whatever comes, and ends it.
task<> answer_with(io::context& loop, io::tcp::acceptor& acceptor, std::string_view bytes,
                   bool with_reset) {
    io::tcp::socket peer = co_await acceptor.accept();
    std::error_code ec;
    co_await peer.send_all(std::as_bytes(std::span(bytes)), use_await[ec]);
    if (with_reset) {
        io::timer pause(loop);
        co_await pause.wait_for(1s);  // all of it has arrived
        (void)peer.set(io::linger(0s));
        co_return;
    }
    peer.shutdown_send();
    std::array<std::byte, 1000> request;
    while (co_await peer.receive(request, use_await[ec]) != 0 && !ec) {
    }
}

// Runs the server's and the client's part in one simulation.
void in_a_world(std::uint64_t seed, const std::function<task<>(io::context& loop)>& both) {
    io::simulation world(seed);
    io::context loop(world);
    bool done = false;
    const auto run = [&]() -> detached {
        co_await both(loop);
        done = true;
    };
    run();
    loop.run();
    EXPECT_TRUE(done) << seed;
    EXPECT_EQ(world.open_descriptors(), 0u) << seed;
}

// Cuts an answer after each number of bytes. Without the last `enough` it is whole all the same.
void cut_everywhere(std::string_view text, std::size_t enough, bool with_reset) {
    const std::string bytes = toy_bytes_of_server("127.0.0.1", text);
    in_a_world(11, [&](io::context& loop) -> task<> {
        io::tcp::acceptor acceptor(loop, io::loopback(0));
        const std::string url = "https://" + acceptor.local().to_string() + "/";
        for (std::size_t n = 0; n <= bytes.size(); n += n < 2900 ? 61 : 1) {
            http::client client(loop, toy_options());
            const auto ask = [&]() -> task<> {
                const std::error_code error = co_await error_of(client, asks(url));
                EXPECT_EQ(!error, n + enough >= bytes.size()) << n << ": " << error.message();
                client.close_idle();
            };
            const std::string_view part = std::string_view(bytes).substr(0, n);
            co_await ex::when_all(answer_with(loop, acceptor, part, with_reset), ask());
        }
    });
}

TEST(a_client_behind_the_seam, takes_no_part_of_an_answer_for_the_whole) {
    for (const bool with_reset : {false, true}) {
        // The end of this answer is known by its length.
        cut_everywhere("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole", toy_frames::head_bytes,
                       with_reset);
        // And of this one by the end of what is encrypted.
        cut_everywhere("HTTP/1.1 200 OK\r\n\r\nwhole", 0, with_reset);
    }
}

TEST(a_client_behind_the_seam, takes_no_answer_in_which_a_byte_was_changed) {
    const std::string_view text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole";
    const std::string good = toy_bytes_of_server("127.0.0.1", text);
    in_a_world(12, [&](io::context& loop) -> task<> {
        io::tcp::acceptor acceptor(loop, io::loopback(0));
        const std::string url = "https://" + acceptor.local().to_string() + "/";
        for (std::size_t at = 0; at < good.size() - toy_frames::head_bytes;
             at += at < 2900 && at > 10 ? 61 : 1) {
            std::string bytes = good;
            bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
            http::client client(loop, toy_options());
            const auto ask = [&]() -> task<> {
                EXPECT_TRUE(co_await error_of(client, asks(url))) << at;
            };
            co_await ex::when_all(answer_with(loop, acceptor, bytes, false), ask());
        }
    });
}

TEST(a_client_behind_the_seam, asks_only_the_host_that_it_wants) {
    in_a_world(13, [](io::context& loop) -> task<> {
        io::tcp::acceptor acceptor(loop, io::loopback(0));
        const std::string bytes = toy_bytes_of_server("another.example", "HTTP/1.1 204 \r\n\r\n");
        http::client client(loop, toy_options());
        const auto ask = [&]() -> task<> {
            const std::string url = "https://" + acceptor.local().to_string() + "/";
            EXPECT_EQ(co_await error_of(client, asks(url)), std::errc::permission_denied);
        };
        co_await ex::when_all(answer_with(loop, acceptor, bytes, false), ask());
    });
}

// Asks, is stopped after some time, and asks again.
task<> stop_after(io::context& loop, http::client& client, std::string base, duration time,
                  int& whole) {
    const std::string text = long_text(20'000);
    const auto ask = [&]() -> task<> {
        const http::client_response got = co_await client.post(base + "/echo", text);
        EXPECT_TRUE(got.body() == text);
        ++whole;
    };
    const auto stop = [&]() -> task<> {
        io::timer timer(loop);
        co_await timer.wait_for(time);
    };
    co_await ex::when_any(ask(), stop());
    EXPECT_EQ((co_await client.get(base + "/plain")).body(), "secure");
}

TEST(a_client_behind_the_seam, can_be_stopped_at_any_moment_and_then_asks_again) {
    int whole = 0, all = 0;
    for (std::uint64_t seed = 1; seed != 4; ++seed) {
        io::simulation world(seed);
        const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
            for (duration time{}; time < 40ms; time += 700us, ++all) {
                http::client c(loop, toy_options());
                const std::string base = "https://" + to.to_string();
                // The second is stopped on a connection that is kept.
                co_await stop_after(loop, c, base, time, whole);
                co_await stop_after(loop, c, base, time, whole);
            }
        };
        http::server_options o;
        o.security = std::make_shared<toy_server>();
        EXPECT_EQ(serve_in(world, std::move(o), routes_of_all_kinds(), client).exceptions, 0u);
    }
    EXPECT_GT(whole, 0);
    EXPECT_LT(whole, 2 * all);
}

}  // namespace
