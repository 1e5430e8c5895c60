// base/internal/caller_runs.hpp: items run on the submitting thread, on a bounded stack.
#include <coppice/base/internal/caller_runs.hpp>

#include "sanitizers.hpp"
#include "small_stack.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;

struct item {
    void (*run)(item*) noexcept = &call;
    item* next = nullptr;
    std::function<void()> function;
    static void call(item* self) noexcept { self->function(); }
};

TEST(caller_runs, an_item_has_run_when_the_call_returns) {
    int runs = 0;
    item one;
    one.function = [&] { ++runs; };
    caller_runs<item>::run(one);
    EXPECT_EQ(runs, 1);
}

TEST(caller_runs, an_item_that_another_item_submits_runs_inside_it) {
    std::vector<int> order;
    item inner, outer;
    inner.function = [&] { order.push_back(1); };
    outer.function = [&] {
        caller_runs<item>::run(inner);
        order.push_back(2);
    };
    caller_runs<item>::run(outer);
    EXPECT_EQ(order, (std::vector{1, 2}));
}

TEST(caller_runs, a_long_chain_of_submitting_items_needs_little_stack) {
    constexpr int count = 1'000'000;
    int runs = 0;
    item one;
    one.function = [&] {
        if (++runs != count) caller_runs<item>::run(one);
    };
    caller_runs<item>::run(one);
    EXPECT_EQ(runs, count);
}

// Makes the compiler keep the memory that alloca has put into the frame, under every sanitizer.
void use(void* memory) {
    asm volatile("" : : "r"(memory) : "memory");
}

// Runs in a frame of its own, below what its caller has put on the stack.
[[gnu::noinline]] void submit(item& i) {
    caller_runs<item>::run(i);
}

// Runs f on a thread with a small stack.
template <class F>
void on_small_stack(F f) {
    test::on_a_stack_of(test::sanitized ? 1 << 19 : 1 << 16, f);
}

TEST(caller_runs, items_nest_only_while_the_stack_has_room) {
    on_small_stack([] {
        constexpr int count = 100'000;
        int runs = 0;
        int inside = 0;
        int inside_most = 0;
        item one;
        one.function = [&] {
            inside_most = std::max(inside_most, ++inside);
            if (++runs != count) caller_runs<item>::run(one);
            --inside;
        };
        caller_runs<item>::run(one);
        EXPECT_EQ(runs, count);
        EXPECT_GT(inside_most, 16);
        EXPECT_LT(inside_most, 10'000);
    });
}

// Each item waits for the next one, and runs deferred items when it is about to sleep.
TEST(caller_runs, deferred_items_run_before_the_thread_sleeps) {
    struct level : item {
        bool done = false;
    };
    std::vector<level> levels(100);
    int put_off = 0;
    for (std::size_t i = 0; i != levels.size(); ++i) {
        levels[i].function = [&, i] {
            use(__builtin_alloca(24'000));
            if (i + 1 != levels.size()) {
                caller_runs<item>::run(levels[i + 1]);
                if (!levels[i + 1].done) {
                    ++put_off;
                    EXPECT_TRUE(put_off_work::run_one());
                }
                EXPECT_TRUE(levels[i + 1].done);
            }
            levels[i].done = true;
        };
    }
    EXPECT_FALSE(put_off_work::run_one());
    caller_runs<item>::run(levels[0]);
    EXPECT_TRUE(levels[0].done);
    EXPECT_GT(put_off, 0);
    EXPECT_FALSE(put_off_work::run_one());
}

// An item that one kind deferred is found even if another kind runs inside.
TEST(caller_runs, each_kind_of_item_finds_what_the_other_deferred) {
    struct other_item {
        void (*run)(other_item*) noexcept = &call;
        other_item* next = nullptr;
        std::function<void()> function;
        static void call(other_item* self) noexcept { self->function(); }
    };
    item outer, late;
    other_item between;
    bool late_ran = false;
    late.function = [&] { late_ran = true; };
    between.function = [&] {
        EXPECT_FALSE(late_ran);
        while (put_off_work::run_one()) {
        }
        EXPECT_TRUE(late_ran);
    };
    outer.function = [&] {
        use(__builtin_alloca(3 << 19));  // more than the room
        submit(late);
        EXPECT_FALSE(late_ran);
        caller_runs<other_item>::run(between);
        EXPECT_TRUE(late_ran);
    };
    caller_runs<item>::run(outer);
    EXPECT_TRUE(late_ran);
}

TEST(caller_runs, an_item_may_submit_many_items_and_each_runs_once) {
    int runs = 0;
    std::vector<item> leaves(100);
    item deep[20];
    for (item& each : leaves) each.function = [&] { ++runs; };
    for (std::size_t i = 0; i != 20; ++i) {
        deep[i].function = [&, i] {
            for (std::size_t k = 0; k != 5; ++k) caller_runs<item>::run(leaves[5 * i + k]);
            if (i != 19) caller_runs<item>::run(deep[i + 1]);
        };
    }
    caller_runs<item>::run(deep[0]);
    EXPECT_EQ(runs, 100);
}

}  // namespace
