// What an answer's status says about its body, and how an answer that cannot be completed ends.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/internal/answer_content.hpp>
#include <coppice/http/server.hpp>
#include <coppice/io/timer.hpp>

#include "running_server.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;
using http::body_writer;
using http::request;
using http::response;
using http::internal::answer_content;

TEST(content_of, rfc9110_6_4_1_the_status_decides_before_any_field) {
    for (int status = 100; status != 600; ++status) {
        const answer_content content = http::content_of(status);
        const bool absent = status < 200 || status == 204 || status == 304;
        EXPECT_EQ(content == answer_content::absent, absent) << status;
        EXPECT_EQ(content == answer_content::empty, status == 205) << status;
        EXPECT_EQ(http::internal::bodyless(status), absent) << status;
    }
}

class answer_framing : public testing::TestWithParam<way> {};
INSTANTIATE_TEST_SUITE_P(ways, answer_framing, testing::ValuesIn(every_way), name_of_way);

std::shared_ptr<http::body_source> streamed_text() {
    return http::stream([](body_writer& out) -> task<> { co_await out.write("content"); });
}

TEST_P(answer_framing, rfc9112_6_3_no_status_shifts_the_answers_that_follow) {
    atomic<int> exceptions{0};
    http::server_options o = options_of(GetParam());
    o.on_exception = [&](std::exception_ptr) { exceptions.fetch_add(1, relaxed); };
    http::router r;
    r.any("/text/{n:int}",
          [](request& q) { return response::text("content", *q.parameter<int>("n")); })
        .any("/task/{n:int}",
             [](request& q) -> task<response> {
                 co_return response::text("content", *q.parameter<int>("n"));
             })
        .any("/stream/{n:int}",
             [](request& q) { return response(*q.parameter<int>("n")).body(streamed_text()); })
        .any("/length/{n:int}",
             [](request& q) {
                 const auto produce = [](body_writer& out) -> task<> {
                     co_await out.write("content");
                 };
                 return response(*q.parameter<int>("n")).body(http::stream(produce, 7));
             })
        .get("/next", [](request&) { return response::text("next"); });
    running_server server(std::move(o), std::move(r));
    int interim = 0;
    for (const int status : {100, 101, 103, 199, 200, 204, 205, 206, 304, 404, 599}) {
        for (const char* const kind : {"text", "task", "stream", "length"}) {
            for (const char* const method : {"GET", "HEAD"}) {
                SCOPED_TRACE(std::string(method) + " " + kind + " " + std::to_string(status));
                client c(server.port());
                ASSERT_TRUE(c.send(std::string(method) + " /" + kind + "/" +
                                   std::to_string(status) + " HTTP/1.1\r\nHost: a\r\n\r\n" +
                                   "GET /next HTTP/1.1\r\nHost: a\r\n\r\n"));
                const bool head = std::string_view(method) == "HEAD";
                const bool without_body = head || status == 204 || status == 304;
                const std::string answer = c.receive(without_body);
                // An interim status is a handler's mistake.
                EXPECT_TRUE(has_status(answer, status < 200 ? 500 : status)) << answer;
                interim += status < 200;
                const bool framed =
                    answer.find("\r\nContent-Length: ") != answer.npos ||
                    answer.find("\r\nTransfer-Encoding: chunked\r\n") != answer.npos;
                EXPECT_EQ(framed, status != 204 && status != 304) << answer;
                const bool empty = without_body || status == 205;
                if (status >= 200) EXPECT_EQ(body_of(answer), empty ? "" : "content");
                if (status == 205) EXPECT_NE(answer.find("\r\nContent-Length: 0\r\n"), answer.npos);
                EXPECT_EQ(body_of(c.receive()), "next");
            }
        }
    }
    EXPECT_EQ(exceptions.load(relaxed), interim);
}

class promoter final : public http::filter {
public:
    void after(const request& q, response& answer) const override {
        if (q.find("X-Status")) answer.with_status(101);
    }
};

TEST_P(answer_framing, a_filter_that_sets_an_interim_status_causes_500) {
    atomic<int> exceptions{0};
    http::server_options o = options_of(GetParam());
    o.on_exception = [&](std::exception_ptr) { exceptions.fetch_add(1, relaxed); };
    http::router r;
    r.get("/next", [](request&) { return response::text("next"); });
    r.use(std::make_shared<promoter>());
    running_server server(std::move(o), std::move(r));
    client c(server.port());
    for (const char* const path : {"/next", "/none"}) {
        ASSERT_TRUE(c.send("GET " + std::string(path) +
                           " HTTP/1.1\r\nHost: a\r\nX-Status: 1\r\n\r\n"
                           "GET /next HTTP/1.1\r\nHost: a\r\n\r\n"));
        EXPECT_TRUE(has_status(c.receive(), 500));
        EXPECT_EQ(body_of(c.receive()), "next");
    }
    EXPECT_EQ(exceptions.load(relaxed), 2);
}

