// Conversations of HTTP/2 that are broken at every byte: their servers, and what clients check.
#pragma once

#include <coppice/execution.hpp>
#include <coppice/http.hpp>
#include <coppice/http2.hpp>
#include <coppice/io.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "../http/relay.hpp"
#include "../http/websocket_frames.hpp"
#include "answers.hpp"
#include "frames.hpp"

namespace coppice::test {

inline constexpr std::string_view short_body = "a body that comes back";
inline const std::vector<std::string> said_by_client = {"hello", "once more"};

inline http::router routes_for_breakage(seen_by_handlers& seen) {
    http::router r;
    r.get("/plain", [](http::request&) { return http::response::text("plain"); });
    r.get("/streamed", [&seen](http::request&) {
        return http::response(200).body(http::stream([&seen](http::body_writer& out) -> task<> {
            const auto ends = seen.count();
            for (int i = 0; i != 3; ++i) {
                co_await out.write("piece ");
                co_await out.flush();
            }
            out.trailer("X-Sum", "3");
        }));
    });
    r.post("/echo", [&seen](http::request& q) {
        if (q.body() != short_body) ++seen.parts;
        return http::response::text(std::string(q.body()));
    });
    r.post("/sum", http::read_body([&seen](http::request& q) -> task<http::response> {
               const auto ends = seen.count();
               std::string all;
               for (;;) {
                   const std::string_view piece = co_await q.incoming().read();
                   if (piece.empty()) break;
                   all += piece;
               }
               if (all != "one two " || q.trailer("x-sum") != "2") ++seen.parts;
               co_return http::response::text(all);
           }));
    r.get("/", http::websocket_handler([&seen](http::websocket& socket) -> task<> {
              const auto ends = seen.count();
              std::size_t heard = 0;
              while (const auto message = co_await socket.receive()) {
                  if (heard == said_by_client.size() || message->data != said_by_client[heard]) {
                      ++seen.parts;
                      break;
                  }
                  ++heard;
                  (void)co_await socket.send(*message);
              }
              const bool is_whole = heard == said_by_client.size();
              if (socket.close_code() == 1000 && !is_whole) ++seen.parts;
          }));
    return r;
}
inline http::server_options speaks_http2_to_broken() {
    http::server_options o;
    o.http2 = http2::for_server();
    o.buffered_bytes_max = 300'000;
    return o;
}

// ---- http::client ------------------------------------------------------------------------------

// A streamed body with a trailer.
class two_pieces final : public http::body_source {
public:
    std::optional<std::uint64_t> length() const noexcept override { return {}; }
    task<> write_to(http::body_writer& out) override {
        co_await out.write("one ");
        co_await out.flush();
        co_await out.write("two ");
        out.trailer("x-sum", "2");
    }
};

// Sends one request, and checks that its answer is this one, or an error if it may be.
inline task<> expect_answer(http::client& client, http::client_request r, std::string_view wanted,
                            bool is_whole) {
    try {
        const http::client_response got = co_await client.send(std::move(r));
        EXPECT_EQ(got.status(), 200);
        EXPECT_EQ(std::string(got.body()) + std::string(got.trailer("x-sum").value_or("")), wanted);
    } catch (const std::system_error& e) {
        EXPECT_FALSE(is_whole) << e.what();
    }
}

// Has several requests at once on one connection. `scheme`: how to reach the server.
inline task<> ask_several(io::context& loop, io::endpoint to, http::client_options o,
                          std::string scheme, bool is_whole) {
    o.http2 = http2::for_client();
    o.http2_in_the_clear = true;
    o.total = std::chrono::seconds(5);
    http::client client(loop, std::move(o));
    const auto ask = [&](std::string_view method, std::string_view path) {
        http::client_request r;
        r.url = scheme + "://" + to.to_string() + std::string(path);
        r.method = method;
        return r;
    };
    http::client_request echo = ask("POST", "/echo");
    echo.body = short_body;
    http::client_request sum = ask("POST", "/sum");
    sum.source = std::make_shared<two_pieces>();
    co_await execution::when_all(
        expect_answer(client, ask("GET", "/streamed"), "piece piece piece 3", is_whole),
        expect_answer(client, std::move(echo), short_body, is_whole),
        expect_answer(client, std::move(sum), "one two ", is_whole),
        expect_answer(client, ask("GET", "/plain"), "plain", is_whole));
}

// ---- Frames made by hand -----------------------------------------------------------------------

// What a client sends that has a WebSocket beside requests, and then leaves.
inline std::string frames_of_client(std::string_view scheme) {
    const auto head = [&](std::uint32_t stream, int flags, std::string_view verb,
                          std::string_view path) {
        return frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | flags, stream,
                     literal(":method", verb) + literal(":scheme", scheme) +
                         literal(":path", path) + literal(":authority", "a"));
    };
    return preface() + open_frame(1, {}, scheme) +
           frame(NGHTTP2_DATA, 0, 1, text_frame(said_by_client[0])) + head(3, 0, "POST", "/sum") +
           frame(NGHTTP2_DATA, 0, 3, "one ") + frame(NGHTTP2_DATA, 0, 1, frame_of({0x89, "ping"})) +
           head(5, NGHTTP2_FLAG_END_STREAM, "GET", "/streamed") +
           frame(NGHTTP2_DATA, 0, 3, "two ") +
           frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 3,
                 literal("x-sum", "2")) +
           frame(NGHTTP2_DATA, 0, 1, text_frame(said_by_client[1])) +
           frame(NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, close_frame(1000)) + goaway(0);
}

inline void expect_answers(const std::string& received, bool is_whole) {
    const connection_answer all = read_answers(received);
    EXPECT_EQ(all.wrong, "");
    const auto body_of_stream = [&](std::uint32_t stream) -> std::string {
        if (is_whole) EXPECT_TRUE(all.has_ended(stream)) << stream;
        return all.has_ended(stream) ? all.streams.at(stream).body : "none";
    };
    const std::string sum = body_of_stream(3);
    EXPECT_TRUE(sum == "none" || sum == "one two ") << sum;
    const std::string streamed = body_of_stream(5);
    EXPECT_TRUE(streamed == "none" ||
                (streamed == "piece piece piece " && all.streams.at(5).trailers == "x-sum: 3\n"))
        << streamed;
    const auto socket = all.streams.find(1);
    expect_frames(socket == all.streams.end() ? "" : socket->second.body,
                  {"1:hello", "a:ping", "1:once more", "8:" + close_payload(1000)}, is_whole);
    if (is_whole) EXPECT_TRUE(all.has_ended(1));
}

}  // namespace coppice::test
