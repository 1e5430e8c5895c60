// http/server.hpp on both rings, against a blocking client: framing, limits, timeouts, drain.
#include <coppice/http/multiplexer.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/http/server.hpp>
#include <coppice/pool/thread_pool.hpp>

#include "allocations.hpp"
#include "running_server.hpp"

#include <gtest/gtest.h>

#include <dirent.h>
#include <algorithm>
#include <cerrno>
#include <future>
#include <stdexcept>
#include <thread>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;
using http::request;
using http::response;

constexpr std::string_view get_plain = "GET /plaintext HTTP/1.1\r\nHost: a\r\n\r\n";

class server_on : public testing::TestWithParam<way> {
protected:
    http::server_options options() { return options_of(GetParam()); }
    http::router routes() {
        http::router r;
        r.get("/plaintext", [](request&) { return response::text("Hello, World!"); })
            .get("/throw", [](request&) -> response { throw std::runtime_error("thrown"); })
            .get("/async",
                 [](request& q) -> task<response> {
                     co_await http::pause(q, 2ms);
                     co_return response::text("waited");
                 })
            .get("/async-throw",
                 [](request&) -> task<response> {
                     co_await pool.get_scheduler().schedule();
                     throw std::runtime_error("thrown");
                 })
            .get("/pool",
                 [](request&) -> task<response> {
                     co_await pool.get_scheduler().schedule();
                     co_return pool.is_current() ? response::text("on the pool")
                                                 : response::text("elsewhere");
                 })
            .get("/big", [](request&) { return response::text(std::string(4u << 20, 'x')); })
            .get("/close", [](request&) { return response::text("bye").close(); })
            .get("/name/{name}",
                 [](request& q) {
                     return response::text(q.parameter("name").value_or("undecodable"));
                 })
            .post("/echo", [](request& q) { return response::text(std::string(q.body())); });
        return r;
    }
    static inline thread_pool pool{2};
};

INSTANTIATE_TEST_SUITE_P(ways, server_on, testing::ValuesIn(every_way), name_of_way);

TEST_P(server_on, answers_request_after_request_on_one_connection) {
    running_server server(options(), routes());
    client c(server.port());
    for (int i = 0; i != 3; ++i) {
        ASSERT_TRUE(c.send(get_plain));
        const std::string answer = c.receive();
        EXPECT_TRUE(has_status(answer, 200)) << answer;
        EXPECT_EQ(body_of(answer), "Hello, World!");
        EXPECT_EQ(answer.find("Connection:"), std::string::npos);
    }
}

TEST_P(server_on, answers_pipelined_requests_in_order_fast_and_slow_ones) {
    running_server server(options(), routes());
    client c(server.port());
    std::string all;
    for (int i = 0; i != 40; ++i) {
        const char* const path = i % 5 == 3 ? "async" : i % 5 == 4 ? "pool" : nullptr;
        all += "GET /" + (path ? std::string(path) : "name/" + std::to_string(i)) +
               " HTTP/1.1\r\nHost: a\r\n\r\n";
    }
    ASSERT_TRUE(c.send(all));
    for (int i = 0; i != 40; ++i) {
        const std::string answer = c.receive();
        EXPECT_EQ(body_of(answer), i % 5 == 3   ? "waited"
                                   : i % 5 == 4 ? "on the pool"
                                                : std::to_string(i));
    }
}

TEST_P(server_on, a_request_may_arrive_byte_by_byte) {
    running_server server(options(), routes());
    client c(server.port());
    const std::string request =
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" + std::string(get_plain);
    for (const char byte : request) ASSERT_TRUE(c.send({&byte, 1}));
    EXPECT_EQ(body_of(c.receive()), "hello");
    EXPECT_EQ(body_of(c.receive()), "Hello, World!");
}

TEST_P(server_on,
       fixed_and_chunked_bodies_of_any_size_arrive_whole_and_the_next_request_is_answered) {
    running_server server(options(), routes());
    client c(server.port());
    for (const std::size_t size : {0u, 1u, 4000u, 5000u, 100'000u, 3'000'000u}) {
        std::string body(size, ' ');
        for (std::size_t i = 0; i != size; ++i) body[i] = static_cast<char>('a' + i % 23);
        ASSERT_TRUE(c.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                           std::to_string(size) + "\r\n\r\n" + body + std::string(get_plain)));
        EXPECT_EQ(body_of(c.receive()), body) << size;
        EXPECT_EQ(body_of(c.receive()), "Hello, World!");
        std::string chunked =
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        for (std::size_t at = 0; at < size; at += 777) {
            const std::string_view piece = std::string_view(body).substr(at, 777);
            char length[16];
            std::snprintf(length, sizeof length, "%zx\r\n", piece.size());
            chunked.append(length).append(piece).append("\r\n");
        }
        ASSERT_TRUE(c.send(chunked + "0\r\nTrailer: t\r\n\r\n" + std::string(get_plain)));
        EXPECT_EQ(body_of(c.receive()), body) << size;
        EXPECT_EQ(body_of(c.receive()), "Hello, World!");
    }
}

