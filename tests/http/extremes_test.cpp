// Every number and time that a server, a client, and a filter take, at the ends of its type; each
// with requests.
#include <coppice/http/body.hpp>
#include <coppice/http/client.hpp>
#include <coppice/http/filters.hpp>
#include <coppice/http/server.hpp>
#include <coppice/http/server_options.hpp>

#include "detached.hpp"
#include "extremes.hpp"
#include "running_server.hpp"

#include <gtest/gtest.h>

#include <climits>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;
using http::request;
using http::response;

class http_extremes_on : public testing::TestWithParam<io::backend> {
protected:
    static http::server_options options() {
        return options_of({GetParam(), http::model::single, 1});
    }
    static http::router routes() {
        http::router r;
        r.get("/plain", [](request&) { return response::text("plain"); })
            .get("/task", [](request&) -> task<response> { co_return response::text("task"); })
            .get("/stream",
                 [](request&) {
                     return response(200).body(http::stream([](http::body_writer& out) -> task<> {
                         for (int i = 0; i != 3; ++i) {
                             co_await out.write("piece");
                             co_await out.flush();
                         }
                     }));
                 })
            .post("/echo", [](request& q) { return response::text(std::string(q.body())); })
            .post("/read", http::read_body([](request& q) -> task<response> {
                      std::string all;
                      for (;;) {
                          const std::string_view piece = co_await q.incoming().read();
                          if (piece.empty()) break;
                          all += piece;
                      }
                      co_return response::text(std::move(all));
                  }));
        return r;
    }
    // Sends one request, in two pieces. Returns the answer's body, or "" if there was no answer.
    static std::string ask(std::uint16_t port, const std::string& head, const std::string& rest) {
        client c(port);
        if (!c.send(head + "\r\nHost: a\r\nConnection: close\r\n")) return "";
        std::this_thread::yield();
        if (!c.send(rest)) return "";
        return std::string(body_of(c.receive()));
    }
    // Sends every kind of request; if `whole` is set, each is answered.
    static void serve(const http::server_options& o, bool whole, const std::string& what) {
        running_server server(o, routes());
        const std::string body = "Content-Length: 4\r\n\r\nbody";
        const std::string chunked = "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n";
        struct question {
            const char* head;
            std::string rest;
            const char* answer;
        };
        for (const question& q : {question{"GET /plain HTTP/1.1", "\r\n", "plain"},
                                  question{"GET /task HTTP/1.1", "\r\n", "task"},
                                  question{"GET /stream HTTP/1.1", "\r\n", "piecepiecepiece"},
                                  question{"POST /echo HTTP/1.1", body, "body"},
                                  question{"POST /echo HTTP/1.1", chunked, "body"},
                                  question{"POST /read HTTP/1.1", body, "body"},
                                  question{"POST /read HTTP/1.1", chunked, "body"}}) {
            const std::string answer = ask(server.port(), q.head, q.rest);
            if (whole) {
                EXPECT_EQ(answer, q.answer) << what << " " << q.head;
            }
        }
    }
};

INSTANTIATE_TEST_SUITE_P(rings, http_extremes_on,
                         testing::Values(io::backend::epoll, io::backend::uring),
                         [](const auto& instance) {
                             return instance.param == io::backend::epoll ? "epoll" : "uring";
                         });

struct named_time {
    const char* name;
    duration http::timeouts::* member;
};
constexpr named_time times[] = {{"timeouts::header", &http::timeouts::header},
                                {"timeouts::idle", &http::timeouts::idle},
                                {"timeouts::body", &http::timeouts::body},
                                {"timeouts::write", &http::timeouts::write},
                                {"timeouts::handler", &http::timeouts::handler},
                                {"timeouts::handler_stop", &http::timeouts::handler_stop},
                                {"timeouts::drain_request", &http::timeouts::drain_request}};

TEST_P(http_extremes_on, a_server_serves_with_any_timeout_or_refuses_it_by_name) {
    for (const named_time& t : times) {
        for (const duration time : every_duration) {
            http::server_options o = options();
            o.timeouts.*t.member = time;
            if (time < duration(0)) {
                expect_refusal(refusal_of([&] { (void)http::server(o, routes()); }), t.name,
                               time.count());
            } else {
                serve(o, time > duration(1), t.name + std::to_string(time.count()));
            }
        }
    }
}

