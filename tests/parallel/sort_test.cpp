// parallel/sort.hpp: the results of std's algorithms, on all patterns, at all places.
#include <coppice/parallel/sort.hpp>

#include <coppice/execution.hpp>

#include "ordered_input.hpp"
#include "places.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace {

namespace parallel = coppice::parallel;
using coppice::this_thread::sync_wait;
using namespace ordered_input;

template <class T>
std::vector<T> input(pattern p, std::size_t size) {
    std::vector<T> v;
    for (const std::uint32_t each : numbers(p, size)) v.push_back(make<T>(each));
    return v;
}

template <class T>
void compare_sorts() {
    for (const pattern p : patterns) {
        for (const std::size_t size : sizes) {
            const std::vector<T> in = input<T>(p, size);
            std::vector<T> expected = in;
            std::sort(expected.begin(), expected.end());
            places::on_pools([&](auto... where) {
                std::vector<T> v = in;
                EXPECT_TRUE(parallel::sort(where..., v));
                ASSERT_EQ(v, expected) << "pattern " << static_cast<int>(p) << " size " << size;
                v = in;
                EXPECT_TRUE(parallel::stable_sort(where..., v.begin(), v.end()));
                ASSERT_EQ(v, expected) << "pattern " << static_cast<int>(p) << " size " << size;
            });
        }
    }
}
TEST(parallel_sort, sorts_integers_as_std_does) {
    compare_sorts<std::uint32_t>();
}
TEST(parallel_sort, sorts_doubles_as_std_does) {
    compare_sorts<double>();
}
TEST(parallel_sort, sorts_strings_as_std_does) {
    compare_sorts<std::string>();
}

TEST(parallel_sort, keeps_the_order_of_equal_elements_in_a_stable_sort) {
    const auto less = [](const numbered& a, const numbered& b) {
        return a.value / 2 < b.value / 2;
    };
    for (const pattern p : patterns) {
        for (const std::size_t size : sizes) {
            const std::vector<numbered> in = number_all(numbers(p, size));
            std::vector<numbered> expected = in;
            std::sort(expected.begin(), expected.end(), [](const numbered& a, const numbered& b) {
                return std::pair(a.value / 2, a.place) < std::pair(b.value / 2, b.place);
            });
            places::on_pools([&](auto... where) {
                std::vector<numbered> v = in;
                EXPECT_TRUE(parallel::stable_sort(where..., v, less));
                ASSERT_EQ(v, expected) << "pattern " << static_cast<int>(p) << " size " << size;
            });
        }
    }
}

