// http/body.hpp through a server: streamed answers and requests, their back-pressure and their
// ends.
#include <coppice/exec/when_all.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/filters.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/http/server.hpp>

#include "running_server.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;
using http::body_reader;
using http::body_writer;
using http::request;
using http::response;

std::string pattern(std::size_t size) {
    std::string text(size, ' ');
    for (std::size_t i = 0; i != size; ++i) text[i] = static_cast<char>('a' + i % 23);
    return text;
}

class bodies_on : public testing::TestWithParam<way> {
protected:
    http::router routes() {
        http::router r;
        r.get("/lines/{n:int}", lines)
            .get("/declared",
                 [](request&) {
                     const auto five = [](body_writer& out) -> task<> {
                         co_await out.write("he");
                         co_await out.flush();
                         co_await out.write("llo");
                     };
                     return response(200).body(http::stream(five, 5));
                 })
            .get("/short",
                 [](request&) {
                     const auto four = [](body_writer& out) -> task<> {
                         co_await out.write("1234");
                     };
                     return response(200).body(http::stream(four, 5));
                 })
            .get("/long",
                 [](request&) {
                     const auto six = [](body_writer& out) -> task<> {
                         co_await out.write("123456");
                     };
                     return response(200).body(http::stream(six, 5));
                 })
            .get("/throws",
                 [](request&) {
                     const auto fail = [](body_writer& out) -> task<> {
                         co_await out.write("a part");
                         co_await out.flush();
                         throw std::runtime_error("thrown");
                     };
                     return response(200).body(http::stream(fail));
                 })
            .get("/endless", [this](request&) { return endless(); })
            .post("/count", http::read_body([](request& q) -> task<response> {
                      std::size_t size = 0, sum = 0;
                      for (;;) {
                          const std::string_view piece = co_await q.incoming().read();
                          if (piece.empty()) break;
                          size += piece.size();
                          for (const char c : piece) sum += static_cast<unsigned char>(c);
                      }
                      co_return response::text(std::to_string(size) + " " + std::to_string(sum) +
                                               " " + std::string(q.trailer("check").value_or("-")));
                  }))
            .post("/ignore", http::read_body([](request&) -> task<response> {
                      co_return response::text("not read");
                  }))
            .post("/slowly", http::read_body([this](request& q) -> task<response> {
                      while (!go_on.load(acquire)) co_await http::pause(q, 1ms);
                      std::size_t size = 0;
                      for (;;) {
                          const std::size_t piece = (co_await q.incoming().read()).size();
                          if (piece == 0) break;
                          size += piece;
                      }
                      co_return response::text(std::to_string(size));
                  }))
            .post("/trailer",
                  [](request& q) {
                      return response::text(std::string(q.trailer("Check").value_or("-")));
                  })
            .post("/trailer-back", http::read_body(send_trailer_back))
            .get("/plain", [](request&) { return response::text("plain"); });
        return r;
    }
    static task<response> send_trailer_back(request& q) {
        while (!(co_await q.incoming().read()).empty()) {
        }
        const std::string check(q.trailer("Check").value_or("-"));
        const auto produce = [check](body_writer& out) -> task<> {
            co_await out.write("back");
            out.trailer("Check", check);
        };
        co_return response(200).body(http::stream(produce));
    }
    static response lines(request& q) {
        const auto n = *q.parameter<int>("n");
        const auto count = [n](body_writer& out) -> task<> {
            for (int i = 0; i != n; ++i) co_await out.write("line " + std::to_string(i) + "\n");
            out.trailer("Lines", std::to_string(n));
        };
        return response(200).body(http::stream(count)).content_type("text/plain");
    }
    response endless() {
        const auto produce = [this](body_writer& out) -> task<> {
            struct on_end {
                atomic<int>& ends;
                ~on_end() { ends.fetch_add(1, release); }
            } at_end{ended};
            const std::string piece(1000, 'x');
            for (;;) {
                co_await out.write(piece);
                produced.fetch_add(piece.size(), relaxed);
            }
        };
        return response(200).body(http::stream(produce));
    }
    static std::string lines_text(int n) {
        std::string all;
        for (int i = 0; i != n; ++i) all += "line " + std::to_string(i) + "\n";
        return all;
    }
    static std::string post(std::string_view path, std::string_view body) {
        return "POST " + std::string(path) +
               " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
               "\r\n\r\n" + std::string(body);
    }
    static std::string chunked(std::string_view path, std::string_view body, std::size_t piece) {
        std::string all = "POST " + std::string(path) +
                          " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        while (!body.empty()) {
            char size[16];
            const std::string_view part = body.substr(0, piece);
            std::snprintf(size, sizeof size, "%zx\r\n", part.size());
            all.append(size).append(part).append("\r\n");
            body.remove_prefix(part.size());
        }
        return all + "0\r\nCheck: sum\r\n\r\n";
    }

    atomic<std::size_t> produced{0};
    atomic<int> ended{0};
    atomic<bool> go_on{false};
};