TEST_P(server_on, a_client_that_expects_100_gets_it_before_its_body) {
    running_server server(options(), routes());
    client c(server.port());
    ASSERT_TRUE(
        c.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
               "Expect: 100-continue\r\n\r\n"));
    EXPECT_EQ(c.receive(), "HTTP/1.1 100 Continue\r\n\r\n");
    ASSERT_TRUE(c.send("ok"));
    EXPECT_EQ(body_of(c.receive()), "ok");
}

TEST_P(server_on, head_has_the_fields_of_get_and_no_body) {
    running_server server(options(), routes());
    client c(server.port());
    ASSERT_TRUE(c.send("HEAD /plaintext HTTP/1.1\r\nHost: a\r\n\r\n" + std::string(get_plain)));
    const std::string head = c.receive(true);
    EXPECT_NE(head.find("Content-Length: 13"), std::string::npos);
    EXPECT_EQ(body_of(c.receive()), "Hello, World!");
}

TEST_P(server_on, an_idle_connection_holds_one_block_of_memory) {
    running_server server(options(), routes());
    std::vector<std::unique_ptr<client>> clients;
    clients.reserve(500);
    const auto add = [&](int count) {
        for (; count != 0; --count) {
            clients.push_back(std::make_unique<client>(server.port()));
            ASSERT_TRUE(clients.back()->send(get_plain));
            ASSERT_EQ(body_of(clients.back()->receive()), "Hello, World!");
        }
    };
    add(100);
    const std::size_t before = live_allocations();
    add(400);
    // A client here has two blocks: itself and what it has received. The rest are slabs and free
    // lists.
    EXPECT_LE(live_allocations() - before, 400u * 3 + 60);
}

