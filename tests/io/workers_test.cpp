// io/internal/workers.hpp: growth, the limit, the end of idle threads, and that slow names delay
// nothing else.
#include <coppice/io/file.hpp>
#include <coppice/io/internal/workers.hpp>
#include <coppice/io/resolver.hpp>
#include <coppice/io/timer.hpp>

#include "detached.hpp"
#include "outcome.hpp"
#include "rings.hpp"
#include "sanitizers.hpp"
#include "slow_names.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
using coppice::test::bytes_of;
using coppice::test::detached;
using coppice::test::outcome;
using coppice::test::outcome_receiver;
using coppice::test::own_call;
using coppice::test::slow_names;

struct call : io::internal::job {
    explicit call(std::function<void()> f) : job(&make), function(std::move(f)) {}
    static void make(job* j) noexcept { static_cast<call*>(j)->function(); }
    std::function<void()> function;
};

TEST(workers, below_the_limit_jobs_that_block_do_not_hold_up_others) {
    std::latch gate(1), both(2);
    call a([&] { both.count_down(), gate.wait(); });
    call b([&] { both.count_down(), gate.wait(); });
    call c([&] { gate.count_down(); });
    io::internal::workers three({.threads_max = 3});
    EXPECT_FALSE(three.run(a));
    EXPECT_FALSE(three.run(b));
    both.wait();
    EXPECT_EQ(three.threads(), 2u);
    EXPECT_FALSE(three.run(c));  // without this thread, a and b would never end
    gate.wait();
    EXPECT_EQ(three.threads(), 3u);
}

TEST(workers, beyond_the_limit_jobs_wait_in_a_queue_and_are_run) {
    std::latch gate(1), busy(2), done(20);
    std::mutex mutex;
    std::vector<int> order;
    call a([&] { busy.count_down(), gate.wait(); });
    call b([&] { busy.count_down(), gate.wait(); });
    std::deque<call> waiting;
    for (int i = 0; i != 20; ++i) {
        waiting.emplace_back([&, i] {
            const std::lock_guard lock(mutex);
            order.push_back(i);
            done.count_down();
        });
    }
    io::internal::workers two({.threads_max = 2});
    EXPECT_FALSE(two.run(a));
    EXPECT_FALSE(two.run(b));
    busy.wait();
    for (call& c : waiting) EXPECT_FALSE(two.run(c));
    EXPECT_EQ(two.threads(), 2u);
    {
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(order.empty());
    }
    gate.count_down();
    done.wait();
    const std::lock_guard lock(mutex);
    EXPECT_EQ(order.size(), 20u);
}

