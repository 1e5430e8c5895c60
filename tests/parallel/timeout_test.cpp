// timeout around each kind of algorithm that keeps all workers of the pool busy, whose timers it
// uses.
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/parallel/for_each.hpp>
#include <coppice/parallel/pipeline.hpp>
#include <coppice/parallel/reduce.hpp>
#include <coppice/parallel/scan.hpp>
#include <coppice/parallel/sort.hpp>
#include <coppice/pool/contract_pool.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/task/task.hpp>

#include "emulated.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <ranges>
#include <system_error>
#include <utility>
#include <vector>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
using this_thread::sync_wait;

// Computes for about ten microseconds.
void compute() {
    volatile int left = 5'000;
    while (left != 0) left = left - 1;
}

// Says whether a timeout in a task on the pool ends the sender that make() returns.
template <class Pool, class Make>
task<bool> timed_out(Pool&, Make make, std::chrono::nanoseconds limit) {
    try {
        co_await ex::timeout(make(), limit);
    } catch (const std::system_error& error) {
        co_return error.code() == std::errc::timed_out;
    }
    co_return false;
}
template <class Pool, class Make>
bool times_out(Pool& pool, Make make, std::chrono::nanoseconds limit = 1ms) {
    auto work = ex::starts_on(pool.get_scheduler(), timed_out(pool, make, limit));
    return std::get<0>(*sync_wait(std::move(work)));
}

// Ends only if it is stopped, unless it computes for many seconds.
const auto endless = std::views::iota(0L, 1L << 40);
constexpr std::size_t many = std::size_t{1} << 20;

template <class Pool>
class a_busy_pool : public testing::Test {
public:
    // Calls f with pools of one and of two workers.
    template <class F>
    static void with_each(F f) {
        for (const std::size_t workers : {1U, 2U}) {
            SCOPED_TRACE(workers);
            Pool pool(workers);
            for (int round = 0; round != test::repeated(3); ++round) f(pool);
        }
    }
};
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
