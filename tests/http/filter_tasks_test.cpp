// http/next.hpp through a server: filters that are tasks, what they answer, and how they end.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/server.hpp>
#include <coppice/pool/thread_pool.hpp>

#include "filter_tasks.hpp"
#include "running_server.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;
using namespace std::chrono_literals;
using http::next_handler;
using http::request;
using http::response;

INSTANTIATE_TEST_SUITE_P(ways, filter_tasks_on, testing::ValuesIn(every_way), name_of_way);

TEST_P(filter_tasks_on, a_filter_waits_elsewhere_then_admits_or_answers_itself) {
    http::router r;
    r.with(admits_visitors)
        .get("/plain", greet)
        .get("/task", greet_later)
        .get("/offloaded", http::offload(greet))
        .post("/read", http::read_body(read_all))
        .post("/read-offloaded", http::offload(http::read_body(read_all)));
    r.get("/open", [](request&) { return response::text("open"); });
    running_server server(options(), std::move(r));
    for (const char* const path : {"/plain", "/task", "/offloaded"}) {
        const std::string line = "GET " + std::string(path);
        const std::string denied = ask(server.port(), line);
        EXPECT_TRUE(has_status(denied, 401)) << path << denied;
        EXPECT_EQ(denied.find("X-Seen"), denied.npos);
        const std::string admitted = ask(server.port(), line, "X-User: ada\r\n");
        EXPECT_EQ(body_of(admitted), "hello ada") << path;
        EXPECT_NE(admitted.find("X-Seen: yes"), admitted.npos);
    }
    for (const char* const path : {"/read", "/read-offloaded"}) {
        const std::string answer = ask(server.port(), "POST " + std::string(path),
                                       "X-User: ada\r\nContent-Length: 5\r\n", "12345");
        EXPECT_EQ(body_of(answer), "read 5") << path;
        EXPECT_NE(answer.find("X-Seen: yes"), answer.npos);
    }
    EXPECT_EQ(body_of(ask(server.port(), "GET /open")), "open");
    EXPECT_EQ(exceptions.load(relaxed), 0);
}

TEST_P(filter_tasks_on, a_handler_begins_where_it_would_without_filters) {
    atomic<thread_pool*> of_server{nullptr};
    const auto where = [&of_server](request& q) {
        thread_pool* const pool = of_server.load(acquire);
        if (q.loop().is_current()) return response::text("loop");
        const bool on_pool = pool != nullptr && pool->is_current();
        return on_pool ? response::text("pool") : response::text("elsewhere");
    };
    const auto where_later = [&where](request& q) -> task<response> { co_return where(q); };
    http::router r;
    const auto add = [&](auto&& to) {
        to.get("/plain", where)
            .get("/task", where_later)
            .get("/offloaded", http::offload(where))
            .get("/read", http::read_body(where_later))
            .get("/both", http::offload(http::read_body(where_later)));
    };
    const auto hops = [](request&, next_handler next) -> task<response> {
        co_await elsewhere.get_scheduler().schedule();
        co_return co_await next();
    };
    const auto to_loop = [](request& q, next_handler next) -> task<response> {
        co_await q.loop().get_scheduler().schedule();
        co_return co_await next();
    };
    add(r);
    add(r.group("/hop").use(hops));
    add(r.group("/loop").use(to_loop));
    running_server server(options(), std::move(r));
    of_server.store(server->pool(), release);
    for (const char* const path : {"/plain", "/task", "/offloaded", "/read", "/both"}) {
        const std::string plain = ask(server.port(), "GET " + std::string(path));
        for (const char* const group : {"/hop", "/loop"}) {
            const std::string filtered = ask(server.port(), "GET " + std::string(group) + path);
            EXPECT_EQ(body_of(filtered), body_of(plain)) << group << path;
            EXPECT_NE(body_of(filtered), "elsewhere");
        }
    }
}

const std::string hidden = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

struct framed {
    const char* name;
    std::string fields, first, rest;  // the body: what arrives with the head, and later
    bool expects = false;
};
std::vector<framed> every_body() {
    char hex[16];
    std::snprintf(hex, sizeof hex, "%zx", hidden.size());
    const std::string size = "Content-Length: " + std::to_string(hidden.size()) + "\r\n";
    const std::string twice = "Content-Length: " + std::to_string(2 * hidden.size()) + "\r\n";
    const std::string chunked = "Transfer-Encoding: chunked\r\n";
    const std::string chunk = hex + ("\r\n" + hidden) + "\r\n0\r\n\r\n";
    return {
        {"none", "", "", ""},
        {"empty", "Content-Length: 0\r\n", "", ""},
        {"length", size, hidden, ""},
        {"length_part", twice, hidden, hidden},
        {"length_later", size, "", hidden},
        {"chunked", chunked, chunk, ""},
        {"chunked_part", chunked, hex + ("\r\n" + hidden), "\r\n0\r\n\r\n"},
        {"expect", size + "Expect: 100-continue\r\n", "", hidden, true},
        {"expect_chunked", chunked + "Expect: 100-continue\r\n", "", chunk, true},
    };
}

