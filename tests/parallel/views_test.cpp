// Ranges whose elements are temporaries, whose differences are wide, and functions that are large.
#include <coppice/parallel.hpp>

#include <coppice/base/internal/atomic.hpp>

#include "places.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <ranges>
#include <string>
#include <vector>

namespace {

namespace parallel = coppice::parallel;

TEST(parallel_views, indices_of_any_integer_type_are_walked_side_by_side) {
    places::on_pools([](auto... where) {
        const auto walk = [where...](auto zero) {
            using index = decltype(zero);
            const auto indices = std::views::iota(zero, index(100));
            std::vector<int> v(100);
            EXPECT_TRUE(parallel::for_each(where..., indices,
                                           [&](index i) { v[static_cast<std::size_t>(i)] = 1; }));
            EXPECT_EQ(parallel::reduce(where..., v), 100);
            EXPECT_EQ(parallel::reduce(where..., indices), index(4'950));
            EXPECT_EQ(parallel::transform_reduce(where..., indices, indices, zero), index(328'350));
            EXPECT_EQ(*parallel::find(where..., indices, index(70)), index(70));
            EXPECT_EQ(*parallel::max_element(where..., indices), index(99));
            EXPECT_EQ(parallel::count_if(where..., indices, [](index i) { return i < index(9); }),
                      9);
            EXPECT_EQ(*parallel::for_each_n(where..., indices.begin(), 50, [](index) {}),
                      index(50));
            std::vector<index> out(100);
            std::vector<int> bins(10);
            parallel::transform(where..., indices, out, [](index i) { return i + 1; });
            EXPECT_EQ(out.back(), index(100));
            parallel::transform(where..., indices, out, out, std::plus<>());
            EXPECT_EQ(out.back(), index(199));
            parallel::inclusive_scan(where..., indices, out);
            EXPECT_EQ(out.back(), index(4'950));
            EXPECT_TRUE(
                parallel::histogram(where..., indices, bins, [](index i) { return i / 10; }));
            EXPECT_EQ(bins, std::vector<int>(10, 10));
            const auto end = parallel::copy_if(where..., indices, out.begin(),
                                               [](index i) { return i % 2 == 0; });
            EXPECT_EQ(end.out - out.begin(), 50);
            EXPECT_EQ(parallel::merge(where..., indices, indices, out).out, out.end());
        };
        walk(int{0});
        walk(long{0});
        walk(std::size_t{0});
    });
}

TEST(parallel_views, sums_of_temporary_elements_refer_to_none_of_them) {
    places::on_pools([](auto... where) {
        const auto words = std::views::iota(0, 2'000) | std::views::transform([](int x) {
                               return std::to_string(x) + " is a number in a long word";
                           });
        const std::string all = parallel::reduce(where..., words);
        EXPECT_EQ(all, std::accumulate(words.begin(), words.end(), std::string()));
        EXPECT_EQ(parallel::transform_reduce(where..., words, std::string(), std::plus<>(),
                                             std::identity()),
                  all);
        std::vector<std::string> sums(300);
        parallel::inclusive_scan(where..., words, sums);
        EXPECT_EQ(all.compare(0, sums.back().size(), sums.back()), 0);
        std::vector<bool> bits(5'000, true);
        EXPECT_EQ(parallel::reduce(where..., bits, 0), 5'000);
    });
}

// A function that counts its copies. It is so large that loops refer to it instead of copying it.
coppice::internal::atomic<int> copies{0};
struct table {
    std::vector<int> values = std::vector<int>(100, 3);
    table() = default;
    table(const table& other) : values(other.values) {
        copies.fetch_add(1, coppice::internal::relaxed);
    }
    table(table&&) = default;
    int operator()(int i) const { return values[static_cast<std::size_t>(i)]; }
    int operator()(int i, int) const { return values[static_cast<std::size_t>(i)]; }
};

TEST(parallel_views, a_large_function_is_not_copied_by_the_parts_of_a_loop) {
    places::on_pools([](auto... where) {
        const std::vector<int> v(100'000, 5);
        std::vector<int> out(v.size());
        copies.store(0, coppice::internal::relaxed);
        EXPECT_EQ(parallel::transform_reduce(where..., v, 0, std::plus<>(), table()), 300'000);
        EXPECT_EQ(parallel::transform_reduce(where..., v, v, 0, std::plus<>(), table()), 300'000);
        parallel::transform(where..., v, out, table());
        parallel::transform_inclusive_scan(where..., v, out, std::plus<>(), table());
        EXPECT_EQ(out.back(), 300'000);
        EXPECT_EQ(copies.load(coppice::internal::relaxed), 0);
    });
}

}  // namespace
