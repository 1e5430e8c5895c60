// Each allocation of an algorithm, or of a pipeline, fails in turn.
#include <coppice/parallel.hpp>

#include <coppice/exec/sync_wait.hpp>
#include <coppice/task.hpp>

#include "allocations.hpp"
#include "places.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace parallel = coppice::parallel;
namespace async = coppice::parallel::async;
using coppice::this_thread::sync_wait;

// Calls run() on another thread, with each allocation failing in turn until none fails. run()
// returns true if its result is right.
template <class Run>
void fail_in_turn(Run run) {
    ASSERT_TRUE(run());
    bool has_failed = true;
    for (std::size_t n = 1; has_failed; ++n) {
        ASSERT_LT(n, 1'000u);
        bool is_right = true;
        coppice::test::fail_allocation(n);
        std::thread([&run, &is_right] {
            try {
                is_right = run();
            } catch (const std::bad_alloc&) {
                is_right = coppice::test::allocation_has_failed();
            }
        }).join();
        has_failed = coppice::test::allocation_has_failed();
        EXPECT_TRUE(is_right) << n;
        EXPECT_TRUE(run()) << n;  // nothing is left broken
    }
}

std::vector<int> two_runs() {  // sorted inputs of two runs take a buffer
    std::vector<int> v(6'000);
    for (int i = 0; i != 6'000; ++i) v[static_cast<std::size_t>(i)] = i % 3'000;
    return v;
}

TEST(parallel_memory, algorithms_throw_or_do_without_it) {
    if (!coppice::test::fail_allocation(0)) GTEST_SKIP() << "operator new is the sanitizer's";
    places::on_pools([](auto... where) {
        fail_in_turn([=] {
            std::vector<int> v = two_runs();
            return parallel::sort(where..., v) && std::is_sorted(v.begin(), v.end());
        });
        fail_in_turn([=] {
            std::vector<int> v = two_runs();
            return sync_wait(async::stable_sort(where..., v)) && std::is_sorted(v.begin(), v.end());
        });
        fail_in_turn([=] {
            std::vector<int> v = two_runs();
            const auto odd = [](int x) { return x % 2 != 0; };
            return parallel::stable_partition(where..., v, odd).size() == 3'000;
        });
        fail_in_turn([=] {
            const std::vector<int> v = two_runs();
            std::array<int, 2> bins{};
            const auto done = sync_wait(async::histogram(where..., v, bins, [](int x) {
                for (volatile int i = 0; i != 20;) i = i + 1;
                return x % 2;
            }));
            return done && bins[0] == 3'000 && bins[1] == 3'000;
        });
        fail_in_turn([=] {
            const std::vector<int> v = two_runs();
            std::vector<long> sums(v.size());
            const auto plus = [](long a, long b) {
                for (volatile int i = 0; i != 20;) i = i + 1;
                return a + b;
            };
            return sync_wait(async::inclusive_scan(where..., v, sums, plus, 0L)) &&
                   sums.back() == 2 * 2'999L * 1'500;
        });
    });
}

TEST(parallel_memory, a_pipeline_ends_and_loses_no_item) {
    if (!coppice::test::fail_allocation(0)) GTEST_SKIP() << "operator new is the sanitizer's";
    places::on_pools([](auto... where) {
        fail_in_turn([=] {
            const auto counted = std::make_shared<int>(0);
            int next = 0;
            int sum = 0;
            const auto source = [&next, &counted]() -> std::optional<std::shared_ptr<int>> {
                if (next++ == 40) return std::nullopt;
                return counted;
            };
            const auto wait = [](std::shared_ptr<int> item) -> coppice::task<std::shared_ptr<int>> {
                co_await places::pool().get_scheduler().schedule();
                co_return item;
            };
            try {
                (void)sync_wait(async::pipeline(
                    where..., 8, source, parallel::stage(parallel::concurrent, wait),
                    parallel::stage(parallel::serial_in_order,
                                    [&sum](const std::shared_ptr<int>&) { ++sum; })));
            } catch (const std::bad_alloc&) {
                EXPECT_EQ(counted.use_count(), 1);
                throw;
            }
            return sum == 40 && counted.use_count() == 1;
        });
    });
}

}  // namespace