// Answers 200 to every request.
struct agreeable final : http::filter {
    std::optional<response> before(const request&) const override { return response::text("yes"); }
};

TEST_P(answer_framing, rfc9110_9_3_6_nothing_is_read_after_a_connect) {
    for (const bool agrees : {false, true}) {
        http::router r;
        r.get("/next", [](request&) { return response::text("next"); });
        r.any("/{path...}", [](request&) { return response::text("any"); });
        if (agrees) r.use(std::make_shared<agreeable>());
        running_server server(options_of(GetParam()), std::move(r));
        client c(server.port());
        ASSERT_TRUE(
            c.send("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n"
                   "GET /next HTTP/1.1\r\nHost: a\r\n\r\n"));
        const std::string answer = c.receive();
        EXPECT_TRUE(has_status(answer, agrees ? 200 : 404)) << answer;
        EXPECT_NE(answer.find("\r\nConnection: close\r\n"), answer.npos) << answer;
        EXPECT_EQ(c.receive(), "");
    }
}

// The test's timeout bounds this wait.
template <class F>
void wait_until(F done) {
    while (!done()) std::this_thread::yield();
}

http::router endless_routes(atomic<int>& started) {
    http::router r;
    const auto endless = [&started](body_writer& out) -> task<> {
        started.fetch_add(1, relaxed);
        const std::string piece(16 * 1024, 'x');
        for (;;) co_await out.write(piece);
    };
    const auto waiting = [&started](request& q) {
        io::context& loop = q.loop();
        return response().body(http::stream([&started, &loop](body_writer& out) -> task<> {
            co_await out.write("a part");
            co_await out.flush();
            started.fetch_add(1, relaxed);
            io::timer timer(loop);
            co_await timer.wait_for(std::chrono::hours(1));
        }));
    };
    r.get("/endless", [endless](request&) { return response().body(http::stream(endless)); })
        .get("/waiting", waiting)
        .get("/large", [&started](request&) {
            started.fetch_add(1, relaxed);
            return response::text(std::string(64u << 20, 'x'));
        });
    return r;
}

// Receives until the connection ends. An answer that has begun ends with a reset.
bool nothing_or_reset(client& c) {
    bool reset = false;
    const bool nothing = c.receive_all(&reset).empty();
    return nothing || reset;
}

TEST_P(answer_framing, rfc9112_8_an_answer_that_a_hard_stop_cuts_off_ends_with_a_reset) {
    for (const char* const path : {"/endless", "/waiting", "/large"}) {
        for (const char* const version : {"1.0", "1.1"}) {
            SCOPED_TRACE(std::string(path) + " HTTP/" + version);
            atomic<int> started{0};
            running_server server(options_of(GetParam()), endless_routes(started));
            client c(server.port());
            ASSERT_TRUE(
                c.send("GET " + std::string(path) + " HTTP/" + version + "\r\nHost: a\r\n\r\n"));
            wait_until([&] { return started.load(relaxed) == 1; });
            server->drain(std::chrono::seconds(0));
            wait_until([&] { return server->statistics().open == 0; });
            EXPECT_TRUE(nothing_or_reset(c));
        }
    }
}

TEST_P(answer_framing, rfc9112_8_an_answer_that_its_client_does_not_read_ends_with_a_reset) {
    for (const char* const path : {"/endless", "/large"}) {
        for (const char* const version : {"1.0", "1.1"}) {
            SCOPED_TRACE(std::string(path) + " HTTP/" + version);
            atomic<int> started{0};
            http::server_options o = options_of(GetParam());
            o.timeouts.write = std::chrono::milliseconds(20);
            o.timeouts.rate_min = std::size_t{1} << 40;
            running_server server(std::move(o), endless_routes(started));
            client c(server.port());
            ASSERT_TRUE(
                c.send("GET " + std::string(path) + " HTTP/" + version + "\r\nHost: a\r\n\r\n"));
            wait_until([&] {
                const http::server_statistics s = server->statistics();
                return s.timed_out == 1 && s.open == 0;
            });
            EXPECT_TRUE(nothing_or_reset(c));
        }
    }
}

}  // namespace
