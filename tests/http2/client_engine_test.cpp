// The engine of a client of HTTP/2 by itself: what it sends, what it endures, and its limits.
#include <coppice/http.hpp>
#include <coppice/http2.hpp>
#include <coppice/io/simulation.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>

#include "../http/served_world.hpp"
#include "allocations.hpp"
#include "scripted_frames.hpp"

namespace coppice::test {

using namespace std::chrono_literals;

namespace {

// A request without a body, which notes what becomes of it.
struct noted_stream final : http::requesting_stream {
    bool input(std::string_view bytes) noexcept override {
        body.append(bytes);
        return true;
    }
    bool end_input(std::string_view) noexcept override { return has_ended = true; }
    void closed(bool) noexcept override { is_closed = true; }
    taken take(std::span<std::byte>) noexcept override { return {0, true}; }
    std::string_view trailers() noexcept override { return {}; }
    bool head(int, std::string_view, bool) noexcept override { return true; }
    void lost(http::answer_loss why) noexcept override { loss = why; }

    std::string body;
    std::optional<http::answer_loss> loss;
    bool has_ended = false;
    bool is_closed = false;
};

constexpr std::string_view get_head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

std::unique_ptr<http::client_multiplexer> engine_of(http2::client_limits limits = {}) {
    return http2::for_client(limits)->connect(false, {});
}
bool receives(http::client_multiplexer& e, std::string_view bytes) {
    return e.receive(std::as_bytes(std::span(bytes)));
}
std::string output_of(http::client_multiplexer& e) {
    std::string all;
    while (e.write(all)) {
    }
    return all;
}
// Sends a request, and these bytes to the client. Returns true if the client ends the connection.
bool is_too_much(const std::string& bytes) {
    noted_stream s;
    const auto e = engine_of({.idle_frames_max = 100});
    EXPECT_EQ(e->request(s, get_head, true), 1);
    (void)output_of(*e);
    const bool goes_on = receives(*e, settings() + bytes);
    (void)output_of(*e);
    return !goes_on || e->is_finished();
}
std::string times(int n, std::string_view bytes) {
    std::string all;
    for (int i = 0; i != n; ++i) all += bytes;
    return all;
}

TEST(http2_client_engine, padding_earns_no_frames) {
    const std::string ping = frame(NGHTTP2_PING, 0, 0, "12345678");
    const std::string padded =
        frame(NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, 1, '\4' + std::string(4, '\0'));
    const std::string full = frame(NGHTTP2_DATA, 0, 1, "x");
    EXPECT_TRUE(is_too_much(head_of(1, 0) + times(300, padded)));
    EXPECT_TRUE(is_too_much(head_of(1, 0) + times(300, padded + ping)));
    EXPECT_FALSE(is_too_much(head_of(1, 0) + times(300, full + ping)));
    EXPECT_FALSE(is_too_much(head_of(1, 0) + times(300, full)));
}

TEST(http2_client_engine, the_largest_limits_are_no_limits) {
    noted_stream s, later;
    constexpr auto most = std::size_t(-1);
    const auto e = http2::for_client({.idle_frames_max = most})
                       ->connect(false, {.header_bytes_max = most / 4 + 1});
    EXPECT_EQ(e->request(s, get_head, true), 1);
    (void)output_of(*e);
    const std::string pings = times(5, frame(NGHTTP2_PING, 0, 0, "12345678"));
    EXPECT_TRUE(receives(*e, settings() + hello(1) + pings));
    EXPECT_EQ(s.body, "hello");
    EXPECT_TRUE(s.has_ended);
    EXPECT_EQ(e->request(later, get_head, true), 3);
    (void)output_of(*e);
    EXPECT_TRUE(receives(*e, pings + hello(3) + pings));
    EXPECT_EQ(later.body, "hello");
}

TEST(http2_client_engine, continuations_are_limited_also_those_of_heads_that_are_ignored) {
    const auto head = [](std::uint32_t stream, int flags, int more) {
        std::string all = frame(NGHTTP2_HEADERS, flags, stream, literal(":status", "200"));
        for (int i = 0; i != more; ++i) {
            all += frame(NGHTTP2_CONTINUATION, i + 1 == more ? end_headers : 0, stream,
                         literal("x-a", "b"));
        }
        return all;
    };
    EXPECT_FALSE(is_too_much(head(1, 0, 8)));
    EXPECT_TRUE(is_too_much(head(1, 0, 9)));
    // The stream is closed by its answer, and these are more.
    const std::string answered = head_of(1, end_stream);
    EXPECT_FALSE(is_too_much(answered + times(70, head_of(1, 0))));
    EXPECT_TRUE(is_too_much(answered + times(70, head(1, 0, 1))));
}

// After what was lost, HPACK's tables would be out of step.
TEST(http2_client_engine, nothing_leaves_after_bytes_that_had_no_memory) {
    if (!fail_allocation(0)) GTEST_SKIP() << "operator new is the sanitizer's";
    noted_stream first, second;
    const auto e = engine_of();
    EXPECT_EQ(e->request(first, get_head, true), 1);
    std::string out;
    std::thread([&] {
        while (e->write(out)) {
        }
        out.shrink_to_fit();
        EXPECT_EQ(
            e->request(second, "GET /" + std::string(1000, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n",
                       true),
            3);
        out.reserve(1);
    }).join();
    const std::size_t before = out.size();
    fail_allocation(1);
    std::thread([&] { EXPECT_FALSE(e->write(out)); }).join();
    EXPECT_TRUE(allocation_has_failed());
    EXPECT_TRUE(e->is_finished());
    e->shut_down();
    EXPECT_EQ(output_of(*e), "");
    EXPECT_EQ(out.size(), before);
}

TEST(http2_client_engine, limits_outside_of_their_range_are_refused) {
    EXPECT_THROW((void)http2::for_client({.streams_max = 0}), std::invalid_argument);
    EXPECT_THROW((void)http2::for_client({.streams_max = 10'001}), std::invalid_argument);
    EXPECT_THROW((void)http2::for_client({.stream_window_bytes = 0}), std::invalid_argument);
    EXPECT_THROW((void)http2::for_client({.idle_frames_max = 15}), std::invalid_argument);
    EXPECT_THROW((void)http2::for_server({.idle_frames_max = 15}), std::invalid_argument);
    (void)http2::for_client({.idle_frames_max = 16});
    (void)http2::for_server({.idle_frames_max = 16});
}

class long_trailer final : public http::body_source {
public:
    std::optional<std::uint64_t> length() const noexcept override { return {}; }
    task<> write_to(http::body_writer& out) override {
        co_await out.write("text");
        out.trailer("x-sum", std::string(70'000, 'x'));
    }
};

// nghttp2 sends no more than 64 KiB of fields, and says so to the engine alone.
TEST(http2_client_engine, fields_that_are_too_long_for_http2_are_an_error_at_once) {
    std::size_t asked = 0;
    http::router r;
    r.get("/", [&](http::request&) {
        ++asked;
        return http::response::text("hello");
    });
    r.post("/", http::read_body([](http::request& q) -> task<http::response> {
               while (!(co_await q.incoming().read()).empty()) {
               }
               co_return http::response::text("whole");
           }));
    const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
        http::client_options o = by_prior_knowledge();
        o.retries = 2;
        http::client c(loop, o);
        const std::string line = "X: " + std::string(70'000, 'x') + "\r\n";
        for (int i = 0; i != 2; ++i) {
            http::client_request r = asks(to);
            r.fields = line;
            EXPECT_EQ(co_await error_of(c, r), std::errc::message_size);
            http::client_request p = asks(to, "/", "POST");
            p.source = std::make_shared<long_trailer>();
            EXPECT_EQ(co_await error_of(c, p), std::errc::message_size);
            EXPECT_EQ((co_await c.get(to, "/")).body(), "hello");
        }
        EXPECT_EQ(c.connections_made(), 1u);
    };
    io::simulation world(1);
    http::server_options o;
    o.http2 = http2::for_server();
    (void)serve_in(world, std::move(o), std::move(r), client);
    EXPECT_EQ(asked, 2u);
}

}  // namespace

}  // namespace coppice::test
