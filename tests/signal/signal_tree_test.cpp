// signal/: each set signal is selected exactly once, and in the order that the bias asks for.
#include <coppice/signal/internal/directory.hpp>
#include <coppice/signal/selection_bias.hpp>
#include <coppice/signal/signal_tree.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "allocations.hpp"

namespace {

using coppice::selection_bias;
using coppice::signal_tree;

constexpr std::size_t capacities[] = {1, 2, 63, 64, 65, 512, 2048, 2049, 100'000};

std::vector<std::size_t> drain(signal_tree& tree, selection_bias bias = selection_bias::fair()) {
    std::vector<std::size_t> taken;
    while (const auto found = tree.select(bias)) taken.push_back(*found);
    return taken;
}

TEST(signal_tree, rounds_its_capacity_up_and_rejects_zero_and_too_many) {
    for (const std::size_t capacity : capacities)
        EXPECT_GE(signal_tree(capacity).capacity(), capacity);
    EXPECT_THROW(signal_tree(0), std::invalid_argument);
    EXPECT_THROW(signal_tree(std::size_t{1} << 33), std::invalid_argument);
}

TEST(signal_tree, set_returns_true_only_if_the_signal_was_not_set) {
    signal_tree tree(100);
    EXPECT_TRUE(tree.set(7));
    EXPECT_FALSE(tree.set(7));
    EXPECT_EQ(drain(tree), std::vector<std::size_t>{7});
    EXPECT_TRUE(tree.set(7));
}

TEST(signal_tree, is_empty_exactly_when_nothing_is_set) {
    for (const std::size_t capacity : capacities) {
        signal_tree tree(capacity);
        selection_bias bias = selection_bias::fair();
        EXPECT_TRUE(tree.empty());
        EXPECT_EQ(tree.select(bias), std::nullopt);
        for (const std::size_t i : {std::size_t{0}, capacity / 2, capacity - 1}) {
            tree.set(i);
            EXPECT_FALSE(tree.empty());
            EXPECT_EQ(tree.select(bias), i);
            EXPECT_TRUE(tree.empty());
            EXPECT_EQ(tree.select(bias), std::nullopt);
        }
    }
}

TEST(signal_tree, every_set_signal_is_selected_exactly_once) {
    for (const std::size_t capacity : capacities) {
        signal_tree tree(capacity);
        for (std::size_t i = 0; i != capacity; ++i) EXPECT_TRUE(tree.set(i));
        std::vector<std::size_t> taken = drain(tree);
        std::sort(taken.begin(), taken.end());
        ASSERT_EQ(taken.size(), capacity);
        for (std::size_t i = 0; i != capacity; ++i) ASSERT_EQ(taken[i], i);
        EXPECT_TRUE(tree.empty());
    }
}

TEST(signal_tree, reset_takes_a_signal_back) {
    signal_tree tree(1000);
    tree.set(3);
    tree.set(999);
    EXPECT_TRUE(tree.reset(999));
    EXPECT_FALSE(tree.reset(999));
    EXPECT_EQ(drain(tree), std::vector<std::size_t>{3});
    tree.set(5);
    EXPECT_TRUE(tree.reset(5));
    EXPECT_TRUE(tree.empty());
}

TEST(signal_tree, set_range_sets_exactly_the_signals_of_the_range) {
    for (const auto& [first, last] : std::vector<std::pair<std::size_t, std::size_t>>{
             {0, 1}, {0, 64}, {1, 64}, {63, 65}, {10, 10}, {5, 3000}, {64, 4096}}) {
        signal_tree tree(4096);
        tree.set_range(first, last);
        const std::vector<std::size_t> taken = drain(tree);
        ASSERT_EQ(taken.size(), last - first);
        for (std::size_t i = 0; i != taken.size(); ++i) EXPECT_EQ(taken[i], first + i);
    }
}

TEST(signal_tree, select_first_takes_the_lowest_set_signal) {
    signal_tree tree(5000);
    for (const std::size_t i : {4999, 70, 4000, 71}) tree.set(i);
    for (const std::size_t i : {70, 71, 4000, 4999}) EXPECT_EQ(tree.select_first(), i);
    EXPECT_EQ(tree.select_first(), std::nullopt);
}

TEST(signal_tree, agrees_with_a_std_set_over_random_operations) {
    std::mt19937 random(20241115);
    for (const std::size_t capacity : capacities) {
        signal_tree tree(capacity);
        std::set<std::size_t> oracle;
        selection_bias fair = selection_bias::fair();
        selection_bias prefer = selection_bias::prefer(capacity / 3);
        for (int step = 0; step != 20'000; ++step) {
            const std::size_t index = random() % capacity;
            switch (random() % 4) {
                case 0:
                case 1:
                    EXPECT_EQ(tree.set(index), oracle.insert(index).second);
                    break;
                case 2:
                    EXPECT_EQ(tree.reset(index), oracle.erase(index) == 1);
                    break;
                default:
                    const auto found = tree.select(step % 2 == 0 ? fair : prefer);
                    ASSERT_EQ(found.has_value(), !oracle.empty());
                    if (found) {
                        ASSERT_EQ(oracle.erase(*found), 1u);
                    }
            }
            ASSERT_EQ(tree.empty(), oracle.empty());
        }
    }
}

// Sets each selected signal again at once, as a contract does that reschedules itself.
std::map<std::size_t, int> rounds(signal_tree& tree, selection_bias& bias, int selections) {
    std::map<std::size_t, int> count;
    for (int i = 0; i != selections; ++i) {
        const std::size_t found = tree.select(bias).value();
        ++count[found];
        tree.set(found);
    }
    return count;
}

TEST(selection_bias, fair_takes_each_set_signal_equally_often_however_they_are_spread) {
    std::mt19937 random(7);
    for (const std::size_t capacity : {64, 512, 16'384, 100'000}) {
        for (const std::size_t busy : {std::size_t{1}, std::size_t{2}, std::size_t{33}}) {
            signal_tree tree(capacity);
            std::set<std::size_t> chosen;
            while (chosen.size() != busy) chosen.insert(random() % capacity);
            for (const std::size_t i : chosen) tree.set(i);
            selection_bias bias = selection_bias::fair();
            const auto count = rounds(tree, bias, static_cast<int>(busy) * 10);
            ASSERT_EQ(count.size(), busy);
            for (const auto& [signal, times] : count) EXPECT_EQ(times, 10) << signal;
        }
    }
}

TEST(selection_bias, fair_takes_a_lone_signal_as_often_as_each_of_64_busy_neighbors) {
    signal_tree tree(16'384);
    for (std::size_t i = 0; i != 64; ++i) tree.set(i);
    tree.set(10'000);
    selection_bias bias = selection_bias::fair();
    for (const auto& [signal, times] : rounds(tree, bias, 65 * 20)) EXPECT_EQ(times, 20) << signal;
}

// Returns the number of top levels that two indices share in a tree of 2^32 leaves.
int shared_levels(std::size_t a, std::size_t b) {
    return std::countl_zero(static_cast<std::uint32_t>(a ^ b));
}

TEST(selection_bias, prefer_takes_the_signal_that_shares_the_most_top_levels) {
    std::mt19937 random(11);
    for (const std::size_t capacity : {1, 64, 100, 2048, 70'000}) {
        for (int trial = 0; trial != 50; ++trial) {
            signal_tree tree(capacity);
            std::set<std::size_t> set;
            for (int i = 0; i != 40; ++i) {
                set.insert(random() % capacity);
                tree.set(*set.rbegin());
            }
            for (const std::size_t i : set) tree.set(i);
            const std::size_t preferred = random() % (capacity + capacity / 2);
            selection_bias bias = selection_bias::prefer(preferred);
            while (!set.empty()) {
                int most = 0;
                for (const std::size_t i : set) most = std::max(most, shared_levels(i, preferred));
                const std::size_t found = tree.select(bias).value();
                ASSERT_EQ(shared_levels(found, preferred), most) << found << " near " << preferred;
                ASSERT_EQ(set.erase(found), 1u);
            }
            ASSERT_EQ(tree.select(bias), std::nullopt);
        }
    }
}

TEST(selection_bias, prefer_is_fair_within_a_block_while_nearer_signals_come_and_go) {
    signal_tree tree(4096);
    for (std::size_t i = 1024; i != 1034; ++i) tree.set(i);  // one block, seen from index 0
    for (std::size_t i = 70; i != 73; ++i) tree.set(i);      // a nearer block
    selection_bias bias = selection_bias::prefer(0);
    std::map<std::size_t, int> count;
    for (int i = 0; i != 60; ++i) {
        const std::size_t near = tree.select(bias).value();
        ASSERT_TRUE(near >= 70 && near < 73);
        ++count[near];
        for (std::size_t k = 70; k != 73; ++k) tree.reset(k);
        const std::size_t far = tree.select(bias).value();
        ++count[far];
        tree.set(far);
        for (std::size_t k = 70; k != 73; ++k) tree.set(k);
    }
    for (std::size_t i = 1024; i != 1034; ++i) EXPECT_EQ(count[i], 6) << i;
    for (std::size_t i = 70; i != 73; ++i) EXPECT_EQ(count[i], 20) << i;
}

TEST(signal_tree, selecting_and_setting_allocate_nothing) {
    signal_tree tree(10'000);
    selection_bias bias = selection_bias::prefer(77);
    const coppice::test::allocation_count count;
    for (std::size_t i = 0; i < 10'000; i += 7) tree.set(i);
    while (tree.select(bias)) {
    }
    EXPECT_EQ(count.so_far(), 0u);
}

TEST(signal_tree, threads_take_each_signal_exactly_once) {
    constexpr std::size_t capacity = 5000;
    constexpr int setters = 2, selectors = 2, rounds_each = 20'000;
    signal_tree tree(capacity);
    std::vector<coppice::internal::atomic<int>> sets(capacity);
    std::vector<coppice::internal::atomic<int>> takes(capacity);
    coppice::internal::atomic<int> setting{setters};
    std::vector<std::thread> threads;
    for (int t = 0; t != setters; ++t) {
        threads.emplace_back([&, t] {
            std::mt19937 random(static_cast<unsigned>(t));
            for (int i = 0; i != rounds_each; ++i) {
                // Half of the sets fall into the first 64 signals; the others are spread over the
                // tree.
                const std::size_t index = random() % (i % 2 == 0 ? 64 : capacity);
                if (tree.set(index)) sets[index].fetch_add(1, coppice::internal::relaxed);
            }
            setting.fetch_sub(1, coppice::internal::release);
        });
    }
    for (int t = 0; t != selectors; ++t) {
        threads.emplace_back([&, t] {
            selection_bias bias = t == 0 ? selection_bias::fair() : selection_bias::prefer(4000);
            while (setting.load(coppice::internal::acquire) != 0 || !tree.empty()) {
                if (const auto found = tree.select(bias))
                    takes[*found].fetch_add(1, coppice::internal::relaxed);
            }
        });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_TRUE(tree.empty());
    for (std::size_t i = 0; i != capacity; ++i)
        ASSERT_EQ(sets[i].load(coppice::internal::relaxed),
                  takes[i].load(coppice::internal::relaxed))
            << i;
}

TEST(signal_tree_death, an_index_outside_of_the_tree_stops_the_process) {
    EXPECT_DEATH(signal_tree(64).set(64), "outside of the tree");
}

}  // namespace
