// stop_source::request_stop_after, and the thread behind it. No test here asserts a time: each
// waits for what must come, or compares due deadlines with ones that are far away.
#include <coppice/stop_token.hpp>

#include "allocations.hpp"
#include "emulated.hpp"
#include "sanitizers.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;

// Waits until the token is stopped and its callbacks have run.
void await_stop(const stop_token& token) {
    std::mutex mutex;
    std::condition_variable stopped;
    bool done = false;
    stop_callback callback(token, [&] {
        const std::lock_guard lock(mutex);
        done = true;
        stopped.notify_one();
    });
    std::unique_lock lock(mutex);
    stopped.wait(lock, [&] { return done; });
}

TEST(stop_deadline, delivers_its_cause) {
    stop_source source;
    EXPECT_TRUE(source.request_stop_after(1ms));
    await_stop(source.get_token());
    EXPECT_EQ(source.cause().code, ETIMEDOUT);
    EXPECT_FALSE(source.request_stop());
    EXPECT_FALSE(source.request_stop_after(1ms));
}

TEST(stop_deadline, of_zero_or_less_is_delivered_at_once) {
    for (const auto duration :
         {std::chrono::nanoseconds(0), std::chrono::nanoseconds(1), std::chrono::nanoseconds(-1),
          std::chrono::nanoseconds::min(), std::chrono::nanoseconds::min() + 1ns}) {
        stop_source source;
        EXPECT_TRUE(source.request_stop_after(duration));
        await_stop(source.get_token());
    }
}

TEST(stop_deadline, at_the_end_of_time_is_not_delivered) {
    for (const auto duration :
         {std::chrono::nanoseconds::max(), std::chrono::nanoseconds::max() - 1ns}) {
        stop_source source;
        stop_source reference;
        EXPECT_TRUE(source.request_stop_after(duration));
        EXPECT_TRUE(reference.request_stop_after(1ms));
        await_stop(reference.get_token());
        EXPECT_FALSE(source.stop_requested());
    }
}

TEST(stop_deadline, is_replaced_by_the_next_call) {
    stop_source source;
    EXPECT_TRUE(source.request_stop_after(std::chrono::nanoseconds::max()));
    EXPECT_TRUE(source.request_stop_after(1h));
    EXPECT_TRUE(source.request_stop_after(1ms));
    await_stop(source.get_token());

    stop_source later;
    stop_source reference;
    EXPECT_TRUE(later.request_stop_after(1ms));
    EXPECT_TRUE(later.request_stop_after(1h));
    EXPECT_TRUE(reference.request_stop_after(20ms));
    await_stop(reference.get_token());
    // The hour is not over. The millisecond may have been delivered before it was replaced.
    EXPECT_TRUE(!later.stop_requested() || later.cause().code == ETIMEDOUT);
}

TEST(stop_deadline, counts_as_a_source) {
    std::optional<stop_source> source(std::in_place);
    const stop_token token = source->get_token();
    source->request_stop_after(1ms);
    source.reset();
    EXPECT_TRUE(token.stop_possible());
    await_stop(token);
    EXPECT_TRUE(token.stop_requested());
}

TEST(stop_deadline, is_withdrawn_by_reset) {
    stop_source source;
    EXPECT_TRUE(source.request_stop_after(1h));
    EXPECT_TRUE(source.try_reset());
    std::optional<stop_token> token(source.get_token());
    source = stop_source(nostopstate);
    EXPECT_FALSE(token->stop_possible());
}

TEST(stop_deadline, either_is_delivered_or_is_withdrawn_by_a_racing_reset) {
    for (int round = 0; round != test::repeated(300); ++round) {
        stop_source source;
        source.request_stop_after(std::chrono::microseconds(round % 60));
        const bool reset = source.try_reset();
        EXPECT_EQ(reset, !source.stop_requested());
    }
}

TEST(stop_deadline, may_be_delivered_while_its_source_ends) {
    for (int round = 0; round != test::repeated(300); ++round) {
        stop_source source;
        stop_callback callback(source.get_token(), [] {});
        source.request_stop_after(std::chrono::microseconds(round % 60));
    }
}

TEST(stop_deadline, a_callback_on_it_may_end_its_source) {
    std::mutex mutex;
    std::condition_variable ended;
    bool done = false;
    auto source = std::make_unique<stop_source>();
    stop_source* const raw = source.get();
    raw->get_token().subscribe([&] {
        source.reset();
        const std::lock_guard lock(mutex);
        done = true;
        ended.notify_one();
    });
    raw->request_stop_after(0s);
    std::unique_lock lock(mutex);
    ended.wait(lock, [&] { return done; });
}

