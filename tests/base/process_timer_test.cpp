// The timer of the process: calls a node at its time, once, unless it is disarmed.
#include <coppice/base/internal/process_timer.hpp>

#include <coppice/base/clock.hpp>

#include "emulated.hpp"
#include "sanitizers.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace {

using namespace coppice::internal;
using namespace std::chrono_literals;

std::int64_t in(std::chrono::nanoseconds time) {
    return (coppice::monotonic_clock().now().time_since_epoch() + time).count();
}

// Counts its calls, and notes their order.
struct counted_node : process_timer_node {
    explicit counted_node(in_child inherited = in_child::is_called) noexcept
        : process_timer_node(&called, inherited) {}
    ~counted_node() { retire(); }
    static void called(process_timer_node& node) noexcept {
        static_cast<counted_node&>(node).calls.fetch_add(1, release);
    }
    int count() const noexcept { return calls.load(acquire); }
    atomic<int> calls{0};
};
void wait_until_called(const process_timer_node& node) {
    while (node.pending()) thread_yield();
}

TEST(process_timer, calls_a_node_once_when_its_time_has_come) {
    counted_node node;
    EXPECT_FALSE(node.pending());
    const std::int64_t due = in(1ms);
    node.arm(due);
    wait_until_called(node);
    EXPECT_GE(in(0ns), due);
    EXPECT_EQ(node.count(), 1);
}

TEST(process_timer, does_not_call_a_node_that_was_disarmed) {
    counted_node disarmed;
    counted_node later;
    disarmed.arm(in(1h));
    later.arm(in(1ms));
    disarmed.disarm();
    EXPECT_FALSE(disarmed.pending());
    wait_until_called(later);
    EXPECT_EQ(disarmed.count(), 0);
    EXPECT_EQ(later.count(), 1);
}

TEST(process_timer, forgets_the_time_that_an_armed_node_was_given_before) {
    counted_node node;
    node.arm(in(1h));
    node.arm(in(-1h));
    wait_until_called(node);
    EXPECT_EQ(node.count(), 1);
}

TEST(process_timer, calls_a_thousand_nodes_that_are_armed_in_any_order) {
    std::vector<counted_node> nodes(1000);
    for (std::size_t i = 0; i != nodes.size(); ++i)
        nodes[i].arm(in(std::chrono::microseconds(i * 7919 % 1000)));
    for (const counted_node& node : nodes) wait_until_called(node);
    for (const counted_node& node : nodes) EXPECT_EQ(node.count(), 1);
}

// A node that arms itself again, or ends itself, inside its function.
struct repeated_node : process_timer_node {
    repeated_node() noexcept : process_timer_node(&called) {}
    static void called(process_timer_node& node) noexcept {
        repeated_node& self = static_cast<repeated_node&>(node);
        if (++self.calls != 3) self.arm(in(0ns));
    }
    int calls = 0;  // used by the timer's thread until the node is not pending
};
TEST(process_timer, calls_a_node_again_that_arms_itself_in_its_function) {
    repeated_node node;
    node.arm(in(0ns));
    wait_until_called(node);
    EXPECT_EQ(node.calls, 3);
    node.retire();
}

struct deleted_node : process_timer_node {
    explicit deleted_node(atomic<bool>& g) noexcept : process_timer_node(&called), gone(g) {}
    static void called(process_timer_node& node) noexcept {
        deleted_node& self = static_cast<deleted_node&>(node);
        atomic<bool>& gone = self.gone;
        self.retire();
        delete &self;
        gone.store(true, release);
    }
    atomic<bool>& gone;
};
TEST(process_timer, lets_a_node_end_itself_in_its_function) {
    atomic<bool> gone{false};
    (new deleted_node(gone))->arm(in(0ns));
    while (!gone.load(acquire)) thread_yield();
}

// Arms itself again in its first calls.
struct repeating_node : process_timer_node {
    repeating_node() noexcept : process_timer_node(&called) {}
    static void called(process_timer_node& node) noexcept {
        const int before = static_cast<repeating_node&>(node).calls.fetch_add(1, acq_rel);
        for (int i = 0; i != 100; ++i) spin_hint();
        if (before < 8) node.arm(in(0ns));
    }
    atomic<int> calls{0};
};

TEST(process_timer, retires_a_node_that_arms_itself_meanwhile) {
    for (int round = 0; round != 200; ++round) {
        repeating_node node;
        node.arm(in(0ns));
        while (node.calls.load(acquire) < 1 + round % 8) thread_yield();
        node.retire();
        const int calls = node.calls.load(acquire);
        counted_node later;
        later.arm(in(0ns));
        wait_until_called(later);
        EXPECT_EQ(node.calls.load(acquire), calls);
    }
}

TEST(process_timer, calls_inherited_nodes_in_a_forked_child_except_those_that_are_forgotten) {
    if (coppice::test::emulated) GTEST_SKIP() << coppice::test::no_threads_there;
    if (coppice::test::under_thread_sanitizer)
        GTEST_SKIP() << "the thread sanitizer lets no forked child start threads";
    std::vector<counted_node> called(20);
    counted_node forgotten(process_timer_node::in_child::is_forgotten);
    counted_node never(process_timer_node::in_child::is_forgotten);
    const std::int64_t due = in(20ms);
    forgotten.arm(due);
    never.arm(in(1h));
    for (counted_node& node : called) node.arm(due + 1);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const int before = forgotten.count();
        counted_node own;
        own.arm(due + 2);
        wait_until_called(own);
        for (const counted_node& node : called) {
            if (node.count() != 1) ::_exit(1);
        }
        if (forgotten.pending() || never.pending()) ::_exit(2);
        if (forgotten.count() != before) ::_exit(3);
        // A forgotten node is like one that was never armed.
        never.arm(in(1ms));
        wait_until_called(never);
        ::_exit(never.count() == 1 ? 0 : 4);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    for (const counted_node& node : called) wait_until_called(node);
    wait_until_called(forgotten);
    EXPECT_EQ(forgotten.count(), 1);
}

// A static object whose destructor checks whether the timer still works.
struct arms_at_exit {
    ~arms_at_exit() {
        counted_node node;
        if (node.arm(in(1ms)) != works) ::_exit(1);
        if (works) wait_until_called(node);
    }
    const bool works;
};

// The first call of arm() comes last.
TEST(process_timer, works_in_destructors_of_static_objects_younger_than_a_caller_it_outlives) {
    GTEST_FLAG_SET(death_test_style, coppice::test::style_of_new_process);
    EXPECT_EXIT(
        {
            static const arms_at_exit older{false};
            process_timer_node::outlive_caller();
            static const arms_at_exit younger{true};
            counted_node node;
            node.arm(in(0ns));
            wait_until_called(node);
            std::exit(7);
        },
        testing::ExitedWithCode(7), "");
}

}  // namespace
