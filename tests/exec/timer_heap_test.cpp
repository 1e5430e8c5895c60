// Plan: compares the heap with a sorted list.
#include <coppice/exec/deadline.hpp>
#include <coppice/exec/internal/timer_heap.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace {

namespace ex = coppice::execution;

TEST(timer_heap, pops_the_earliest_first_after_any_removals) {
    std::mt19937 random(7);
    struct timer : ex::internal::heap_timer {};
    std::vector<std::unique_ptr<timer>> timers;
    ex::internal::timer_heap heap;
    for (int i = 0; i != 500; ++i) {
        timers.push_back(std::make_unique<timer>());
        timers.back()->when = ex::instant(static_cast<std::int64_t>(random() % 1000));
        heap.insert(*timers.back());
    }
    std::vector<std::int64_t> left;
    for (auto& t : timers) {
        if (random() % 3 == 0) {
            heap.remove(*t);
        } else {
            left.push_back(t->when.nanoseconds());
        }
    }
    std::sort(left.begin(), left.end());
    std::vector<std::int64_t> popped;
    EXPECT_EQ(heap.pop_due(ex::instant(-1)), nullptr);
    while (ex::internal::heap_timer* t = heap.pop_due(ex::instant(5000)))
        popped.push_back(t->when.nanoseconds());
    EXPECT_EQ(popped, left);
    EXPECT_TRUE(heap.empty());
}

}  // namespace
