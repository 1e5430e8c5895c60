// The end of an answer reaches a client that reads slowly: the server asks before it ends.
#include <coppice/http/server.hpp>
#include <coppice/http2.hpp>
#include <coppice/io/simulation.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/token/block.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "../http/served_world.hpp"
#include "answers.hpp"
#include "frames.hpp"

namespace coppice::test {

using http::request;
using http::response;
using namespace internal;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t large = 60'000;
constexpr std::size_t medium = 20'000;
constexpr std::size_t huge = 900'000;  // more than the buffers hold

http::server_options options() {
    http::server_options o;
    o.http2 = http2::for_server();
    o.timeouts.idle = 1s;
    o.timeouts.rate_min = 1000;
    return o;
}
http::router routes() {
    http::router r;
    r.get("/", [](request&) { return response::text("hello"); });
    r.get("/medium", [](request&) { return response::text(std::string(medium, 'm')); });
    r.get("/large", [](request&) { return response::text(std::string(large, 'l')); });
    r.get("/huge", [](request&) { return response::text(std::string(huge, 'h')); });
    return r;
}
// A client with windows for any answer.
class slow_client {
public:
    slow_client(io::context& loop, const io::endpoint& to) : loop_(loop), socket_(loop), to_(to) {}

    task<> begin(std::string_view path) {
        co_await socket_.connect(to_);
        const std::string window(std::string("\0\x04", 2) + number(1 << 20));
        co_await send(std::string(NGHTTP2_CLIENT_MAGIC) + frame(NGHTTP2_SETTINGS, 0, 0, window) +
                      frame(NGHTTP2_WINDOW_UPDATE, 0, 0, number(1 << 20)));
        co_await ask(1, path);
    }
    task<> ask(std::uint32_t stream, std::string_view path) {
        co_await send(get_frame(stream, path));
    }
    // The server may have ended meanwhile: the next read tells.
    task<> send(std::string bytes) {
        std::error_code ignored;
        co_await socket_.send_all(std::as_bytes(std::span(bytes)), use_await[ignored]);
    }
    task<> wait(duration time) {
        io::timer timer(loop_);
        co_await timer.wait_for(time);
    }
    // Receives once. Returns false at the connection's end.
    task<bool> read(std::size_t most) {
        std::array<std::byte, 4096> bytes;
        const std::size_t n =
            co_await socket_.receive(std::span(bytes).first(most), use_await[error_]);
        received_.append(reinterpret_cast<const char*>(bytes.data()), n);
        co_return n != 0;
    }
    task<> read_to_end() {
        for (;;) {
            if (!co_await read(4096)) break;
        }
    }
    task<> read_answer(std::uint32_t stream) {
        while (!has_ended(stream)) {
            if (!co_await read(4096)) break;
        }
    }
    // Reads 4 KB a second, answers what has come, and opens the window, until the end.
    task<> read_slowly() {
        for (;;) {
            if (!co_await read(2000)) break;
            co_await acknowledge();
            co_await send(frame(NGHTTP2_WINDOW_UPDATE, 0, 0, number(1000)));
            co_await wait(500ms);
        }
    }
    // Answers the PING frames that have come.
    task<> acknowledge() {
        while (received_.size() >= seen_ + 9) {
            const auto byte = [&](std::size_t i) {
                return static_cast<std::size_t>(static_cast<unsigned char>(received_[seen_ + i]));
            };
            const std::size_t size = 9 + (byte(0) << 16 | byte(1) << 8 | byte(2));
            if (received_.size() < seen_ + size) break;
            const bool is_ping = byte(3) == NGHTTP2_PING && byte(4) == 0;
            const std::string payload = received_.substr(seen_ + 9, size - 9);
            seen_ += size;
            pings_ += is_ping ? 1 : 0;
            if (is_ping) co_await send(frame(NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, payload));
        }
    }
    task<> wait_for_end(http::server& server) {
        while (server.statistics().open != 0) co_await wait(10ms);
    }
    // Returns true if the answer, and the connection's proper end, have come.
    bool has_all(std::size_t bytes) {
        const connection_answer all = answer_reader(received_).found();
        EXPECT_EQ(all.wrong, "");
        EXPECT_EQ(all.goaway, NGHTTP2_NO_ERROR);
        EXPECT_FALSE(error_) << error_.message();
        return all.has_ended(1) && all.streams.at(1).body.size() == bytes;
    }
    bool has_ended(std::uint32_t stream) const {
        return answer_reader(received_).found().has_ended(stream);
    }
    bool has_goaway() const { return code_in(received_) != ~0U; }
    int pings() const noexcept { return pings_; }

private:
    io::context& loop_;
    io::tcp::socket socket_;
    io::endpoint to_;
    std::string received_;
    std::size_t seen_ = 0;  // bytes of it that acknowledge() has looked at
    int pings_ = 0;
    std::error_code error_;
};

TEST(Http2Receipt, a_slow_client_gets_its_whole_answer_before_the_idle_connection_ends) {
    for (std::uint64_t seed = 1; seed != 30; ++seed) {
        io::simulation world(seed, io::simulated_faults::none());
        const auto s = serve_in(world, options(), routes(),
                                [&](io::context& loop, const io::endpoint& to) -> task<> {
                                    slow_client c(loop, to);
                                    co_await c.begin("/large");
                                    co_await c.read_slowly();
                                    EXPECT_TRUE(c.has_all(large)) << seed;
                                });
        EXPECT_EQ(s.timed_out, 1u) << seed;  // it was idle in the end
    }
}

TEST(Http2Receipt, a_slow_client_gets_its_whole_answer_from_a_server_that_drains) {
    for (std::uint64_t seed = 1; seed != 30; ++seed) {
        for (const duration time : {0s, 3s, 10s}) {
            io::simulation world(seed, io::simulated_faults::none());
            http::server_options o = options();
            o.timeouts.idle = 1h;
            const auto s = serve_with(world, std::move(o), routes(),
                                      [&](io::context& loop, http::server& server) -> task<> {
                                          slow_client c(loop, server.local());
                                          co_await c.begin("/large");
                                          co_await c.wait(time + 10ms);
                                          server.drain(1h);
                                          co_await c.read_slowly();
                                          EXPECT_TRUE(c.has_all(large)) << seed;
                                      });
            EXPECT_EQ(s.timed_out, 0u) << seed;
        }
    }
}

// The kernels take all of the answer; the client has the time for it that HTTP/1.1 gives.
TEST(Http2Receipt, a_client_that_acknowledges_nothing_is_ended_in_its_time) {
    for (const bool reads : {false, true}) {
        for (const bool drains : {false, true}) {
            SCOPED_TRACE(std::to_string(reads) + std::to_string(drains));
            io::simulation world(3, io::simulated_faults::none());
            duration taken{};
            const auto s = serve_with(world, options(), routes(),
                                      [&](io::context& loop, http::server& server) -> task<> {
                                          slow_client c(loop, server.local());
                                          co_await c.begin("/medium");
                                          const time_point began = loop.now();
                                          if (drains) {
                                              co_await c.wait(10ms);
                                              server.drain(1h);
                                          }
                                          if (reads) co_await c.read_to_end();
                                          co_await c.wait_for_end(server);
                                          taken = loop.now() - began;
                                      });
            EXPECT_EQ(s.timed_out, 1u);
            EXPECT_GE(taken, 50s);
            EXPECT_LE(taken, drains ? 51s : 53s);
        }
    }
}

TEST(Http2Receipt, the_hard_stop_ends_a_client_that_acknowledges_nothing) {
    io::simulation world(3, io::simulated_faults::none());
    duration taken{};
    (void)serve_with(world, options(), routes(),
                     [&](io::context& loop, http::server& server) -> task<> {
                         slow_client c(loop, server.local());
                         co_await c.begin("/medium");
                         co_await c.wait(10ms);
                         const time_point began = loop.now();
                         server.drain(2s);
                         co_await c.wait_for_end(server);
                         taken = loop.now() - began;
                     });
    EXPECT_LE(taken, 2100ms);
}

// Its short answer was sent long ago.
TEST(Http2Receipt, an_idle_client_that_acknowledges_nothing_is_ended_soon) {
    for (const bool drains : {false, true}) {
        io::simulation world(3, io::simulated_faults::none());
        http::server_options o = options();
        o.timeouts.idle = 40s;
        duration taken{};
        const auto s = serve_with(world, std::move(o), routes(),
                                  [&](io::context& loop, http::server& server) -> task<> {
                                      slow_client c(loop, server.local());
                                      co_await c.begin("/");
                                      co_await c.wait(39s);
                                      if (drains) server.drain(1h);
                                      const time_point began = loop.now();
                                      co_await c.wait_for_end(server);
                                      taken = loop.now() - began;
                                  });
        EXPECT_EQ(s.timed_out, drains ? 0u : 1u);
        EXPECT_LE(taken, drains ? 600ms : 3100ms);
    }
}

TEST(Http2Receipt, short_answers_cost_no_question_and_keep_the_connection) {
    io::simulation world(3, io::simulated_faults::none());
    (void)serve_in(world, options(), routes(),
                   [&](io::context& loop, const io::endpoint& to) -> task<> {
                       slow_client c(loop, to);
                       co_await c.begin("/");
                       for (std::uint32_t stream = 1; stream != 41; stream += 2) {
                           if (stream != 1) co_await c.ask(stream, "/");
                           co_await c.read_answer(stream);
                           co_await c.acknowledge();
                           EXPECT_TRUE(c.has_ended(stream)) << stream;
                           co_await c.wait(800ms);
                       }
                       EXPECT_EQ(c.pings(), 0);
                   });
}

TEST(Http2Receipt, a_connection_whose_client_takes_nothing_for_a_while_is_not_idle) {
    io::simulation world(3, io::simulated_faults::none());
    (void)serve_in(world, options(), routes(),
                   [&](io::context& loop, const io::endpoint& to) -> task<> {
                       slow_client c(loop, to);
                       co_await c.begin("/");
                       co_await c.read_answer(1);
                       co_await c.ask(3, "/huge");
                       co_await c.wait(3s);
                       co_await c.read_answer(3);
                       EXPECT_TRUE(c.has_ended(3));
                       EXPECT_FALSE(c.has_goaway());
                   });
}

// The client repeats it elsewhere, since it is beyond the last stream of the GOAWAY.
TEST(Http2Receipt, a_head_that_is_not_whole_when_the_server_drains_begins_nothing) {
    io::simulation world(3, io::simulated_faults::none());
    int begun = 0;
    http::router r = routes();
    r.get("/late", [&](request&) {
        ++begun;
        return response::text("late");
    });
    (void)serve_with(world, options(), std::move(r),
                     [&](io::context& loop, http::server& server) -> task<> {
                         const std::string late = get_frame(3, "/late");
                         slow_client c(loop, server.local());
                         co_await c.begin("/medium");
                         co_await c.send(late.substr(0, 20));
                         co_await c.wait(10ms);
                         server.drain(1h);
                         co_await c.wait(10ms);
                         co_await c.send(late.substr(20));
                         co_await c.read_slowly();
                         EXPECT_TRUE(c.has_all(medium));
                     });
    EXPECT_EQ(begun, 0);
}

// Turns of the loop run inside such a handler.
TEST(Http2Receipt, a_connection_whose_handler_blocks_keeps_its_place) {
    for (const char* const first : {"/", "/medium"}) {
        io::simulation world(3, io::simulated_faults::none());
        http::server_options o = options();
        o.timeouts.idle = o.timeouts.handler = 1h;
        o.connections_max = 1;
        http::router r = routes();
        r.get("/blocks", [](request& q) {
            io::timer timer(q.loop());
            timer.wait_for(100s, block);
            return response::text("hello");
        });
        const auto s = serve_in(world, std::move(o), std::move(r),
                                [&](io::context& loop, const io::endpoint& to) -> task<> {
                                    slow_client c(loop, to);
                                    co_await c.begin(first);
                                    co_await c.read_answer(1);
                                    co_await c.ask(3, "/blocks");
                                    co_await c.wait(10ms);
                                    slow_client other(loop, to);
                                    co_await other.begin("/");
                                    co_await c.read_answer(3);
                                    EXPECT_TRUE(c.has_ended(3));
                                    EXPECT_FALSE(c.has_goaway());
                                });
        EXPECT_EQ(s.shed, 0u);
        EXPECT_EQ(s.refused, 1u);
        EXPECT_EQ(s.timed_out, 0u);
    }
}

// Such as a client that keeps the connection and reads when it needs it: it may ask again
// elsewhere.
TEST(Http2Receipt, a_kept_connection_ends_with_a_goaway) {
    io::simulation world(3, io::simulated_faults::none());
    const auto s = serve_with(world, options(), routes(),
                              [&](io::context& loop, http::server& server) -> task<> {
                                  slow_client c(loop, server.local());
                                  co_await c.begin("/medium");
                                  co_await c.read_answer(1);
                                  EXPECT_FALSE(c.has_goaway());
                                  co_await c.wait_for_end(server);
                                  co_await c.read_to_end();
                                  EXPECT_TRUE(c.has_all(medium));
                              });
    EXPECT_EQ(s.timed_out, 1u);
}

// Its acknowledgments of PING frames are what it has not read.
TEST(Http2Receipt, a_connection_that_ends_late_counts_once) {
    io::simulation world(3, io::simulated_faults::none());
    http::server_options o = options();
    o.timeouts.idle = 40s;
    const auto s = serve_with(world, std::move(o), routes(),
                              [&](io::context& loop, http::server& server) -> task<> {
                                  slow_client c(loop, server.local());
                                  co_await c.begin("/");
                                  co_await c.wait(10ms);
                                  for (int i = 0; i != 1200; ++i) {
                                      co_await c.send(frame(NGHTTP2_PING, 0, 0, "12345678"));
                                  }
                                  co_await c.wait_for_end(server);
                              });
    EXPECT_EQ(s.timed_out, 1u);
}

// A client that still reads is not the one that gives its place.
TEST(Http2Receipt, a_client_that_has_not_read_its_answer_keeps_its_place) {
    io::simulation world(3, io::simulated_faults::none());
    http::server_options o = options();
    o.timeouts.idle = 1h;
    o.connections_max = 1;
    const auto s = serve_with(world, std::move(o), routes(),
                              [&](io::context& loop, http::server& server) -> task<> {
                                  slow_client c(loop, server.local());
                                  co_await c.begin("/medium");
                                  co_await c.wait(10ms);
                                  slow_client other(loop, server.local());
                                  co_await other.begin("/");
                                  co_await other.read(4096);
                                  server.drain(1h);
                                  co_await c.read_slowly();
                                  EXPECT_TRUE(c.has_all(medium));
                              });
    EXPECT_EQ(s.shed, 0u);
}

}  // namespace
}  // namespace coppice::test
