// parallel/partition.hpp, parallel/merge.hpp: the results of std's algorithms at all places.
#include <coppice/parallel/merge.hpp>
#include <coppice/parallel/partition.hpp>

#include <coppice/base/internal/fork_deque.hpp>
#include <coppice/execution.hpp>
#include <coppice/pool/thread_pool.hpp>

#include "ordered_input.hpp"
#include "places.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <forward_list>
#include <list>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace parallel = coppice::parallel;
using coppice::this_thread::sync_wait;
using namespace ordered_input;

bool by_place(const numbered& a, const numbered& b) {
    return a.place < b.place;
}
// Checks that exactly the elements of [v.begin(), middle) match, and that `in` has the same
// elements.
void expect_partition(std::vector<numbered> v, std::ptrdiff_t middle,
                      const std::vector<numbered>& in, std::uint32_t limit, bool is_stable) {
    for (std::size_t i = 0; i != v.size(); ++i) {
        ASSERT_EQ(v[i].value < limit, static_cast<std::ptrdiff_t>(i) < middle);
    }
    if (is_stable) {
        EXPECT_TRUE(std::is_sorted(v.begin(), v.begin() + middle, by_place));
        EXPECT_TRUE(std::is_sorted(v.begin() + middle, v.end(), by_place));
    }
    std::sort(v.begin(), v.end(), by_place);
    ASSERT_EQ(v, in);
}

TEST(parallel_partition, puts_true_elements_first) {
    for (const pattern p : patterns) {
        for (const std::size_t size : sizes) {
            const std::vector<numbered> in = number_all(numbers(p, size));
            const std::uint32_t limit = size == 0 ? 0 : in[size / 3].value;
            const auto matches = [limit](const numbered& x) { return x.value < limit; };
            places::on_pools([&](auto... where) {
                std::vector<numbered> v = in;
                auto middle = parallel::partition(where..., v.begin(), v.end(), matches);
                expect_partition(v, middle - v.begin(), in, limit, false);
                v = in;
                middle = parallel::stable_partition(where..., v.begin(), v.end(), matches);
                expect_partition(v, middle - v.begin(), in, limit, true);
            });
        }
    }
}