TEST(workers, one_thread_keeps_the_order) {
    std::vector<int> order;
    std::deque<call> jobs;
    {
        io::internal::workers one({.threads_max = 1});
        for (int i = 0; i != 50; ++i) jobs.emplace_back([&order, i] { order.push_back(i); });
        for (call& c : jobs) EXPECT_FALSE(one.run(c));
    }  // the destructor waits for the jobs
    ASSERT_EQ(order.size(), 50u);
    for (int i = 0; i != 50; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(workers, a_job_can_be_taken_back_until_it_begins) {
    std::latch gate(1), begun(1);
    bool ran = false;
    call a([&] { begun.count_down(), gate.wait(); });
    call b([&] { ran = true; });
    {
        io::internal::workers one({.threads_max = 1});
        EXPECT_FALSE(one.run(a));
        begun.wait();
        EXPECT_FALSE(one.run(b));
        EXPECT_FALSE(one.withdraw(a));
        EXPECT_TRUE(one.withdraw(b));
        EXPECT_FALSE(one.withdraw(b));
        gate.count_down();
    }
    EXPECT_FALSE(ran);
}

TEST(workers, idle_threads_end_and_come_back) {
    io::internal::workers some({.threads_max = 4, .idle_max = 1ms});
    for (int round = 0; round != 3; ++round) {
        std::latch all(4);
        std::deque<call> jobs;
        for (int i = 0; i != 4; ++i) jobs.emplace_back([&] { all.arrive_and_wait(); });
        for (call& c : jobs) EXPECT_FALSE(some.run(c));
        all.wait();
        while (some.threads() != 0) std::this_thread::yield();
    }
}

TEST(workers, every_signal_is_blocked_on_them) {
    sigset_t mask, mine;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mine);
    call ask([&] { ::pthread_sigmask(SIG_SETMASK, nullptr, &mask); });
    {
        io::internal::workers one;
        EXPECT_FALSE(one.run(ask));
    }
    for (const int signal : {SIGPIPE, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGALRM, SIGCHLD}) {
        EXPECT_EQ(::sigismember(&mask, signal), 1);
    }
    sigset_t after;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
    EXPECT_EQ(::sigismember(&after, SIGTERM), ::sigismember(&mine, SIGTERM));
}

// Looks up a name. The operation stays where it is until it has ended.
class question {
public:
    question(io::context& loop, std::string name, inplace_stop_token stop = {},
             ex::instant deadline = ex::instant::never())
        : name_(std::move(name)),
          operation_(ex::connect(io::resolver(loop).resolve(name_, 1),
                                 outcome_receiver(ended, stop, deadline))) {
        ex::start(operation_);
    }
    outcome ended;

private:
    using sender = decltype(std::declval<io::resolver&>().resolve(std::string_view(), 1));
    std::string name_;
    ex::connect_result_t<sender, outcome_receiver> operation_;
};

class slow_names_on : public testing::TestWithParam<io::backend> {
protected:
    ~slow_names_on() override { std::remove(path.c_str()); }
    // Runs turns until the condition holds.
    template <class Condition>
    void run_until(Condition condition) {
        while (!condition()) (void)loop.run_for(1ms);
    }
    const std::string path = testing::TempDir() + "coppice_workers_test_" +
                             std::to_string(::getpid()) + "_" + test::ring_name({GetParam(), 0});
    slow_names names;  // its destructor waits for hanging look-ups, after the loop has ended
    io::context loop{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(rings, slow_names_on, test::real_rings, test::ring_name);

TEST_P(slow_names_on, two_slow_names_do_not_hold_up_a_third) {
    question first(loop, "slow1"), second(loop, "slow2");
    run_until([&] { return names.hanging() == 2; });
    question third(loop, "here");
    run_until([&] { return third.ended.ends() == 1; });
    EXPECT_EQ(third.ended.values, 1);
    EXPECT_EQ(first.ended.ends() + second.ended.ends(), 0);
    names.let_go();
    loop.run();
    EXPECT_EQ(first.ended.values + second.ended.values, 2);
}

TEST_P(slow_names_on, beyond_the_limit_names_wait_and_are_answered) {
    std::deque<question> many;
    for (int i = 0; i != 12; ++i) many.emplace_back(loop, "slow" + std::to_string(i));
    question quick(loop, "here");
    run_until([&] { return names.hanging() == 8; });
    EXPECT_EQ(io::internal::name_workers().threads(), 8u);
    EXPECT_EQ(quick.ended.ends(), 0);
    names.let_go(1);  // its thread takes the next name in the queue
    names.wait_for_ended(1);
    names.wait_for_hanging(8);
    names.let_go();
    loop.run();
    for (const question& q : many) EXPECT_EQ(q.ended.values, 1);
    EXPECT_EQ(quick.ended.values, 1);
    EXPECT_EQ(names.hanging_most(), 8u);
}

TEST_P(slow_names_on, files_continue_while_all_names_hang) {
    std::deque<question> many;
    for (int i = 0; i != 12; ++i) many.emplace_back(loop, "slow" + std::to_string(i));
    run_until([&] { return names.hanging() == 8; });
    io::file f(loop, path, io::open_mode::truncate);
    std::array<std::byte, 5> read{};
    bool done = false;
    auto use = [&]() -> detached {
        co_await f.write_at(0, bytes_of("hello"));
        co_await f.sync();
        co_await f.read_at(0, read);
        done = true;
    };
    use();
    run_until([&] { return done; });
    EXPECT_EQ(test::text_of(read), "hello");
    EXPECT_EQ(names.hanging(), 8u);
    names.let_go();
    loop.run();
}

TEST_P(slow_names_on, a_stop_does_not_wait_for_the_name_and_withdraws_queued_ones) {
    inplace_stop_source source;
    std::deque<question> many;
    for (int i = 0; i != 12; ++i) {
        many.emplace_back(loop, "slow" + std::to_string(i), source.get_token());
    }
    run_until([&] { return names.hanging() == 8; });
    std::thread stopper([&] { source.request_stop(); });
    loop.run();
    stopper.join();
    for (const question& q : many) EXPECT_EQ(q.ended.stops, 1);
    EXPECT_EQ(names.hanging(), 8u);
    names.let_go();
    // The four that were stopped in the queue are never looked up.
    question after(loop, "here");
    loop.run();
    EXPECT_EQ(after.ended.values, 1);
    EXPECT_EQ(names.asked(), 9u);
}

TEST_P(slow_names_on, a_deadline_does_not_wait_for_the_name) {
    question late(loop, "slow", {}, ex::instant(loop.now() + 1ms));
    loop.run();
    EXPECT_EQ(late.ended.stops, 1);
}

TEST_P(slow_names_on, a_name_holds_one_thread_however_often_it_is_given_up_and_asked_again) {
    std::deque<question> late;
    for (int i = 0; i != 30; ++i) {
        late.emplace_back(loop, "slow", inplace_stop_token(), ex::instant(loop.now() + 1us));
        loop.run();
        EXPECT_EQ(late.back().ended.ends(), 1);
    }
    io::context other(GetParam());
    question mine(loop, "slow"), its(other, "slow"), quick(loop, "here");
    run_until([&] { return quick.ended.ends() == 1; });
    (void)other.run_for(1ms);
    EXPECT_LE(names.hanging_most(), 1u);
    names.let_go();
    loop.run();
    other.run();
    EXPECT_EQ(mine.ended.values, 1);
    EXPECT_EQ(its.ended.values, 1);
}

TEST_P(slow_names_on, a_context_ends_while_its_names_hang) {
    {
        io::context ending(GetParam());
        std::deque<question> many;
        for (int i = 0; i != 10; ++i) many.emplace_back(ending, "slow" + std::to_string(i));
        while (names.hanging() != 8) (void)ending.run_for(1ms);
        EXPECT_FALSE(ending.drain(0ms));
        for (const question& q : many) EXPECT_EQ(q.ended.error, std::errc::operation_canceled);
    }
    EXPECT_EQ(names.hanging(), 8u);
    {
        std::deque<question> many;
        std::optional<io::context> destroyed(std::in_place, GetParam());
        for (int i = 0; i != 3; ++i) many.emplace_back(*destroyed, "slow" + std::to_string(i));
        (void)destroyed->run_for(1ms);
        destroyed.reset();
        for (const question& q : many) EXPECT_EQ(q.ended.error, std::errc::operation_canceled);
    }
    EXPECT_EQ(names.hanging(), 8u);
}

// Answers arrive at the moment at which their requests are given up.
TEST_P(slow_names_on, stops_ends_and_answers_may_race) {
    for (int round = 0; round != 40; ++round) {
        inplace_stop_source source;
        std::deque<question> many;
        std::optional<io::context> racing(std::in_place, GetParam());
        for (int i = 0; i != 4; ++i) {
            many.emplace_back(*racing, "slow" + std::to_string(i), source.get_token());
        }
        (void)racing->run_for(1ms);
        std::thread answering([&] { names.let_go(4); });
        if (round % 2 == 0) {
            source.request_stop();
            racing->run();
        }
        racing.reset();
        answering.join();
        for (const question& q : many) EXPECT_EQ(q.ended.ends(), 1);
    }
}

// The test's program is started again for this, and checks for leaks at its end.
TEST_P(slow_names_on, a_process_exits_while_names_hang) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto exit_with_names = [this] {
        {
            std::deque<question> many;  // ended by their context
            io::context ending(GetParam());
            for (int i = 0; i != 10; ++i) many.emplace_back(ending, "slow" + std::to_string(i));
            while (names.hanging() != 8) (void)ending.run_for(1ms);
        }
        std::exit(0);
    };
    EXPECT_EXIT(exit_with_names(), testing::ExitedWithCode(0), "");
}

TEST_P(slow_names_on, files_that_wait_behind_others_are_stopped_at_once) {
    const auto gate = std::make_shared<std::latch>(1);
    const auto busy = std::make_shared<std::latch>(8);
    for (int i = 0; i != 8; ++i)
        own_call::run_by(io::internal::file_workers(), [gate, busy] {
            busy->count_down();
            gate->wait();
        });
    busy->wait();
    {
        io::file f(loop, path, io::open_mode::truncate);
        std::vector<std::byte> memory(100);
        inplace_stop_source source;
        outcome stopped;
        auto op = ex::connect(f.write_at(0, memory), outcome_receiver(stopped, source.get_token()));
        ex::start(op);
        auto stop = [&]() -> detached {
            co_await loop.get_scheduler().schedule();
            source.request_stop();
        };
        stop();
        loop.run();  // returns although all workers are busy
        EXPECT_EQ(stopped.ends(), 1);
        if (GetParam() == io::backend::epoll) {
            EXPECT_EQ(stopped.stops, 1);
        }
    }
    gate->count_down();
}

TEST_P(slow_names_on, a_child_after_fork_has_its_own_workers) {
    if (test::under_thread_sanitizer) GTEST_SKIP() << "it allows no threads in the child";
    question before(loop, "slow");
    run_until([&] { return names.hanging() == 1; });
    const ::pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        io::look_up_by([](const std::string&, std::vector<io::endpoint>& found) noexcept {
            found.push_back(*io::endpoint::parse("127.0.0.1", 0));
            return 0;
        });
        int status = 1;
        {
            io::context fresh(GetParam());
            // asked again here, because no worker answers the parent's question in the child
            question mine(fresh, "slow");
            fresh.run();
            status = mine.ended.values == 1 ? 0 : 2;
        }
        ::_exit(status);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    names.let_go();
    loop.run();
    EXPECT_EQ(before.ended.values, 1);
}

}  // namespace
