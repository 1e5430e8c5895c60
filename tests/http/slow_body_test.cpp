// A body may take the body timeout plus the time for the bytes received at the lowest rate; in
// virtual time.
#include <coppice/execution.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/http/server.hpp>
#include <coppice/io/simulation.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/task/task.hpp>

#include "detached.hpp"
#include "served_world.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;
using namespace std::chrono_literals;
using http::request;
using http::response;

struct pace {
    std::string head;   // with the field that frames the body
    std::string piece;  // sent again and again, with a pause after it
    duration pause;
    std::string last;       // ends the body
    std::size_t times = 0;  // after which `last` is sent; 0: never
};

struct seen {
    duration taken{};  // until the connection ended
    std::string received;
};

// A client in the same simulation as the server, on the server's loop.
class slow_client {
public:
    slow_client(io::context& l, const io::endpoint& server, const pace& how)
        : loop_(l), to_(server), pace_(how) {}
    seen result;

    detached run(std::function<void()> done) {
        io::tcp::socket socket(loop_);
        std::error_code ec;
        co_await socket.connect(to_, use_await[ec]);
        const time_point began = loop_.now();
        read(socket);
        co_await send(socket, pace_.head);
        for (std::size_t i = 0; reading_ && (pace_.times == 0 || i != pace_.times); ++i) {
            co_await send(socket, pace_.piece);
            io::timer pause(loop_);
            std::error_code stopped;
            co_await pause.wait_for(pace_.pause, use_await[stopped]);
        }
        co_await send(socket, pace_.last);
        while (reading_) {
            io::timer pause(loop_);
            std::error_code stopped;
            co_await pause.wait_for(100ms, use_await[stopped]);
        }
        result.taken = ended_ - began;
        done();
    }

private:
    task<> send(io::tcp::socket& socket, const std::string& bytes) {
        std::error_code ec;
        co_await socket.send_all(std::as_bytes(std::span(bytes)), use_await[ec]);
    }
    detached read(io::tcp::socket& socket) {
        for (;;) {
            std::byte buffer[512];
            std::error_code ec;
            const std::size_t n = co_await socket.receive(buffer, use_await[ec]);
            if (ec || n == 0) break;
            result.received.append(reinterpret_cast<const char*>(buffer), n);
        }
        ended_ = loop_.now();
        reading_ = false;
    }
    io::context& loop_;
    const io::endpoint to_;
    const pace& pace_;
    bool reading_ = true;
    time_point ended_{};
};

http::router routes() {
    http::router r;
    const auto size = [](request& q) { return response::text(std::to_string(q.body().size())); };
    const auto counted = [](request& q) -> task<response> {
        std::size_t bytes = 0;
        for (;;) {
            const std::size_t piece = (co_await q.incoming().read()).size();
            if (piece == 0) break;
            bytes += piece;
        }
        co_return response::text(std::to_string(bytes));
    };
    // The handler is quick, compared with its client.
    const auto paused = [](request& q) -> task<response> {
        std::size_t bytes = 0;
        for (;;) {
            const std::size_t piece = (co_await q.incoming().read()).size();
            if (piece == 0) break;
            bytes += piece;
            co_await http::pause(q, 10ms);
        }
        co_return response::text(std::to_string(bytes));
    };
    // The handler takes all the time that it has, and more.
    const auto idle = [](request& q) -> task<response> {
        for (;;) {
            const std::size_t piece = (co_await q.incoming().read()).size();
            if (piece == 0) break;
            co_await http::pause(q, 400ms);
        }
        co_return response::text("done");
    };
    r.post("/buffered", size).post("/reading", http::read_body(counted));
    r.post("/paused", http::read_body(paused)).post("/idle", http::read_body(idle));
    return r;
}

seen serve(const pace& p) {
    io::simulation world(1);
    std::optional<slow_client> peer;
    std::optional<http::server> server;
    http::server_options o;
    o.endpoint = io::loopback(0);
    o.model = http::model::single;
    o.simulation = &world;
    o.on_loop = [&](io::context& loop) {
        peer.emplace(loop, server->local(), p);
        peer->run([&] { server->drain(10s); });
    };
    server.emplace(std::move(o), routes());
    server->run();
    EXPECT_EQ(server->statistics().open, 0u);
    return peer->result;
}

