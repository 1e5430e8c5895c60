// io/signal_set.hpp: signals as operations, on every ring.
#include <coppice/io/signal_set.hpp>
#include <coppice/io/simulation.hpp>

#include "detached.hpp"
#include "outcome.hpp"
#include "rings.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <latch>
#include <optional>
#include <set>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
namespace ex = coppice::execution;
using coppice::test::detached;
using coppice::test::outcome;
using coppice::test::outcome_receiver;

class signals_on : public testing::TestWithParam<io::backend> {
protected:
    signals_on() {
        if (GetParam() == io::backend::sim) {
            loop.emplace(world);
        } else {
            loop.emplace(GetParam());
        }
    }
    void raise(int signal) {
        if (GetParam() == io::backend::sim) {
            world.raise(signal);
        } else {
            ::raise(signal);
        }
    }
    detached collect(io::signal_set& signals, int count) {
        for (int i = 0; i != count; ++i) got.push_back(co_await signals.wait());
    }

    io::simulation world{7};
    std::optional<io::context> loop;
    std::vector<int> got;
};
INSTANTIATE_TEST_SUITE_P(rings, signals_on, test::all_rings, test::ring_name);

TEST_P(signals_on, a_signal_ends_a_wait) {
    io::signal_set signals(*loop, {SIGUSR1});
    collect(signals, 1);
    raise(SIGUSR1);
    loop->run();
    EXPECT_EQ(got, std::vector<int>{SIGUSR1});
}

TEST_P(signals_on, signals_that_came_before_the_wait_are_received_once_each) {
    io::signal_set signals(*loop, {SIGUSR1, SIGUSR2});
    raise(SIGUSR2);
    raise(SIGUSR1);
    collect(signals, 2);
    loop->run();
    EXPECT_EQ(std::multiset<int>(got.begin(), got.end()), (std::multiset<int>{SIGUSR1, SIGUSR2}));
}

TEST_P(signals_on, a_set_receives_only_its_own_signals) {
    io::signal_set ones(*loop, {SIGUSR1});
    io::signal_set twos(*loop, {SIGUSR2});
    std::vector<int> second;
    auto two = [&]() -> detached { second.push_back(co_await twos.wait()); };
    two();
    collect(ones, 1);
    raise(SIGUSR1);
    raise(SIGUSR2);
    loop->run();
    EXPECT_EQ(got, std::vector<int>{SIGUSR1});
    EXPECT_EQ(second, std::vector<int>{SIGUSR2});
}

TEST_P(signals_on, a_stop_and_a_close_end_a_wait_without_a_signal) {
    inplace_stop_source source;
    outcome stopped, closed;
    io::signal_set one(*loop, {SIGUSR1});
    io::signal_set other(*loop, {SIGUSR1});
    auto a = ex::connect(one.wait(), outcome_receiver(stopped, source.get_token()));
    auto b = ex::connect(other.wait(), outcome_receiver(closed));
    ex::start(a);
    ex::start(b);
    auto end = [&]() -> detached {
        co_await loop->get_scheduler().schedule();
        source.request_stop();
        other.close();
    };
    end();
    loop->run();
    EXPECT_EQ(stopped.stops, 1);
    EXPECT_EQ(closed.ends(), 1);
    EXPECT_EQ(closed.values, 0);
}

TEST_P(signals_on, every_set_of_a_signal_receives_it) {
    io::signal_set one(*loop, {SIGUSR1});
    io::signal_set other(*loop, {SIGUSR1, SIGUSR2});
    std::vector<int> second;
    auto hear = [&]() -> detached { second.push_back(co_await other.wait()); };
    hear();
    collect(one, 1);
    raise(SIGUSR1);
    loop->run();
    EXPECT_EQ(got, std::vector<int>{SIGUSR1});
    EXPECT_EQ(second, std::vector<int>{SIGUSR1});
}

