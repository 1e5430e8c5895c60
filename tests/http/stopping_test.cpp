// When the server stops waiting: clients that leave, deadlines, limits on connections, drains.
#include <coppice/exec/just.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/internal/request_origin.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/http/server.hpp>

#include "running_server.hpp"

#include <gtest/gtest.h>

#include <future>
#include <stdexcept>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;
using http::request;
using http::response;

constexpr std::string_view get_plain = "GET /plain HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr std::string_view get_pause = "GET /pause HTTP/1.1\r\nHost: a\r\n\r\n";

// Waits only for a stop, and completes inside the stop request.
struct until_told {
    using sender_concept = execution::sender_tag;
    using completion_signatures =
        execution::completion_signatures<execution::set_value_t(), execution::set_stopped_t()>;
    template <class Rcvr>
    class operation : immovable {
    public:
        using operation_state_concept = execution::operation_state_tag;
        explicit operation(Rcvr rcvr) noexcept : rcvr_(std::move(rcvr)) {}
        void start() & noexcept {
            callback_.construct(get_stop_token(execution::get_env(rcvr_)), on_stop{this});
            arrive();
        }

    private:
        struct on_stop {
            operation* self;
            void operator()() const noexcept { self->arrive(); }
        };
        // The later of start() and the stop request, which may come from another thread, completes
        // this.
        void arrive() noexcept {
            if (arrived_.fetch_add(1, acq_rel) == 0) return;
            callback_.destroy();
            execution::set_stopped(std::move(rcvr_));
        }
        using token_type = stop_token_of_t<execution::env_of_t<Rcvr>>;
        Rcvr rcvr_;
        atomic<int> arrived_{0};
        manual_lifetime<stop_callback_for_t<token_type, on_stop>> callback_;
    };
    template <class Rcvr>
    operation<Rcvr> connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>(std::move(rcvr));
    }
};

class stopping_on : public testing::TestWithParam<way> {
protected:
    http::router routes() {
        http::router r;
        r.get("/plain", [](request&) { return response::text("plain"); })
            .get("/pause",
                 [this](request& q) -> task<response> {
                     entered.fetch_add(1, release);
                     co_await http::pause(q, 1h);
                     co_return response::text("never");
                 })
            .get("/waits",
                 [this](request&) -> task<response> {
                     entered.fetch_add(1, release);
                     co_await until_told();
                     co_return response::text("never");
                 })
            .get("/polls",
                 [this](request& q) -> task<response> {
                     entered.fetch_add(1, release);
                     while (!q.stop_token().stop_requested()) co_await http::pause(q, 0ms);
                     co_return response::text("never");
                 })
            .get("/bounded",
                 [](request& q) -> task<response> {
                     auto slow = [](request& of) -> task<> { co_await http::pause(of, 1h); };
                     try {
                         co_await execution::timeout(slow(q), 1ms);
                     } catch (const std::system_error& error) {
                         if (error.code() == std::errc::timed_out) co_return response::status(504);
                     }
                     co_return response::text("never");
                 })
            .get("/computes", http::offload([this](request& q) {
                     entered.fetch_add(1, release);
                     while (!q.stop_token().stop_requested()) std::this_thread::yield();
                     return response::text("gave up");
                 }));
        return r;
    }
    void wait_for_entry(int count = 1) {
        while (entered.load(acquire) < count) std::this_thread::yield();
    }
    atomic<int> entered{0};
};

INSTANTIATE_TEST_SUITE_P(ways, stopping_on, testing::ValuesIn(every_way), name_of_way);

TEST_P(stopping_on, a_client_that_resets_its_connection_stops_its_handler) {
    running_server server(options_of(GetParam()), routes());
    const bool has_pool = server->pool() != nullptr;
    int round = 0;
    for (const char* const path : {"/pause", "/waits", "/polls", "/computes"}) {
        if (path == std::string_view("/computes") && !has_pool) continue;  // it has the loop
        client c(server.port());
        ASSERT_TRUE(c.send("GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n"));
        wait_for_entry(++round);
        c.reset();
        while (server->statistics().open != 0) std::this_thread::yield();
    }
}

