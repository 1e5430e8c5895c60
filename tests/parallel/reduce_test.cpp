// parallel/reduce.hpp: the results of std's algorithms on random input, at every place.
#include <coppice/parallel/reduce.hpp>

#include "places.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <forward_list>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace {

namespace parallel = coppice::parallel;
using places::random_numbers;

TEST(parallel_reduce_algorithm, sums_as_std_does) {
    places::everywhere([](auto... where) {
        for (const std::size_t size : places::sizes) {
            const std::vector<int> v = random_numbers(size, 1'000);
            const long sum = std::accumulate(v.begin(), v.end(), 0L);
            EXPECT_EQ(parallel::reduce(where..., v), sum);
            EXPECT_EQ(parallel::reduce(where..., v.begin(), v.end()), sum);
            EXPECT_EQ(parallel::reduce(where..., v, 5L), sum + 5);
            EXPECT_EQ(parallel::reduce(where..., v.begin(), v.end(), 0.5), double(sum) + 0.5);
            const auto max = [](int a, int b) { return std::max(a, b); };
            EXPECT_EQ(parallel::reduce(where..., v, 7, max),
                      std::accumulate(v.begin(), v.end(), 7, max));
        }
    });
}

TEST(parallel_reduce_algorithm, keeps_the_order_of_operands_that_are_not_numbers) {
    places::on_pools([](auto... where) {
        std::vector<std::string> words;
        for (int i = 0; i != 3'000; ++i) words.push_back(std::to_string(i));
        const std::string all = std::accumulate(words.begin(), words.end(), std::string("<"));
        EXPECT_EQ(parallel::reduce(where..., words, std::string("<")), all);
        EXPECT_EQ(parallel::reduce(where..., std::forward_list(words.begin(), words.end()),
                                   std::string("<")),
                  all);
        EXPECT_EQ(parallel::transform_reduce(where..., words, std::string(), std::plus<>(),
                                             [](const std::string& s) { return s.substr(0, 1); })
                      .size(),
                  words.size());
    });
}

TEST(parallel_transform_reduce, sums_products_of_two_ranges) {
    places::everywhere([](auto... where) {
        for (const std::size_t size : places::sizes) {
            const std::vector<int> a = random_numbers(size, 100), b = random_numbers(size, 100);
            const long sum = std::inner_product(a.begin(), a.end(), b.begin(), 3L);
            EXPECT_EQ(parallel::transform_reduce(where..., a, b, 3L), sum);
            EXPECT_EQ(parallel::transform_reduce(where..., a.begin(), a.end(), b.begin(), 3L), sum);
            EXPECT_EQ(parallel::transform_reduce(where..., a.begin(), a.end(), b.begin(), 3.0),
                      double(sum));
            const std::forward_list<int> list(b.begin(), b.end());
            EXPECT_EQ(parallel::transform_reduce(where..., a, list, 3L, std::plus<>(),
                                                 std::multiplies<>()),
                      sum);
        }
    });
}

TEST(parallel_count, counts_equal_elements_and_those_that_satisfy_a_predicate) {
    places::everywhere([](auto... where) {
        for (const std::size_t size : places::sizes) {
            const std::vector<int> v = random_numbers(size, 5);
            EXPECT_EQ(parallel::count(where..., v, 3), std::count(v.begin(), v.end(), 3));
            const auto odd = [](int x) { return x % 2 != 0; };
            EXPECT_EQ(parallel::count_if(where..., v, odd), std::count_if(v.begin(), v.end(), odd));
            EXPECT_EQ(parallel::count_if(where..., v.begin(), v.end(), odd, std::negate<>()),
                      std::count_if(v.begin(), v.end(), odd));
        }
    });
}

TEST(parallel_extremes, are_those_that_std_chooses_among_equals) {
    places::everywhere([](auto... where) {
        for (const std::size_t size : places::sizes) {
            const std::vector<int> v = random_numbers(size, 20);
            EXPECT_EQ(parallel::min_element(where..., v), std::ranges::min_element(v));
            EXPECT_EQ(parallel::max_element(where..., v), std::ranges::max_element(v));
            EXPECT_EQ(parallel::min_element(where..., v.begin(), v.end(), std::greater<>()),
                      std::max_element(v.begin(), v.end()));
            EXPECT_EQ(parallel::minmax_element(where..., v.begin(), v.end()),
                      std::minmax_element(v.begin(), v.end()));
            const auto tens = [](int x) { return x / 10; };
            const auto [least, greatest] =
                parallel::minmax_element(where..., v, std::less<>(), tens);
            const auto expected = std::ranges::minmax_element(v, {}, tens);
            EXPECT_EQ(least, expected.min);
            EXPECT_EQ(greatest, expected.max);
            EXPECT_EQ(parallel::max_element(where..., v, std::less<>(), tens),
                      std::ranges::max_element(v, {}, tens));
        }
    });
}

TEST(parallel_histogram, counts_each_element_in_its_bin) {
    places::everywhere([](auto... where) {
        for (const std::size_t size : places::sizes) {
            const std::vector<int> v = random_numbers(size, 9);
            std::array<int, 8> bins{};
            EXPECT_TRUE(parallel::histogram(where..., v, bins));
            EXPECT_TRUE(parallel::histogram(where..., v.begin(), v.end(), bins,
                                            [](int x) { return x + 1; }));
            for (int k = 0; k != 8; ++k) {
                EXPECT_EQ(bins[std::size_t(k)], std::count(v.begin(), v.end(), k) +
                                                    std::count(v.begin(), v.end(), k - 1));
            }
        }
    });
}

}  // namespace
