// io/run.hpp and the process around it: signals that stop the work, and descriptors that are
// missing.
#include <coppice/exec/just.hpp>
#include <coppice/exec/queries.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/io/run.hpp>
#include <coppice/io/simulation.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/stop/never.hpp>
#include <coppice/task/task.hpp>

#include "detached.hpp"
#include "rings.hpp"
#include "sanitizers.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <system_error>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
using coppice::test::detached;

class real_run_on : public testing::TestWithParam<io::backend> {};
INSTANTIATE_TEST_SUITE_P(rings, real_run_on, test::real_rings, test::ring_name);

// Runs until it is stopped.
task<> for_ever(io::context& loop) {
    io::timer timer(loop);
    for (;;) co_await timer.wait_for(1h);
}

task<int> seven() {
    co_return 7;
}

struct own_error {
    int number;
};

volatile sig_atomic_t handled = 0;
void count_handled(int) {
    handled = handled + 1;
}

// Installs a handler of the program as long as this object lives.
class own_handler {
public:
    own_handler() {
        struct sigaction mine{};
        mine.sa_handler = &count_handled;
        ::sigaction(SIGUSR1, &mine, &before_);
        handled = 0;
    }
    ~own_handler() { ::sigaction(SIGUSR1, &before_, nullptr); }

private:
    struct sigaction before_{};
};

auto handler_of(int signal) {
    struct sigaction now{};
    ::sigaction(signal, nullptr, &now);
    return now.sa_handler;
}

TEST_P(real_run_on, a_signal_is_a_stop_request) {
    for (const int signal : {SIGUSR1, SIGUSR2}) {
        const auto work = [signal](io::context& loop) -> task<int> {
            ::raise(signal);
            co_await for_ever(loop);
            co_return 7;
        };
        EXPECT_EQ(io::run(work, {.stop_on = {SIGUSR1, SIGUSR2}, .backend = GetParam()}),
                  std::nullopt);
        EXPECT_EQ(handler_of(signal), SIG_DFL);
    }
}

TEST_P(real_run_on, a_signal_that_comes_before_the_work_stops_it) {
    const auto work = [](io::context& loop) {
        ::raise(SIGUSR1);
        return for_ever(loop);
    };
    EXPECT_FALSE(io::run(work, {.stop_on = {SIGUSR1}, .backend = GetParam()}));
}

TEST_P(real_run_on, work_that_finishes_when_told_to_stop_has_a_result) {
    const auto work = [](io::context& loop) -> task<int> {
        ::raise(SIGUSR1);
        (void)co_await ex::stopped_as_optional(for_ever(loop) | ex::then([] { return 1; }));
        co_return 7;
    };
    EXPECT_EQ(io::run(work, {.stop_on = {SIGUSR1}, .backend = GetParam()}), 7);
}

TEST_P(real_run_on, the_second_signal_is_handled_as_before) {
    const own_handler mine;
    const auto work = [](io::context& loop) -> task<int> {
        EXPECT_NE(handler_of(SIGUSR1), &count_handled);
        ::raise(SIGUSR1);
        (void)co_await ex::stopped_as_optional(for_ever(loop) | ex::then([] { return 1; }));
        EXPECT_EQ(handled, 0);
        EXPECT_EQ(handler_of(SIGUSR1), &count_handled);
        ::raise(SIGUSR1);
        EXPECT_EQ(handled, 1);
        co_return 7;
    };
    EXPECT_EQ(io::run(work, {.stop_on = {SIGUSR1}, .backend = GetParam()}), 7);
    EXPECT_EQ(handled, 1);
}

