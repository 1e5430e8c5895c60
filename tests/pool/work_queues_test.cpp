// Items from outside a pool: taken in shares, in order, each item once.
#include <coppice/base/clock.hpp>
#include <coppice/pool/internal/deque.hpp>
#include <coppice/pool/internal/work_queues.hpp>
#include <coppice/pool/mutex_queue.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <iterator>
#include <numeric>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;

struct numbered_item : work_item {
    explicit numbered_item(int n) noexcept : work_item(nullptr), number(n) {}
    const int number;
};
using items = std::deque<numbered_item>;

items make_items(int count) {
    items made;
    for (int i = 0; i != count; ++i) made.emplace_back(i);
    return made;
}
int number_of(const work_item* item) {
    return static_cast<const numbered_item*>(item)->number;
}
std::vector<int> numbers_of(work_item* const* begin, std::size_t count) {
    std::vector<int> numbers;
    std::transform(begin, begin + count, std::back_inserter(numbers), number_of);
    return numbers;
}
std::vector<int> counting_from(int first, int count) {
    std::vector<int> numbers(static_cast<std::size_t>(count));
    std::iota(numbers.begin(), numbers.end(), first);
    return numbers;
}

TEST(mutex_queue, pop_share_returns_the_oldest_items_in_order) {
    items all = make_items(10);
    mutex_queue queue;
    for (numbered_item& each : all) queue.push(&each);
    work_item* got[8];
    bool rest = false;
    // A third of ten, rounded up.
    ASSERT_EQ(queue.pop_share(got, 8, 3, rest), 4u);
    EXPECT_TRUE(rest);
    EXPECT_EQ(numbers_of(got, 4), counting_from(0, 4));
    // As many as there is room for.
    ASSERT_EQ(queue.pop_share(got, 2, 1, rest), 2u);
    EXPECT_TRUE(rest);
    EXPECT_EQ(numbers_of(got, 2), counting_from(4, 2));
    // All of them.
    ASSERT_EQ(queue.pop_share(got, 8, 1, rest), 4u);
    EXPECT_FALSE(rest);
    EXPECT_EQ(numbers_of(got, 4), counting_from(6, 4));
    EXPECT_TRUE(queue.looks_empty());
    EXPECT_EQ(queue.pop_share(got, 8, 1, rest), 0u);
    EXPECT_FALSE(rest);
    EXPECT_EQ(queue.pop(), nullptr);
}

TEST(mutex_queue, items_put_back_come_before_items_pushed_since) {
    items all = make_items(6);
    mutex_queue queue;
    for (int i = 0; i != 4; ++i) queue.push(&all[static_cast<std::size_t>(i)]);
    work_item* got[2];
    bool rest = false;
    ASSERT_EQ(queue.pop_share(got, 2, 1, rest), 2u);
    for (int i = 4; i != 6; ++i) queue.push(&all[static_cast<std::size_t>(i)]);
    for (int i = 2; i != 6; ++i) {
        work_item* const next = queue.pop();
        ASSERT_NE(next, nullptr);
        EXPECT_EQ(number_of(next), i);
    }
    EXPECT_TRUE(queue.looks_empty());
}

TEST(mutex_queue, a_share_of_one_is_the_oldest_item) {
    items all = make_items(3);
    mutex_queue queue;
    for (numbered_item& each : all) queue.push(&each);
    for (int i = 0; i != 3; ++i) {
        work_item* got = nullptr;
        bool rest = false;
        ASSERT_EQ(queue.pop_share(&got, 1, 2, rest), 1u);
        EXPECT_EQ(number_of(got), i);
        EXPECT_EQ(rest, i != 2);
    }
    work_item* got = nullptr;
    bool rest = true;
    EXPECT_EQ(queue.pop_share(&got, 1, 2, rest), 0u);
    EXPECT_FALSE(rest);
}

TEST(mutex_queue, shares_taken_while_others_push_lose_nothing_and_keep_the_order) {
    constexpr int each = 50'000;
    constexpr int pushers = 2;
    items all = make_items(pushers * each);
    mutex_queue queue;
    std::vector<std::thread> threads;
    for (int t = 0; t != pushers; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i != each; ++i)
                queue.push(&all[static_cast<std::size_t>(t * each + i)]);
        });
    }
    std::vector<int> next_of = {0, each};
    for (int taken = 0; taken != pushers * each;) {
        work_item* got[16];
        bool rest = false;
        const std::size_t count = queue.pop_share(got, 16, 2, rest);
        for (std::size_t i = 0; i != count; ++i) {
            const int number = number_of(got[i]);
            ASSERT_EQ(number, next_of[static_cast<std::size_t>(number / each)]++);
        }
        taken += static_cast<int>(count);
    }
    for (std::thread& t : threads) t.join();
    EXPECT_TRUE(queue.looks_empty());
}