TEST(parallel_sort, sorts_large_ranges) {
    for (const pattern p : patterns) {
        const std::vector<std::uint32_t> in = numbers(p, 300'000);
        std::vector<std::uint32_t> expected = in;
        std::sort(expected.begin(), expected.end());
        std::vector<std::uint32_t> v = in;
        EXPECT_TRUE(parallel::sort(parallel::on(places::pool()), v));
        ASSERT_EQ(v, expected);
        v = in;
        EXPECT_TRUE(parallel::stable_sort(parallel::on(places::pool()), v));
        ASSERT_EQ(v, expected);
    }
}

TEST(parallel_sort, selects_as_std_does) {
    for (const pattern p : patterns) {
        for (const std::size_t size : sizes) {
            const std::vector<std::uint32_t> in = numbers(p, size);
            std::vector<std::uint32_t> expected = in;
            std::sort(expected.begin(), expected.end());
            places::on_pools([&](auto... where) {
                for (const std::size_t n : {std::size_t{0}, size / 3, size / 2, size}) {
                    const auto middle = static_cast<std::ptrdiff_t>(n);
                    std::vector<std::uint32_t> v = in;
                    EXPECT_TRUE(parallel::nth_element(where..., v, v.begin() + middle));
                    if (n != size) {
                        ASSERT_EQ(v[n], expected[n]);
                        for (std::size_t i = 0; i != size; ++i) {
                            ASSERT_TRUE(i < n ? v[i] <= v[n] : v[i] >= v[n]);
                        }
                    }
                    v = in;
                    EXPECT_TRUE(
                        parallel::partial_sort(where..., v.begin(), v.begin() + middle, v.end()));
                    ASSERT_TRUE(std::equal(v.begin(), v.begin() + middle, expected.begin()));
                    std::sort(v.begin(), v.end());
                    ASSERT_EQ(v, expected);
                }
            });
        }
    }
}

TEST(parallel_sort, runs_at_every_place_and_as_a_sender) {
    places::everywhere([](auto... where) {
        const std::vector<std::uint32_t> in = numbers(pattern::random, 3'000);
        std::vector<std::uint32_t> expected = in;
        std::sort(expected.begin(), expected.end(), std::greater<>());
        std::vector<std::uint32_t> v = in;
        EXPECT_TRUE(parallel::sort(where..., v, std::greater<>()));
        EXPECT_EQ(v, expected);
        v = in;
        EXPECT_TRUE(sync_wait(parallel::async::sort(where..., v, std::greater<>())));
        EXPECT_EQ(v, expected);
        v = in;
        EXPECT_TRUE(sync_wait(parallel::async::stable_sort(where..., v, std::greater<>())));
        EXPECT_EQ(v, expected);
        v = in;
        EXPECT_TRUE(
            sync_wait(parallel::async::partial_sort(where..., v, v.begin() + 5, std::greater<>())));
        EXPECT_EQ(v[4], expected[4]);
        v = in;
        EXPECT_TRUE(
            sync_wait(parallel::async::nth_element(where..., v, v.begin() + 9, std::greater<>())));
        EXPECT_EQ(v[9], expected[9]);
    });
}

TEST(parallel_sort, sorts_by_projections_members_and_elements_that_only_move) {
    std::vector<numbered> v = number_all(numbers(pattern::random, 1'000));
    EXPECT_TRUE(parallel::sort(v, std::less<>(), &numbered::value));
    EXPECT_TRUE(std::is_sorted(v.begin(), v.end(), [](const numbered& a, const numbered& b) {
        return a.value < b.value;
    }));
    EXPECT_TRUE(parallel::nth_element(v, v.begin() + 300, std::less<>(), &numbered::place));
    EXPECT_EQ(v[300].place, 300u);
    std::deque<std::unique_ptr<int>> owners;
    for (const std::uint32_t each : numbers(pattern::random, 2'000)) {
        owners.push_back(make<std::unique_ptr<int>>(each));
    }
    const auto value = [](const std::unique_ptr<int>& x) { return *x; };
    EXPECT_TRUE(parallel::sort(owners, std::less<>(), value));
    EXPECT_TRUE(std::is_sorted(owners.begin(), owners.end(),
                               [&](const auto& a, const auto& b) { return *a < *b; }));
    EXPECT_TRUE(parallel::stable_sort(owners, std::greater<>(), value));
    EXPECT_TRUE(std::is_sorted(owners.begin(), owners.end(),
                               [&](const auto& a, const auto& b) { return *a > *b; }));
}

struct large {
    std::uint32_t value;
    unsigned char rest[2'000];
};
TEST(parallel_sort, sorts_elements_of_two_thousand_bytes) {
    std::vector<large> v;
    for (const std::uint32_t each : numbers(pattern::random, 1'500)) v.push_back({each, {}});
    EXPECT_TRUE(parallel::sort(v, std::less<>(), &large::value));
    const auto less = [](const large& a, const large& b) { return a.value < b.value; };
    EXPECT_TRUE(std::is_sorted(v.begin(), v.end(), less));
    std::reverse(v.begin(), v.end());
    std::swap(v[3], v[1'000]);
    EXPECT_TRUE(parallel::stable_sort(v, less));
    EXPECT_TRUE(std::is_sorted(v.begin(), v.end(), less));
}

}  // namespace