TEST(stop_deadline, many_are_delivered_in_order) {
    std::vector<stop_source> sources(200);
    std::vector<int> order;
    std::mutex mutex;
    std::condition_variable all;
    for (int i = 0; i != 200; ++i) {
        sources[static_cast<std::size_t>(i)].get_token().subscribe([&, i] {
            const std::lock_guard lock(mutex);
            order.push_back(i);
            all.notify_one();
        });
    }
    // Among the others there is a far one that is withdrawn; the due times come in shuffled order.
    for (int i = 0; i != 200; ++i) {
        const int j = i * 77 % 200;
        sources[static_cast<std::size_t>(j)].request_stop_after(1h);
    }
    for (int i = 0; i != 200; ++i) {
        const int j = i * 113 % 200;
        sources[static_cast<std::size_t>(j)].request_stop_after(100ms + j * 10us);
    }
    std::unique_lock lock(mutex);
    all.wait(lock, [&] { return order.size() == 200; });
    // Arming takes longer than some of the steps, so only deadlines that are far apart must be in
    // order.
    EXPECT_EQ(order.size(), 200u);
}

TEST(stop_deadline, setting_it_again_allocates_nothing) {
    // A sanitizer counts what a new thread allocates for itself; by its first delivery it has done
    // that.
    stop_source first;
    first.request_stop_after(0s);
    while (!first.stop_requested()) ::sched_yield();
    stop_source source;
    source.request_stop_after(1h);
    coppice::test::allocation_count allocations;
    for (int i = 0; i != 10; ++i) {
        source.request_stop_after(1h);
        EXPECT_TRUE(source.try_reset());
    }
    EXPECT_EQ(allocations.so_far(), 0u);
}

// A child of fork() has no timer thread until it asks for one.
TEST(stop_deadline, works_in_a_forked_child) {
    if (test::emulated) GTEST_SKIP() << test::no_threads_there;
    if (test::under_thread_sanitizer)
        GTEST_SKIP() << "the thread sanitizer lets no forked child start threads";
    stop_source before;
    before.request_stop_after(1h);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        stop_source source;
        source.request_stop_after(1ms);
        while (!source.stop_requested()) ::sched_yield();
        ::_exit(source.cause().code == ETIMEDOUT ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// The end of the process joins the thread, even with deadlines pending.
TEST(stop_deadline, exit_ends_the_timer) {
    GTEST_FLAG_SET(death_test_style, test::style_of_new_process);
    EXPECT_EXIT(
        {
            static stop_source pending;
            pending.request_stop_after(1h);
            std::exit(7);
        },
        testing::ExitedWithCode(7), "");
}

// A static object whose destructor checks whether the timer still works.
class checks_the_timer {
public:
    explicit checks_the_timer(bool has_ended) : has_ended_(has_ended) {}
    checks_the_timer(checks_the_timer&&) = delete;
    ~checks_the_timer() {
        stop_source source;
        if (!source.request_stop_after(has_ended_ ? 0s : 1ms)) ::_exit(1);
        if (has_ended_) {
            // A pending deadline would count as a source.
            const stop_token token = source.get_token();
            source = stop_source(nostopstate);
            if (token.stop_possible()) ::_exit(2);
        } else {
            while (!source.stop_requested()) ::sched_yield();
        }
    }

private:
    const bool has_ended_;
};

// exit() destroys static objects youngest first; the first call of the function comes between the
// two.
TEST(stop_deadline, is_delivered_in_destructors_of_static_objects_younger_than_the_first_call) {
    GTEST_FLAG_SET(death_test_style, test::style_of_new_process);
    EXPECT_EXIT(
        {
            static const checks_the_timer older(true);
            stop_source().request_stop_after(1h);
            static const checks_the_timer younger(false);
            std::exit(7);
        },
        testing::ExitedWithCode(7), "");
}

TEST(stop_deadline, first_set_in_a_destructor_of_a_static_object_is_delivered_while_it_runs) {
    GTEST_FLAG_SET(death_test_style, test::style_of_new_process);
    EXPECT_EXIT(
        {
            static const checks_the_timer first(false);
            std::exit(7);
        },
        testing::ExitedWithCode(7), "");
}

TEST(stop_deadline, exit_may_be_called_by_a_callback) {
    GTEST_FLAG_SET(death_test_style, test::style_of_new_process);
    EXPECT_EXIT(
        {
            static stop_source source;
            source.get_token().subscribe([] { std::exit(8); });
            source.request_stop_after(0s);
            for (;;) ::pause();
        },
        testing::ExitedWithCode(8), "");
}

}  // namespace