constexpr std::string_view get_plain = "GET /plain HTTP/1.1\r\nHost: a\r\n\r\n";

INSTANTIATE_TEST_SUITE_P(ways, bodies_on, testing::ValuesIn(every_way), name_of_way);

TEST_P(bodies_on, rfc9112_7_1_a_body_of_unknown_length_is_chunked_with_trailers) {
    running_server server(options_of(GetParam()), routes());
    client c(server.port());
    for (const int n : {0, 1, 100, 20'000}) {
        ASSERT_TRUE(c.send("GET /lines/" + std::to_string(n) + " HTTP/1.1\r\nHost: a\r\n\r\n" +
                           std::string(get_plain)));
        const std::string answer = c.receive();
        EXPECT_NE(answer.find("\r\nTransfer-Encoding: chunked\r\n"), std::string::npos);
        EXPECT_EQ(answer.find("Content-Length"), std::string::npos);
        EXPECT_EQ(body_of(answer), lines_text(n));
        EXPECT_EQ(c.trailers(), "Lines: " + std::to_string(n) + "\r\n");
        EXPECT_EQ(body_of(c.receive()), "plain");
    }
}

TEST_P(bodies_on, rfc9112_6_1_for_an_http_1_0_client_the_end_of_the_connection_ends_the_body) {
    running_server server(options_of(GetParam()), routes());
    client c(server.port());
    ASSERT_TRUE(c.send("GET /lines/2000 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    bool reset = false;
    const std::string answer = c.receive_all(&reset);
    EXPECT_FALSE(reset);
    EXPECT_EQ(answer.find("Transfer-Encoding"), std::string::npos);
    EXPECT_NE(answer.find("\r\nConnection: close\r\n"), std::string::npos);
    EXPECT_EQ(body_of(answer), lines_text(2000));
}

TEST_P(bodies_on, a_declared_length_is_sent_and_enforced) {
    running_server server(options_of(GetParam()), routes());
    client c(server.port());
    ASSERT_TRUE(c.send("GET /declared HTTP/1.1\r\nHost: a\r\n\r\n" + std::string(get_plain)));
    const std::string answer = c.receive();
    EXPECT_NE(answer.find("\r\nContent-Length: 5\r\n"), std::string::npos);
    EXPECT_EQ(body_of(answer), "hello");
    EXPECT_EQ(body_of(c.receive()), "plain");
}

TEST_P(bodies_on, rfc9112_8_an_incomplete_body_ends_with_a_reset) {
    http::server_options o = options_of(GetParam());
    o.on_exception = [](std::exception_ptr) {};
    running_server server(std::move(o), routes());
    for (const char* const path : {"/short", "/long", "/throws"}) {
        client c(server.port());
        ASSERT_TRUE(c.send("GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n"));
        bool reset = false;
        const std::string answer = c.receive_all(&reset);
        EXPECT_TRUE(reset) << path << answer;
        EXPECT_EQ(answer.find("\r\n0\r\n"), std::string::npos) << answer;
    }
    EXPECT_EQ(server->statistics().exceptions, 3u);
}

TEST_P(bodies_on, rfc9110_9_3_2_head_has_the_fields_and_runs_no_producer) {
    running_server server(options_of(GetParam()), routes());
    client c(server.port());
    ASSERT_TRUE(c.send("HEAD /endless HTTP/1.1\r\nHost: a\r\n\r\n" + std::string(get_plain)));
    EXPECT_NE(c.receive(true).find("Transfer-Encoding: chunked"), std::string::npos);
    EXPECT_EQ(body_of(c.receive()), "plain");
    EXPECT_EQ(produced.load(relaxed), 0u);
}

TEST_P(bodies_on, a_client_that_does_not_read_stops_the_producer_and_memory_stays_bounded) {
    http::server_options o = options_of(GetParam());
    o.timeouts.write = 200ms;
    o.timeouts.rate_min = 1u << 30;
    running_server server(std::move(o), routes());
    client c(server.port());
    const int small = 4096;
    ::setsockopt(c.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    ASSERT_TRUE(c.send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n"));
    while (ended.load(acquire) == 0) std::this_thread::yield();
    // The kernel's buffers, and one piece of the server's.
    EXPECT_LT(produced.load(relaxed), 16u << 20);
    EXPECT_EQ(server->statistics().timed_out, 1u);
    while (server->statistics().open != 0) std::this_thread::yield();
}

TEST_P(bodies_on, a_client_that_goes_away_stops_the_producer) {
    running_server server(options_of(GetParam()), routes());
    {
        client c(server.port());
        ASSERT_TRUE(c.send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n"));
        while (produced.load(relaxed) == 0) std::this_thread::yield();
    }
    while (ended.load(acquire) == 0) std::this_thread::yield();
    while (server->statistics().open != 0) std::this_thread::yield();
    EXPECT_EQ(server->statistics().stopped, 1u);
}

TEST_P(bodies_on, a_handler_reads_its_body_in_pieces_whatever_its_framing_and_delivery) {
    running_server server(options_of(GetParam()), routes());
    client c(server.port());
    for (const std::size_t size : {0u, 1u, 5000u, 1'000'000u}) {
        const std::string body = pattern(size);
        std::size_t sum = 0;
        for (const char byte : body) sum += static_cast<unsigned char>(byte);
        const std::string expected = std::to_string(size) + " " + std::to_string(sum);
        ASSERT_TRUE(c.send(post("/count", body) + std::string(get_plain)));
        EXPECT_EQ(body_of(c.receive()), expected + " -");
        EXPECT_EQ(body_of(c.receive()), "plain");
        ASSERT_TRUE(c.send(chunked("/count", body, 777) + std::string(get_plain)));
        EXPECT_EQ(body_of(c.receive()), expected + " sum");
        EXPECT_EQ(body_of(c.receive()), "plain");
    }
    const std::string bytewise = chunked("/count", "abc", 2) + post("/count", "abc");
    for (const char byte : bytewise) ASSERT_TRUE(c.send({&byte, 1}));
    EXPECT_EQ(body_of(c.receive()), "3 294 sum");
    EXPECT_EQ(body_of(c.receive()), "3 294 -");
}

TEST_P(bodies_on, rfc9110_6_5_trailers_of_a_whole_body_reach_the_handler) {
    running_server server(options_of(GetParam()), routes());
    client c(server.port());
    ASSERT_TRUE(c.send(chunked("/trailer", "abc", 2) + post("/trailer", "abc")));
    EXPECT_EQ(body_of(c.receive()), "sum");
    EXPECT_EQ(body_of(c.receive()), "-");
}

TEST_P(bodies_on, trailers_of_a_request_and_of_its_answer_cross_also_when_it_is_compressed) {
    http::router r = routes();
    r.use(http::compression());
    running_server server(options_of(GetParam()), std::move(r));
    client c(server.port());
    for (int i = 0; i != 3; ++i) {
        ASSERT_TRUE(c.send(chunked("/trailer-back", "abc", 2) + post("/trailer-back", "abc")));
        EXPECT_EQ(body_of(c.receive()), "back");
        EXPECT_EQ(c.trailers(), "Check: sum\r\n");
        EXPECT_EQ(body_of(c.receive()), "back");
        EXPECT_EQ(c.trailers(), "Check: -\r\n");
    }
    const std::string get = "GET /lines/1000 HTTP/1.";
    ASSERT_TRUE(c.send(get + "1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n"));
    const std::string packed = c.receive();
    EXPECT_NE(packed.find("\r\nContent-Encoding: gzip\r\n"), packed.npos);
    EXPECT_EQ(c.trailers(), "Lines: 1000\r\n");
    // HTTP/1.0 has no place for them.
    ASSERT_TRUE(c.send(get + "0\r\nHost: a\r\n\r\n"));
    const std::string old = c.receive_all();
    EXPECT_EQ(body_of(old), lines_text(1000));
}

TEST_P(bodies_on, rfc9110_10_1_1_continue_is_sent_when_the_handler_begins_to_read) {
    running_server server(options_of(GetParam()), routes());
    const auto head = [](const char* path) {
        return "POST " + std::string(path) +
               " HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n";
    };
    client reads(server.port());
    ASSERT_TRUE(reads.send(head("/count")));
    EXPECT_EQ(reads.receive(), "HTTP/1.1 100 Continue\r\n\r\n");
    ASSERT_TRUE(reads.send("abc"));
    EXPECT_EQ(body_of(reads.receive()), "3 294 -");
    client ignored(server.port());
    ASSERT_TRUE(ignored.send(head("/ignore")));
    const std::string answer = ignored.receive();
    EXPECT_EQ(body_of(answer), "not read");
    EXPECT_NE(answer.find("\r\nConnection: close\r\n"), std::string::npos);
}

TEST_P(bodies_on, a_malformed_or_too_large_body_is_refused_even_while_it_is_read) {
    http::server_options o = options_of(GetParam());
    o.streamed_body_bytes_max = 1000;
    o.limits.body_bytes_max = 500;
    running_server server(std::move(o), routes());
    struct wrong {
        std::string request;
        int status;
    };
    for (const wrong& w :
         {wrong{"POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd",
                400},
          wrong{post("/count", pattern(1001)), 413},
          wrong{chunked("/count", pattern(1001), 100), 413},
          wrong{post("/trailer", pattern(501)), 413}}) {
        client c(server.port());
        (void)c.send(w.request);
        EXPECT_TRUE(has_status(c.receive(), w.status)) << w.request.substr(0, 60);
        EXPECT_TRUE(c.ended());
    }
    client c(server.port());
    ASSERT_TRUE(c.send(post("/count", pattern(1000))));
    EXPECT_TRUE(has_status(c.receive(), 200));
}

TEST_P(bodies_on, a_handler_that_does_not_read_slows_its_client) {
    running_server server(options_of(GetParam()), routes());
    client c(server.port());
    const std::string body = pattern(8u << 20);
    std::thread sender([&] { (void)c.send(post("/slowly", body)); });
    // Little is received while the handler does not read: what arrived with the head, and the
    // read-ahead.
    client other(server.port());
    for (int i = 0; i != 20; ++i) {
        ASSERT_TRUE(other.send(get_plain));
        EXPECT_EQ(body_of(other.receive()), "plain");
    }
    EXPECT_LT(server->statistics().bytes_received, 100'000u);
    go_on.store(true, release);
    EXPECT_EQ(body_of(c.receive()), std::to_string(body.size()));
    sender.join();
}

TEST_P(bodies_on, a_client_that_leaves_during_its_body_stops_the_handler) {
    running_server server(options_of(GetParam()), routes());
    {
        client c(server.port());
        ASSERT_TRUE(c.send("POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc"));
        while (server->statistics().bytes_received == 0) std::this_thread::yield();
    }
    while (server->statistics().open != 0) std::this_thread::yield();
    EXPECT_EQ(server->statistics().stopped, 1u);
}

TEST_P(bodies_on, a_second_read_at_the_same_time_is_refused_and_the_body_can_still_be_read) {
    atomic<bool> refused{false};
    http::router r = routes();
    r.post("/both", http::read_body([](request& q) -> task<response> {
               co_await execution::when_all(q.incoming().read(), q.incoming().read());
               co_return response::text("read");
           }))
        .post("/both-then-alone", http::read_body([&](request& q) -> task<response> {
                  std::string said;
                  try {
                      co_await execution::when_all(q.incoming().read(), q.incoming().read());
                  } catch (const std::logic_error& refusal) {
                      said = refusal.what();
                  }
                  refused.store(true, release);
                  // What was stopped has taken nothing.
                  for (std::string_view piece = co_await q.incoming().read(); !piece.empty();) {
                      said.append(piece);
                      piece = co_await q.incoming().read();
                  }
                  co_return response::text(said);
              }));
    http::server_options o = options_of(GetParam());
    atomic<int> faults{0};
    o.on_exception = [&](const std::exception_ptr&) { faults.fetch_add(1, relaxed); };
    running_server server(std::move(o), std::move(r));
    const std::string head = "HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n";
    client first(server.port());
    ASSERT_TRUE(first.send("POST /both " + head + "\r\n"));
    EXPECT_TRUE(has_status(first.receive(), 500));
    EXPECT_EQ(faults.load(relaxed), 1);
    client second(server.port());
    ASSERT_TRUE(second.send("POST /both-then-alone " + head + "\r\n"));
    while (!refused.load(acquire)) std::this_thread::yield();
    ASSERT_TRUE(second.send("hello"));
    const std::string answer = second.receive();
    EXPECT_TRUE(body_of(answer).ends_with("hello")) << answer;
    EXPECT_TRUE(body_of(answer).starts_with("a body is read twice")) << answer;
    EXPECT_EQ(faults.load(relaxed), 1);
}

}  // namespace