TEST(stealing_queues, a_worker_takes_its_share_from_outside_and_thieves_steal_from_it) {
    items all = make_items(8);
    thread_pool_queues queues(2);
    for (numbered_item& each : all) queues.push_outside(&each);
    const next_work first = queues.next(0);
    ASSERT_NE(first.item, nullptr);
    EXPECT_EQ(number_of(first.item), 0);
    EXPECT_TRUE(first.others_too);
    // The share is half of all items. Thieves get its newest item first.
    const stolen<work_item> stolen = queues.steal(1, 0);
    ASSERT_EQ(stolen.outcome, steal_outcome::taken);
    EXPECT_EQ(number_of(stolen.item), 3);
    EXPECT_EQ(number_of(queues.next(0).item), 1);
    EXPECT_EQ(number_of(queues.next(0).item), 2);
    for (int i = 4; i != 8; ++i) EXPECT_EQ(number_of(queues.next(1).item), i);
    EXPECT_EQ(queues.next(0).item, nullptr);
    EXPECT_TRUE(queues.looks_empty());
}

TEST(stealing_queues, one_item_from_outside_is_not_announced_to_other_workers) {
    items all = make_items(1);
    thread_pool_queues queues(4);
    queues.push_outside(&all[0]);
    const next_work got = queues.next(3);
    EXPECT_EQ(got.item, &all[0]);
    EXPECT_FALSE(got.others_too);
}

// The test says how much time the items took.
struct told_clock {
    static inline time_point told;
    time_point now() const noexcept { return told; }
};
using timed_queues = stealing_queues<bounded_deque<work_item, 1024>, told_clock>;

// Returns how many items the worker holds for itself, after one more next().
int next_and_count(timed_queues& queues, std::size_t worker, std::size_t thief) {
    EXPECT_NE(queues.next(worker).item, nullptr);
    int held = 0;
    while (queues.steal(thief, worker).outcome == steal_outcome::taken) ++held;
    return held;
}

TEST(stealing_queues, long_items_are_left_to_the_first_free_worker) {
    items all = make_items(1000);
    timed_queues queues(2);
    for (numbered_item& each : all) queues.push_outside(&each);
    EXPECT_EQ(next_and_count(queues, 0, 1), 63);  // no time is known yet
    told_clock::told += std::chrono::milliseconds(64);
    EXPECT_EQ(next_and_count(queues, 0, 1), 0);
    told_clock::told += std::chrono::milliseconds(1);
    EXPECT_EQ(number_of(queues.next(0).item), 65);
    EXPECT_EQ(number_of(queues.next(1).item), 66) << "held by the worker that is busy";
}

TEST(stealing_queues, a_share_is_limited_by_the_time_that_its_items_take) {
    items all = make_items(1000);
    timed_queues queues(2);
    for (numbered_item& each : all) queues.push_outside(&each);
    EXPECT_EQ(next_and_count(queues, 0, 1), 63);
    told_clock::told += std::chrono::microseconds(128);  // two microseconds each: ten take 20
    EXPECT_EQ(next_and_count(queues, 0, 1), 9);
    told_clock::told += std::chrono::milliseconds(10);  // the worker was preempted
    EXPECT_EQ(next_and_count(queues, 0, 1), 0);
    told_clock::told += std::chrono::microseconds(1);
    EXPECT_EQ(next_and_count(queues, 0, 1), 19);
    EXPECT_EQ(next_and_count(queues, 0, 1), 63) << "no time at all";
}

TEST(stealing_queues, with_many_workers_a_share_is_larger) {
    items all = make_items(10'000);
    timed_queues queues(100);
    for (numbered_item& each : all) queues.push_outside(&each);
    EXPECT_EQ(next_and_count(queues, 0, 1), 63);
    told_clock::told += std::chrono::microseconds(640);  // ten microseconds each: ten take 100
    EXPECT_EQ(next_and_count(queues, 0, 1), 9);
}

// A worker that finds nothing may sleep; that time does not count for its share.
TEST(stealing_queues, time_without_work_is_not_counted) {
    items all = make_items(210);
    timed_queues queues(2);
    for (int i = 0; i != 10; ++i) queues.push_outside(&all[static_cast<std::size_t>(i)]);
    EXPECT_EQ(number_of(queues.next(0).item), 0);
    for (int i = 5; i != 10; ++i) EXPECT_EQ(number_of(queues.next(1).item), i);
    for (int i = 1; i != 5; ++i) EXPECT_EQ(number_of(queues.next(0).item), i);
    EXPECT_EQ(queues.next(0).item, nullptr);
    told_clock::told += std::chrono::hours(1);
    for (int i = 10; i != 210; ++i) queues.push_outside(&all[static_cast<std::size_t>(i)]);
    EXPECT_EQ(next_and_count(queues, 0, 1), 63);
}

TEST(thread_pool, items_from_outside_run_in_order_on_one_worker) {
    struct recording_item : work_item {
        recording_item(std::vector<int>& where, int n) noexcept
            : work_item(&run_one), ran(&where), number(n) {}
        static void run_one(work_item* item) noexcept {
            const auto& self = *static_cast<recording_item*>(item);
            self.ran->push_back(self.number);
        }
        std::vector<int>* ran;
        int number;
    };
    constexpr int count = 5000;
    std::vector<int> ran;
    ran.reserve(count);
    std::deque<recording_item> recorded;
    for (int i = 0; i != count; ++i) recorded.emplace_back(ran, i);
    {
        thread_pool pool(1);
        for (recording_item& each : recorded) pool.submit(each);
    }
    EXPECT_EQ(ran, counting_from(0, count));
}

}  // namespace
