// Routes for all that an encrypted connection does, and a client that asks for each.
#pragma once

#include <coppice/http/body.hpp>
#include <coppice/http/client.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/http/server.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

namespace coppice::test {

// A text whose every part is different.
inline std::string long_text(std::size_t bytes) {
    std::string text;
    for (int i = 0; text.size() < bytes; ++i) text += std::to_string(i) + " ";
    text.resize(bytes);
    return text;
}

// Routes for all that a connection does.
inline http::router routes_of_all_kinds() {
    using http::request;
    using http::response;
    http::router r;
    r.get("/plain", [](request& q) {
        return response::text(std::string(q.is_secure() ? "secure" : "in the clear"));
    });
    r.get("/task", [](request& q) -> task<response> {
        co_await http::pause(q, std::chrono::milliseconds(1));
        co_return response::text("waited");
    });
    r.get("/long", [](request&) { return response::text(long_text(300'000)); });
    r.get("/close", [](request&) { return response::text("bye").close(); });
    r.get("/stream", [](request&) {
        const auto produce = [](http::body_writer& out) -> task<> {
            const std::string text = long_text(300'000);
            for (std::size_t at = 0; at != text.size(); at += 1000) {
                co_await out.write(std::string_view(text).substr(at, 1000));
            }
        };
        return response(200).body(http::stream(produce));
    });
    r.post("/echo", [](request& q) { return response::text(std::string(q.body())); });
    r.post("/read", http::read_body([](request& q) -> task<response> {
               std::size_t bytes = 0;
               for (;;) {
                   const std::string_view piece = co_await q.incoming().read();
                   if (piece.empty()) break;
                   bytes += piece.size();
               }
               co_return response::text(std::to_string(bytes));
           }));
    return r;
}

// Asks for each of these, and checks the answers.
inline task<> ask_for_all_kinds(http::client& client, std::string base) {
    const auto url = [&](std::string_view path) { return base + std::string(path); };
    EXPECT_EQ((co_await client.get(url("/plain"))).body(), "secure");
    EXPECT_EQ((co_await client.get(url("/task"))).body(), "waited");
    EXPECT_TRUE((co_await client.get(url("/long"))).body() == long_text(300'000));
    EXPECT_TRUE((co_await client.get(url("/stream"))).body() == long_text(300'000));
    const std::string text = long_text(100'000);
    EXPECT_TRUE((co_await client.post(url("/echo"), text)).body() == text);
    EXPECT_EQ((co_await client.post(url("/read"), text)).body(), "100000");
    http::client_request up;
    up.url = url("/read");
    up.method = "POST";
    up.source = http::stream([](http::body_writer& out) -> task<> {
        for (int i = 0; i != 100; ++i) co_await out.write(long_text(2000));
    });
    EXPECT_EQ((co_await client.send(up)).body(), "200000");
}

}  // namespace coppice::test
