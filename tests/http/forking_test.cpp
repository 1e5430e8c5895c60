// What a handler's task forks runs on the workers of the handler's pool.
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/router.hpp>
#include <coppice/task/wait_for_tasks.hpp>

#include "running_server.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using coppice::test::body_of;
using coppice::test::client;
using coppice::test::every_way;
using coppice::test::options_of;
using coppice::test::running_server;
using coppice::test::way;
using http::request;
using http::response;

// Each of two calls waits until the other has begun: they meet only if they run side by side.
class meeting {
public:
    task<> attend() {
        begun_.fetch_add(1, relaxed);
        const auto latest = std::chrono::steady_clock::now() + 10s;
        while (begun_.load(relaxed) < 2 && std::chrono::steady_clock::now() < latest) {
            std::this_thread::yield();
        }
        if (begun_.load(relaxed) < 2) missed_.store(true, relaxed);
        co_return;
    }
    task<> attend_below() { co_await attend(); }
    bool took_place() const { return !missed_.load(relaxed); }

private:
    atomic<int> begun_{0};
    atomic<bool> missed_{false};
};
// Both calls ran on the caller's thread, one after the other.
task<bool> stays_here() {
    const std::thread::id here = std::this_thread::get_id();
    bool stayed = true;
    const auto look = [](std::thread::id where, bool& all) -> task<> {
        for (int i = 0; i != 100; ++i)
            std::this_thread::yield();  // other workers could take the second call
        if (std::this_thread::get_id() != where) all = false;
        co_return;
    };
    co_await wait_for_tasks(look(here, stayed), look(here, stayed), look(here, stayed));
    co_return stayed;
}
task<> meet(meeting& place) {
    co_await wait_for_tasks(place.attend(), place.attend_below());
}

response said(bool yes, const std::string& what) {
    return response::text(yes ? what : "not " + what);
}

task<response> meets(request&) {
    meeting place;
    co_await wait_for_tasks(place.attend(), place.attend_below());
    co_return said(place.took_place(), "met");
}
task<response> meets_below(request&) {
    meeting place;
    co_await meet(place);
    co_return said(place.took_place(), "met");
}
// The task of the timeout has its own environment, as that of every adaptor.
task<response> meets_in_time(request&) {
    meeting place;
    co_await execution::timeout(meet(place), 1min);
    co_return said(place.took_place(), "met");
}
task<response> reads_and_meets(request& q) {
    for (;;) {
        const auto part = co_await q.incoming().read();
        if (part.empty()) break;
    }
    co_return co_await meets(q);
}
task<response> stays(request&) {
    const bool stayed = co_await stays_here();
    co_return said(stayed, "stayed");
}
// On the loop, the handler is no longer on the pool; nor is it in a loop that its worker runs.
task<response> stays_on_the_loop(request& q) {
    co_await q.loop().get_scheduler().schedule();
    co_return co_await stays(q);
}
task<response> stays_in_a_loop(request&) {
    const auto stayed = this_thread::sync_wait(stays_here());
    co_return said(std::get<0>(*stayed), "stayed");
}
task<response> stays_on_another_scheduler(request& q) {
    const bool stayed = co_await execution::starts_on(q.loop().get_scheduler(), stays_here());
    co_return said(stayed, "stayed");
}

class forking : public testing::TestWithParam<way> {
protected:
    static http::router routes() {
        http::router r;
        r.get("/meets", http::offload(&meets))
            .get("/below", http::offload(&meets_below))
            .get("/in-time", http::offload(&meets_in_time))
            .post("/reads", http::offload(http::read_body(&reads_and_meets)))
            .get("/undeclared", &meets)
            .get("/stays", &stays)
            .get("/on-the-loop", http::offload(&stays_on_the_loop))
            .get("/in-a-loop", http::offload(&stays_in_a_loop))
            .get("/elsewhere", http::offload(&stays_on_another_scheduler));
        return r;
    }
    static std::string ask(client& c, std::string_view request_line) {
        (void)c.send(std::string(request_line) +
                     " HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
        return std::string(body_of(c.receive()));
    }
};
INSTANTIATE_TEST_SUITE_P(ways, forking, testing::ValuesIn(every_way), coppice::test::name_of_way);

TEST_P(forking, tasks_that_a_handler_on_the_pool_awaits_run_side_by_side_on_its_workers) {
    running_server server(options_of(GetParam()), routes());
    if (server->pool() == nullptr) return;
    client c(server.port());
    for (int i = 0; i != 10; ++i) {
        EXPECT_EQ(ask(c, "GET /meets"), "met");
        EXPECT_EQ(ask(c, "GET /below"), "met");
        EXPECT_EQ(ask(c, "GET /in-time"), "met");
        EXPECT_EQ(ask(c, "POST /reads"), "met");
        if (GetParam().model == http::model::worker) {
            EXPECT_EQ(ask(c, "GET /undeclared"), "met");
        }
    }
}

TEST_P(forking, off_the_pool_nothing_is_forked_to_it) {
    running_server server(options_of(GetParam()), routes());
    client c(server.port());
    for (int i = 0; i != 20; ++i) {
        if (GetParam().model != http::model::worker) {
            EXPECT_EQ(ask(c, "GET /stays"), "stayed");
        }
        EXPECT_EQ(ask(c, "GET /on-the-loop"), "stayed");
        EXPECT_EQ(ask(c, "GET /in-a-loop"), "stayed");
        EXPECT_EQ(ask(c, "GET /elsewhere"), "stayed");
    }
}

}  // namespace
