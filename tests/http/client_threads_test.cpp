// http::client used on threads other than its loop's: handlers on a pool, pools, plain threads.
#include <coppice/exec/scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/http/client.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/stop/inplace.hpp>

#include "asking.hpp"
#include "running_server.hpp"
#include "scripted_server.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;
using http::request;
using http::response;

// One client for each loop of a server. The handlers own it, and are destroyed before their loops.
class clients {
public:
    void make(io::context& loop) {
        const std::lock_guard lock(mutex_);
        made_.emplace(&loop, std::make_unique<http::client>(loop));
    }
    http::client& of(io::context& loop) {
        const std::lock_guard lock(mutex_);
        return *made_.at(&loop);
    }

private:
    std::mutex mutex_;
    std::map<io::context*, std::unique_ptr<http::client>> made_;
};

task<response> ask_twice(request& q, http::client& upstream, io::endpoint to,
                         atomic<int>& elsewhere) {
    if (!q.loop().is_current()) elsewhere.fetch_add(1, relaxed);
    std::string both;
    for (int i = 0; i != 2; ++i) both += (co_await upstream.get(to, "/inner")).body();
    co_return response::text(both);
}

class client_of_loop : public testing::TestWithParam<way> {};
INSTANTIATE_TEST_SUITE_P(ways, client_of_loop, testing::ValuesIn(every_way), name_of_way);

TEST_P(client_of_loop, a_handler_sends_requests_through_it_wherever_the_handler_runs) {
    running_server other(options_of(every_way[0]), [] {
        http::router r;
        r.get("/inner", [](request&) { return response::text("inner"); });
        return r;
    }());
    auto upstream = std::make_shared<clients>();
    atomic<int> elsewhere{0};
    http::router routes;
    routes.get("/outer", http::offload([&other, &elsewhere, upstream](request& q) {
                   return ask_twice(q, upstream->of(q.loop()), other->local(), elsewhere);
               }));
    http::server_options o = options_of(GetParam());
    o.on_loop = [upstream](io::context& loop) { upstream->make(loop); };
    upstream.reset();
    running_server server(std::move(o), std::move(routes));
    std::vector<std::thread> visitors;
    for (int v = 0; v != 4; ++v) {
        visitors.emplace_back([&] {
            client c(server.port());
            for (int i = 0; i != 25; ++i) {
                c.send("GET /outer HTTP/1.1\r\nHost: a\r\n\r\n");
                EXPECT_EQ(body_of(c.receive()), "innerinner");
            }
        });
    }
    for (std::thread& v : visitors) v.join();
    EXPECT_EQ(elsewhere.load(relaxed) != 0, GetParam().model != http::model::single);
}

class client_elsewhere : public testing::TestWithParam<io::backend> {
protected:
    client_elsewhere()
        : server(options_of(every_way[0]), routes()), net(GetParam()), asking(net.loop) {}
    ~client_elsewhere() override {
        net.run([](http::client& c) -> task<> {
            c.close_idle();
            co_return;
        }(asking));
    }
    static http::router routes() {
        http::router r;
        r.get("/plain", [](request&) { return response::text("plain"); })
            .get("/pause",
                 [](request& q) -> task<response> {
                     co_await http::pause(q, 1h);
                     co_return response::text("never");
                 })
            .post("/echo", [](request& q) { return response::text(std::string(q.body())); });
        return r;
    }
    running_server server;
    network net;
    http::client asking;
};
INSTANTIATE_TEST_SUITE_P(rings, client_elsewhere,
                         testing::Values(io::backend::epoll, io::backend::uring), name_of_ring);

task<> ask_and_come_back(http::client& c, io::endpoint to, thread_pool& pool) {
    for (int i = 0; i != 20; ++i) {
        EXPECT_TRUE(pool.is_current());
        EXPECT_EQ((co_await c.get(to, "/plain")).body(), "plain");
    }
    EXPECT_TRUE(pool.is_current());
}

TEST_P(client_elsewhere, tasks_on_a_pool_send_requests_side_by_side_and_return_to_their_pool) {
    thread_pool pool(2);
    execution::counting_scope scope;
    for (int i = 0; i != 8; ++i) {
        execution::spawn(execution::starts_on(pool.get_scheduler(),
                                              ask_and_come_back(asking, server->local(), pool)) |
                             execution::upon_error([](auto&&) noexcept { ADD_FAILURE(); }),
                         scope.get_token());
    }
    this_thread::sync_wait(scope.join());
}

TEST_P(client_elsewhere, a_plain_thread_waits_for_an_answer) {
    const auto answer = this_thread::sync_wait(asking.get(server->local(), "/plain"));
    ASSERT_TRUE(answer);
    EXPECT_EQ(std::get<0>(*answer).body(), "plain");
}

TEST_P(client_elsewhere, sources_and_sinks_run_on_the_loop) {
    std::string received;
    http::client_request r;
    r.to = server->local();
    r.target = "/echo";
    r.method = "POST";
    r.source = http::stream([this](http::body_writer& out) -> task<> {
        EXPECT_TRUE(net.loop.is_current());
        for (int i = 0; i != 1000; ++i) co_await out.write("0123456789");
    });
    r.sink = [this, &received](std::string_view piece) -> task<> {
        EXPECT_TRUE(net.loop.is_current());
        received += piece;
        co_return;
    };
    const auto answer = this_thread::sync_wait(asking.send(std::move(r)));
    ASSERT_TRUE(answer);
    EXPECT_EQ(std::get<0>(*answer).status(), 200);
    EXPECT_EQ(received.size(), 10'000u);
}

TEST_P(client_elsewhere, an_error_reaches_the_thread_that_sent_the_request) {
    http::client_request r;
    r.to = server->local();
    r.target = "/ /";
    EXPECT_THROW((void)this_thread::sync_wait(asking.send(r)), std::system_error);
}

// Stops by the request's own token and by its awaiter; before it starts, and at any moment after.
TEST_P(client_elsewhere, a_stop_at_any_moment_ends_a_request) {
    for (int i = 0; i != 60; ++i) {
        inplace_stop_source stop;
        if (i < 2) stop.request_stop();
        std::thread stopper([&, i] {
            for (int spins = i * 200; spins != 0; --spins) spin_hint();
            stop.request_stop();
        });
        if (i % 2 == 0) {
            EXPECT_FALSE(
                this_thread::sync_wait(asking.get(server->local(), "/pause", stop.get_token())));
        } else {
            EXPECT_FALSE(this_thread::sync_wait(
                execution::write_env(asking.get(server->local(), "/pause"),
                                     execution::prop(get_stop_token, stop.get_token()))));
        }
        stopper.join();
    }
    while (server->statistics().open != 0) std::this_thread::yield();
}

}  // namespace