TEST_P(stopping_on, what_a_handler_awaits_may_have_its_own_time_limit) {
    running_server server(options_of(GetParam()), routes());
    client c(server.port());
    for (int i = 0; i != 3; ++i) {
        ASSERT_TRUE(c.send("GET /bounded HTTP/1.1\r\nHost: a\r\n\r\n"));
        EXPECT_TRUE(has_status(c.receive(), 504));
    }
}

TEST_P(stopping_on, later_requests_do_not_hide_a_reset) {
    running_server server(options_of(GetParam()), routes());
    client c(server.port());
    ASSERT_TRUE(c.send(get_pause));
    wait_for_entry();
    ASSERT_TRUE(c.send(std::string(get_plain) + std::string(get_plain)));
    c.reset();
    while (server->statistics().open != 0) std::this_thread::yield();
    EXPECT_EQ(server->statistics().stopped, 1u);
}

TEST_P(stopping_on, requests_that_arrive_while_a_handler_waits_are_answered_afterwards_in_order) {
    http::router r = routes();
    std::promise<void> go_on;
    r.get("/gate", [&](request& q) -> task<response> {
        entered.fetch_add(1, release);
        auto open = go_on.get_future();
        while (open.wait_for(0s) != std::future_status::ready) co_await http::pause(q, 1ms);
        co_return response::text("gate");
    });
    running_server server(options_of(GetParam()), std::move(r));
    client c(server.port());
    ASSERT_TRUE(c.send("GET /gate HTTP/1.1\r\nHost: a\r\n\r\n"));
    wait_for_entry();
    std::string many;
    for (int i = 0; i != 1000; ++i) many += get_plain;  // more than is read ahead
    std::thread sender([&] { EXPECT_TRUE(c.send(many)); });
    go_on.set_value();
    EXPECT_EQ(body_of(c.receive()), "gate");
    for (int i = 0; i != 1000; ++i) ASSERT_EQ(body_of(c.receive()), "plain") << i;
    sender.join();
}

TEST_P(stopping_on, rfc9112_9_6_a_half_closed_client_gets_its_answer) {
    http::router r = routes();
    r.get("/short", [](request& q) -> task<response> {
        co_await http::pause(q, 20ms);
        co_return response::text("short");
    });
    running_server server(options_of(GetParam()), std::move(r));
    for (const char* const path : {"/short", "/plain"}) {
        client c(server.port());
        ASSERT_TRUE(c.send("GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n"));
        c.finish_sending();
        EXPECT_EQ(body_of(c.receive()), std::string_view(path).substr(1));
        EXPECT_TRUE(c.ended());
    }
}

