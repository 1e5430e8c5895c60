// Answers that are collected and sent together: none is lost, and none waits for other handlers.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/token/block.hpp>

#include "running_server.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;
using http::request;
using http::response;

constexpr std::string_view get_plain = "GET /plain HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr std::string_view get_slow = "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n";

// Computes longer than a handler may if other answers wait for it.
void be_slow() {
    const auto end = std::chrono::steady_clock::now() + 1ms;
    while (std::chrono::steady_clock::now() < end) {
    }
}

// A server with one loop, which is held until all clients have sent: it then finds all requests in
// one turn.
class answers_on : public testing::TestWithParam<io::backend> {
protected:
    http::router routes() {
        http::router r;
        r.get("/plain", [](request&) {
             return response::text("Hello, World!");
         }).get("/hold", [this](request&) {
            held.set_value();
            all_have_asked.get_future().wait();
            be_slow();  // no group after it
            return response::text("held");
        });
        return r;
    }
    // When this returns, every client has been served once.
    void serve(http::router r, int clients) {
        http::server_options o = options_of({GetParam(), http::model::single, 1});
        server = std::make_unique<running_server>(std::move(o), std::move(r));
        for (int i = 0; i != clients + 1; ++i) {
            others.push_back(std::make_unique<client>(server->port()));
            ASSERT_TRUE(others.back()->send(get_plain));
            ASSERT_FALSE(others.back()->receive().empty());
        }
        gate = std::move(others.back());
        others.pop_back();
        ASSERT_TRUE(gate->send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n"));
        held.get_future().wait();
    }
    // Counts the answers that the other clients get. Relaxed throughout: a count.
    std::vector<std::thread> receive_all(atomic<int>& received) {
        std::vector<std::thread> threads;
        for (const auto& c : others) {
            threads.emplace_back([&] {
                if (!c->receive().empty()) received.fetch_add(1, relaxed);
            });
        }
        return threads;
    }

    std::promise<void> held, all_have_asked;
    std::unique_ptr<running_server> server;
    std::vector<std::unique_ptr<client>> others;
    std::unique_ptr<client> gate;
};

TEST_P(answers_on, each_of_many_requests_in_one_turn_gets_its_own_answer) {
    http::router r = routes();
    r.get("/number/{n}", [](request& q) { return response::text(*q.parameter("n")); });
    serve(std::move(r), 100);
    const auto ask = [](std::size_t i) {
        return "GET /number/" + std::to_string(i) + " HTTP/1.1\r\nHost: a\r\n\r\n";
    };
    for (std::size_t i = 0; i != others.size(); ++i) {
        ASSERT_TRUE(others[i]->send(ask(i) + ask(i)));
    }
    all_have_asked.set_value();
    for (int round = 0; round != 3; ++round) {
        for (std::size_t i = 0; i != others.size(); ++i) {
            EXPECT_EQ(body_of(others[i]->receive()), std::to_string(i));
            if (round == 0) {
                ASSERT_TRUE(others[i]->send(ask(i)));
            }
        }
    }
    EXPECT_EQ((*server)->statistics().requests, 101u + 1 + 300);
}

// Not on io_uring, which submits its sends at the end of the turn, and whose kernel decides how
// much it reports in one turn.
class grouped_answers_on : public answers_on {};

TEST_P(grouped_answers_on, all_arrive_when_the_server_is_drained_among_them) {
    http::router r = routes();
    r.get("/drain", [this](request&) {
        (*server)->drain(10s);
        return response::text("draining");
    });
    serve(std::move(r), 18);
    for (std::size_t i = 0; i != others.size(); ++i) {
        ASSERT_TRUE(others[i]->send(i == 9 ? "GET /drain HTTP/1.1\r\nHost: a\r\n\r\n" : get_plain));
        if (i % 4 == 0) others[i]->finish_sending();
    }
    all_have_asked.set_value();
    EXPECT_EQ(body_of(gate->receive()), "held");
    for (const auto& c : others) {
        EXPECT_TRUE(has_status(c->receive(), 200));
        EXPECT_TRUE(c->ended());
    }
}

TEST_P(grouped_answers_on, none_waits_for_other_handlers) {
    constexpr int clients = 6;
    atomic<int> received{0};
    bool late = false;  // these two are the loop's
    int handled = 0;
    http::router r = routes();
    r.get("/slow", [&](request&) {
        be_slow();
        const auto patience = std::chrono::steady_clock::now() + 10s;
        while (received.load(relaxed) < handled && !late) {  // the answers of all before this one
            late = std::chrono::steady_clock::now() > patience;
            std::this_thread::yield();
        }
        ++handled;
        return response::text("slow");
    });
    serve(std::move(r), clients);
    for (const auto& c : others) ASSERT_TRUE(c->send(get_slow));
    all_have_asked.set_value();
    for (std::thread& t : receive_all(received)) t.join();
    EXPECT_EQ(received.load(relaxed), clients);
    server = nullptr;
    EXPECT_FALSE(late);
}

// Runs turns of its loop until all other clients have their answers.
response wait_in_the_loop(request& q, const atomic<int>& received, int others) {
    io::timer pause(q.loop());
    for (int i = 0; received.load(relaxed) != others && i != 5'000; ++i) {
        pause.wait_for(1ms, block);
    }
    return response::text(std::to_string(received.load(relaxed)));
}

TEST_P(answers_on, collected_answers_leave_while_a_handler_runs_the_loop) {
    atomic<int> received{0};
    http::router r = routes();
    r.get("/slow", [&](request& q) { return wait_in_the_loop(q, received, 8); });
    serve(std::move(r), 9);
    for (const auto& c : others) {
        ASSERT_TRUE(c->send(c == others.back() ? get_slow : get_plain));
    }
    const std::unique_ptr<client> last = std::move(others.back());
    others.pop_back();
    std::vector<std::thread> threads = receive_all(received);
    all_have_asked.set_value();
    EXPECT_EQ(body_of(last->receive()), "8");
    for (std::thread& t : threads) t.join();
}

// The first request fills a buffer, so the second is received as soon as the first answer is sent,
// while other answers are still collected.
TEST_P(answers_on, collected_answers_leave_while_a_handler_among_them_runs_the_loop) {
    atomic<int> received{0};
    http::router r = routes();
    r.get("/slow", [&](request& q) { return wait_in_the_loop(q, received, 18); });
    serve(std::move(r), 19);
    std::string full = "GET /plain HTTP/1.1\r\nHost: a\r\nFill: ";
    full.resize(io::buffer_pool::buffer_bytes - 4, 'x');
    full += "\r\n\r\n";
    // some are before it, so its answer is collected, and some after it
    constexpr std::size_t middle = 9;
    for (std::size_t i = 0; i != others.size(); ++i) {
        ASSERT_TRUE(
            others[i]->send(i == middle ? full + std::string(get_slow) : std::string(get_plain)));
    }
    const std::unique_ptr<client> both = std::move(others[middle]);
    others.erase(others.begin() + middle);
    std::vector<std::thread> threads = receive_all(received);
    all_have_asked.set_value();
    EXPECT_TRUE(has_status(both->receive(), 200));
    EXPECT_EQ(body_of(both->receive()), "18");
    for (std::thread& t : threads) t.join();
}

std::string name_of_ring(const testing::TestParamInfo<io::backend>& instance) {
    return instance.param == io::backend::epoll ? "epoll" : "uring";
}
INSTANTIATE_TEST_SUITE_P(rings, answers_on, testing::Values(io::backend::epoll, io::backend::uring),
                         name_of_ring);
INSTANTIATE_TEST_SUITE_P(rings, grouped_answers_on, testing::Values(io::backend::epoll),
                         name_of_ring);

}  // namespace