TEST_P(server_on, announces_that_it_closes_and_closes) {
    running_server server(options(), routes());
    for (const std::string_view request :
         {"GET /close HTTP/1.1\r\nHost: a\r\n\r\n",
          "GET /plaintext HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
          "GET /plaintext HTTP/1.0\r\n\r\n"}) {
        client c(server.port());
        ASSERT_TRUE(c.send(request));
        EXPECT_NE(c.receive().find("Connection: close"), std::string::npos) << request;
        EXPECT_TRUE(c.ended());
    }
    client old(server.port());
    ASSERT_TRUE(old.send("GET /plaintext HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    EXPECT_NE(old.receive().find("Connection: keep-alive"), std::string::npos);
    ASSERT_TRUE(old.send(get_plain));
    EXPECT_TRUE(has_status(old.receive(), 200));
}

TEST_P(server_on, refuses_invalid_requests_with_their_code_and_closes) {
    running_server server(options(), routes());
    struct wrong {
        std::string request;
        int status;
    };
    const std::string long_target(9000, 'a'), long_field(40'000, 'b');
    std::string many_fields;
    for (int i = 0; i != 101; ++i) many_fields += "A: b\r\n";
    for (const wrong& w : {
             wrong{"GET / HTTP/1.1\r\n\r\n", 400},  // no Host
             wrong{"GET / HTTP/1.1\r\nHost: a\r\nBad Name: x\r\n\r\n", 400},
             wrong{"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n",
                   400},
             wrong{"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
                   400},
             wrong{"GET /\r\n", 400},
             wrong{"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400},
             wrong{"GET /" + long_target + " HTTP/1.1\r\nHost: a\r\n\r\n", 414},
             wrong{"GET / HTTP/1.1\r\nHost: a\r\nX: " + long_field + "\r\n\r\n", 431},
             wrong{"GET / HTTP/1.1\r\nHost: a\r\n" + many_fields + "\r\n", 431},
             wrong{"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 8388609\r\n\r\n", 413},
             wrong{"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
                   501},
             wrong{"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
         }) {
        client c(server.port());
        // The server may close before everything is sent; its answer must still arrive.
        (void)c.send(w.request);
        bool reset = false;
        c.finish_sending();
        const std::string answer = c.receive_all(&reset);
        EXPECT_TRUE(has_status(answer, w.status)) << w.request.substr(0, 80) << "\n" << answer;
        EXPECT_NE(answer.find("Connection: close"), std::string::npos);
        EXPECT_FALSE(reset);
    }
}

TEST_P(server_on, an_https_target_is_misdirected_without_tls) {
    running_server server(options(), routes());
    client c(server.port());
    ASSERT_TRUE(c.send("GET https://a/plaintext HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_TRUE(has_status(c.receive(), 421));
    ASSERT_TRUE(c.send("GET http://a/plaintext HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_TRUE(has_status(c.receive(), 200));
}

TEST_P(server_on, unknown_paths_and_methods_are_answered_and_keep_the_connection) {
    running_server server(options(), routes());
    client c(server.port());
    ASSERT_TRUE(c.send("GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_TRUE(has_status(c.receive(), 404));
    ASSERT_TRUE(c.send("DELETE /plaintext HTTP/1.1\r\nHost: a\r\n\r\n"));
    const std::string answer = c.receive();
    EXPECT_TRUE(has_status(answer, 405));
    EXPECT_NE(answer.find("\r\nAllow: GET, HEAD\r\n"), std::string::npos) << answer;
    ASSERT_TRUE(c.send("GET /name/a%2Fb HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_EQ(body_of(c.receive()), "a/b");
}

TEST_P(server_on, an_exception_of_a_handler_reaches_the_owner_and_the_client_gets_500) {
    http::server_options o = options();
    atomic<int> thrown{0};
    o.on_exception = [&](std::exception_ptr e) {
        EXPECT_THROW(std::rethrow_exception(e), std::runtime_error);
        thrown.fetch_add(1, relaxed);
    };
    running_server server(std::move(o), routes());
    client c(server.port());
    for (const char* const path : {"/throw", "/async-throw"}) {
        ASSERT_TRUE(c.send("GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n"));
        EXPECT_TRUE(has_status(c.receive(), 500));
    }
    EXPECT_EQ(thrown.load(relaxed), 2);
    EXPECT_EQ(server->statistics().exceptions, 2u);
}

TEST_P(server_on, statistics_count_connections_and_answers) {
    running_server server(options(), routes());
    {
        client c(server.port());
        ASSERT_TRUE(c.send(get_plain));
        (void)c.receive();
        ASSERT_TRUE(c.send("GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n"));
        (void)c.receive();
        const http::server_statistics s = server->statistics();
        EXPECT_EQ(s.open, 1u);
    }
    client second(server.port());
    ASSERT_TRUE(second.send(get_plain));
    (void)second.receive();
    http::server_statistics s = server->statistics();
    EXPECT_EQ(s.accepted, 2u);
    EXPECT_EQ(s.requests, 3u);
    EXPECT_EQ(s.by_status[100], 2u);
    EXPECT_EQ(s.by_status[304], 1u);
    EXPECT_EQ(s.loops.size(), loops_of(GetParam()));
    EXPECT_GE(s.latency.total(), 1u);  // counted after the write; the client may be faster
}

TEST_P(server_on, slow_and_silent_clients_are_closed_while_others_are_served) {
    http::server_options o = options();
    o.timeouts.header = 60ms;
    o.timeouts.idle = 80ms;
    o.timeouts.body = 60ms;
    running_server server(std::move(o), routes());
    client idle(server.port()), header(server.port()), body(server.port()), trickle(server.port());
    ASSERT_TRUE(header.send("GET / HT"));
    ASSERT_TRUE(body.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe"));
    ASSERT_TRUE(trickle.send("GET /"));
    // One byte now and then does not extend the limit for a phase.
    bool closed = false;
    for (const char byte : std::string(4000, 'x')) {
        client other(server.port());
        ASSERT_TRUE(other.send(get_plain));
        EXPECT_TRUE(has_status(other.receive(), 200));
        if (!trickle.send(std::string_view(&byte, 1))) {
            closed = true;
            break;
        }
    }
    EXPECT_TRUE(closed);
    EXPECT_TRUE(header.ended());
    EXPECT_TRUE(body.ended());
    EXPECT_TRUE(idle.ended());
    EXPECT_GE(server->statistics().timed_out, 4u);
}

TEST_P(server_on, a_client_that_does_not_read_is_closed) {
    http::server_options o = options();
    o.timeouts.write = 50ms;
    o.timeouts.rate_min = 1u << 30;
    running_server server(std::move(o), routes());
    client c(server.port());
    const int small = 4096;
    ::setsockopt(c.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    for (int i = 0; i != 4; ++i) ASSERT_TRUE(c.send("GET /big HTTP/1.1\r\nHost: a\r\n\r\n"));
    while (server->statistics().timed_out == 0) std::this_thread::yield();
}

TEST_P(server_on, drain_closes_idle_connections_answers_requests_in_flight_and_ends_run) {
    std::promise<void> entered, go_on;
    http::router r = routes();
    r.get("/wait", [&](request&) -> task<response> {
        co_await pool.get_scheduler().schedule();
        entered.set_value();
        go_on.get_future().wait();
        co_return response::text("done");
    });
    running_server server(options(), std::move(r));
    client idle(server.port()), busy(server.port());
    ASSERT_TRUE(idle.send(get_plain));
    EXPECT_TRUE(has_status(idle.receive(), 200));
    ASSERT_TRUE(busy.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"));
    entered.get_future().wait();
    server->drain();
    EXPECT_TRUE(idle.ended());
    while (client(server.port()).connected()) std::this_thread::yield();  // until every loop knows
    go_on.set_value();
    const std::string answer = busy.receive();
    EXPECT_EQ(body_of(answer), "done");
    EXPECT_NE(answer.find("Connection: close"), std::string::npos);
    EXPECT_TRUE(busy.ended());
}

TEST_P(server_on, drain_gives_a_partly_received_request_its_time_and_then_ends_it) {
    http::server_options o = options();
    o.timeouts.drain_request = 30ms;
    running_server server(std::move(o), routes());
    client half(server.port());
    ASSERT_TRUE(half.send("GET /plain"));
    while (server->statistics().bytes_received == 0) std::this_thread::yield();
    server->drain();
    EXPECT_TRUE(half.ended());
}

TEST_P(server_on, a_drain_before_run_makes_run_return) {
    http::server server(options(), routes());
    server.drain();
    server.run();
}

TEST_P(server_on, a_port_in_use_is_an_error_even_for_servers_that_share_ports) {
    running_server server(options(), routes());
    http::server_options o = options();
    o.endpoint = io::loopback(server.port());
    EXPECT_THROW(http::server(std::move(o), routes()), std::system_error);
}

int open_files() {
    int count = 0;
    DIR* const directory = ::opendir("/proc/self/fd");
    while (::readdir(directory) != nullptr) ++count;
    ::closedir(directory);
    return count;
}

TEST_P(server_on, vanishing_clients_leave_nothing_open) {
    const int before = open_files();
    {
        running_server server(options(), routes());
        for (int i = 0; i != 200; ++i) {
            client c(server.port());
            const std::string_view part = get_plain.substr(0, static_cast<std::size_t>(i) % 40);
            ASSERT_TRUE(c.send(part));
            if (i % 3 == 0) {
                const linger now{1, 0};
                ::setsockopt(c.fd(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
            }
        }
        client last(server.port());
        ASSERT_TRUE(last.send(get_plain));
        EXPECT_TRUE(has_status(last.receive(), 200));
    }
    EXPECT_EQ(open_files(), before);
}

TEST_P(server_on, a_request_allocates_nothing_in_steady_state) {
    running_server server(options(), routes());
    // Waits until every loop has started and served, which may take a while on a busy machine.
    const auto every_loop_served = [&] {
        const http::server_statistics s = server->statistics();
        return std::all_of(s.loops.begin(), s.loops.end(), [](auto& l) { return l.requests != 0; });
    };
    while (!every_loop_served()) {
        client first(server.port());
        ASSERT_TRUE(first.send(get_plain));
        EXPECT_TRUE(has_status(first.receive(), 200));
    }
    client c(server.port());
    const auto once = [&](std::string_view bytes) {
        char buffer[512];
        ::send(c.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        ssize_t n;
        do {
            n = ::recv(c.fd(), buffer, sizeof buffer, 0);
        } while (n < 0 && errno == EINTR);
        return n > 0;
    };
    // The state is steady once each thread of the pool has run a handler, whenever that happens.
    std::size_t allocated = 1;
    for (int round = 0; round != 50 && allocated != 0; ++round) {
        const coppice::test::allocation_count count;
        for (int i = 0; i != 1000; ++i) ASSERT_TRUE(once(get_plain));
        allocated = count.so_far();
    }
    EXPECT_EQ(allocated, 0u);
}

TEST(server, invalid_options_are_refused) {
    http::server_options o;
    o.endpoint = io::loopback(0);
    o.threads = 0;
    EXPECT_THROW(http::server(o, http::router()), std::invalid_argument);
    o.threads = 2;
    o.model = http::model::single;
    EXPECT_THROW(http::server(o, http::router()), std::invalid_argument);
}

}  // namespace
