// Every number that a pool or a parallel loop takes, at the limits of its type.
#include <coppice/pool/contract_pool.hpp>
#include <coppice/pool/parallel.hpp>
#include <coppice/pool/queue_pool.hpp>
#include <coppice/pool/thread_pool.hpp>

#include "extremes.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;

TEST(pool_extremes, a_number_of_threads_is_accepted_or_named_in_the_error) {
    for (const std::uint64_t n : every_number) {
        const auto threads = static_cast<std::size_t>(n);
        const auto pools = [&](auto make) {
            const std::string said = refusal_of(make);
            if (n == 1) {
                EXPECT_EQ(said, "");
            } else if (n == 0) {
                EXPECT_NE(said, "");
            } else {
                EXPECT_NE(said.find("threads is " + std::to_string(n)), std::string::npos) << said;
            }
        };
        pools([&] { EXPECT_EQ(thread_pool(threads).run([] { return 7; }), 7); });
        pools([&] { EXPECT_EQ(queue_pool<mutex_queue>(threads).run([] { return 7; }), 7); });
        pools([&] { (void)contract_pool(threads); });
    }
}

TEST(pool_extremes, every_pool_option_is_accepted_or_named_in_the_error) {
    for (const std::uint64_t n : every_number) {
        pool_options of_trace;
        of_trace.threads = 1;
        of_trace.trace_events = static_cast<std::size_t>(n);
        const std::string said =
            refusal_of([&] { EXPECT_EQ(thread_pool(of_trace).run([] { return 7; }), 7); });
        if (n <= 1) {
            EXPECT_EQ(said, "");
        } else {
            expect_refusal(said, "pool_options::trace_events", n);
        }
        pool_options of_threads;
        of_threads.threads = static_cast<std::size_t>(n);
        const std::string refused =
            refusal_of([&] { EXPECT_EQ(thread_pool(of_threads).run([] { return 7; }), 7); });
        if (n <= 1) {
            EXPECT_EQ(refused, "");
        } else {
            expect_refusal(refused, "pool_options::threads", n);
        }
        EXPECT_EQ(refusal_of([&] { (void)contract_pool(1, static_cast<std::size_t>(n)); }).empty(),
                  n == 1);
    }
}

// Ranges wider than their index: the pieces add up to the whole. A lone worker runs them in order.
template <class Index>
void covers(Index first, Index last) {
    std::uint64_t covered = 0;
    Index next = first;
    thread_pool pool(1);
    pool.run([&] {
        parallel_for(first, last, [&](Index from, Index to) {
            EXPECT_EQ(from, next);
            covered += static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
            next = to;
        });
    });
    EXPECT_EQ(next, last);
    EXPECT_EQ(covered, static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first));
}

TEST(parallel_extremes, a_loop_covers_every_value_of_its_index) {
    covers<std::int8_t>(INT8_MIN, INT8_MAX);
    covers<std::uint8_t>(0, UINT8_MAX);
    covers<std::int16_t>(INT16_MIN, INT16_MAX);
    covers<std::uint16_t>(0, UINT16_MAX);
    // Wider ranges would take too long on a loaded machine, so only the arithmetic is tested.
    static_assert(coppice::internal::distance(INT32_MIN, INT32_MAX) == UINT32_MAX);
    static_assert(coppice::internal::distance(INT64_MIN, INT64_MAX) == UINT64_MAX);
    static_assert(behind(INT32_MIN, UINT32_MAX) == INT32_MAX);
    static_assert(behind(INT64_MIN, UINT64_MAX) == INT64_MAX);
    static_assert(behind(INT64_MIN, UINT64_MAX / 2) == -1);
}

TEST(parallel_extremes, every_range_of_bytes_is_summed_once) {
    for (int first = INT8_MIN; first <= INT8_MAX; first += 5) {
        for (int last = first; last <= INT8_MAX; last += 3) {
            int expected = 0;
            for (int i = first; i != last; ++i) expected += i;
            const int sum = parallel_reduce(
                static_cast<std::int8_t>(first), static_cast<std::int8_t>(last), 0,
                [](std::int8_t i) { return int{i}; }, [](int a, int b) { return a + b; });
            ASSERT_EQ(sum, expected) << first << " " << last;
        }
    }
}

TEST(parallel_extremes, a_loop_on_workers_covers_every_value_too) {
    thread_pool pool(2);
    atomic<std::uint64_t> covered{0};
    pool.run([&] {
        parallel_for(std::int16_t{INT16_MIN}, std::int16_t{INT16_MAX},
                     [&](std::int16_t from, std::int16_t to) {
                         // Relaxed: joined before it is read.
                         covered.fetch_add(static_cast<std::uint64_t>(to - from), relaxed);
                     });
    });
    EXPECT_EQ(covered.load(relaxed), UINT16_MAX);  // relaxed: see above
}

}  // namespace