TEST_P(http_extremes_on, a_server_serves_at_any_minimum_rate) {
    for (const std::uint64_t n : every_number) {
        http::server_options o = options();
        o.timeouts.rate_min = static_cast<std::size_t>(n);
        serve(o, true, "rate_min" + std::to_string(n));
        o.timeouts.body = o.timeouts.write = duration::max();
        serve(o, true, "rate_min without end" + std::to_string(n));
    }
}

TEST_P(http_extremes_on, a_server_serves_within_any_limit) {
    constexpr std::size_t http::limits::* members[] = {
        &http::limits::target_bytes_max, &http::limits::header_bytes_max, &http::limits::fields_max,
        &http::limits::body_bytes_max};
    for (const auto member : members) {
        for (const std::uint64_t n : every_number) {
            http::server_options o = options();
            o.limits.*member = static_cast<std::size_t>(n);
            serve(o, n > 1, std::to_string(n));
        }
    }
}

TEST_P(http_extremes_on, a_server_serves_any_number_of_connections_and_requests) {
    for (const std::uint64_t n : every_number) {
        http::server_options connections = options();
        connections.connections_max = static_cast<std::size_t>(n);
        serve(connections, n > 1, "connections_max");
        http::server_options of_address = options();
        of_address.connections_per_address_max = static_cast<std::size_t>(n);
        serve(of_address, n > 1, "connections_per_address_max");
        http::server_options streamed = options();
        streamed.streamed_body_bytes_max = n;
        serve(streamed, n > 1, "streamed_body_bytes_max");
        http::server_options requests = options();
        requests.requests_per_connection_max = n;
        if (n == 0) {
            expect_refusal(refusal_of([&] { (void)http::server(requests, routes()); }),
                           "server_options::requests_per_connection_max", n);
        } else {
            serve(requests, true, "requests_per_connection_max");
        }
    }
}

TEST_P(http_extremes_on, more_threads_than_a_machine_has_are_refused_in_every_model) {
    for (const http::model m :
         {http::model::single, http::model::multi, http::model::worker, http::model::async}) {
        for (const std::uint64_t n : every_number) {
            http::server_options o = options();
            o.model = m;
            o.threads = static_cast<std::size_t>(n);
            if (n == 1) {
                serve(o, true, "threads");
            } else {
                expect_refusal(refusal_of([&] { (void)http::server(o, routes()); }),
                               "server_options::threads", n);
            }
        }
    }
}

// RFC 9112 section 6.3: a length beyond any memory must not wrap around.
TEST_P(http_extremes_on, a_length_at_the_end_of_its_type_is_refused_within_any_limit) {
    http::server_options o = options();
    o.limits.body_bytes_max = std::numeric_limits<std::size_t>::max();
    o.streamed_body_bytes_max = std::numeric_limits<std::uint64_t>::max();
    running_server server(o, routes());
    for (const char* const length : {"18446744073709551615", "18446744073709551580",
                                     "9223372036854775808", "9223372036854775807"}) {
        client c(server.port());
        ASSERT_TRUE(c.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                           std::string(length) + "\r\n\r\nGET /plain HTTP/1.1\r\nHost: a\r\n\r\n"));
        const std::string answer = c.receive();
        EXPECT_TRUE(has_status(answer, 413)) << length << answer;
        EXPECT_NE(answer.find("Connection: close"), std::string::npos);
    }
}

TEST_P(http_extremes_on, a_drain_takes_any_time) {
    for (const duration time : every_duration) {
        http::server server(options(), routes());
        std::thread runs([&] { server.run(); });
        EXPECT_EQ(ask(server.port(), "GET /plain HTTP/1.1", "\r\n"), "plain");
        server.drain(time);
        runs.join();
    }
}

