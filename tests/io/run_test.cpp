// io/run.hpp: a loop for one piece of work, on every ring.
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/io/run.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/task/task.hpp>
#include <coppice/token/use_await.hpp>

#include "detached.hpp"
#include "rings.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
using coppice::test::detached;

class run_on : public testing::TestWithParam<io::backend> {
protected:
    static io::run_options here() { return {.backend = GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(rings, run_on, test::all_rings, test::ring_name);

// Runs until it is stopped.
task<> for_ever(io::context& loop) {
    io::timer timer(loop);
    for (;;) co_await timer.wait_for(1h);
}

// ---- Results -----------------------------------------------------------------------------------

task<int> seven() {
    co_return 7;
}
task<> nothing() {
    co_return;
}

TEST_P(run_on, one_value_is_an_optional) {
    const std::optional<int> sent = io::run(ex::just(7), here());
    EXPECT_EQ(sent, 7);
    const std::optional<int> returned = io::run(seven(), here());
    EXPECT_EQ(returned, 7);
    const auto moved = io::run(ex::just(std::make_unique<int>(7)), here());
    static_assert(std::is_same_v<decltype(moved), const std::optional<std::unique_ptr<int>>>);
    EXPECT_EQ(**moved, 7);
    const std::optional<bool> truth = io::run(ex::just(false), here());
    EXPECT_EQ(truth, false);
}

TEST_P(run_on, no_value_is_a_bool) {
    const auto sent = io::run(ex::just(), here());
    static_assert(std::is_same_v<decltype(sent), const bool>);
    EXPECT_TRUE(sent);
    EXPECT_TRUE(io::run(nothing(), here()));
}

TEST_P(run_on, several_values_are_a_tuple) {
    const auto sent = io::run(ex::just(7, std::string("eight")), here());
    static_assert(
        std::is_same_v<decltype(sent), const std::optional<std::tuple<int, std::string>>>);
    EXPECT_EQ(sent, std::tuple(7, std::string("eight")));
}

TEST_P(run_on, work_that_never_sends_a_value_is_a_bool) {
    const auto stopped = io::run(ex::just_stopped(), here());
    static_assert(std::is_same_v<decltype(stopped), const bool>);
    EXPECT_FALSE(stopped);
}

TEST_P(run_on, a_reference_is_copied) {
    int there = 7;
    const auto got = io::run([&](io::context&) -> task<int&> { co_return there; }, here());
    static_assert(std::is_same_v<decltype(got), const std::optional<int>>);
    EXPECT_EQ(got, 7);
}

TEST_P(run_on, a_named_sender_may_be_run_again) {
    const auto work = ex::just(7);
    EXPECT_EQ(io::run(work, here()), 7);
    EXPECT_EQ(io::run(work, here()), 7);
}

// ---- Errors ------------------------------------------------------------------------------------

struct own_error {
    int number;
};

TEST_P(run_on, an_error_is_thrown) {
    EXPECT_THROW(io::run(ex::just() | ex::then([] { throw std::runtime_error("x"); }), here()),
                 std::runtime_error);
    EXPECT_THROW(io::run(
                     [](io::context&) -> task<int> {
                         throw std::runtime_error("x");
                         co_return 1;
                     },
                     here()),
                 std::runtime_error);
    try {
        io::run(ex::just_error(std::make_error_code(std::errc::timed_out)), here());
        ADD_FAILURE() << "nothing was thrown";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), std::errc::timed_out);
    }
    try {
        io::run(ex::just_error(own_error{7}), here());
        ADD_FAILURE() << "nothing was thrown";
    } catch (const own_error& error) {
        EXPECT_EQ(error.number, 7);
    }
}

struct throws_when_kept {
    throws_when_kept() = default;
    throws_when_kept(throws_when_kept&&) = default;
    explicit throws_when_kept(int number) { throw own_error{number}; }
    throws_when_kept(const throws_when_kept&) { throw own_error{8}; }
};

TEST_P(run_on, what_keeping_the_result_throws_is_thrown) {
    throws_when_kept there;
    EXPECT_THROW(io::run([&](io::context&) -> task<throws_when_kept&> { co_return there; }, here()),
                 own_error);
}

TEST_P(run_on, what_the_callable_throws_is_thrown) {
    const auto throwing = [](io::context&) -> task<int> {  // no coroutine
        throw std::runtime_error("x");
    };
    EXPECT_THROW(io::run(throwing, here()), std::runtime_error);
    EXPECT_EQ(io::context::current(), nullptr);
    EXPECT_EQ(io::run(seven(), here()), 7);
}

struct thrower {
    using sender_concept = ex::sender_tag;
    using completion_signatures = ex::completion_signatures<ex::set_value_t()>;
    struct operation {
        using operation_state_concept = ex::operation_state_tag;
        void start() & noexcept {}
    };
    template <class Rcvr>
    operation connect(Rcvr) const {
        throw own_error{7};
    }
};

TEST_P(run_on, what_connecting_throws_is_thrown) {
    EXPECT_THROW(io::run(thrower(), here()), own_error);
}

// ---- Where the work runs -----------------------------------------------------------------------

TEST_P(run_on, work_runs_on_the_loop_and_on_the_calling_thread) {
    const auto self = std::this_thread::get_id();
    const auto work = [&](io::context& loop) -> task<int> {
        EXPECT_TRUE(loop.is_current());
        EXPECT_EQ(loop.kind(), GetParam());
        EXPECT_EQ(std::this_thread::get_id(), self);
        co_await loop.get_scheduler().schedule();
        EXPECT_TRUE(loop.is_current());
        co_return 7;
    };
    EXPECT_EQ(io::run(work, here()), 7);
}

TEST_P(run_on, every_scheduler_of_the_environment_is_the_loops) {
    const auto work = [](io::context& loop) {
        return ex::when_all(ex::read_env(ex::get_scheduler), ex::read_env(ex::get_start_scheduler),
                            ex::read_env(ex::get_delegation_scheduler),
                            ex::read_env(ex::get_timed_scheduler)) |
               ex::then([&loop](auto... schedulers) {
                   return ((schedulers == loop.get_scheduler()) && ...);
               });
    };
    EXPECT_EQ(io::run(work, here()), true);
}

TEST_P(run_on, a_callable_with_captures_lives_until_its_task_has_ended) {
    const auto text = io::run(
        [words = std::vector<std::string>{"a", "b"}](io::context& loop) -> task<std::string> {
            io::timer timer(loop);
            co_await timer.wait_for(1ms);
            co_return words[0] + words[1];
        },
        here());
    EXPECT_EQ(text, "ab");
}

task<int> answer_on(io::context& loop) {
    io::timer timer(loop);
    co_await timer.wait_for(1ms);
    co_return 7;
}

TEST_P(run_on, a_function_is_a_callable_too) {
    EXPECT_EQ(io::run(answer_on, here()), 7);
}

TEST_P(run_on, a_timeout_finds_the_loops_timers) {
    const auto late = [](io::context& loop) -> task<bool> {
        try {
            co_await ex::timeout(for_ever(loop), 2ms);
        } catch (const std::system_error& error) {
            co_return error.code() == std::errc::timed_out;
        }
        co_return false;
    };
    EXPECT_EQ(io::run(late, here()), true);
    EXPECT_EQ(io::run(ex::timeout(seven(), 1h), here()), 7);
}

TEST_P(run_on, work_continues_on_its_loop_after_an_await_elsewhere) {
    io::context other(io::backend::epoll);
    std::optional<io::context::work_guard> guard(other);
    std::thread runner([&] { other.run(); });
    const auto work = [&](io::context& loop) -> task<int> {
        const auto there = co_await (
            ex::starts_on(other.get_scheduler(),
                          ex::just() | ex::then([] { return std::this_thread::get_id(); })));
        EXPECT_EQ(there, runner.get_id());
        EXPECT_TRUE(loop.is_current());
        co_return 7;
    };
    if (GetParam() != io::backend::sim) {  // a simulation waits only for what happens in its world
        EXPECT_EQ(io::run(work, here()), 7);
        // The result of a sender that completes elsewhere comes back from there.
        EXPECT_EQ(io::run(ex::starts_on(other.get_scheduler(), ex::just(8)), here()), 8);
    }
    guard.reset();
    runner.join();
}

task<std::string> talk(io::context& loop) {
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    const auto serve = [&]() -> task<> {
        io::tcp::socket socket = co_await acceptor.accept();
        std::array<std::byte, 64> buffer;
        for (;;) {
            const std::size_t n = co_await socket.receive(buffer);
            if (n == 0) co_return;
            co_await socket.send_all(std::span(buffer).first(n));
        }
    };
    const auto ask = [&]() -> task<std::string> {
        io::tcp::socket socket(loop);
        co_await socket.connect(acceptor.local());
        co_await socket.send_all(test::bytes_of("hello"));
        socket.shutdown(io::internal::shutdown_direction::send);
        std::string answer;
        std::array<std::byte, 64> buffer;
        while (const std::size_t n = co_await socket.receive(buffer)) {
            answer += test::text_of(std::span(buffer).first(n));
        }
        co_return answer;
    };
    co_return co_await ex::when_all(serve(), ask());
}

TEST_P(run_on, sockets_exchange_bytes) {
    EXPECT_EQ(io::run(talk, here()), "hello");
}

// ---- The end -----------------------------------------------------------------------------------

TEST_P(run_on, it_waits_for_what_the_work_left_on_the_loop) {
    int ended = 0;
    const auto leave = [](io::context& loop, int& count) -> detached {
        io::timer timer(loop);
        co_await timer.wait_for(2ms);
        co_await timer.wait_for(1ms);
        ++count;
    };
    const auto work = [&](io::context& loop) -> task<int> {
        leave(loop, ended);
        co_return 7;
    };
    EXPECT_EQ(io::run(work, here()), 7);
    EXPECT_EQ(ended, 1);
    // It also waits if the work failed.
    const auto failing = [&](io::context& loop) -> task<int> {
        leave(loop, ended);
        co_await ex::just_error(own_error{7});
        co_return 7;
    };
    EXPECT_THROW(io::run(failing, here()), own_error);
    EXPECT_EQ(ended, 2);
}

TEST_P(run_on, work_that_stops_itself_returns_nothing) {
    const auto work = [](io::context&) -> task<int> {
        co_await ex::just_stopped();
        co_return 7;
    };
    EXPECT_EQ(io::run(work, here()), std::nullopt);
    EXPECT_FALSE(io::run(ex::just_stopped(), here()));
}

TEST_P(run_on, stopping_the_loop_stops_the_work) {
    std::error_code left;
    const auto work = [&](io::context& loop) -> task<int> {
        const auto wait = [](io::context& on, std::error_code& ec) -> detached {
            io::timer timer(on);
            co_await timer.wait_for(1h, use_await[ec]);
        };
        wait(loop, left);
        loop.stop();
        co_await for_ever(loop);
        co_return 7;
    };
    EXPECT_EQ(io::run(work, here()), std::nullopt);
    EXPECT_EQ(left, std::errc::operation_canceled);  // run() does not wait for the rest
    // The same with a stop before the work has begun.
    const auto early = [](io::context& loop) {
        loop.stop();
        return for_ever(loop);
    };
    EXPECT_FALSE(io::run(early, here()));
    // Work that ignores the stop ends when it chooses.
    const auto stubborn = [](io::context& loop) -> task<int> {
        loop.stop();
        co_await ex::write_env(io::timer(loop).wait_for(2ms),
                               ex::prop(get_stop_token, never_stop_token()));
        co_return 7;
    };
    EXPECT_EQ(io::run(stubborn, here()), 7);
}

TEST_P(run_on, a_thousand_runs_leave_no_descriptor) {
    const auto options = [] {
        io::run_options with = here();
        with.stop_on = {SIGUSR1};
        return with;
    };
    // what the process keeps forever is allocated here
    EXPECT_EQ(io::run(talk, options()), "hello");
    const int before = test::open_files();
    for (int i = 0; i != 1000; ++i) {
        ASSERT_EQ(io::run(seven(), options()), 7);
        if (i % 10 == 0) {
            ASSERT_EQ(io::run(talk, options()), "hello");
        }
    }
    EXPECT_EQ(test::open_files(), before);
}

// ---- Misuse ------------------------------------------------------------------------------------

TEST_P(run_on, a_run_inside_a_loop_is_refused) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    const io::run_options ring = here();
    const auto nested = [&](io::context&) -> task<> {
        io::run(ex::just(), ring);
        co_return;
    };
    EXPECT_DEATH(io::run(nested, ring), "on a thread that runs a loop already");
}

TEST_P(run_on, the_callable_may_call_run_before_the_loop_runs) {
    const auto outer = [](io::context&) { return ex::just(io::run(seven(), here())); };
    EXPECT_EQ(io::run(outer, here()), std::optional<int>(7));
}

TEST_P(run_on, the_callable_may_run_the_loop_before_the_work) {
    int ready = 0;
    const auto work = [&](io::context& loop) {
        io::timer(loop).wait_for(1ms, [&](std::error_code) { ready = 7; });
        loop.run();
        return ex::just(ready);
    };
    EXPECT_EQ(io::run(work, here()), 7);
}

TEST_P(run_on, runs_on_several_threads_do_not_interfere) {
    std::vector<std::thread> threads;
    std::array<int, 4> right{};
    for (std::size_t t = 0; t != right.size(); ++t) {
        threads.emplace_back([&mine = right.at(t), ring = here()] {
            for (int i = 0; i != 20; ++i) {
                if (io::run(talk, ring) == "hello") ++mine;
            }
        });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(right, (std::array{20, 20, 20, 20}));
}

}  // namespace
