// base/caller_runs.hpp: items run where they are submitted, on a bounded stack.
#include <coppice/base/caller_runs.hpp>

#include <gtest/gtest.h>

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

TEST(caller_runs, an_item_that_another_submits_runs_inside_of_it) {
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

TEST(caller_runs, items_that_submit_each_other_for_long_need_little_stack) {
    constexpr int count = 1'000'000;
    int runs = 0;
    item one;
    one.function = [&] {
        if (++runs != count) caller_runs<item>::run(one);
    };
    caller_runs<item>::run(one);
    EXPECT_EQ(runs, count);
}

TEST(caller_runs, an_item_may_submit_many_and_each_runs_once) {
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
