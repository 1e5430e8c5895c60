// Each request has its own time limit and stop, and exceptions that come too late are reported.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/http/body.hpp>
#include <coppice/io/context.hpp>
#include <coppice/pool/thread_pool.hpp>

#include "running_server.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;
using http::request;
using http::response;

std::string get(std::string_view path) {
    return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n";
}
time_point now_of(const request& r) {
    return r.loop().now();
}
void spin_until(const request& r, time_point when) {
    while (now_of(r) < when) std::this_thread::yield();
}

// The handlers of one connection, which come one after the other.
class own_time_of : public testing::TestWithParam<way> {
protected:
    http::router routes() {
        http::router routes;
        // Uses most of its time limit.
        routes.get("/long", http::offload([this](request& r) {
                       first_deadline = r.deadline();
                       spin_until(r, r.deadline() - 100ms);
                       return response::text("long");
                   }));
        // Continues after the time of the request before it.
        routes.get("/behind", http::offload([this](request& r) {
                       spin_until(r, first_deadline + 10ms);
                       return verdict(r);
                   }));
        // Ends when it gets a stop request.
        routes.get("/told", http::offload([this](request& r) {
                       first_deadline = r.deadline();
                       while (!r.stop_token().stop_requested()) std::this_thread::yield();
                       return response::text("told");
                   }));
        routes.get("/told-task", http::offload([this](request& r) -> task<response> {
                       first_deadline = r.deadline();
                       while (!r.stop_token().stop_requested()) std::this_thread::yield();
                       co_return response::text("told");
                   }));
        routes.get("/behind-task",
                   http::offload([this](request& r) -> task<response> { co_return verdict(r); }));
        // Where a plain handler runs, and one that writes its body in pieces.
        routes.get("/here", [this](request& r) { return verdict(r); });
        routes.get("/stream", [](request&) {
            return response().body(http::stream([](http::body_writer& out) -> task<> {
                const bool stopped = out.stop_token().stop_requested();
                co_await out.write(stopped ? "stopped" : "own");
            }));
        });
        return routes;
    }
    // If it is stopped before its own time is up, the stop of another request has reached it.
    response verdict(const request& r) const {
        const bool stopped = r.stop_token().stop_requested();
        if (stopped && now_of(r) < r.deadline()) return response::text("stopped");
        if (r.deadline() == first_deadline) return response::text("the same deadline");
        return response::text("own");
    }
    http::server_options options() const {
        http::server_options o = options_of(GetParam());
        o.timeouts.handler = 250ms;
        o.timeouts.handler_stop = 1h;
        return o;
    }
    time_point first_deadline{};
};

INSTANTIATE_TEST_SUITE_P(ways, own_time_of, testing::ValuesIn(every_way), name_of_way);

TEST_P(own_time_of, a_pipelined_request_on_the_pool_has_the_whole_time_limit) {
    running_server server(options(), routes());
    if (server->pool() == nullptr) return;
    client c(server.port());
    ASSERT_TRUE(c.send(get("/long") + get("/behind") + get("/behind-task")));
    EXPECT_EQ(body_of(c.receive()), "long");
    EXPECT_EQ(body_of(c.receive()), "own");
    EXPECT_EQ(body_of(c.receive()), "own");
}

TEST_P(own_time_of, stopping_a_late_request_does_not_stop_those_after_it) {
    for (const char* const first : {"/told", "/told-task"}) {
        running_server server(options(), routes());
        if (server->pool() == nullptr) return;
        client c(server.port());
        ASSERT_TRUE(c.send(get("/behind-task") + get(first) + get("/behind-task") + get(first) +
                           get("/here") + get(first) + get("/stream") + get("/behind")));
        EXPECT_EQ(body_of(c.receive()), "own");
        EXPECT_EQ(body_of(c.receive()), "told");
        EXPECT_EQ(body_of(c.receive()), "own");
        for (const char* const answer : {"told", "own", "told", "own", "own"})
            EXPECT_EQ(body_of(c.receive()), answer);
        EXPECT_GE(server->statistics().timed_out, 3u);
    }
}

TEST_P(own_time_of, a_request_that_waits_too_long_for_a_thread_gets_503_and_does_not_begin) {
    http::server_options o = options();
    o.timeouts.handler = 20ms;
    o.timeouts.handler_stop = 1ms;
    atomic<bool> go_on{false};
    atomic<int> begun{0};
    thread_pool pool(1);
    o.pool = &pool;
    http::router r;
    r.get("/plain", http::offload([&](request&) {
              begun.fetch_add(1, relaxed);
              return response::text("plain");
          }))
        .get("/task", http::offload([&](request&) -> task<response> {
                 begun.fetch_add(1, relaxed);
                 co_return response::text("task");
             }));
    execution::counting_scope scope;
    execution::spawn(pool.get_scheduler().schedule() | execution::then([&]() noexcept {
                         while (!go_on.load(acquire)) std::this_thread::yield();
                     }),
                     scope.get_token());
    {
        running_server server(std::move(o), std::move(r));
        if (server->pool() != nullptr) {
            for (const char* const path : {"/plain", "/task"}) {
                client c(server.port());
                ASSERT_TRUE(c.send(get(path)));
                EXPECT_TRUE(has_status(c.receive(), 503)) << path;
                EXPECT_TRUE(c.ended());
            }
        }
        go_on.store(true, release);
    }
    this_thread::sync_wait(scope.join());
    EXPECT_EQ(begun.load(relaxed), 0);
}