TEST_P(filter_tasks_on, rfc9112_9_3_an_early_answer_never_makes_a_request_of_a_body) {
    atomic<int> smuggled{0}, reached{0};
    const auto reaches = [&](request&) {
        reached.fetch_add(1, relaxed);
        return response::text("reached");
    };
    const auto reaches_later = [&](request& q) -> task<response> { co_return reaches(q); };
    http::router r;
    r.any("/smuggled", [&](request&) {
         smuggled.fetch_add(1, relaxed);
         return response::text("smuggled");
     }).get("/next", [](request&) { return response::text("next"); });
    r.with(admits_visitors)
        .any("/plain", reaches)
        .any("/task", reaches_later)
        .any("/offloaded", http::offload(reaches))
        .any("/read", http::read_body(reaches_later))
        .any("/read-offloaded", http::offload(http::read_body(reaches_later)));
    running_server server(options(), std::move(r));
    const std::string next = "GET /next HTTP/1.1\r\nHost: a\r\n\r\n";
    for (const char* const path : {"/plain", "/task", "/offloaded", "/read", "/read-offloaded"}) {
        const bool reads = std::string_view(path).starts_with("/read");
        for (const framed& body : every_body()) {
            SCOPED_TRACE(std::string(path) + " " + body.name);
            client c(server.port());
            ASSERT_TRUE(c.send("POST " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" +
                               body.fields + "\r\n" + body.first));
            if (reads) {  // the filter neither waits for the body nor asks for it
                const std::string answer = c.receive();
                ASSERT_TRUE(has_status(answer, 401)) << answer;
                c.send(body.rest + next);
                const bool has_body = !(body.first + body.rest).empty();
                ASSERT_EQ(answer.find("Connection: close") != answer.npos, has_body) << answer;
                if (has_body) {
                    EXPECT_EQ(c.receive_all(), "");
                } else {
                    EXPECT_EQ(body_of(c.receive()), "next");
                }
                continue;
            }
            if (body.expects) {
                ASSERT_EQ(c.receive(), "HTTP/1.1 100 Continue\r\n\r\n");
            }
            ASSERT_TRUE(c.send(body.rest + next));
            const std::string answer = c.receive();
            ASSERT_TRUE(has_status(answer, 401)) << answer;
            EXPECT_EQ(body_of(c.receive()), "next");
        }
    }
    EXPECT_EQ(smuggled.load(relaxed), 0);
    EXPECT_EQ(reached.load(relaxed), 0);
}

TEST_P(filter_tasks_on, pipelined_requests_are_answered_in_order_and_share_no_values) {
    http::router r;
    const auto sees = [](request& q) {
        const visitor* const v = q.find<visitor>();
        return response::text(v == nullptr ? "nobody" : v->name);
    };
    r.get("/free", sees).get("/free-task", [sees](request& q) -> task<response> {
        co_return sees(q);
    });
    r.with(admits_visitors).get("/known", sees);
    running_server server(options(), std::move(r));
    client c(server.port());
    std::string all;
    for (int i = 0; i != 20; ++i) {
        all += "GET /known HTTP/1.1\r\nHost: a\r\nX-User: " + std::to_string(i) + "\r\n\r\n";
        all += "GET /free HTTP/1.1\r\nHost: a\r\n\r\n";
        all += "GET /free-task HTTP/1.1\r\nHost: a\r\n\r\n";
        all += "GET /known HTTP/1.1\r\nHost: a\r\n\r\n";
    }
    ASSERT_TRUE(c.send(all));
    for (int i = 0; i != 20; ++i) {
        EXPECT_EQ(body_of(c.receive()), std::to_string(i));
        EXPECT_EQ(body_of(c.receive()), "nobody");
        EXPECT_EQ(body_of(c.receive()), "nobody");
        EXPECT_TRUE(has_status(c.receive(), 401));
    }
}

class refusing final : public http::filter {
public:
    std::optional<response> before(const request& r) const override {
        if (r.find("X-Before")) throw http::status_error(402, "before");
        return std::nullopt;
    }
    void after(const request& r, response&) const override {
        if (r.find("X-After")) throw http::status_error(409, "after");
    }
};

