// parallel/filter.hpp: the results of std's algorithms on random input, at every place.
#include <coppice/parallel/filter.hpp>

#include "places.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <forward_list>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

namespace {

namespace parallel = coppice::parallel;
using places::random_numbers;

constexpr bool is_small(int x) {
    return x < 3;
}

TEST(parallel_filter, copy_if_copies_what_std_copies) {
    places::everywhere([](auto... where) {
        for (const std::size_t size : places::sizes) {
            const std::vector<int> v = random_numbers(size, 9);
            std::vector<int> out(size), expected(size);
            const auto end = std::copy_if(v.begin(), v.end(), expected.begin(), is_small);
            EXPECT_EQ(parallel::copy_if(where..., v.begin(), v.end(), out.begin(), is_small) -
                          out.begin(),
                      end - expected.begin());
            EXPECT_EQ(out, expected);
            std::fill(out.begin(), out.end(), 0);
            const auto result = parallel::copy_if(where..., v, out.begin(), is_small);
            EXPECT_EQ(result.in, v.end());
            EXPECT_EQ(out, expected);
        }
    });
}

// A predicate so slow that the algorithms use windows.
bool is_small_after_a_while(int x) {
    for (volatile int i = 0; i != 100;) i = i + 1;
    return is_small(x);
}

TEST(parallel_filter, copy_if_ends_where_the_output_range_has_no_room) {
    places::everywhere([](auto... where) {
        for (const std::size_t size : {std::size_t{100}, std::size_t{5'000}}) {
            const std::vector<int> v = random_numbers(size, 9);
            const std::forward_list<int> list(v.begin(), v.end());
            std::vector<int> all(size);
            all.erase(std::copy_if(v.begin(), v.end(), all.begin(), is_small), all.end());
            for (const std::size_t room : {std::size_t{0}, std::size_t{1}, all.size() / 3,
                                           all.size() - 1, all.size(), all.size() + 5}) {
                const std::size_t copied = std::min(room, all.size());
                auto in = v.begin();
                for (std::size_t left = copied; in != v.end(); ++in) {
                    if (is_small(*in) && left-- == 0) break;
                }
                std::vector<int> out(room, -1), from_list(room, -1), expected(room, -1);
                std::copy_n(all.begin(), copied, expected.begin());
                const auto end = parallel::copy_if(where..., v, out, is_small_after_a_while);
                EXPECT_EQ(out, expected);
                EXPECT_EQ(end.in - v.begin(), in - v.begin());
                EXPECT_EQ(end.out - out.begin(), std::ptrdiff_t(copied));
                const auto list_end = parallel::copy_if(where..., list, from_list, is_small);
                EXPECT_EQ(from_list, expected);
                EXPECT_EQ(std::distance(list.begin(), list_end.in), in - v.begin());
            }
        }
    });
}

TEST(parallel_filter, copy_if_appends_in_order_through_an_inserter) {
    places::everywhere([](auto... where) {
        const std::vector<int> v = random_numbers(1'000, 9);
        std::vector<int> out, expected;
        std::copy_if(v.begin(), v.end(), std::back_inserter(expected), is_small);
        parallel::copy_if(where..., v.begin(), v.end(), std::back_inserter(out), is_small);
        EXPECT_EQ(out, expected);
        parallel::copy_if(where..., v, std::back_inserter(out), is_small);
        EXPECT_EQ(out.size(), 2 * expected.size());
    });
}

TEST(parallel_filter, remove_if_keeps_what_std_keeps) {
    places::everywhere([](auto... where) {
        for (const std::size_t size : places::sizes) {
            std::vector<int> v = random_numbers(size, 9), w = v, expected = v;
            std::forward_list<int> list(v.begin(), v.end());
            expected.erase(std::remove_if(expected.begin(), expected.end(), is_small),
                           expected.end());
            v.erase(parallel::remove_if(where..., v.begin(), v.end(), is_small), v.end());
            EXPECT_EQ(v, expected);
            const auto left = parallel::remove_if(where..., w, is_small);
            w.erase(left.begin(), left.end());
            EXPECT_EQ(w, expected);
            EXPECT_EQ(
                std::distance(list.begin(), parallel::remove_if(where..., list, is_small).begin()),
                std::ptrdiff_t(expected.size()));
            expected.erase(std::remove(expected.begin(), expected.end(), 5), expected.end());
            v.erase(parallel::remove(where..., v.begin(), v.end(), 5), v.end());
            EXPECT_EQ(v, expected);
        }
    });
}

TEST(parallel_filter, unique_keeps_the_first_of_equal_neighbors) {
    places::everywhere([](auto... where) {
        for (const std::size_t size : places::sizes) {
            std::vector<int> v = random_numbers(size, 2), expected = v;
            expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
            v.erase(parallel::unique(where..., v.begin(), v.end()), v.end());
            EXPECT_EQ(v, expected);
            int digits = 10;  // a projection without a default
            const auto tens = [digits](int x) { return x / digits; };
            const auto tail = parallel::unique(where..., v, std::equal_to<>(), tens);
            EXPECT_EQ(tail.begin() - v.begin(), std::ptrdiff_t(size == 0 ? 0 : 1));
        }
    });
}

TEST(parallel_filter, an_output_ends_at_its_sentinel) {
    const std::vector<int> v = random_numbers(1'000, 99);
    const auto is_even = [](int x) { return x % 2 == 0; };
    std::vector<int> out(50), expected;
    std::copy_if(v.begin(), v.end(), std::back_inserter(expected), is_even);
    const auto ends = parallel::copy_if(v.begin(), v.end(), out.begin(), out.end(), is_even);
    EXPECT_EQ(ends.out, out.end());
    EXPECT_EQ(*ends.in, expected[50]);
    EXPECT_TRUE(std::equal(out.begin(), out.end(), expected.begin()));
}

TEST(parallel_filter, large_ranges_of_strings_are_filtered_in_windows) {
    places::on_pools([](auto... where) {
        std::vector<std::string> words;
        for (const int x : random_numbers(60'000, 30))
            words.push_back(std::to_string(x) + " words of some length");
        std::vector<std::string> v = words, copied, expected = words;
        const auto starts = [](const std::string& s) { return s[0] == '1'; };
        copied.resize(words.size());
        copied.erase(parallel::copy_if(where..., words, copied.begin(), starts).out, copied.end());
        std::erase_if(expected, [&](const std::string& s) { return !starts(s); });
        EXPECT_EQ(copied, expected);
        v.erase(parallel::remove_if(where..., v.begin(), v.end(),
                                    [&](const std::string& s) { return !starts(s); }),
                v.end());
        EXPECT_EQ(v, expected);
        v.erase(parallel::unique(where..., v.begin(), v.end()), v.end());
        expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
        EXPECT_EQ(v, expected);
    });
}

}  // namespace