TEST_P(stopping_on, a_handler_whose_time_is_up_is_stopped_and_its_client_gets_503) {
    http::server_options o = options_of(GetParam());
    o.timeouts.handler = 30ms;
    running_server server(std::move(o), routes());
    client c(server.port());
    ASSERT_TRUE(c.send(get_pause));
    EXPECT_TRUE(has_status(c.receive(), 503));
    // The connection can be used as before.
    ASSERT_TRUE(c.send(get_plain));
    EXPECT_EQ(body_of(c.receive()), "plain");
    EXPECT_EQ(server->statistics().stopped, 1u);
    if (server->pool() == nullptr) return;
    ASSERT_TRUE(c.send("GET /computes HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_EQ(body_of(c.receive()), "gave up");
}

TEST_P(stopping_on, a_handler_that_stops_by_itself_is_a_fault_of_its_own_and_not_out_of_time) {
    http::router r = routes();
    r.get("/stops", [](request& q) -> task<response> {
         co_await http::pause(q, 0ms);
         co_await execution::just_stopped();
         co_return response::text("never");
     }).post("/stops", http::read_body([](request& q) -> task<response> {
                 (void)co_await q.incoming().read();
                 co_await execution::just_stopped();
                 co_return response::text("never");
             }));
    http::server_options o = options_of(GetParam());
    atomic<int> named{0};
    o.on_exception = [&](const std::exception_ptr& error) {
        try {
            std::rethrow_exception(error);
        } catch (const std::logic_error& fault) {
            const std::string_view said = fault.what();
            if (said.starts_with("a handler was stopped")) named.fetch_add(1, release);
        }
    };
    running_server server(std::move(o), std::move(r));
    for (const char* const verb : {"GET", "POST"}) {
        client c(server.port());
        ASSERT_TRUE(c.send(std::string(verb) +
                           " /stops HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"));
        const std::string answer = c.receive();
        EXPECT_TRUE(has_status(answer, 500)) << verb << answer;
        EXPECT_EQ(answer.find("too long"), answer.npos) << verb << answer;
        // The connection is as good as before.
        ASSERT_TRUE(c.send(get_plain));
        EXPECT_EQ(body_of(c.receive()), "plain");
    }
    EXPECT_EQ(named.load(acquire), 2);
    EXPECT_EQ(server->statistics().stopped, 0u);  // by the server
}

TEST_P(stopping_on,
       the_client_of_a_handler_that_ignores_its_stop_gets_503_and_the_handler_may_end_later) {
    static thread_pool elsewhere{1};
    http::router r = routes();
    atomic<bool> go_on{false};
    const auto wait = [&] {
        entered.fetch_add(1, release);
        while (!go_on.load(acquire)) std::this_thread::yield();
        return response::text("late");
    };
    r.get("/deaf", http::offload([&](request&) { return wait(); }))
        // They ignore the stop from the start: on a loaded machine, their time may be up before
        // they begin.
        .get("/deaf-task",
             [&](request&) -> task<response> {
                 co_await execution::unstoppable(elsewhere.get_scheduler().schedule());
                 co_return wait();
             })
        .post("/deaf-reader", http::read_body([&](request& q) -> task<response> {
                  (void)co_await q.incoming().read();
                  co_await execution::unstoppable(elsewhere.get_scheduler().schedule());
                  co_return wait();
              }));
    http::server_options o = options_of(GetParam());
    o.timeouts.handler = 100ms;
    o.timeouts.handler_stop = 50ms;
    running_server server(std::move(o), std::move(r));
    int round = 0;
    for (const std::string_view first :
         {"GET /deaf", "GET /deaf-task", "HEAD /deaf-task", "POST /deaf-reader"}) {
        if (first == "GET /deaf" && server->pool() == nullptr) continue;  // it has the loop
        const std::uint64_t stopped = server->statistics().stopped;
        go_on.store(false, relaxed);
        client c(server.port());
        ASSERT_TRUE(c.send(std::string(first) +
                           " HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx" +
                           std::string(get_plain)));
        wait_for_entry(++round);
        const std::string answer = c.receive(first.starts_with("HEAD"));
        EXPECT_TRUE(has_status(answer, 503)) << first << answer;
        EXPECT_NE(answer.find("Connection: close"), std::string::npos);
        EXPECT_TRUE(c.ended());  // what was pipelined behind it is not answered
        EXPECT_EQ(server->statistics().open, 1u);
        EXPECT_EQ(server->statistics().stopped, stopped + 1);
        go_on.store(true, release);
        c.reset();
        while (server->statistics().open != 0) std::this_thread::yield();
    }
    EXPECT_EQ(server->statistics().by_status[503 - 100], static_cast<std::uint64_t>(round));
    EXPECT_EQ(server->statistics().requests, static_cast<std::uint64_t>(round));
}

TEST_P(stopping_on, a_handler_that_ignores_its_stop_after_an_unsent_answer_ends_the_connection) {
    http::router r = routes();
    atomic<bool> go_on{false};
    r.get("/deaf", http::offload([&](request&) {
              entered.fetch_add(1, release);
              while (!go_on.load(acquire)) std::this_thread::yield();
              return response::text("late");
          }))
        .get("/first", http::offload([](request&) { return response::text("first"); }));
    http::server_options o = options_of(GetParam());
    o.timeouts.handler = 100ms;
    o.timeouts.handler_stop = 50ms;
    running_server server(std::move(o), std::move(r));
    if (server->pool() == nullptr) return;
    client c(server.port());
    ASSERT_TRUE(
        c.send("GET /first HTTP/1.1\r\nHost: a\r\n\r\nGET /deaf HTTP/1.1\r\nHost: a\r\n\r\n"));
    wait_for_entry();
    EXPECT_TRUE(c.ended());
    go_on.store(true, release);
    c.reset();
    while (server->statistics().open != 0) std::this_thread::yield();
}

TEST_P(stopping_on, the_end_of_a_clients_sending_stops_its_handler_if_the_options_say_so) {
    http::server_options o = options_of(GetParam());
    o.end_of_input_stops = true;
    running_server server(std::move(o), routes());
    client c(server.port());
    ASSERT_TRUE(c.send(get_pause));
    wait_for_entry();
    c.finish_sending();
    EXPECT_TRUE(c.ended());
    while (server->statistics().open != 0) std::this_thread::yield();
    EXPECT_EQ(server->statistics().stopped, 1u);
    EXPECT_EQ(server->statistics().timed_out, 0u);
}

TEST_P(stopping_on, the_hard_stop_of_a_drain_stops_handlers) {
    running_server server(options_of(GetParam()), routes());
    client first(server.port()), second(server.port());
    ASSERT_TRUE(first.send(get_pause));
    ASSERT_TRUE(second.send(get_pause));
    wait_for_entry(2);
    server->drain(10ms);
    EXPECT_TRUE(first.ended());
    EXPECT_TRUE(second.ended());
}

TEST_P(stopping_on, the_last_permitted_request_of_a_connection_is_answered_with_close) {
    http::server_options o = options_of(GetParam());
    o.requests_per_connection_max = 3;
    running_server server(std::move(o), routes());
    client c(server.port());
    std::string all;
    for (int i = 0; i != 5; ++i) all += get_plain;
    ASSERT_TRUE(c.send(all));
    for (int i = 0; i != 3; ++i) {
        const std::string answer = c.receive();
        EXPECT_EQ(body_of(answer), "plain");
        EXPECT_EQ(answer.find("Connection: close") != std::string::npos, i == 2);
    }
    EXPECT_TRUE(c.ended());
}

TEST_P(stopping_on, an_address_at_its_limit_has_room_again_when_a_connection_ends) {
    http::server_options o = options_of(GetParam());
    o.connections_per_address_max = 2;
    running_server server(std::move(o), routes());
    {
        client first(server.port()), second(server.port());
        for (client* const c : {&first, &second}) {
            ASSERT_TRUE(c->send(get_plain));
            EXPECT_EQ(body_of(c->receive()), "plain");
        }
        client third(server.port());
        EXPECT_TRUE(has_status(third.receive(), 503));
        EXPECT_TRUE(third.ended());
        EXPECT_EQ(server->statistics().refused, 1u);
    }
    while (server->statistics().open != 0) std::this_thread::yield();
    client again(server.port());
    ASSERT_TRUE(again.send(get_plain));
    EXPECT_EQ(body_of(again.receive()), "plain");
}

TEST_P(stopping_on, rfc9110_9_3_7_options_lists_what_a_resource_allows) {
    running_server server(options_of(GetParam()), routes());
    client c(server.port());
    ASSERT_TRUE(
        c.send("OPTIONS /plain HTTP/1.1\r\nHost: a\r\n\r\n"
               "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"
               "OPTIONS /nowhere HTTP/1.1\r\nHost: a\r\n\r\n"));
    const std::string plain = c.receive();
    EXPECT_TRUE(has_status(plain, 204));
    EXPECT_NE(plain.find("\r\nAllow: GET, HEAD, OPTIONS\r\n"), std::string::npos) << plain;
    EXPECT_TRUE(has_status(c.receive(), 204));
    EXPECT_TRUE(has_status(c.receive(), 404));
}

}  // namespace
