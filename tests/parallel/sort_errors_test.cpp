// Sorts, merge, and partitions when a comparator or a move throws, a comparator contradicts itself,
// or a stop request comes. No object is lost, and none is duplicated.
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/parallel/merge.hpp>
#include <coppice/parallel/partition.hpp>
#include <coppice/parallel/sort.hpp>

#include <coppice/stop/inplace.hpp>

#include "ordered_input.hpp"
#include "places.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace {

namespace parallel = coppice::parallel;
using namespace ordered_input;
using coppice::internal::relaxed;
using counter = coppice::internal::atomic<long>;

// Calls check(name, algorithm); algorithm(v, less, where...) sorts or selects.
template <class Check>
void each_algorithm(Check check) {
    check("sort", [](auto& v, auto less, auto... where) { parallel::sort(where..., v, less); });
    check("stable_sort",
          [](auto& v, auto less, auto... where) { parallel::stable_sort(where..., v, less); });
    check("partial_sort", [](auto& v, auto less, auto... where) {
        parallel::partial_sort(where..., v, v.begin() + std::ssize(v) / 3, less);
    });
    check("nth_element", [](auto& v, auto less, auto... where) {
        parallel::nth_element(where..., v, v.begin() + std::ssize(v) / 3, less);
    });
    const auto matches = [](auto less) {
        return [less](const auto& x) { return less(x, std::as_const(x)); };
    };
    check("partition", [matches](auto& v, auto less, auto... where) {
        parallel::partition(where..., v, matches(less));
    });
    check("stable_partition", [matches](auto& v, auto less, auto... where) {
        parallel::stable_partition(where..., v, matches(less));
    });
}

template <class T>
std::vector<T> make_all(const std::vector<std::uint32_t>& in) {
    std::vector<T> v;
    v.reserve(in.size());
    for (const std::uint32_t each : in) v.push_back(T(each));
    return v;
}
std::uint32_t value_of(std::uint32_t x) {
    return x;
}
template <bool MayThrow>
std::uint32_t value_of(const counted<MayThrow>& x) {
    return x.value();
}
template <class T>
std::vector<std::uint32_t> sorted_values(const std::vector<T>& v) {
    std::vector<std::uint32_t> values;
    for (const T& each : v) values.push_back(value_of(each));
    std::sort(values.begin(), values.end());
    return values;
}

