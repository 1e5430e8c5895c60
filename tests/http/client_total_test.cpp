// The total time of a request of http::client: `total`.
#include <coppice/exec/deadline.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/http/client.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/io/timer.hpp>
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

namespace {

using namespace coppice;
using namespace std::chrono_literals;
using namespace coppice::test;
using http::request;
using http::response;

class client_total : public testing::TestWithParam<io::backend> {
protected:
    static http::router routes() {
        http::router r;
        r.get("/plain", [](request&) { return response::text("plain"); })
            .get("/busy", [](request&) { return response(503).add("Retry-After", "30"); })
            .get("/loop",
                 [](request& q) -> task<response> {
                     co_await http::pause(q, 1ms);
                     co_return response(302).add("Location", "/loop");
                 })
            .any("/forever",
                 [](request& q) -> task<response> {
                     co_await http::pause(q, 1h);
                     co_return response::text("never");
                 })
            .get("/stalls", [](request& q) {
                const auto produce = [loop = &q.loop()](http::body_writer& out) -> task<> {
                    co_await out.write("part");
                    co_await out.flush();
                    io::timer never(*loop);
                    co_await never.wait_for(1h);
                };
                return response().body(http::stream(produce));
            });
        return r;
    }
    running_server server{options_of(every_way[0]), routes()};
    network net{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(rings, client_total,
                         testing::Values(io::backend::epoll, io::backend::uring), name_of_ring);

// Places where a request waits until its total time ends the wait.
enum class waits {
    for_the_head,
    for_the_body,
    in_its_sink,
    in_its_source,
    for_its_turn,
    in_a_loop
};
constexpr waits all_waits[] = {waits::for_the_head,  waits::for_the_body, waits::in_its_sink,
                               waits::in_its_source, waits::for_its_turn, waits::in_a_loop};

http::client_request waiting(io::context& loop, io::endpoint to, waits where) {
    http::client_request r = asks(to, "/forever");
    const auto forever = [&loop]() -> task<> {
        io::timer timer(loop);
        co_await timer.wait_for(1h);
    };
    if (where == waits::for_the_body) r.target = "/stalls";
    if (where == waits::in_a_loop) r.target = "/loop";
    if (where == waits::in_its_sink) {
        r.target = "/plain";
        r.sink = [forever](std::string_view) { return forever(); };
    }
    if (where == waits::in_its_source) {
        r.method = "POST";
        r.source = http::stream([forever](http::body_writer& out) -> task<> {
            co_await out.write("part");
            co_await forever();
        });
    }
    return r;
}

TEST_P(client_total, ends_a_request_wherever_it_waits) {
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        for (const waits where : all_waits) {
            http::client_options o;
            o.total = 20ms;
            o.redirects_max = 1'000'000'000;
            o.connections_per_host_max = 1;
            http::client client(loop, o);
            std::optional<http::client_answer> holds;
            if (where == waits::for_its_turn) {
                http::client_request first = asks(to, "/stalls");
                first.total = 1h;
                holds.emplace(co_await client.open(std::move(first)));
            }
            const std::error_code error = co_await error_of(client, waiting(loop, to, where));
            EXPECT_EQ(error, std::errc::timed_out) << static_cast<int>(where);
            holds.reset();
            EXPECT_EQ(client.idle_connections(), 0u) << static_cast<int>(where);
            http::client_request after = asks(to, "/plain");
            after.total = 1h;
            const http::client_response plain = co_await client.send(std::move(after));
            EXPECT_EQ(plain.body(), "plain");
        }
    }(net.loop, server->local()));
    while (server->statistics().open != 0) std::this_thread::yield();
}

TEST_P(client_total, bounds_retries_which_do_not_wait_beyond_it) {
    io::endpoint nobody;
    ::close(listen_anywhere(nobody));
    net.run([](io::context& loop, io::endpoint to, io::endpoint refuses) -> task<> {
        http::client_options o;
        o.total = 20s;
        o.retries = 3;
        o.retry_after_max = 1h;
        http::client client(loop, o);
        const http::client_response busy = co_await client.get(to, "/busy");
        EXPECT_EQ(busy.status(), 503);
        o.retry_delay = o.retry_delay_max = 1h;
        http::client patient(loop, o);
        const std::error_code refused = co_await error_of(patient, asks(refuses));
        EXPECT_EQ(refused, std::errc::connection_refused);
        EXPECT_EQ(patient.connections_made(), 1u);
    }(net.loop, server->local(), nobody));
}

TEST_P(client_total, of_a_request_overrides_that_of_its_client) {
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client_options o;
        o.total = 0ms;
        http::client client(loop, o);
        const std::error_code over = co_await error_of(client, asks(to, "/forever"));
        EXPECT_EQ(over, std::errc::timed_out);
        for (const std::chrono::nanoseconds time :
             {std::chrono::nanoseconds(1h), std::chrono::nanoseconds::max() - 1ns,
              std::chrono::nanoseconds::max()}) {
            http::client_request r = asks(to, "/plain");
            r.total = time;
            const http::client_response plain = co_await client.send(r);
            EXPECT_EQ(plain.body(), "plain");
        }
        for (const std::chrono::nanoseconds time :
             {std::chrono::nanoseconds(-1), std::chrono::nanoseconds::min()}) {
            http::client_request r = asks(to, "/plain");
            r.total = time;
            const std::error_code negative = co_await error_of(client, r);
            EXPECT_EQ(negative, std::errc::invalid_argument);
        }
        EXPECT_LE(client.connections_made(), 2u);
    }(net.loop, server->local()));
}

