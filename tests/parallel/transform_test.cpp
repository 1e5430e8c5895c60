// parallel/transform.hpp: the results of std's algorithms on random input, at every place.
#include <coppice/parallel/transform.hpp>

#include "places.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <forward_list>
#include <functional>
#include <numeric>
#include <vector>

namespace {

namespace parallel = coppice::parallel;
using places::random_numbers;

TEST(parallel_transform, writes_what_std_writes) {
    places::everywhere([](auto... where) {
        for (const std::size_t size : places::sizes) {
            const std::vector<int> a = random_numbers(size, 99), b = random_numbers(size, 99);
            std::vector<long> out(size), expected(size);
            const auto square = [](int x) { return long{x} * x; };
            std::transform(a.begin(), a.end(), expected.begin(), square);
            EXPECT_EQ(parallel::transform(where..., a.begin(), a.end(), out.begin(), square),
                      out.end());
            EXPECT_EQ(out, expected);
            const auto [in, end] =
                parallel::transform(where..., a, out.begin(), square, std::negate<>());
            EXPECT_EQ(in, a.end());
            EXPECT_EQ(end, out.end());
            EXPECT_EQ(out, expected);
            std::transform(a.begin(), a.end(), b.begin(), expected.begin(), std::minus<>());
            EXPECT_EQ(parallel::transform(where..., a.begin(), a.end(), b.begin(), out.begin(),
                                          std::minus<>()),
                      out.end());
            EXPECT_EQ(out, expected);
            std::fill(out.begin(), out.end(), 0);
            parallel::transform(where..., a, b, out, std::minus<>());
            EXPECT_EQ(out, expected);
        }
    });
}

TEST(parallel_transform, the_size_of_an_output_range_limits_it) {
    const std::vector<int> v = random_numbers(100, 9);
    std::array<int, 60> out{};
    const auto result = parallel::transform(v, out, std::identity());
    EXPECT_EQ(result.in - v.begin(), 60);
    EXPECT_TRUE(std::equal(out.begin(), out.end(), v.begin()));
}

TEST(parallel_transform, an_output_ends_at_its_sentinel) {
    const std::vector<int> v = random_numbers(100, 9);
    std::vector<int> out(60), expected(60);
    std::transform(v.begin(), v.begin() + 60, expected.begin(), std::negate<>());
    const auto all =
        parallel::transform(v.begin(), v.end(), out.begin(), out.end(), std::negate<>());
    EXPECT_EQ(all.in - v.begin(), 60);
    EXPECT_EQ(all.out, out.end());
    EXPECT_EQ(out, expected);
    EXPECT_EQ(parallel::copy(v.begin(), v.end(), out.begin(), out.end()).in - v.begin(), 60);
    EXPECT_TRUE(std::equal(out.begin(), out.end(), v.begin()));
    EXPECT_EQ(parallel::copy_n(v.begin(), 7, out.begin(), out.begin() + 5).in - v.begin(), 5);
    // Two outputs of the same type: the function has two arguments.
    EXPECT_EQ(
        parallel::transform(v.begin(), v.begin() + 60, out.begin(), out.begin(), std::minus<>()),
        out.end());
    EXPECT_EQ(std::count(out.begin(), out.end(), 0), 60);
}

TEST(parallel_transform, takes_a_count_as_std_does) {
    places::on_pools([] {
        for (const std::size_t size : places::sizes) {
            const std::vector<int> v = random_numbers(size, 99);
            const auto n = static_cast<std::ptrdiff_t>(size);
            std::vector<int> out(size + 1, -1);
            EXPECT_EQ(parallel::copy_n(v.begin(), n, out.begin()), out.begin() + n);
            EXPECT_TRUE(std::equal(v.begin(), v.end(), out.begin()));
            EXPECT_EQ(parallel::fill_n(out.begin(), n, 7), out.begin() + n);
            EXPECT_EQ(std::count(out.begin(), out.end(), 7), n);
            EXPECT_EQ(parallel::generate_n(out.begin(), n, [] { return 5; }), out.begin() + n);
            EXPECT_EQ(std::count(out.begin(), out.end(), 5), n);
            EXPECT_EQ(out.back(), -1);
            EXPECT_EQ(parallel::fill_n(out.begin(), -1, 7), out.begin());
        }
    });
}

TEST(parallel_transform, copies_fills_generates_and_takes_differences_as_std_does) {
    places::everywhere([](auto... where) {
        for (const std::size_t size : places::sizes) {
            const std::vector<int> v = random_numbers(size, 99);
            const std::forward_list<int> list(v.begin(), v.end());
            std::vector<int> out(size), expected(size);
            EXPECT_EQ(parallel::copy(where..., v.begin(), v.end(), out.begin()), out.end());
            EXPECT_EQ(out, v);
            EXPECT_TRUE(parallel::fill(where..., out, 7));
            EXPECT_EQ(std::count(out.begin(), out.end(), 7), std::ptrdiff_t(size));
            EXPECT_EQ(parallel::copy(where..., list, out).out, out.end());
            EXPECT_EQ(out, v);
            EXPECT_TRUE(parallel::generate(where..., out, [] { return 5; }));
            EXPECT_EQ(std::count(out.begin(), out.end(), 5), std::ptrdiff_t(size));
            std::adjacent_difference(v.begin(), v.end(), expected.begin());
            EXPECT_EQ(parallel::adjacent_difference(where..., v.begin(), v.end(), out.begin()),
                      out.end());
            EXPECT_EQ(out, expected);
            std::adjacent_difference(v.begin(), v.end(), expected.begin(), std::plus<>());
            EXPECT_EQ(parallel::adjacent_difference(where..., list, out, std::plus<>()).out,
                      out.end());
            EXPECT_EQ(out, expected);
        }
    });
}

}  // namespace
