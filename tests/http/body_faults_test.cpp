// Faults of bodies: lengths that are not kept, refusals that are caught, requests that do not end.
#include <coppice/http/body.hpp>
#include <coppice/http/filters.hpp>
#include <coppice/http/pause.hpp>

#include "running_server.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;
using namespace std::chrono_literals;
using http::request;
using http::response;

class body_faults : public testing::TestWithParam<way> {};
INSTANTIATE_TEST_SUITE_P(ways, body_faults, testing::ValuesIn(every_way), name_of_way);

TEST_P(body_faults, a_length_that_is_not_kept_is_the_same_error_with_compression) {
    std::mutex mutex;
    std::vector<std::string> errors;
    http::server_options o = options_of(GetParam());
    o.on_exception = [&](std::exception_ptr error) {
        const std::lock_guard lock(mutex);
        try {
            std::rethrow_exception(error);
        } catch (const std::length_error& e) {
            errors.emplace_back(e.what());
        }
    };
    http::router r;
    r.get("/{n:int}", [](request& q) {
        const auto produce =
            [n = *q.parameter<std::size_t>("n")](http::body_writer& out) -> task<> {
            co_await out.write("12");
            co_await out.flush();
            co_await out.write(std::string(n - 2, '3'));
        };
        return response(200).content_type("text/plain").body(http::stream(produce, 5));
    });
    r.use(http::compression());
    running_server server(std::move(o), std::move(r));
    for (const std::string fields : {"", "Accept-Encoding: gzip\r\n"}) {
        for (const std::string n : {"4", "5", "6"}) {
            SCOPED_TRACE(fields + n);
            client c(server.port());
            ASSERT_TRUE(c.send("GET /" + n + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" +
                               fields + "\r\n"));
            bool reset = false;
            EXPECT_TRUE(has_status(c.receive_all(&reset), 200));
            EXPECT_EQ(reset, n != "5");
            const std::lock_guard lock(mutex);
            if (n == "5") {
                EXPECT_TRUE(errors.empty());
            } else {
                ASSERT_EQ(errors.size(), 1u);
                EXPECT_EQ(errors[0], n == "4" ? "a body is shorter than its declared length"
                                              : "a body is longer than its declared length");
            }
            errors.clear();
        }
    }
}

// What was refused is missing from the body: no later read may go on behind it.
TEST_P(body_faults, a_body_that_was_refused_stays_refused) {
    const auto routes = [] {
        http::router r;
        r.post("/", http::read_body([](request& q) -> task<response> {
                   std::string seen;
                   for (int i = 0; i != 3; ++i) {
                       try {
                           const std::string_view piece = co_await q.incoming().read();
                           seen += std::to_string(piece.size()) + " ";
                       } catch (const http::refused& why) {
                           seen += std::to_string(why.status) + " ";
                       }
                   }
                   co_return response::text(seen);
               }));
        return r;
    };
    for (const bool full : {false, true}) {
        http::server_options o = options_of(GetParam());
        if (full) o.buffered_bytes_max = 0;
        running_server server(std::move(o), routes());
        client c(server.port());
        const std::string begin =
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
        ASSERT_TRUE(c.send(begin + (full ? "" : "no chunk\r\n\r\n")));
        while (server->statistics().bytes_received < begin.size()) std::this_thread::yield();
        if (full) ASSERT_TRUE(c.send("3\r\nabc\r\n"));
        const std::string answer = c.receive();
        EXPECT_TRUE(answer.ends_with(full ? "503 503 " : "400 400 ")) << answer;
        EXPECT_TRUE(c.ended());
    }
}

// The other times are so long that only drain_request ends the connection.
TEST_P(body_faults, a_drain_gives_a_request_one_time_for_all_that_has_not_come) {
    const auto routes = [] {
        http::router r;
        r.post("/whole", [](request&) { return response(204); });
        r.post("/pieces", http::read_body([](request& q) -> task<response> {
                   while (!(co_await q.incoming().read()).empty()) {
                   }
                   co_return response(204);
               }));
        return r;
    };
    const std::string head = " HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n";
    const std::string parts[][2] = {
        {"POST /whole" + head, "\r\nab"},       // the drain finds a part of the head
        {"POST /whole" + head + "\r\na", "b"},  // of the body
        {"POST /pieces" + head, "\r\nab"},
        {"POST /pieces" + head + "\r\na", "b"},
    };
    for (const auto& [before, after] : parts) {
        SCOPED_TRACE(before);
        http::server_options o = options_of(GetParam());
        o.timeouts.header = o.timeouts.body = 1h;
        o.timeouts.drain_request = 500ms;
        running_server server(std::move(o), routes());
        client c(server.port());
        ASSERT_TRUE(c.send(before));
        while (server->statistics().bytes_received < before.size()) std::this_thread::yield();
        server->drain(1h);
        while (client(server.port()).connected()) std::this_thread::yield();  // it has begun
        (void)c.send(after);
        EXPECT_EQ(c.receive_all(), "");
        EXPECT_TRUE(c.ended());
    }
}

}  // namespace