TEST_P(filter_tasks_on, a_thrown_status_is_an_answer_and_any_other_exception_gives_500) {
    http::router r;
    const auto throwing = [](request& q) -> response {
        if (q.find("X-Fault")) throw std::runtime_error("a fault");
        throw http::status_error(422, "the text");
    };
    const auto throwing_later = [throwing](request& q) -> task<response> { co_return throwing(q); };
    const auto filter_throws = [throwing](request& q, next_handler) -> task<response> {
        co_return throwing(q);
    };
    const auto passes = [](request&, next_handler next) -> task<response> {
        co_return co_await next();
    };
    const auto catches = [](request&, next_handler next) -> task<response> {
        std::string text;
        try {
            co_return co_await next();
        } catch (const http::status_error& error) {
            text = error.what();
        }
        co_return response::text("caught " + text, 422);
    };
    const auto ok = [](request&) { return response::text("ok"); };
    r.use(std::make_shared<refusing>());
    r.get("/plain", throwing).get("/task", throwing_later);
    r.get("/read", http::read_body(throwing_later)).get("/ok", ok);
    r.with(filter_throws).get("/filter", ok);
    r.with(passes).get("/through", throwing);
    r.with(catches).get("/caught", throwing);
    r.get("/empty", [](request&) -> response { throw http::status_error(204, "no content"); });
    running_server server(options(), std::move(r));
    for (const char* const path : {"/plain", "/task", "/read", "/filter", "/through"}) {
        const int before = exceptions.load(relaxed);
        const std::string answer = ask(server.port(), "GET " + std::string(path));
        EXPECT_TRUE(has_status(answer, 422)) << path << answer;
        EXPECT_EQ(body_of(answer), "the text");
        EXPECT_NE(answer.find("Content-Type: text/plain"), answer.npos);
        EXPECT_EQ(exceptions.load(relaxed), before);
        EXPECT_TRUE(
            has_status(ask(server.port(), "GET " + std::string(path), "X-Fault: 1\r\n"), 500));
        EXPECT_EQ(exceptions.load(relaxed), before + 1) << path;
    }
    EXPECT_EQ(body_of(ask(server.port(), "GET /caught")), "caught the text");
    EXPECT_TRUE(has_status(ask(server.port(), "GET /empty"), 204));
    EXPECT_EQ(body_of(ask(server.port(), "GET /ok", "X-Before: 1\r\n")), "before");
    EXPECT_EQ(body_of(ask(server.port(), "GET /ok", "X-After: 1\r\n")), "after");
    while (server->statistics().exceptions != 5) std::this_thread::yield();
}

TEST_P(filter_tasks_on, only_requests_with_a_handler_pass_filters_that_are_tasks) {
    atomic<int> passed{0};
    http::router r;
    r.get("/x", [](request&) { return response::text("x"); });
    r.use([&](request&, next_handler next) -> task<response> {
        passed.fetch_add(1, relaxed);
        co_return co_await next();
    });
    running_server server(options(), std::move(r));
    EXPECT_TRUE(has_status(ask(server.port(), "GET /x"), 200));
    EXPECT_EQ(passed.load(relaxed), 1);
    const std::string head = ask(server.port(), "HEAD /x");
    EXPECT_TRUE(has_status(head, 200));
    EXPECT_NE(head.find("Content-Length: 1\r\n"), head.npos);
    EXPECT_EQ(passed.load(relaxed), 2);
    EXPECT_TRUE(has_status(ask(server.port(), "OPTIONS /x"), 204));
    EXPECT_TRUE(has_status(ask(server.port(), "POST /x"), 405));
    EXPECT_TRUE(has_status(ask(server.port(), "GET /y"), 404));
    EXPECT_TRUE(has_status(ask(server.port(), "GET /%00"), 400));
    EXPECT_EQ(passed.load(relaxed), 2);
}

TEST_P(filter_tasks_on, a_streamed_answer_passes_filters_and_is_sent_when_they_have_ended) {
    http::router r;
    r.with(admits_visitors).get("/stream", [](request&) {
        return response().body(http::stream([](http::body_writer& out) -> task<> {
            co_await out.write("some ");
            co_await out.flush();
            co_await out.write("text");
        }));
    });
    running_server server(options(), std::move(r));
    const std::string answer = ask(server.port(), "GET /stream", "X-User: a\r\n");
    EXPECT_NE(answer.find("X-Seen: yes"), answer.npos);
    EXPECT_EQ(body_of(answer), "some text");
}

TEST_P(filter_tasks_on, a_malformed_body_is_refused_with_and_without_a_filter) {
    atomic<int> errors{0};
    http::router r;
    r.with([&](request&, next_handler next) -> task<response> {
         try {
             co_return co_await next();
         } catch (const http::refused&) {
             errors.fetch_add(1, relaxed);
             throw;
         }
     }).post("/read", http::read_body(read_all));
    running_server server(options(), std::move(r));
    client c(server.port());
    ASSERT_TRUE(
        c.send("POST /read HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n"));
    const std::string answer = c.receive();
    EXPECT_TRUE(has_status(answer, 400)) << answer;
    EXPECT_EQ(c.receive_all(), "");
    EXPECT_EQ(errors.load(relaxed), 1);
}

}  // namespace
