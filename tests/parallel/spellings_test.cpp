// Calls as users of std's algorithms write them: with iterators, pointers, arrays, ranges, and
// views, with members as functions and projections, and with arguments left out.
#include <coppice/parallel.hpp>

#include <coppice/exec/sync_wait.hpp>

#include "places.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <deque>
#include <functional>
#include <iterator>
#include <list>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace async = coppice::parallel::async;
namespace parallel = coppice::parallel;
using coppice::this_thread::sync_wait;

struct record {
    int key = 1;
    std::string name = "x";
    int get() const { return key; }
    bool odd() const { return key % 2 != 0; }
};

TEST(parallel_spellings, pointers_arrays_and_containers_are_ranges) {
    const auto on = parallel::on(places::pool());
    std::vector<int> v(100, 3);
    int array[100] = {};
    int* const p = array;
    parallel::fill(array, 2);
    parallel::fill(p, p + 5, 3);
    parallel::generate(on, p, p + 3, [] { return 1; });
    EXPECT_EQ(parallel::reduce(array), 3 + 2 * 3 + 95 * 2);
    EXPECT_EQ(parallel::reduce(p, p + 3), 3);
    EXPECT_EQ(parallel::find(p, p + 6, 2), p + 5);
    EXPECT_EQ(parallel::minmax_element(p, p + 4).second, p + 3);
    EXPECT_EQ(parallel::transform_reduce(p, p + 3, p, 0), 3);
    EXPECT_EQ(parallel::for_each_n(p, 3, [](int& x) { x = 7; }), p + 3);
    EXPECT_EQ(parallel::for_each_n(v.begin(), 9, [](int& x) { x = 7; }), v.begin() + 9);
    parallel::sort(p, p + 100);
    parallel::sort(array, std::greater{});
    parallel::nth_element(array, array + 3);
    parallel::sort(std::span(v));
    parallel::sort(v.rbegin(), v.rend());
    EXPECT_TRUE(std::ranges::is_sorted(v, std::greater()));
    parallel::sort(v | std::views::drop(3) | std::views::reverse);
    std::deque<int> deque(9);
    parallel::sort(deque);
    parallel::stable_sort(deque, std::ranges::greater());
    parallel::exclusive_scan(p, p + 3, p, 0);
    EXPECT_EQ(parallel::copy(p, p + 3, v.begin()), v.begin() + 3);
    EXPECT_EQ(parallel::transform(p, p + 3, v.begin(), p, std::plus()), p + 3);
    EXPECT_EQ(parallel::merge(p, p + 3, p + 4, p + 6, v.begin(), std::less()), v.begin() + 5);
    EXPECT_TRUE(parallel::for_each(on, std::list<int>{1, 2}, [](int) {}));
    EXPECT_EQ(parallel::count(std::string_view("abc"), 'b'), 1);
}

TEST(parallel_spellings, operations_and_first_values_may_be_left_out) {
    const std::vector<int> v(100, 3);
    std::vector<int> out(200);
    EXPECT_EQ(parallel::reduce(v, 1), 301);
    EXPECT_EQ(parallel::reduce(v, 0, std::plus()), 300);
    EXPECT_EQ(parallel::reduce(v.begin(), v.end(), 5, [](int a, int b) { return std::max(a, b); }),
              5);
    static_assert(std::same_as<decltype(parallel::reduce(v, 0L)), long>);
    static_assert(std::same_as<decltype(parallel::reduce(v, 1.0, std::plus())), double>);
    EXPECT_EQ(parallel::transform_reduce(v, v, 0), 900);
    parallel::inclusive_scan(v, out);
    parallel::inclusive_scan(v, out.begin(), std::plus(), 1);
    parallel::exclusive_scan(v, out, 0);
    parallel::transform_exclusive_scan(v, out, 0, std::plus(), std::negate());
    EXPECT_EQ(out[2], -6);
    parallel::adjacent_difference(v, out);
    EXPECT_EQ(parallel::copy(v, std::span(out)).out, std::span(out).begin() + 100);
    EXPECT_EQ(parallel::copy_if(v, out, [](int x) { return x == 3; }).out, out.begin() + 100);
    EXPECT_EQ(parallel::transform(v, v, out, std::plus()).out, out.begin() + 100);
    EXPECT_EQ(parallel::merge(v, std::deque<int>(9), out, {}).out, out.begin() + 109);
    std::vector<int> merged;
    parallel::merge(v, v, std::back_inserter(merged));
    EXPECT_EQ(merged.size(), 200U);
    merged.erase(parallel::unique(merged.begin(), merged.end()), merged.end());
    EXPECT_EQ(merged, std::vector<int>{3});
}