TEST_P(signals_on, a_wait_that_is_stopped_leaves_the_signal_to_the_next) {
    io::signal_set signals(*loop, {SIGUSR1});
    inplace_stop_source source;
    outcome stopped;
    auto wait = ex::connect(signals.wait(), outcome_receiver(stopped, source.get_token()));
    ex::start(wait);
    auto both_at_once = [&]() -> detached {
        co_await loop->get_scheduler().schedule();
        co_await loop->get_scheduler().schedule();
        raise(SIGUSR1);
        source.request_stop();
    };
    both_at_once();
    loop->run();
    EXPECT_EQ(stopped.ends(), 1);
    if (stopped.stops == 1) collect(signals, 1);
    loop->run();
    EXPECT_EQ(stopped.values + static_cast<int>(got.size()), 1);
}

TEST_P(signals_on, two_waits_at_once_stop_the_process_and_name_the_set) {
    EXPECT_DEATH(
        {
            // A forked child has no loop thread yet, so everything is made in the child.
            io::simulation inner_world{7};
            const bool simulated = GetParam() == io::backend::sim;
            std::optional<io::context> inner;
            if (simulated) {
                inner.emplace(inner_world);
            } else {
                inner.emplace(GetParam());
            }
            io::signal_set signals(*inner, {SIGUSR1});
            collect(signals, 1);
            collect(signals, 1);
            inner->run();
        },
        "two waits at once on one io::signal_set");
}
TEST_P(signals_on, the_completion_of_a_wait_may_start_the_next_wait) {
    io::signal_set signals(*loop, {SIGUSR1, SIGUSR2});
    signals.wait([&](std::error_code, int first) noexcept {
        got.push_back(first);
        signals.wait([&](std::error_code, int second) noexcept { got.push_back(second); });
        raise(SIGUSR2);
    });
    raise(SIGUSR1);
    loop->run();
    EXPECT_EQ(got, (std::vector<int>{SIGUSR1, SIGUSR2}));
}

TEST_P(signals_on, sets_may_be_moved_and_made_again) {
    for (int i = 0; i != 20; ++i) {
        io::signal_set first(*loop, {SIGUSR1});
        io::signal_set signals(std::move(first));
        io::signal_set other(*loop, {SIGUSR2});
        raise(SIGUSR1);
        collect(signals, 1);
        loop->run();
        other = std::move(signals);
        raise(SIGUSR1);
        collect(other, 1);
        loop->run();
    }
    EXPECT_EQ(got, std::vector<int>(40, SIGUSR1));
}

// ---- The process's signals --------------------------------------------------------------------

class real_signals_on : public signals_on {
protected:
    // Waits for `count` signals of a set, on its loop, on this thread.
    void receive(io::signal_set& signals, int count) {
        collect(signals, count);
        loop->run();
    }
};
INSTANTIATE_TEST_SUITE_P(rings, real_signals_on, test::real_rings, test::ring_name);

// Blocks signals on this thread as long as it lives.
class blocked : immovable {
public:
    explicit blocked(int signal) {
        sigset_t set;
        ::sigemptyset(&set);
        ::sigaddset(&set, signal);
        ::pthread_sigmask(SIG_BLOCK, &set, &before_);
    }
    ~blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_;
};

TEST_P(real_signals_on, a_thread_that_was_made_before_the_set_does_not_end_the_process) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    // The thread waits in a call that the thread sanitizer intercepts: in a futex call it would not
    // deliver the signal.
    std::thread earlier([&] {
        char end;
        while (::read(ends[0], &end, 1) < 0) {
        }
    });
    {
        io::signal_set signals(*loop, {SIGTERM, SIGUSR1});
        ::pthread_kill(earlier.native_handle(), SIGTERM);
        receive(signals, 1);
        ::pthread_kill(earlier.native_handle(), SIGUSR1);
        receive(signals, 1);
        const blocked here(SIGTERM);  // so that the kernel chooses the other thread
        ::kill(::getpid(), SIGTERM);
        receive(signals, 1);
    }
    ::close(ends[1]);
    earlier.join();
    ::close(ends[0]);
    EXPECT_EQ(got, (std::vector<int>{SIGTERM, SIGUSR1, SIGTERM}));
}

TEST_P(real_signals_on, a_signal_that_all_threads_block_is_received) {
    const blocked everywhere(SIGUSR1);  // the process has only this thread
    io::signal_set signals(*loop, {SIGUSR1});
    ::kill(::getpid(), SIGUSR1);
    receive(signals, 1);
    EXPECT_EQ(got, std::vector<int>{SIGUSR1});
}

