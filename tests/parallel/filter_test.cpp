// parallel/filter.hpp: the results of std's algorithms on random input, at every place.
#include <coppice/parallel/filter.hpp>

#include "places.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <forward_list>
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
        }
    });
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