TEST(parallel_spellings, members_are_functions_and_projections) {
    std::vector<record> v(10);
    std::vector<int> out(10);
    std::array<int, 3> bins{};
    EXPECT_TRUE(parallel::any_of(v, &record::odd));
    EXPECT_TRUE(parallel::any_of(v, [](int key) { return key == 1; }, &record::key));
    EXPECT_TRUE(parallel::all_of(v, std::identity(), &record::odd));
    EXPECT_EQ(parallel::count_if(v, &record::odd), 10);
    EXPECT_EQ(parallel::count(v, "x", &record::name), 10);
    EXPECT_EQ(parallel::find(v, std::string_view("y"), &record::name), v.end());
    EXPECT_EQ(parallel::find_if(v, &record::odd), v.begin());
    EXPECT_EQ(parallel::max_element(v, std::less(), &record::get), v.begin());
    EXPECT_EQ(parallel::transform_reduce(v, 0, std::plus(), &record::key), 10);
    EXPECT_TRUE(parallel::for_each(v, [](int& key) { key = 2; }, &record::key));
    EXPECT_TRUE(parallel::histogram(v, bins, &record::key));
    EXPECT_EQ(bins[2], 10);
    parallel::transform(v, out, &record::key);
    parallel::transform(v, out, std::negate(), &record::key);
    EXPECT_EQ(out[9], -2);
    parallel::sort(v, {}, &record::get);
    EXPECT_EQ(parallel::partition(v, &record::odd).begin(), v.begin());
    EXPECT_EQ(
        parallel::stable_partition(v, [](int key) { return key == 2; }, &record::key).size(), 0U);
    const auto [first, last] = parallel::remove(v, "x", &record::name);
    v.erase(first, last);
    EXPECT_TRUE(v.empty());
    std::vector<std::unique_ptr<int>> pointers;
    for (const int x : {3, 1, 2}) pointers.push_back(std::make_unique<int>(x));
    const auto value = [](const std::unique_ptr<int>& x) { return *x; };
    parallel::sort(pointers, {}, value);
    EXPECT_EQ(parallel::min_element(pointers, {}, value), pointers.begin());
    EXPECT_TRUE(sync_wait(async::sort(parallel::on(places::pool()), v, {}, &record::key)));
}

TEST(parallel_spellings, results_are_those_of_std) {
    using vector = std::vector<int>;
    using iterator = vector::iterator;
    using std::same_as;
    const auto pair = [](vector& v) { return parallel::minmax_element(v.begin(), v.end()); };
    const auto both = [](vector& v) { return parallel::minmax_element(v); };
    const auto tail = [](vector& v) { return parallel::unique(v); };
    const auto lost = [] { return parallel::find(vector(3), 1); };
    const auto copied = [](vector& v) { return parallel::copy_if(v, v.begin(), std::identity()); };
    vector v(3);
    static_assert(same_as<decltype(pair(v)), std::pair<iterator, iterator>>);
    static_assert(same_as<decltype(both(v)), std::ranges::minmax_element_result<iterator>>);
    static_assert(same_as<decltype(tail(v)), std::ranges::subrange<iterator>>);
    static_assert(same_as<decltype(lost()), std::ranges::dangling>);
    static_assert(same_as<decltype(copied(v)), std::ranges::copy_if_result<iterator, iterator>>);
    EXPECT_EQ(tail(v).size(), 2U);
}

}  // namespace