std::string head_of(const char* path, const std::string& field) {
    return "POST " + std::string(path) + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + field +
           "\r\n\r\n";
}

const std::string chunked = "Transfer-Encoding: chunked";
const std::string long_body = "Content-Length: 8000000";

TEST(slow_bodies, a_byte_each_second_ends_within_a_minute_however_the_body_is_framed) {
    for (const char* const path : {"/buffered", "/reading", "/none"}) {
        const pace paces[] = {
            {head_of(path, long_body), "x", 1s, ""},
            {head_of(path, chunked), "1\r\nx\r\n", 1s, ""},
            {head_of(path, chunked) + "100000\r\n", "x", 1s, ""},
            {head_of(path, chunked) + "1;", "a", 1s, ""},           // an extension
            {head_of(path, chunked) + "0\r\na: ", "a", 1s, ""},     // a trailer field
            {head_of(path, chunked), "", 1s, ""},                   // nothing
            {head_of(path, chunked) + "100000\r\n", "x", 29s, ""},  // just before the timeout
        };
        for (const pace& p : paces) {
            SCOPED_TRACE(p.head + p.piece);
            const duration taken = serve(p).taken;
            EXPECT_LE(taken, 60s);
            if (std::string_view(path) != "/none") {
                EXPECT_GE(taken, 29s);
            }
        }
    }
}

TEST(slow_bodies, a_client_at_the_lowest_rate_is_served_to_the_end) {
    constexpr std::size_t pieces = 400;  // 6.5 MB in 400 s
    const std::string piece(16 * 1024 + 1024, 'x');
    char hex[16];
    std::snprintf(hex, sizeof hex, "%zx\r\n", piece.size());
    const std::string size = std::to_string(pieces * piece.size());
    for (const char* const path : {"/buffered", "/reading", "/paused"}) {
        const seen whole = serve({head_of(path, "Content-Length: " + size), piece, 1s, "", pieces});
        EXPECT_GE(whole.taken, 399s);
        EXPECT_TRUE(whole.received.ends_with("\r\n\r\n" + size)) << whole.received;
        const seen in_chunks =
            serve({head_of(path, chunked), hex + piece + "\r\n", 1s, "0\r\n\r\n", pieces});
        EXPECT_TRUE(in_chunks.received.ends_with("\r\n\r\n" + size)) << in_chunks.received;
    }
}

TEST(slow_bodies, the_time_of_a_reading_handler_excludes_that_of_its_client) {
    const std::string piece(17 * 1024, 'x');
    const std::string size = std::to_string(200 * piece.size());
    const seen stopped = serve({head_of("/idle", "Content-Length: " + size), piece, 1s, "", 200});
    EXPECT_TRUE(stopped.received.starts_with("HTTP/1.1 503 ")) << stopped.received;
}

// A piece comes every 4 s. The drain finds the handler waiting for one.
TEST(slow_bodies, all_pieces_that_come_in_a_drain_share_one_time) {
    io::simulation world(1);
    http::server_options o;
    o.timeouts.body = 1h;
    o.timeouts.drain_request = 10s;
    duration taken{};
    const talk_with client = [&](io::context& loop, http::server& server) -> task<> {
        io::tcp::socket socket(loop);
        co_await socket.connect(server.local());
        const std::string begin = head_of("/reading", long_body) + "x";
        co_await socket.send_all(std::as_bytes(std::span(begin)));
        co_await loop.get_scheduler().schedule_after(2s);
        server.drain(1h);
        const time_point began = loop.now();
        const auto send = [&]() -> task<> {
            for (;;) {
                co_await loop.get_scheduler().schedule_after(4s);
                co_await socket.send_all(std::as_bytes(std::span(begin).last(1)));
            }
        };
        const auto receive = [&]() -> task<> {
            std::byte some[100];
            std::error_code ec;
            (void)co_await socket.receive(some, use_await[ec]);
        };
        co_await execution::when_any(send(), receive());
        taken = loop.now() - began;
    };
    (void)serve_with(world, std::move(o), routes(), client);
    EXPECT_GE(taken, 10s);
    EXPECT_LE(taken, 11s);
}

}  // namespace