TEST_P(client_total, also_covers_reading_an_answer_in_pieces) {
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client client(loop);
        http::client_request r = asks(to, "/stalls");
        r.total = 300ms;  // enough for the first piece on a loaded machine
        try {
            http::client_answer answer = co_await client.open(r);
            const std::string_view part = co_await answer.read();
            EXPECT_EQ(part, "part");
            for (int i = 0; i != 2; ++i) {
                std::error_code error;
                try {
                    (void)co_await answer.read();
                } catch (const std::system_error& e) {
                    error = e.code();
                }
                EXPECT_EQ(error, std::errc::timed_out);
            }
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::timed_out);  // before the head: a very loaded machine
        }
        http::client_request forever = asks(to, "/forever");
        forever.total = 20ms;
        std::error_code error;
        try {
            (void)co_await client.open(forever);
        } catch (const std::system_error& e) {
            error = e.code();
        }
        EXPECT_EQ(error, std::errc::timed_out);
        EXPECT_EQ(client.idle_connections(), 0u);
    }(net.loop, server->local()));
}

TEST_P(client_total, does_not_hide_an_earlier_end) {
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client_options o;
        o.total = 1h;
        http::client client(loop, o);
        for (const waits where : all_waits) {
            if (where == waits::for_its_turn || where == waits::in_a_loop) continue;
            inplace_stop_source own;
            const auto stop = [](io::context& l, inplace_stop_source& s) -> task<> {
                co_await l.get_scheduler().schedule_after(5ms);
                s.request_stop();
            };
            const auto stopped = [](http::client& c, http::client_request r,
                                    inplace_stop_token token) -> task<> {
                const auto got = co_await execution::stopped_as_optional(c.send(r, token));
                EXPECT_FALSE(got.has_value());
            };
            co_await execution::when_all(stopped(client, waiting(loop, to, where), own.get_token()),
                                         stop(loop, own));
            std::error_code error;
            try {
                (void)co_await execution::timeout(client.send(waiting(loop, to, where)), 5ms);
            } catch (const std::system_error& e) {
                error = e.code();
            }
            EXPECT_EQ(error, std::errc::timed_out);
            const auto late = co_await execution::stopped_as_optional(execution::write_env(
                client.send(waiting(loop, to, where)),
                execution::prop(execution::get_deadline, execution::monotonic_now() + 5ms)));
            EXPECT_FALSE(late.has_value()) << static_cast<int>(where);
        }
        EXPECT_EQ(client.idle_connections(), 0u);
    }(net.loop, server->local()));
}

}  // namespace
