// {} stands for the default comparison, equivalence, operation, or projection, as in std.
#include <coppice/parallel.hpp>

#include <coppice/exec/sync_wait.hpp>

#include "places.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace async = coppice::parallel::async;
namespace parallel = coppice::parallel;
using coppice::this_thread::sync_wait;
using places::random_numbers;

struct record {
    int key = 0;
    std::string name = "a name that needs memory of its own";
};

std::vector<record> records(std::size_t size) {
    std::vector<record> v(size);
    const std::vector<int> keys = random_numbers(size, 99);
    for (std::size_t i = 0; i != size; ++i) v[i].key = keys[i];
    return v;
}
bool is_sorted(const std::vector<record>& v) {
    return std::ranges::is_sorted(v, {}, &record::key);
}

TEST(parallel_braces, stand_for_the_comparison_of_a_sort) {
    places::on_pools([](auto... where) {
        auto v = records(1'000);
        EXPECT_TRUE(parallel::sort(where..., v, {}, &record::key));
        EXPECT_TRUE(is_sorted(v));
        v = records(1'000);
        EXPECT_TRUE(parallel::sort(where..., v.begin(), v.end(), {}, &record::key));
        EXPECT_TRUE(is_sorted(v));
        v = records(1'000);
        EXPECT_TRUE(parallel::stable_sort(where..., v, {}, &record::key));
        EXPECT_TRUE(is_sorted(v));
        v = records(1'000);
        EXPECT_TRUE(parallel::partial_sort(where..., v, v.end(), {}, &record::key));
        EXPECT_TRUE(is_sorted(v));
        v = records(1'000);
        const auto middle = v.begin() + 500;
        parallel::nth_element(where..., v.begin(), middle, v.end(), {}, &record::key);
        EXPECT_EQ(std::ranges::max_element(v.begin(), middle + 1, {}, &record::key)->key,
                  middle->key);
        v = records(1'000);
        EXPECT_TRUE(sync_wait(async::sort(where..., v, {}, &record::key)));
        EXPECT_TRUE(is_sorted(v));
        auto numbers = random_numbers(1'000, 99);
        EXPECT_TRUE(parallel::sort(where..., numbers, {}));
        EXPECT_TRUE(std::ranges::is_sorted(numbers));
    });
}

TEST(parallel_braces, stand_for_the_comparison_of_a_search_for_extremes) {
    places::on_pools([](auto... where) {
        const auto v = records(1'000);
        const auto [least, greatest] = std::ranges::minmax_element(v, {}, &record::key);
        EXPECT_EQ(parallel::min_element(where..., v, {}, &record::key), least);
        EXPECT_EQ(parallel::max_element(where..., v.begin(), v.end(), {}, &record::key),
                  std::ranges::max_element(v, {}, &record::key));
        EXPECT_EQ(parallel::minmax_element(where..., v, {}, &record::key).max, greatest);
        EXPECT_EQ(std::get<0>(*sync_wait(async::min_element(where..., v, {}, &record::key))),
                  least);
    });
}

TEST(parallel_braces, stand_for_equality_and_for_projections) {
    places::on_pools([](auto... where) {
        auto v = records(1'000);
        parallel::sort(where..., v, {}, &record::key);
        std::vector<record> both(1'500);
        const auto key = [](const record& x) { return x.key; };
        const auto merged = parallel::merge(where..., std::vector(v.begin(), v.begin() + 40), v,
                                            both, {}, key, &record::key);
        EXPECT_EQ(merged.out - both.begin(), 1'040);
        EXPECT_TRUE(std::ranges::is_sorted(both.begin(), merged.out, {}, &record::key));

        const std::vector<int> numbers(1'000, 1);
        std::vector<int> sums(1'000);
        parallel::transform(where..., numbers, v, sums, std::plus<>(), {}, &record::key);
        EXPECT_EQ(sums[500], v[500].key + 1);

        auto w = v;
        const auto end = std::ranges::unique(w, {}, &record::key).begin();
        EXPECT_EQ(parallel::unique(where..., v, {}, &record::key).begin() - v.begin(),
                  end - w.begin());
        EXPECT_EQ(parallel::any_of(where..., numbers, [](int x) { return x != 1; }, {}), false);
    });
}

TEST(parallel_braces, stand_for_the_first_value_of_a_sum) {
    places::on_pools([](auto... where) {
        const auto v = random_numbers(1'000, 99);
        const int sum = std::reduce(v.begin(), v.end());
        EXPECT_EQ(parallel::reduce(where..., v, {}), sum);
        EXPECT_EQ(parallel::reduce(where..., v, {}, std::plus<>()), sum);
        EXPECT_EQ(parallel::reduce(where..., v.begin(), v.end(), {}, std::plus<>()), sum);
        EXPECT_EQ(parallel::transform_reduce(where..., v, v, 0, {}, std::plus<>()), 2 * sum);
    });
}

}  // namespace