// Makes each call of the comparator throw in turn, with growing steps between later calls.
template <class T>
void throw_at_each_comparison(std::size_t size, pattern p) {
    const std::vector<std::uint32_t> in = numbers(p, size);
    const std::vector<std::uint32_t> expected = sorted_values(in);
    each_algorithm([&](const char* name, auto algorithm) {
        places::on_pools([&](auto... where) {
            for (long at = 1;; at += 1 + at / (size > 1000 ? 2 : 8)) {
                std::vector<T> v = make_all<T>(in);
                counter calls_left{at};
                bool thrown = false;
                try {
                    algorithm(v, throwing_less{&calls_left}, where...);
                } catch (const std::logic_error&) {
                    thrown = true;
                }
                ASSERT_EQ(sorted_values(v), expected) << name << " " << size << " at " << at;
                if (!thrown) {
                    EXPECT_GT(calls_left.load(relaxed), 0);
                    break;
                }
            }
        });
    });
}
TEST(parallel_sort_errors, a_comparison_that_throws_loses_no_number) {
    for (const std::size_t size : {20, 150, 4'500}) {
        throw_at_each_comparison<std::uint32_t>(size, pattern::random);
        throw_at_each_comparison<std::uint32_t>(size, pattern::organ_pipe);
    }
}
TEST(parallel_sort_errors, a_comparison_that_throws_loses_no_object) {
    for (const std::size_t size : {20, 150, 4'500}) {
        throw_at_each_comparison<counted<false>>(size, pattern::random);
        throw_at_each_comparison<counted<false>>(size, pattern::saw);
    }
    EXPECT_EQ(counted<false>::live.load(relaxed), 0);
}

TEST(parallel_sort_errors, a_move_that_throws_leaks_nothing) {
    using element = counted<true>;
    const std::vector<std::uint32_t> in = numbers(pattern::random, 700);
    const auto less = [](const element& a, const element& b) { return a.value() < b.value(); };
    each_algorithm([&](const char* name, auto algorithm) {
        for (long moves = 0;; moves += 1 + moves / 8) {
            std::vector<element> v = make_all<element>(in);
            const long before = element::live.load(relaxed);
            element::moves_left.store(moves, relaxed);
            bool thrown = false;
            try {
                algorithm(v, less, parallel::on(places::pool()));
            } catch (const std::runtime_error&) {
                thrown = true;
            }
            element::moves_left.store(1L << 40, relaxed);
            ASSERT_EQ(element::live.load(relaxed), before) << name << " after " << moves;
            if (!thrown) break;
        }
    });
    EXPECT_EQ(element::live.load(relaxed), 0);
}

TEST(parallel_sort_errors, a_comparator_that_contradicts_itself_loses_nothing) {
    const auto at_random = [](const auto&, const auto&) { return random_number() % 2 == 0; };
    const auto always = [](const auto&, const auto&) { return true; };
    const auto check = [&](auto less) {
        for (const std::size_t size : sizes) {
            const std::vector<std::uint32_t> in = numbers(pattern::random, size);
            each_algorithm([&](const char* name, auto algorithm) {
                std::vector<std::uint32_t> v = in;
                algorithm(v, less, parallel::on(coppice::execution::inline_scheduler()));
                ASSERT_EQ(sorted_values(v), sorted_values(in)) << name;
                auto objects = make_all<counted<false>>(in);
                algorithm(objects, less, parallel::on(coppice::execution::inline_scheduler()));
                ASSERT_EQ(sorted_values(objects), sorted_values(in)) << name;
            });
        }
    };
    check(at_random);
    check(always);
}

// Requests a stop at one call of the comparator.
struct stopping_less {
    counter* calls_left;
    coppice::inplace_stop_source* stop;
    template <class T>
    bool operator()(const T& a, const T& b) const {
        if (calls_left->fetch_sub(1, relaxed) == 1) stop->request_stop();
        return value_of(a) < value_of(b);
    }
};
template <class T>
void stop_in_the_middle() {
    const std::vector<std::uint32_t> in = numbers(pattern::random, 60'000);
    const std::vector<std::uint32_t> expected = sorted_values(in);
    each_algorithm([&](const char* name, auto algorithm) {
        for (const long at : {1, 100, 3'000, 40'000, 200'000}) {
            std::vector<T> v = make_all<T>(in);
            coppice::inplace_stop_source stop;
            counter calls_left{at};
            bool canceled = false;
            coppice::fork_join(stop.get_token(), [&] {
                try {
                    algorithm(v, stopping_less{&calls_left, &stop}, parallel::on(places::pool()));
                } catch (const std::system_error& error) {
                    canceled = error.code() == std::errc::operation_canceled;
                }
            });
            EXPECT_TRUE(!canceled || calls_left.load(relaxed) <= 0);
            ASSERT_EQ(sorted_values(v), expected) << name << " at " << at;
        }
    });
}
TEST(parallel_sort_errors, a_stop_in_the_middle_loses_nothing) {
    stop_in_the_middle<std::uint32_t>();
    stop_in_the_middle<counted<false>>();
    EXPECT_EQ(counted<false>::live.load(relaxed), 0);
}

TEST(parallel_sort_errors, a_stop_soon_ends_a_stable_sort_in_place) {
    std::vector<counted<true>> v = make_all<counted<true>>(numbers(pattern::random, 60'000));
    coppice::inplace_stop_source stop;
    counter calls_left{1};
    coppice::fork_join(stop.get_token(), [&] {
        EXPECT_FALSE(parallel::stable_sort(parallel::on(places::pool()), v,
                                           stopping_less{&calls_left, &stop}));
    });
    EXPECT_GT(calls_left.load(relaxed), -20'000);
}

TEST(parallel_sort_errors, a_stop_before_the_start_is_reported) {
    coppice::inplace_stop_source stop;
    stop.request_stop();
    std::vector<int> v = {3, 1, 2}, out(6);
    coppice::fork_join(stop.get_token(), [&] {
        EXPECT_FALSE(parallel::sort(v));
        EXPECT_FALSE(parallel::stable_sort(v));
        EXPECT_FALSE(parallel::nth_element(v, v.begin() + 1));
        EXPECT_FALSE(parallel::partial_sort(v, v.begin() + 1));
        EXPECT_THROW(parallel::partition(v, [](int) { return true; }), std::system_error);
        EXPECT_THROW(parallel::stable_partition(v, [](int) { return true; }), std::system_error);
        EXPECT_THROW(parallel::merge(v, v, out), std::system_error);
        v.clear();
        EXPECT_TRUE(parallel::partition(v, [](int) { return true; }).empty());
    });
}

TEST(parallel_sort_errors, a_comparison_that_throws_ends_a_merge) {
    const std::vector<std::uint32_t> in = numbers(pattern::sorted, 3'000);
    for (long at = 1; at < 7'000; at += 1 + at / 2) {
        counter calls_left{at};
        std::vector<std::uint32_t> out(6'000);
        try {
            parallel::merge(parallel::on(places::pool()), in, in, out, throwing_less{&calls_left});
            EXPECT_TRUE(std::is_sorted(out.begin(), out.end()));
        } catch (const std::logic_error&) {
            EXPECT_LE(calls_left.load(relaxed), 0);
        }
    }
}

}  // namespace