// Handlers that throw when no client waits for them any longer.
class late_throw_of : public testing::TestWithParam<way> {
protected:
    void wait_for_entry() const {
        while (!entered.load(acquire)) std::this_thread::yield();
    }
    [[noreturn]] void fail_when_told() {
        entered.store(true, release);
        while (!go_on.load(acquire)) std::this_thread::yield();
        throw std::runtime_error("late");
    }
    // Ignores the stop.
    task<> wait_deaf(io::context& loop) {
        entered.store(true, release);
        while (!go_on.load(acquire)) {
            co_await execution::unstoppable(loop.get_scheduler().schedule());
        }
    }
    static task<> read_to_end(request& r) {
        for (;;) {
            const std::string_view piece = co_await r.incoming().read();
            if (piece.empty()) co_return;
        }
    }
    http::router routes() {
        http::router routes;
        routes.get("/task", [this](request& r) -> task<response> {
            co_await wait_deaf(r.loop());
            throw std::runtime_error("late");
        });
        routes.get("/plain", http::offload([this](request&) -> response { fail_when_told(); }));
        routes.get("/pool-task", http::offload([this](request&) -> task<response> {
                       fail_when_told();
                       co_return response();
                   }));
        routes.post("/reads", http::read_body([this](request& r) -> task<response> {
                        co_await read_to_end(r);
                        co_await wait_deaf(r.loop());
                        throw std::runtime_error("late");
                    }));
        routes.get("/refuses", [this](request& r) -> task<response> {
            co_await wait_deaf(r.loop());
            throw http::status_error(400, "an answer and no fault");
        });
        // The filter's own fault, after the handler.
        routes
            .with([](request&, http::next_handler next) -> task<response> {
                const response made = co_await next();
                if (made.status() == 200) throw std::runtime_error("late");
                co_return made;
            })
            .get("/filtered", [this](request& r) -> task<response> {
                co_await wait_deaf(r.loop());
                co_return response::text("late");
            });
        return routes;
    }
    http::server_options options() {
        http::server_options o = options_of(GetParam());
        o.timeouts.handler = 20ms;
        o.timeouts.handler_stop = 1ms;
        o.on_exception = [this](const std::exception_ptr& error) {
            try {
                std::rethrow_exception(error);
            } catch (const std::runtime_error& known) {
                if (known.what() == std::string_view("late")) told.fetch_add(1, relaxed);
            }
        };
        return o;
    }
    static std::string question(std::string_view path) {
        if (path == "/reads") {
            return "POST /reads HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx";
        }
        return get(path);
    }
    atomic<bool> entered{false};
    atomic<bool> go_on{false};
    atomic<int> told{0};
};

INSTANTIATE_TEST_SUITE_P(ways, late_throw_of, testing::ValuesIn(every_way), name_of_way);

TEST_P(late_throw_of, an_exception_after_the_503_is_reported_once) {
    running_server server(options(), routes());
    for (const std::string_view path :
         {"/task", "/plain", "/pool-task", "/reads", "/filtered", "/refuses"}) {
        SCOPED_TRACE(path);
        if (path == "/plain" || path == "/pool-task") {
            if (server->pool() == nullptr) continue;  // it would block the loop
        }
        entered.store(false, relaxed);
        go_on.store(false, relaxed);
        told.store(0, relaxed);
        client c(server.port());
        ASSERT_TRUE(c.send(question(path)));
        EXPECT_TRUE(has_status(c.receive(), 503));
        go_on.store(true, release);
        c.reset();
        while (server->statistics().open != 0) std::this_thread::yield();
        // On a loaded machine it may have waited too long for a thread, and then does not begin.
        const bool begun = entered.load(acquire);
        EXPECT_EQ(told.load(relaxed), begun && path != "/refuses" ? 1 : 0);
    }
}

TEST_P(late_throw_of, an_exception_after_the_hard_stop_of_a_drain_is_reported_once) {
    for (const std::string_view path : {"/task", "/pool-task", "/reads", "/filtered"}) {
        SCOPED_TRACE(path);
        http::server_options o = options();
        o.timeouts.handler = o.timeouts.handler_stop = 1h;
        entered.store(false, relaxed);
        go_on.store(false, relaxed);
        told.store(0, relaxed);
        {
            running_server server(std::move(o), routes());
            if (path == "/pool-task" && server->pool() == nullptr) continue;
            client c(server.port());
            ASSERT_TRUE(c.send(question(path)));
            wait_for_entry();
            server->drain(0ms);
            // A request on the pool is cut off when it returns to its loop.
            const bool on_pool = GetParam().model == http::model::worker;
            if (!on_pool && path != "/pool-task") {
                EXPECT_TRUE(c.ended());
            }
            go_on.store(true, release);
        }
        EXPECT_EQ(told.load(relaxed), 1);
    }
}

}  // namespace
