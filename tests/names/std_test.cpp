// `using namespace std` and `std::chrono` beside coppice: std's names are still std's.
#include <coppice/coppice.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <iterator>
#include <list>
#include <vector>

using namespace std;
using namespace coppice;
using namespace std::chrono;

#include "net_words.hpp"
#include "sender_words.hpp"
#include "words.hpp"

namespace {

TEST(names_of_std, are_std_beside_coppice) {
    const tuple<common_words, net_words, sender_words> used{};
    static_cast<void>(used);
    const list<int> numbers{1, 2, 3};
    EXPECT_EQ(distance(numbers.begin(), numbers.end()), 3);
    const duration<double> some = 1s;
    const time_point<steady_clock> later = steady_clock::now() + hours(1);
    EXPECT_LT(steady_clock::now() + duration_cast<nanoseconds>(some), later);
    EXPECT_GE(clock(), 0);
    atomic_thread_fence(memory_order_seq_cst);
    const atomic<bool>* const none = nullptr;
    EXPECT_EQ(none, nullptr);
    vector<int> both;
    const array<int, 2> a{1, 2};
    set_union(a.begin(), a.end(), numbers.begin(), numbers.end(), back_inserter(both));
    EXPECT_EQ(both.size(), 3u);
    EXPECT_EQ(std::get<0>(tuple<int>(1)), 1);
    EXPECT_EQ(invoke([] { return 2; }), 2);
}

}  // namespace
