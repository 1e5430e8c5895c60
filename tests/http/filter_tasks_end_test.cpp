// http/next.hpp through a server: how filters that are tasks end, and the life of what they keep.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/http/server.hpp>
#include <coppice/stop/inplace.hpp>

#include "filter_tasks.hpp"
#include "running_server.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;
using namespace std::chrono_literals;
using http::next_handler;
using http::request;
using http::response;

// Counts the objects that are alive.
class counted {
public:
    explicit counted(atomic<int>& alive) noexcept : alive_(&alive) { alive.fetch_add(1, relaxed); }
    counted(counted&& other) noexcept : alive_(std::exchange(other.alive_, nullptr)) {}
    ~counted() {
        if (alive_ != nullptr) alive_->fetch_sub(1, release);
    }

private:
    atomic<int>* alive_;
};

// A filter that sets a value and then waits forever.
struct endless {
    atomic<int>& alive;
    atomic<int>& entered;
    task<response> operator()(request& r, next_handler next) const {
        r.set(counted(alive));
        const counted local(alive);
        entered.fetch_add(1, release);
        co_await http::pause(r, 1h);
        co_return co_await next();
    }
};

// Listens for the stop of its request, to which it refers, as long as it lives.
class listener {
public:
    explicit listener(const request& r)
        : callback_(std::make_unique<callback>(r.stop_token(), nothing{})) {}

private:
    struct nothing {
        void operator()() const noexcept {}
    };
    using callback = inplace_stop_callback<nothing>;
    std::unique_ptr<callback> callback_;
};

// Owns its listener, as what a producer calls may do.
class listening_body final : public http::body_source {
public:
    explicit listening_body(const request& r) : listener_(r) {}
    task<> write_to(http::body_writer& out) override { co_await out.write("text"); }
    std::optional<std::uint64_t> length() const noexcept override { return 4; }

private:
    listener listener_;
};

struct listening_error : std::runtime_error {
    explicit listening_error(const request& r)
        : std::runtime_error("a fault"), of(std::make_shared<listener>(r)) {}
    std::shared_ptr<listener> of;
};

TEST_P(filter_tasks_on, a_callback_on_the_stop_of_a_request_may_live_as_long_as_the_request) {
    http::router r;
    const auto ok = [](request&) { return response::text("ok"); };
    const auto later = [](request& q) -> task<response> {
        co_await http::pause(q, 1ms);
        co_return response::text("ok");
    };
    const auto streams = [](request& q) -> task<response> {
        co_return response().body(std::make_shared<listening_body>(q));
    };
    const auto throws = [](request& q) -> task<response> {
        throw listening_error(q);
        co_return response();
    };
    const auto listens = [](request& q, next_handler next) -> task<response> {
        q.set(listener(q));
        co_return co_await next();
    };
    const auto add = [&](auto&& to) {
        to.any("/plain", ok).any("/task", later).any("/offloaded", http::offload(ok));
        to.any("/offloaded-task", http::offload(later)).any("/read", http::read_body(later));
        to.any("/read-offloaded", http::offload(http::read_body(later)));
        to.any("/stream", streams).any("/stream-offloaded", http::offload(streams));
        to.any("/stream-read", http::read_body(streams));
        to.any("/throw", throws).any("/throw-offloaded", http::offload(throws));
        to.any("/throw-read", http::read_body(throws));
    };
    add(r.with(listens));
    running_server server(options(), std::move(r));
    client all(server.port());
    for (const std::string path :
         {"/plain", "/task", "/offloaded", "/offloaded-task", "/read", "/read-offloaded", "/stream",
          "/stream-offloaded", "/stream-read", "/throw", "/throw-offloaded", "/throw-read"}) {
        const int status = path.starts_with("/throw") ? 500 : 200;
        for (const std::string verb : {"GET ", "HEAD "}) {
            SCOPED_TRACE(verb + path);
            ASSERT_TRUE(all.send(verb + path + " HTTP/1.1\r\nHost: a\r\n\r\n"));
            EXPECT_TRUE(has_status(all.receive(verb == "HEAD "), status));
        }
        EXPECT_TRUE(has_status(ask(server.port(), "GET " + path), status)) << path;
    }
}

TEST_P(filter_tasks_on, a_client_that_goes_away_stops_the_filter_and_its_values_are_destroyed) {
    atomic<int> alive{0}, entered{0}, reached{0};
    http::router r;
    const auto reaches = [&](request&) -> task<response> {
        reached.fetch_add(1, relaxed);
        co_return response(204);
    };
    r.with(endless{alive, entered})
        .any("/task", reaches)
        .any("/offloaded", http::offload(reaches))
        .any("/read", http::read_body(reaches));
    running_server server(options(), std::move(r));
    std::uint64_t rounds = 0;
    for (const char* const path : {"/task", "/offloaded", "/read"}) {
        for (const char* const fields : {"", "Transfer-Encoding: chunked\r\n"}) {
            if (*fields != '\0' && std::string_view(path) != "/read") continue;
            client c(server.port());
            ASSERT_TRUE(
                c.send("POST " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n"));
            while (entered.load(acquire) != static_cast<int>(rounds) + 1) {
                std::this_thread::yield();
            }
            c.reset();
            ++rounds;
            while (server->statistics().stopped != rounds) std::this_thread::yield();
            while (alive.load(acquire) != 0) std::this_thread::yield();
        }
    }
    EXPECT_EQ(reached.load(relaxed), 0);
}

TEST_P(filter_tasks_on, a_filter_whose_time_is_up_is_stopped_and_its_client_gets_503) {
    atomic<int> alive{0}, entered{0};
    http::router r;
    r.with(endless{alive, entered}).get("/", [](request&) { return response::text("never"); });
    http::server_options o = options();
    o.timeouts.handler = 10ms;
    running_server server(std::move(o), std::move(r));
    const std::string answer = ask(server.port(), "GET /");
    EXPECT_TRUE(has_status(answer, 503)) << answer;
    while (alive.load(acquire) != 0) std::this_thread::yield();
}

TEST_P(filter_tasks_on, a_drain_waits_for_filters) {
    atomic<int> entered{0};
    atomic<bool> go_on{false};
    http::router r;
    r.with([&](request& q, next_handler next) -> task<response> {
         entered.fetch_add(1, release);
         while (!go_on.load(acquire)) co_await http::pause(q, 1ms);
         co_return co_await next();
     }).get("/slow", [](request&) { return response::text("done"); });
    running_server server(options(), std::move(r));
    client slow(server.port());
    ASSERT_TRUE(slow.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n"));
    while (entered.load(acquire) != 1) std::this_thread::yield();
    server->drain();
    while (client(server.port()).connected()) std::this_thread::yield();  // until every loop knows
    go_on.store(true, release);
    EXPECT_EQ(body_of(slow.receive()), "done");
    EXPECT_TRUE(slow.ended());
}

TEST_P(filter_tasks_on, the_hard_stop_of_a_drain_stops_filters) {
    atomic<int> alive{0}, entered{0};
    http::router r;
    r.with(endless{alive, entered}).get("/endless", [](request&) { return response(204); });
    running_server server(options(), std::move(r));
    client never(server.port());
    ASSERT_TRUE(never.send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n"));
    while (entered.load(acquire) != 1) std::this_thread::yield();
    server->drain(1ms);
    EXPECT_TRUE(never.ended());
    while (alive.load(acquire) != 0) std::this_thread::yield();
}

}  // namespace
