// Answers that are read in pieces, and requests that wait for their turn at a host.
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/http/client.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/stop/inplace.hpp>

#include "asking.hpp"
#include "running_server.hpp"
#include "scripted_server.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;
using http::request;
using http::response;

class client_open : public testing::TestWithParam<io::backend> {
protected:
    http::router routes() {
        http::router r;
        r.get("/plain", [](request&) { return response::text("plain"); })
            .get("/empty", [](request&) { return response(204); })
            .get("/stream",
                 [](request&) {
                     const auto produce = [](http::body_writer& out) -> task<> {
                         for (int i = 0; i != 10'000; ++i) co_await out.write("0123456789");
                         out.trailer("X-End", "yes");
                     };
                     return response(200).body(http::stream(produce));
                 })
            .get("/endless",
                 [this](request&) {
                     const auto produce = [this](http::body_writer& out) -> task<> {
                         const scope_exit ended([this] { ends.fetch_add(1, release); });
                         const std::string piece(64 * 1024, 'x');
                         for (;;) {
                             co_await out.write(piece);
                             written.fetch_add(piece.size(), relaxed);
                         }
                     };
                     return response(200).body(http::stream(produce));
                 })
            .get("/pause",
                 [](request& q) -> task<response> {
                     co_await http::pause(q, 5ms);
                     co_return response::text("after a pause");
                 })
            .post("/echo", [](request& q) { return response::text(std::string(q.body())); });
        return r;
    }
    static http::server_options options() { return options_of(every_way[0]); }
    atomic<int> ends{0};
    atomic<std::size_t> written{0};
};
INSTANTIATE_TEST_SUITE_P(rings, client_open,
                         testing::Values(io::backend::epoll, io::backend::uring), name_of_ring);

task<std::string> rest_of(http::client_answer& answer) {
    std::string all;
    for (;;) {
        const std::string_view piece = co_await answer.read();
        if (piece.empty()) break;
        all += piece;
    }
    co_return all;
}

TEST_P(client_open, gives_the_head_at_once_and_the_body_in_pieces) {
    running_server server(options(), routes());
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client client(loop);
        for (int i = 0; i != 3; ++i) {
            http::client_answer answer = co_await client.open(asks(to, "/stream"));
            EXPECT_EQ(answer.status(), 200);
            EXPECT_EQ(answer.find("Transfer-Encoding"), "chunked");
            EXPECT_EQ(answer.trailer("X-End"), std::nullopt);
            EXPECT_EQ(client.idle_connections(), 0u);
            http::client_answer moved = std::move(answer);
            const std::string all = co_await rest_of(moved);
            EXPECT_EQ(all.size(), 100'000u);
            EXPECT_EQ(moved.trailer("X-End"), "yes");
            const std::string_view behind = co_await moved.read();
            EXPECT_EQ(behind, "");
            EXPECT_EQ(client.idle_connections(), 1u) << "its body has ended";
            http::client_answer empty = co_await client.open(asks(to, "/empty"));
            const std::string none = co_await rest_of(empty);
            EXPECT_EQ(none, "");
            http::client_request head = asks(to, "/plain");
            head.method = "HEAD";
            http::client_answer bodyless = co_await client.open(head);
            EXPECT_EQ(bodyless.find("Content-Length"), "5");
            const std::string nothing = co_await rest_of(bodyless);
            EXPECT_EQ(nothing, "");
        }
        const std::string large(300'000, 'y');
        http::client_request post = asks(to, "/echo");
        post.method = "POST";
        post.body = large;
        http::client_answer echo = co_await client.open(post);
        const std::string echoed = co_await rest_of(echo);
        EXPECT_EQ(echoed, large);
        EXPECT_EQ(client.connections_made(), 1u);
        http::client_request sunk = asks(to, "/plain");
        sunk.sink = [](std::string_view) -> task<> { co_return; };
        std::error_code error;
        try {
            (void)co_await client.open(sunk);
        } catch (const std::system_error& e) {
            error = e.code();
        }
        EXPECT_EQ(error, std::errc::invalid_argument);
    }(net.loop, server->local()));
}

TEST_P(client_open, nothing_is_received_between_reads_and_leaving_stops_the_server) {
    running_server server(options(), routes());
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to, atomic<std::size_t>& sent,
               atomic<int>& over) -> task<> {
        http::client client(loop);
        {
            http::client_answer answer = co_await client.open(asks(to, "/endless"));
            // The server fills the kernel's buffers, and then waits.
            std::size_t before = ~std::size_t{0};
            while (before != sent.load(relaxed)) {
                before = sent.load(relaxed);
                co_await loop.get_scheduler().schedule_after(50ms);
            }
            EXPECT_LT(before, 64u << 20);
            const std::string_view piece = co_await answer.read();
            EXPECT_FALSE(piece.empty());
            EXPECT_EQ(over.load(acquire), 0);
        }
        while (over.load(acquire) == 0) co_await loop.get_scheduler().schedule_after(1ms);
        EXPECT_EQ(client.idle_connections(), 0u);
        EXPECT_EQ((co_await client.get(to, "/plain")).body(), "plain");
    }(net.loop, server->local(), written, ends));
}