TEST_P(http_extremes_on, a_client_works_with_any_timeout_or_refuses_it_by_name) {
    running_server server(options(), routes());
    using options = http::client_options;
    struct {
        const char* name;
        duration options::* member;
        bool ends_requests;
    } constexpr members[] = {{"client_options::connect", &options::connect, true},
                             {"client_options::answer", &options::answer, true},
                             {"client_options::body", &options::body, true},
                             {"client_options::total", &options::total, true},
                             {"client_options::idle", &options::idle, false},
                             {"client_options::retry_delay", &options::retry_delay, false},
                             {"client_options::retry_delay_max", &options::retry_delay_max, false},
                             {"client_options::retry_after_max", &options::retry_after_max, false}};
    const auto ask_twice = [](http::client& c, io::endpoint to, int& answers) -> detached {
        for (int i = 0; i != 2; ++i) {
            try {
                const http::client_response r = co_await c.get(to, "/stream");
                if (r.body() == "piecepiecepiece") ++answers;
            } catch (const std::system_error&) {
                // After its time is up.
            }
        }
    };
    const auto expect_answers = [&](const http::client_options& o, bool all) {
        io::context loop(GetParam());
        http::client asks(loop, o);
        int answers = 0;
        ask_twice(asks, server->local(), answers);
        loop.run();
        if (all) {
            EXPECT_EQ(answers, 2);
        }
    };
    for (const auto& m : members) {
        for (const duration time : every_duration) {
            http::client_options o;
            o.*m.member = time;
            if (time < duration(0)) {
                io::context loop(GetParam());
                expect_refusal(refusal_of([&] { (void)http::client(loop, o); }), m.name,
                               time.count());
            } else {
                expect_answers(o, time > duration(1) || !m.ends_requests);
            }
        }
    }
    for (const std::uint64_t n : every_number) {
        http::client_options kept;
        kept.idle_connections_max = static_cast<std::size_t>(n);
        expect_answers(kept, true);
        http::client_options limited;
        limited.limits.header_bytes_max = limited.limits.body_bytes_max =
            limited.limits.fields_max = static_cast<std::size_t>(n);
        expect_answers(limited, n > 1);
    }
}

// What a filter does to an answer to a request with these fields.
std::string filtered(const http::filter& f, std::string_view fields, response& answer) {
    const std::string text = "GET /a HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n";
    http::request_head head;
    EXPECT_EQ(http::parse_head(text, head, http::limits()).status, http::parse_status::complete);
    f.after(request(head, ""), answer);
    return std::string(answer.find("Content-Encoding").value_or(""));
}

TEST(filter_extremes, compression_takes_any_size_and_refuses_other_levels_by_name) {
    const std::string text(2000, 'x');
    for (const std::uint64_t n : every_number) {
        http::compression_options least;
        least.bytes_min = static_cast<std::size_t>(n);
        response answer = response::text(text);
        EXPECT_EQ(filtered(*http::compression(least), "Accept-Encoding: gzip\r\n", answer),
                  n <= 1 ? "gzip" : "");
        http::compression_options most;
        most.bytes_max = static_cast<std::size_t>(n);
        answer = response::text(text);
        EXPECT_EQ(filtered(*http::compression(most), "Accept-Encoding: gzip\r\n", answer),
                  n <= 1 ? "" : "gzip");
    }
    for (const int level : {INT_MIN, -1, 0, 1, 9, 10, INT_MAX - 1, INT_MAX}) {
        http::compression_options o;
        o.level = level;
        const std::string said = refusal_of([&] { (void)http::compression(o); });
        if (level >= 1 && level <= 9) {
            EXPECT_EQ(said, "");
        } else {
            expect_refusal(said, "compression_options::level", level);
        }
    }
}

TEST(filter_extremes, the_age_of_a_permission_is_limited_to_what_caches_can_count) {
    using seconds = std::chrono::seconds;
    for (const seconds age : {seconds::min(), seconds(-1), seconds(0), seconds(1),
                              seconds::max() - seconds(1), seconds::max()}) {
        http::cors_options o;
        o.age = age;
        http::request_head head;
        ASSERT_EQ(http::parse_head("OPTIONS /a HTTP/1.1\r\nHost: a\r\nOrigin: b\r\n"
                                   "Access-Control-Request-Method: GET\r\n\r\n",
                                   head, http::limits())
                      .status,
                  http::parse_status::complete);
        const auto answer = http::cors(o)->before(request(head, ""));
        ASSERT_TRUE(answer);
        EXPECT_EQ(answer->find("Access-Control-Max-Age"), age.count() <= 0   ? "0"
                                                          : age.count() == 1 ? "1"
                                                                             : "2147483647");
    }
}

TEST(compression, leaves_answers_alone_that_are_not_permitted_or_say_no_transform) {
    const std::string text(2000, 'x');
    http::compression_options o;
    o.permits = [](const request& r, const response&) { return !r.find("Cookie"); };
    const auto f = http::compression(o);
    response answer = response::text(text);
    EXPECT_EQ(filtered(*f, "Accept-Encoding: gzip\r\nCookie: a=b\r\n", answer), "");
    EXPECT_EQ(answer.body(), text);
    EXPECT_EQ(filtered(*f, "Accept-Encoding: gzip\r\n", answer), "gzip");
    answer = response::text(text).add("Cache-Control", "private, no-transform");
    EXPECT_EQ(filtered(*f, "Accept-Encoding: gzip\r\n", answer), "");
}

}  // namespace
