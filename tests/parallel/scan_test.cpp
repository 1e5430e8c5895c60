// parallel/scan.hpp: the results of std's scans on random input, at every place.
#include <coppice/parallel/scan.hpp>

#include "places.hpp"

#include <gtest/gtest.h>

#include <forward_list>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace {

namespace parallel = coppice::parallel;
using places::random_numbers;

TEST(parallel_scan, inclusive_scans_are_those_of_std) {
    places::everywhere([](auto... where) {
        for (const std::size_t size : places::sizes) {
            const std::vector<int> v = random_numbers(size, 1'000);
            std::vector<long> out(size), expected(size);
            std::inclusive_scan(v.begin(), v.end(), expected.begin());
            EXPECT_EQ(parallel::inclusive_scan(where..., v.begin(), v.end(), out.begin()),
                      out.end());
            EXPECT_EQ(out, expected);
            std::inclusive_scan(v.begin(), v.end(), expected.begin(), std::plus<>(), 10L);
            parallel::inclusive_scan(where..., v, out, std::plus<>(), 10L);
            EXPECT_EQ(out, expected);
            std::transform_inclusive_scan(v.begin(), v.end(), expected.begin(), std::plus<>(),
                                          std::negate<>(), 3L);
            parallel::transform_inclusive_scan(where..., v, out.begin(), std::plus<>(),
                                               std::negate<>(), 3L);
            EXPECT_EQ(out, expected);
        }
    });
}

TEST(parallel_scan, exclusive_scans_are_those_of_std) {
    places::everywhere([](auto... where) {
        for (const std::size_t size : places::sizes) {
            const std::vector<int> v = random_numbers(size, 1'000);
            std::vector<long> out(size), expected(size);
            std::exclusive_scan(v.begin(), v.end(), expected.begin(), 5L);
            const auto [in, end] = parallel::exclusive_scan(where..., v, out.begin(), 5L);
            EXPECT_EQ(in, v.end());
            EXPECT_EQ(end, out.end());
            EXPECT_EQ(out, expected);
            std::transform_exclusive_scan(v.begin(), v.end(), expected.begin(), 1L, std::plus<>(),
                                          std::negate<>());
            parallel::transform_exclusive_scan(where..., v.begin(), v.end(), out.begin(), 1L,
                                               std::plus<>(), std::negate<>());
            EXPECT_EQ(out, expected);
        }
    });
}

TEST(parallel_scan, scans_a_large_range_in_place) {
    places::on_pools([](auto... where) {
        for (const std::size_t size : {std::size_t{300'000}, std::size_t{300'001}}) {
            const std::vector<int> numbers = random_numbers(size, 100);
            std::vector<long> v(numbers.begin(), numbers.end()), once(size), twice(size);
            std::inclusive_scan(v.begin(), v.end(), once.begin());
            std::exclusive_scan(once.begin(), once.end(), twice.begin(), 0L);
            parallel::inclusive_scan(where..., v, v);
            EXPECT_EQ(v, once);
            parallel::exclusive_scan(where..., v, v, 0L);
            EXPECT_EQ(v, twice);
        }
    });
}

TEST(parallel_scan, keeps_the_order_of_operands_and_takes_lists) {
    places::on_pools([](auto... where) {
        std::vector<std::string> words;
        for (int i = 0; i != 600; ++i) words.push_back(std::to_string(i % 10));
        std::vector<std::string> out(words.size()), expected(words.size());
        std::inclusive_scan(words.begin(), words.end(), expected.begin());
        parallel::inclusive_scan(where..., words, out);
        EXPECT_EQ(out, expected);
        std::forward_list<std::string> list(words.begin(), words.end());
        std::fill(out.begin(), out.end(), "");
        parallel::inclusive_scan(where..., list, out);
        EXPECT_EQ(out, expected);
    });
}

TEST(parallel_scan, throws_the_exception_of_a_function_and_reports_a_stop) {
    places::everywhere([](auto... where) {
        std::vector<int> v(5'000, 1);
        const auto fail = [](int a, int b) {
            if (a + b == 2'000) throw std::runtime_error("at 2000");
            return a + b;
        };
        EXPECT_THROW(parallel::inclusive_scan(where..., v, v, fail), std::runtime_error);
        coppice::inplace_stop_source source;
        coppice::fork_join(source.get_token(), [&] {
            source.request_stop();
            EXPECT_THROW(parallel::exclusive_scan(where..., v, v, 0), std::system_error);
        });
    });
}

}  // namespace