TEST_P(real_run_on, the_second_signal_kills_a_program_that_does_not_stop) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    const io::backend ring = GetParam();
    EXPECT_EXIT(
        io::run(
            [](io::context& loop) -> task<> {
                ::raise(SIGTERM);
                (void)co_await ex::stopped_as_optional(for_ever(loop) | ex::then([] { return 1; }));
                std::fprintf(stderr, "stopping\n");
                ::raise(SIGTERM);
                co_await ex::write_env(io::timer(loop).wait_for(1h),
                                       ex::prop(get_stop_token, never_stop_token()));
            },
            {.stop_on = {SIGTERM}, .backend = ring}),
        testing::KilledBySignal(SIGTERM), "stopping");
}

TEST_P(real_run_on, handlers_are_restored_when_the_work_has_ended) {
    const own_handler mine;
    EXPECT_EQ(io::run(seven(), {.stop_on = {SIGUSR1, SIGUSR2}, .backend = GetParam()}), 7);
    EXPECT_EQ(handler_of(SIGUSR2), SIG_DFL);
    ::raise(SIGUSR1);
    EXPECT_EQ(handled, 1);
    // Operations that the work left behind do not keep the handlers replaced.
    const auto leave = [](io::context& loop) -> detached {
        io::timer timer(loop);
        co_await timer.wait_for(2ms);
        EXPECT_EQ(handler_of(SIGUSR1), &count_handled);
    };
    const auto work = [&](io::context& loop) -> task<> {
        leave(loop);
        co_return;
    };
    EXPECT_TRUE(io::run(work, {.stop_on = {SIGUSR1}, .backend = GetParam()}));
    // Nor does a failure.
    EXPECT_THROW(
        io::run(ex::just_error(own_error{7}), {.stop_on = {SIGUSR1}, .backend = GetParam()}),
        own_error);
    EXPECT_EQ(handler_of(SIGUSR1), &count_handled);
}

TEST_P(real_run_on, without_stop_on_signals_are_left_alone) {
    const own_handler mine;
    const auto work = [](io::context&) -> task<> {
        EXPECT_EQ(handler_of(SIGUSR1), &count_handled);
        co_return;
    };
    EXPECT_TRUE(io::run(work, {.backend = GetParam()}));
}

TEST(run_in_a_simulation, a_signal_stops_the_work_in_virtual_time) {
    for (std::uint64_t seed = 1; seed != 50; ++seed) {
        io::simulation world(seed);
        const auto work = [&](io::context& loop) -> task<int> {
            world.raise(SIGTERM, 30min);
            co_await io::timer(loop).wait_for(10min);
            co_await io::timer(loop).wait_for(1h);
            co_return 7;
        };
        EXPECT_EQ(io::run(work, {.stop_on = {SIGTERM, SIGINT}, .simulation = &world}),
                  std::nullopt);
    }
}

TEST_P(real_run_on, signals_that_cannot_be_received_are_refused) {
    for (const int none : {-1, 0, 65, SIGKILL, SIGSEGV}) {
        bool called = false;
        const auto work = [&](io::context&) {
            called = true;
            return ex::just();
        };
        EXPECT_THROW(io::run(work, {.stop_on = {SIGUSR1, none}, .backend = GetParam()}),
                     std::system_error)
            << none;
        EXPECT_FALSE(called);
        EXPECT_EQ(handler_of(SIGUSR1), SIG_DFL);
    }
}

TEST_P(real_run_on, without_descriptors_no_loop_is_made) {
    if (coppice::test::under_address_sanitizer) {
        GTEST_SKIP() << "the checks of virtual calls that come with it need a pipe";
    }
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const int lowest = ::dup(0);  // no descriptor is free from here on
    ::close(lowest);
    rlimit none = before;
    none.rlim_cur = static_cast<rlim_t>(lowest);
    for (const io::backend kind : {GetParam(), io::backend::automatic}) {
        bool refused = false;
        ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
        try {
            io::run(ex::just(), {.backend = kind});
        } catch (const std::system_error&) {
            refused = true;
        }
        ::setrlimit(RLIMIT_NOFILE, &before);
        EXPECT_TRUE(refused);
    }
    EXPECT_TRUE(io::run(ex::just(), {.backend = GetParam()}));
}

}  // namespace
