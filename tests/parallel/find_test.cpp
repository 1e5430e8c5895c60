// parallel/find.hpp: the first match, or exception, in order; early ends and stops.
#include <coppice/parallel/find.hpp>

#include <coppice/base/internal/atomic.hpp>

#include "places.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <forward_list>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace {

namespace parallel = coppice::parallel;
using places::random_numbers;

TEST(parallel_find, finds_the_first_match_at_every_place) {
    places::everywhere([](auto... where) {
        for (const std::size_t size : places::sizes) {
            const std::vector<int> v = random_numbers(size, 300);
            const std::forward_list<int> list(v.begin(), v.end());
            for (const int value : {0, 1, 299, 1'000}) {
                const auto expected = std::find(v.begin(), v.end(), value);
                const auto is = [value](int x) { return x == value; };
                EXPECT_EQ(parallel::find(where..., v, value), expected);
                EXPECT_EQ(parallel::find_if(where..., v.begin(), v.end(), is), expected);
                EXPECT_EQ(parallel::find_if(where..., list, is), std::ranges::find(list, value));
                EXPECT_EQ(parallel::any_of(where..., v, is), std::ranges::any_of(v, is));
                EXPECT_EQ(parallel::all_of(where..., v, is), std::ranges::all_of(v, is));
                EXPECT_EQ(parallel::none_of(where..., v, is), std::ranges::none_of(v, is));
            }
            EXPECT_TRUE(parallel::all_of(where..., v, [](int x) { return x >= 0; }));
        }
    });
}

TEST(parallel_find, finds_the_first_that_does_not_match) {
    places::on_pools([] {
        for (const std::size_t size : places::sizes) {
            const std::vector<int> v = random_numbers(size, 300);
            const auto is_small = [](int x) { return x < 299; };
            const auto expected = std::find_if_not(v.begin(), v.end(), is_small);
            EXPECT_EQ(parallel::find_if_not(v.begin(), v.end(), is_small), expected);
            EXPECT_EQ(parallel::find_if_not(v, is_small), expected);
            const auto negative = [](int x) { return x <= 0; };
            EXPECT_EQ(parallel::find_if_not(v, negative, std::negate<>()), v.end());
        }
    });
}

TEST(parallel_find, ends_early_in_an_endless_range) {
    places::on_pools([](auto... where) {
        std::vector<int> v(100'000'000 / 64);
        std::iota(v.begin(), v.end(), 0);
        coppice::internal::atomic<int> calls{0};
        const auto found = parallel::find_if(where..., v, [&](int x) {
            calls.fetch_add(1, coppice::internal::relaxed);
            return x >= 10;
        });
        EXPECT_EQ(found - v.begin(), 10);
        EXPECT_LT(calls.load(coppice::internal::relaxed), 1'000'000);
    });
}

TEST(parallel_find, ends_with_the_first_match_or_exception_in_order) {
    places::everywhere([](auto... where) {
        std::vector<int> v(3'000);
        std::iota(v.begin(), v.end(), 0);
        for (const int match : {0, 1, 500, 2'999}) {
            for (const int thrown : {0, 2, 499, 501, 2'998}) {
                const auto search = [&] {
                    return parallel::find_if(where..., v, [match, thrown](int x) {
                        if (x == thrown) throw std::runtime_error("thrown");
                        return x == match;
                    });
                };
                if (match < thrown) {
                    EXPECT_EQ(search() - v.begin(), match);
                } else {
                    EXPECT_THROW(search(), std::runtime_error);
                }
            }
        }
    });
}

TEST(parallel_find, a_stop_before_the_match_is_an_error_and_one_behind_it_is_not) {
    places::everywhere([](auto... where) {
        const std::vector<int> v = random_numbers(10'000, 5);
        coppice::inplace_stop_source source;
        coppice::fork_join(source.get_token(), [&] {
            const auto found = parallel::find_if(where..., v, [&](const int& x) {
                if (&x != v.data()) return false;
                source.request_stop();
                return true;
            });
            EXPECT_EQ(found, v.begin());
            EXPECT_THROW((void)parallel::any_of(where..., v, [](int) { return false; }),
                         std::system_error);
        });
    });
}

}  // namespace
