// timeout around each kind of algorithm that keeps all workers of the pool busy, whose timers it
// uses.
#include <coppice/parallel/for_each.hpp>
#include <coppice/parallel/pipeline.hpp>
#include <coppice/parallel/reduce.hpp>
#include <coppice/parallel/scan.hpp>
#include <coppice/parallel/sort.hpp>
#include <coppice/pool/contract_pool.hpp>
#include <coppice/pool/thread_pool.hpp>

#include "busy_pool.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <ranges>
#include <vector>

namespace {

using namespace coppice;
using test::compute, test::times_out;

// Ends only if it is stopped, unless it computes for many seconds.
const auto endless = std::views::iota(0L, 1L << 40);
constexpr std::size_t many = std::size_t{1} << 20;

template <class Pool>
using a_busy_pool = test::busy_pool<Pool>;
using both_pools = testing::Types<thread_pool, contract_pool>;
TYPED_TEST_SUITE(a_busy_pool, both_pools);

TYPED_TEST(a_busy_pool, for_each_is_stopped) {
    this->with_each([](TypeParam& pool) {
        EXPECT_TRUE(times_out(pool, [&pool] {
            return parallel::async::for_each(parallel::on(pool), endless, [](long) { compute(); });
        }));
    });
}

TYPED_TEST(a_busy_pool, a_reduction_is_stopped) {
    this->with_each([](TypeParam& pool) {
        const auto plus = [](long a, long b) {
            compute();
            return a + b;
        };
        EXPECT_TRUE(times_out(
            pool, [&] { return parallel::async::reduce(parallel::on(pool), endless, 0L, plus); }));
    });
}

TYPED_TEST(a_busy_pool, a_sort_is_stopped) {
    std::vector<int> v(many);
    for (std::size_t i = 0; i != many; ++i) v[i] = static_cast<int>(i * 48'271 % 65'537);
    this->with_each([&v](TypeParam& pool) {
        const auto less = [](int a, int b) {
            compute();
            return a < b;
        };
        EXPECT_TRUE(
            times_out(pool, [&] { return parallel::async::sort(parallel::on(pool), v, less); }));
        EXPECT_TRUE(times_out(
            pool, [&] { return parallel::async::stable_sort(parallel::on(pool), v, less); }));
    });
}

TYPED_TEST(a_busy_pool, a_scan_is_stopped) {
    const std::vector<long> in(many, 1);
    std::vector<long> out(many);
    this->with_each([&](TypeParam& pool) {
        const auto plus = [](long a, long b) {
            compute();
            return a + b;
        };
        EXPECT_TRUE(times_out(pool, [&] {
            return parallel::async::inclusive_scan(parallel::on(pool), in, out, plus);
        }));
    });
}

TYPED_TEST(a_busy_pool, a_pipeline_is_stopped) {
    this->with_each([](TypeParam& pool) {
        const auto source = [n = 0]() mutable { return std::optional<int>(n++ % 1'000); };
        const auto work = [](int) { compute(); };
        EXPECT_TRUE(times_out(pool, [&] {
            return parallel::async::pipeline(parallel::on(pool), 8, source,
                                             parallel::stage(parallel::concurrent, work));
        }));
    });
}

}  // namespace
