// The loops of their own that transform, copy_if, and the searches for extremes have for numbers.
#include <coppice/parallel/filter.hpp>
#include <coppice/parallel/reduce.hpp>
#include <coppice/parallel/transform.hpp>
#include <coppice/pool/thread_pool.hpp>

#include "places.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace {

namespace parallel = coppice::parallel;

constexpr std::size_t sizes[] = {0, 1, 7, 15, 16, 17, 31, 63, 64, 65, 127, 128, 1000, 30'000};

template <class T>
std::vector<T> numbers(std::size_t size, int values) {
    std::vector<T> all;
    for (const int x : places::random_numbers(size, values)) all.push_back(static_cast<T>(x));
    return all;
}

template <class T>
class parallel_numbers : public ::testing::Test {
protected:
    coppice::thread_pool pool{2};
};
using number_types = ::testing::Types<std::uint8_t, int, std::uint64_t, double>;
TYPED_TEST_SUITE(parallel_numbers, number_types);

TYPED_TEST(parallel_numbers, transform_may_write_to_its_only_input) {
    using T = TypeParam;
    const auto half = [](T x) { return static_cast<T>(x / 2); };
    for (const std::size_t size : sizes) {
        const std::vector<T> in = numbers<T>(size, 100);
        std::vector<T> expected(size);
        std::transform(in.begin(), in.end(), expected.begin(), half);
        std::vector<T> v = in;
        EXPECT_EQ(
            parallel::transform(parallel::on(this->pool), v.cbegin(), v.cend(), v.begin(), half),
            v.end());
        EXPECT_EQ(v, expected) << size;
        std::vector<T> out(size);
        parallel::transform(parallel::on(this->pool), in, out, half);
        EXPECT_EQ(out, expected) << size;
    }
}

TYPED_TEST(parallel_numbers, transform_may_write_to_either_of_two_inputs) {
    using T = TypeParam;
    const auto f = [](T x, T y) { return static_cast<T>(x - y / 2); };
    for (const std::size_t size : sizes) {
        const std::vector<T> a = numbers<T>(size, 100);
        const std::vector<T> b = numbers<T>(size + 1, 90);
        std::vector<T> expected(size), both(size);
        std::transform(a.begin(), a.end(), b.begin(), expected.begin(), f);
        std::transform(a.begin(), a.end(), a.begin(), both.begin(), f);
        const auto on_pool = parallel::on(this->pool);
        std::vector<T> first = a;
        parallel::transform(on_pool, first.begin(), first.end(), b.begin(), first.begin(), f);
        EXPECT_EQ(first, expected) << size;
        std::vector<T> second(b.begin(), b.end() - 1);
        parallel::transform(on_pool, a.begin(), a.end(), second.cbegin(), second.begin(), f);
        EXPECT_EQ(second, expected) << size;
        std::vector<T> v = a;
        parallel::transform(on_pool, v.begin(), v.end(), v.begin(), v.begin(), f);
        EXPECT_EQ(v, both) << size;
    }
}

template <class T>
void expect_extremes(coppice::thread_pool& pool, const std::vector<T>& v) {
    pool.run([&v] {
        EXPECT_EQ(parallel::min_element(v), std::ranges::min_element(v));
        EXPECT_EQ(parallel::max_element(v), std::ranges::max_element(v));
        const auto both = parallel::minmax_element(v);
        const auto expected = std::minmax_element(v.begin(), v.end());
        EXPECT_EQ(both.min, expected.first);
        EXPECT_EQ(both.max, expected.second);
        EXPECT_EQ(parallel::min_element(v.begin(), v.end(), std::greater<>()),
                  std::ranges::max_element(v));
    });
}

TYPED_TEST(parallel_numbers, extremes_are_those_of_std_in_any_order_of_elements) {
    using T = TypeParam;
    for (const std::size_t size : sizes) {
        for (const int values : {1, 2, 120}) {
            std::vector<T> v = numbers<T>(size, values);
            expect_extremes(this->pool, v);
            std::sort(v.begin(), v.end());
            expect_extremes(this->pool, v);
            std::reverse(v.begin(), v.end());
            expect_extremes(this->pool, v);
        }
    }
}

TYPED_TEST(parallel_numbers, the_extreme_is_found_at_each_position) {
    using T = TypeParam;
    for (std::size_t at = 0; at != 70; ++at) {
        std::vector<T> v(70, T(50));
        v[at] = T(20);
        expect_extremes(this->pool, v);
        v[at] = T(90);
        expect_extremes(this->pool, v);
    }
}

// Copies to an output that has room for nothing else, with a value behind it that must stay.
template <class T, class F>
void expect_copies(coppice::thread_pool& pool, const std::vector<T>& v, F accepts,
                   const T& behind = T(77)) {
    std::vector<T> expected;
    std::copy_if(v.begin(), v.end(), std::back_inserter(expected), accepts);
    std::vector<T> out(expected.size() + 1);
    out.back() = behind;
    const auto end =
        parallel::copy_if(parallel::on(pool), v.begin(), v.end(), out.begin(), accepts);
    EXPECT_EQ(end, out.end() - 1);
    EXPECT_EQ(out.back(), behind);
    out.pop_back();
    EXPECT_EQ(out, expected);
}

TYPED_TEST(parallel_numbers, copy_if_writes_nothing_behind_the_last_accepted_element) {
    using T = TypeParam;
    for (const std::size_t size : sizes) {
        const std::vector<T> v = numbers<T>(size, 100);
        for (const T limit : {T(0), T(2), T(10), T(50), T(90), T(100)}) {
            expect_copies(this->pool, v, [limit](T x) { return x < limit; });
        }
        std::vector<T> sorted = v;
        std::sort(sorted.begin(), sorted.end());
        expect_copies(this->pool, sorted, [](T x) { return x < T(50); });
        expect_copies(this->pool, sorted, [](T x) { return T(50) < x; });
    }
}

TYPED_TEST(parallel_numbers, copy_if_copies_each_single_element_and_each_gap) {
    using T = TypeParam;
    for (std::size_t at = 0; at != 130; ++at) {
        std::vector<T> v(130, T(1));
        v[at] = T(2);
        expect_copies(this->pool, v, [](T x) { return x == T(2); });
        expect_copies(this->pool, v, [](T x) { return x == T(1); });
    }
}

TEST(parallel_copy_if, calls_a_predicate_that_counts_once_per_element_in_order) {
    const std::vector<int> v = places::random_numbers(1000, 100);
    std::vector<int> out(v.size()), asked;
    auto accepts = [&asked](int x) mutable {
        asked.push_back(x);
        return x < 50;
    };
    coppice::thread_pool pool(1);
    parallel::copy_if(parallel::on(pool), v.begin(), v.end(), out.begin(), std::ref(accepts));
    EXPECT_EQ(asked, v);
}

TEST(parallel_copy_if, copies_objects_with_a_destructor_only_if_they_are_accepted) {
    std::vector<std::string> v;
    for (const int x : places::random_numbers(500, 100)) v.push_back(std::to_string(x));
    const auto is_short = [](const std::string& s) { return s.size() == 1; };
    coppice::thread_pool pool(2);
    expect_copies<std::string>(pool, v, is_short, "behind");
}

}  // namespace