TEST_P(real_signals_on, what_was_pending_before_the_set_is_received) {
    const blocked everywhere(SIGUSR1);
    ::raise(SIGUSR1);  // to this thread
    const blocked that_too(SIGUSR2);
    ::kill(::getpid(), SIGUSR2);  // to the process
    io::signal_set signals(*loop, {SIGUSR1, SIGUSR2});
    receive(signals, 2);
    EXPECT_EQ(std::multiset<int>(got.begin(), got.end()), (std::multiset<int>{SIGUSR1, SIGUSR2}));
}

TEST_P(real_signals_on, sets_in_several_contexts_each_receive_a_signal) {
    std::vector<int> others;
    std::latch ready(1);
    std::thread runner([&] {
        io::context other(GetParam());
        io::signal_set set(other, {SIGUSR1});
        auto hear = [&]() -> detached {
            ready.count_down();
            others.push_back(co_await set.wait());
        };
        hear();
        other.run();
    });
    io::signal_set signals(*loop, {SIGUSR1});
    ready.wait();
    ::raise(SIGUSR1);
    receive(signals, 1);
    runner.join();
    EXPECT_EQ(got, std::vector<int>{SIGUSR1});
    EXPECT_EQ(others, std::vector<int>{SIGUSR1});
}

volatile sig_atomic_t handled = 0;
void count_handled(int) {
    handled = handled + 1;
}

TEST_P(real_signals_on, the_previous_handler_is_restored_after_the_last_set) {
    struct sigaction mine{}, original{};
    mine.sa_handler = &count_handled;
    ::sigaction(SIGUSR1, &mine, &original);
    handled = 0;
    {
        io::signal_set signals(*loop, {SIGUSR1});
        {
            const io::signal_set other(*loop, {SIGUSR1});
        }
        ::raise(SIGUSR1);
        receive(signals, 1);
        EXPECT_EQ(handled, 0);
    }
    ::raise(SIGUSR1);
    EXPECT_EQ(handled, 1);
    {
        const io::signal_set signals(*loop, {SIGUSR2});
        ::sigaction(SIGUSR2, &mine, nullptr);  // the program that installed it wants to keep it
    }
    ::raise(SIGUSR2);
    EXPECT_EQ(handled, 2);
    ::sigaction(SIGUSR1, &original, nullptr);
    ::sigaction(SIGUSR2, &original, nullptr);
}

TEST_P(real_signals_on, the_end_of_a_child_is_received) {
    io::signal_set signals(*loop, {SIGCHLD});
    const pid_t child = ::fork();
    if (child == 0) ::_exit(7);
    receive(signals, 1);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 7);
    EXPECT_EQ(got, std::vector<int>{SIGCHLD});
}

// A child that sends itself SIGTERM ends by it, whether or not it calls exec.
TEST_P(real_signals_on, children_have_the_dispositions_from_before_the_set) {
    io::signal_set signals(*loop, {SIGTERM});
    for (const bool execs : {false, true}) {
        const pid_t child = ::fork();
        if (child == 0) {
            if (execs) ::execl("/bin/sh", "sh", "-c", "kill -TERM $$; exit 7", nullptr);
            ::kill(::getpid(), SIGTERM);
            ::_exit(7);
        }
        int status = 0;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFSIGNALED(status)) << execs;
        EXPECT_EQ(WTERMSIG(status), SIGTERM) << execs;
    }
    // Nothing was sent to the parent.
    EXPECT_TRUE(got.empty());
    ::raise(SIGTERM);
    receive(signals, 1);
    EXPECT_EQ(got, std::vector<int>{SIGTERM});
}

TEST_P(real_signals_on, signals_that_cannot_be_received_are_refused_and_change_nothing) {
    const int before = test::open_files();
    for (const int none : {-1, 0, 65, SIGKILL, SIGSTOP, SIGSEGV}) {
        EXPECT_THROW(io::signal_set(*loop, {SIGUSR1, none}), std::system_error) << none;
        struct sigaction now{};
        ::sigaction(SIGUSR1, nullptr, &now);
        EXPECT_EQ(now.sa_handler, SIG_DFL) << none;
    }
    EXPECT_LE(test::open_files(), before + 2);  // what handlers may touch is never freed
}

}  // namespace