TEST(parallel_partition, returns_the_false_elements_of_a_range_and_takes_projections) {
    const auto even = [](std::uint32_t x) { return x % 2 == 0; };
    places::everywhere([&](auto... where) {
        const std::vector<numbered> in = number_all(numbers(pattern::sorted, 5'000));
        std::vector<numbered> v = in;
        auto rest = parallel::partition(where..., v, even, &numbered::value);
        EXPECT_EQ(rest.size(), 2'500u);
        EXPECT_TRUE(rest.end() == v.end());
        v = in;
        rest = parallel::stable_partition(where..., v, even, &numbered::value);
        EXPECT_EQ(rest.front().value, 1u);
        EXPECT_EQ(rest.back().value, 4'999u);
        v = in;
        auto result = sync_wait(parallel::async::partition(where..., v, even, &numbered::value));
        ASSERT_TRUE(result);
        EXPECT_EQ(std::get<0>(*result).size(), 2'500u);
        v = in;
        result = sync_wait(parallel::async::stable_partition(where..., v, even, &numbered::value));
        ASSERT_TRUE(result);
        EXPECT_EQ(std::get<0>(*result).front().value, 1u);
    });
}

TEST(parallel_partition, partitions_strings_owners_lists_and_large_ranges) {
    std::vector<std::string> strings;
    for (const std::uint32_t each : numbers(pattern::random, 20'000)) {
        strings.push_back(make<std::string>(each));
    }
    const auto is_long = [](const std::string& s) { return s.size() > 15; };
    std::vector<std::string> expected = strings;
    const auto count = std::count_if(strings.begin(), strings.end(), is_long);
    EXPECT_EQ(parallel::partition(strings, is_long).begin() - strings.begin(), count);
    EXPECT_TRUE(std::is_partitioned(strings.begin(), strings.end(), is_long));
    std::sort(strings.begin(), strings.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(strings, expected);

    std::deque<std::unique_ptr<int>> owners;
    for (const std::uint32_t each : numbers(pattern::random, 9'000)) {
        owners.push_back(make<std::unique_ptr<int>>(each));
    }
    const auto is_odd = [](const std::unique_ptr<int>& x) { return *x % 2 != 0; };
    parallel::stable_partition(owners, is_odd);
    EXPECT_TRUE(std::is_partitioned(owners.begin(), owners.end(), is_odd));

    std::vector<std::uint32_t> many = numbers(pattern::sorted, 400'000);
    const auto is_odd_number = [](std::uint32_t x) { return x % 2 != 0; };
    parallel::stable_partition(parallel::on(places::pool()), many, is_odd_number);
    for (std::uint32_t i = 0; i != 200'000; ++i) {
        ASSERT_EQ(many[i], 2 * i + 1);
        ASSERT_EQ(many[200'000 + i], 2 * i);
    }

    std::list<int> list = {1, 2, 3, 4, 5, 6, 7};
    const auto small = [](int x) { return x < 4; };
    list.reverse();
    EXPECT_EQ(*parallel::stable_partition(list.begin(), list.end(), small), 7);
    EXPECT_EQ(list, (std::list<int>{3, 2, 1, 7, 6, 5, 4}));
    std::forward_list<int> forward = {7, 1, 6, 2};
    parallel::partition(forward, small);
    EXPECT_TRUE(std::is_partitioned(forward.begin(), forward.end(), small));
}

// A cut makes a partition swap elements that are in their place otherwise.
TEST(parallel_partition, no_request_for_work_cuts_a_loop_on_a_pool_of_one_worker) {
    if (!coppice::internal::light_fences_are_free()) GTEST_SKIP() << "such deques are always asked";
    coppice::thread_pool one(1);
    int asked = 0;
    for (int i = 0; i != 100; ++i) {  // the worker goes to sleep between two calls
        one.run([&asked] { asked += coppice::internal::fork_deque::current()->asked() ? 1 : 0; });
    }
    EXPECT_EQ(asked, 0);
}

TEST(parallel_merge, merges_ranges_of_any_two_sizes_and_is_stable) {
    const auto less = [](const numbered& a, const numbered& b) { return a.value < b.value; };
    for (const pattern p : patterns) {
        for (const std::size_t size : sizes) {
            for (const std::size_t cut : {std::size_t{0}, size / 100, size / 3, size / 2, size}) {
                std::vector<numbered> in = number_all(numbers(p, size));
                const auto middle = in.begin() + static_cast<std::ptrdiff_t>(cut);
                const auto stable = [](const numbered& a, const numbered& b) {
                    return std::pair(a.value, a.place) < std::pair(b.value, b.place);
                };
                std::sort(in.begin(), middle, stable);
                std::sort(middle, in.end(), stable);
                std::vector<numbered> expected = in;
                std::sort(expected.begin(), expected.end(), stable);
                places::on_pools([&](auto... where) {
                    std::vector<numbered> out(size);
                    const auto end =
                        parallel::merge(where..., in.cbegin(), in.cbegin() + (middle - in.begin()),
                                        middle, in.end(), out.begin(), less);
                    ASSERT_TRUE(end == out.end());
                    ASSERT_EQ(out, expected);
                });
            }
        }
    }
}

TEST(parallel_merge, merges_strings_lists_and_large_ranges) {
    std::vector<std::string> a, b;
    for (const std::uint32_t each : numbers(pattern::random, 9'000)) {
        (each % 3 == 0 ? a : b).push_back(make<std::string>(each));
    }
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    std::vector<std::string> expected = a, out(9'000);
    expected.insert(expected.end(), b.begin(), b.end());
    std::sort(expected.begin(), expected.end());
    places::everywhere([&](auto... where) {
        std::fill(out.begin(), out.end(), "");
        const auto end = parallel::merge(where..., a, b, out);
        EXPECT_TRUE(end.in1 == a.end() && end.in2 == b.end() && end.out == out.end());
        EXPECT_EQ(out, expected);
        std::fill(out.begin(), out.end(), "");
        EXPECT_TRUE(sync_wait(parallel::async::merge(where..., a, b, out.begin())));
        EXPECT_EQ(out, expected);
    });
    const std::forward_list<int> odd = {1, 3, 5};
    const std::forward_list<int> even = {2, 4, 6, 8};
    std::list<int> all(7);
    parallel::merge(odd, even, all.begin());
    EXPECT_EQ(all, (std::list<int>{1, 2, 3, 4, 5, 6, 8}));

    std::vector<double> low(300'000), high(5'000), merged(305'000);
    for (std::size_t i = 0; i != low.size(); ++i) low[i] = static_cast<double>(i);
    for (std::size_t i = 0; i != high.size(); ++i) high[i] = static_cast<double>(70 * i) + 0.5;
    parallel::merge(parallel::on(places::pool()), low, high, merged);
    EXPECT_TRUE(std::is_sorted(merged.begin(), merged.end()));
}

TEST(parallel_merge, stops_at_the_end_of_an_output_range_and_takes_two_projections) {
    const std::vector<numbered> left = {{1, 0}, {3, 1}, {3, 2}, {8, 3}};
    const std::vector<std::pair<int, std::uint32_t>> right = {{0, 2}, {0, 3}, {0, 9}};
    struct either {
        std::uint32_t value = 0;
        bool is_left = false;
        either() = default;
        either& operator=(const numbered& x) { return value = x.value, is_left = true, *this; }
        either& operator=(const std::pair<int, std::uint32_t>& x) {
            return value = x.second, is_left = false, *this;
        }
    };
    for (std::size_t room = 0; room != 9; ++room) {
        std::vector<either> out(room);
        const auto second = &std::pair<int, std::uint32_t>::second;
        const auto end = parallel::merge(left, right, out, std::less<>(), &numbered::value, second);
        EXPECT_EQ(static_cast<std::size_t>(end.out - out.begin()), std::min<std::size_t>(room, 7));
        EXPECT_EQ((end.in1 - left.begin()) + (end.in2 - right.begin()), end.out - out.begin());
        const std::uint32_t values[] = {1, 2, 3, 3, 3, 8, 9};
        const bool is_left[] = {true, false, true, true, false, true, false};
        for (std::size_t i = 0; i != std::min<std::size_t>(room, 7); ++i) {
            EXPECT_EQ(out[i].value, values[i]);
            EXPECT_EQ(out[i].is_left, is_left[i]);
        }
        std::vector<either> again(room);
        const auto bounded =
            parallel::merge(left.begin(), left.end(), right.begin(), right.end(), again.begin(),
                            again.end(), {}, &numbered::value, second);
        EXPECT_EQ(bounded.in1, end.in1);
        EXPECT_EQ(bounded.in2, end.in2);
        EXPECT_EQ(bounded.out - again.begin(), end.out - out.begin());
        for (std::size_t i = 0; i != room; ++i) EXPECT_EQ(again[i].value, out[i].value);
    }
}

TEST(parallel_merge, stops_at_the_end_of_an_output_that_two_iterators_bound) {
    const std::vector<int> v = {1, 2, 4};
    const std::list<int> list = {2, 3};
    places::on_pools([&](auto... where) {
        std::forward_list<int> out(4);
        const auto end = parallel::merge(where..., v.begin(), v.end(), list.begin(), list.end(),
                                         out.begin(), out.end());
        EXPECT_EQ(out, (std::forward_list<int>{1, 2, 2, 3}));
        EXPECT_EQ(end.in1, v.begin() + 2);
        EXPECT_EQ(end.in2, list.end());
        EXPECT_EQ(end.out, out.end());
        int few[3] = {};
        const auto sent = sync_wait(parallel::async::merge(where..., v.begin(), v.end(), v.begin(),
                                                           v.end(), few, few + 3, std::less<>()));
        EXPECT_EQ(std::get<0>(*sent).out, few + 3);
        EXPECT_EQ(few[2], 2);
    });
}

}  // namespace