TEST_P(client_open, an_answer_is_read_and_dropped_on_any_thread_even_after_its_client) {
    running_server server(options(), routes());
    network net(GetParam());
    for (int i = 0; i != 10; ++i) {
        std::optional<http::client_answer> left;
        {
            http::client client(net.loop);
            auto [answer] =
                this_thread::sync_wait(client.open(asks(server->local(), "/stream"))).value();
            const std::string all = std::get<0>(this_thread::sync_wait(rest_of(answer)).value());
            EXPECT_EQ(all.size(), 100'000u);
            EXPECT_EQ(answer.trailer("X-End"), "yes");
            auto [endless] =
                this_thread::sync_wait(client.open(asks(server->local(), "/endless"))).value();
            left.emplace(std::move(endless));
            net.run([](http::client& c) -> task<> {
                c.close_idle();
                co_return;
            }(client));
        }
        std::thread([&left] { left.reset(); }).join();
        while (ends.load(acquire) != i + 1) std::this_thread::yield();
    }
}

TEST_P(client_open, a_body_that_breaks_is_an_error_each_time_it_is_read) {
    scripted_server server({"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart",
                            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\nx",
                            "HTTP/1.1 200 OK\r\n\r\npart"});
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client client(loop);
        for (int i = 0; i != 2; ++i) {
            http::client_answer answer = co_await client.open(asks(to, "/"));
            for (int j = 0; j != 2; ++j) {
                bool failed = false;
                try {
                    const std::string all = co_await rest_of(answer);
                } catch (const std::system_error&) {
                    failed = true;
                }
                EXPECT_TRUE(failed) << i << j;
            }
        }
        http::client_answer to_the_end = co_await client.open(asks(to, "/"));
        const std::string all = co_await rest_of(to_the_end);
        EXPECT_EQ(all, "part");
        EXPECT_EQ(client.idle_connections(), 0u);
    }(net.loop, server.where));
}

TEST_P(client_open, a_reset_is_an_error_each_time_even_if_the_connections_end_ends_the_body) {
    scripted_server server({"HTTP/1.1 200 OK\r\n\r\npart"}, scripted_server::ending::reset);
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client client(loop);
        http::client_answer answer = co_await client.open(asks(to, "/"));
        std::string said;
        for (int i = 0; i != 3; ++i) {
            std::error_code failed;
            try {
                const std::string all = co_await rest_of(answer);
            } catch (const std::system_error& error) {
                failed = error.code();
                if (i == 0) said = error.what();
                EXPECT_EQ(error.what(), said);
            }
            EXPECT_EQ(failed, std::errc::connection_aborted) << i;
        }
        EXPECT_TRUE(said.starts_with("http request: the answer's body: ")) << said;
    }(net.loop, server.where));
}

task<> ask_one(http::client& client, io::endpoint to, int number, std::vector<int>& order) {
    const auto got = co_await client.get(to, "/pause");
    EXPECT_EQ(got.body(), "after a pause");
    order.push_back(number);
}

TEST_P(client_open, requests_beyond_a_hosts_limit_wait_in_their_order) {
    running_server server(options(), routes());
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client_options o;
        o.connections_per_host_max = 1;
        http::client client(loop, o);
        std::vector<int> order;
        co_await execution::when_all(ask_one(client, to, 0, order), ask_one(client, to, 1, order),
                                     ask_one(client, to, 2, order), ask_one(client, to, 3, order));
        EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
        EXPECT_EQ(client.connections_made(), 1u);
    }(net.loop, server->local()));
}

TEST_P(client_open, stopping_a_waiting_request_leaves_the_others_in_order) {
    running_server server(options(), routes());
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client_options o;
        o.connections_per_host_max = 1;
        http::client client(loop, o);
        for (int i = 0; i != 20; ++i) {
            std::vector<int> order;
            inplace_stop_source own;
            std::optional<http::client_answer> holds(co_await client.open(asks(to, "/stream")));
            const auto stopped = [](http::client& c, io::endpoint where,
                                    inplace_stop_token token) -> task<> {
                const auto got =
                    co_await execution::stopped_as_optional(c.get(where, "/plain", token));
                EXPECT_FALSE(got.has_value());
            };
            const auto let_go = [](inplace_stop_source& s, std::optional<http::client_answer>& h,
                                   bool stop_first) -> task<> {
                if (stop_first) s.request_stop();
                h.reset();  // the next request has got its turn, but has not resumed
                if (!stop_first) s.request_stop();
                co_return;
            };
            co_await execution::when_all(
                stopped(client, to, own.get_token()), ask_one(client, to, 1, order),
                ask_one(client, to, 2, order), let_go(own, holds, i % 2 == 0));
            EXPECT_EQ(order, (std::vector<int>{1, 2}));
        }
    }(net.loop, server->local()));
}

TEST_P(client_open, after_a_failed_request_the_next_gets_its_turn) {
    io::endpoint nobody;
    ::close(listen_anywhere(nobody));
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client_options o;
        o.connections_per_host_max = 1;
        o.idle_connections_max = 0;
        http::client client(loop, o);
        const auto fails = [](http::client& c, io::endpoint where) -> task<> {
            const std::error_code error = co_await error_of(c, asks(where));
            EXPECT_EQ(error, std::errc::connection_refused);
        };
        co_await execution::when_all(fails(client, to), fails(client, to), fails(client, to));
        EXPECT_EQ(client.connections_made(), 3u);
    }(net.loop, nobody));
}

}  // namespace
