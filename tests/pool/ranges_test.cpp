// Ranges of every integer type at its limits: loops, reductions, and bulk on every kind of pool.
#include <coppice/pool/contract_pool.hpp>
#include <coppice/pool/internal/bulk.hpp>
#include <coppice/pool/parallel.hpp>
#include <coppice/pool/parallel_backend.hpp>
#include <coppice/pool/queue_pool.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <coppice/exec/bulk.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>

#include "sanitizers.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
namespace ex = coppice::execution;

template <class Index>
class range_of : public testing::Test {};
using every_index =
    testing::Types<char, signed char, unsigned char, char8_t, short, unsigned short, char16_t, int,
                   unsigned, wchar_t, char32_t, long, unsigned long, long long, unsigned long long>;
// One of each width and sign: what each type adds is arithmetic, which the plain stage checks.
using some_indices = testing::Types<signed char, char16_t, int, unsigned long>;
using indices = std::conditional_t<test::sanitized, some_indices, every_index>;
TYPED_TEST_SUITE(range_of, indices);

template <class Index>
constexpr Index least = std::numeric_limits<Index>::min();
template <class Index>
constexpr Index most = std::numeric_limits<Index>::max();
template <class Index>
constexpr std::uint64_t width(Index first, Index last) {
    return static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first);
}

// What the calls of one loop have covered. A loaded machine may cut a loop more often than a test
// has time for; the loop is then stopped.
template <class Index>
class cover {
public:
    cover(Index first, Index last) : first_(first), last_(last) {}
    void operator()(Index from, Index to) {
        // Relaxed, all: read after the join.
        if (!(from < to) || from < first_ || last_ < to) outside_.store(true, relaxed);
        covered_.fetch_add(width(from, to), relaxed);
        if (calls_.fetch_add(1, relaxed) == 100'000) enough_.request_stop();
    }
    void expect_all() {
        bool all = false;
        fork_join(enough_.get_token(), [&] { all = parallel_for(first_, last_, *this); });
        EXPECT_FALSE(outside_.load(relaxed));
        if (all) {
            EXPECT_EQ(covered_.load(relaxed), width(first_, last_));
        }
    }

private:
    const Index first_, last_;
    inplace_stop_source enough_;
    atomic<std::uint64_t> covered_{0};
    atomic<std::uint64_t> calls_{0};
    atomic<bool> outside_{false};
};

TYPED_TEST(range_of, the_widest_loop_covers_each_index_once) {
    using Index = TypeParam;
    const auto check = [] {
        cover<Index>(least<Index>, most<Index>).expect_all();
        // More than half of the index's values: a signed index cannot represent the width.
        cover<Index>(static_cast<Index>(least<Index> / 4 * 3),
                     static_cast<Index>(most<Index> / 4 * 3))
            .expect_all();
        cover<Index>(static_cast<Index>(most<Index> - 1), most<Index>).expect_all();
        cover<Index>(least<Index>, static_cast<Index>(least<Index> + 1)).expect_all();
    };
    check();
    for (const std::size_t threads : {2u, 4u}) thread_pool(threads).run(check);
    queue_pool<lockfree_queue>(2).run(check);
    contract_pool(2).run(check);
}

TYPED_TEST(range_of, an_empty_or_inverted_range_calls_nothing) {
    using Index = TypeParam;
    const auto check = [] {
        const auto none = [](Index first, Index last) {
            EXPECT_TRUE(parallel_for(first, last, [](Index) { ADD_FAILURE(); }));
            EXPECT_TRUE(parallel_for(first, last, [](Index, Index) { ADD_FAILURE(); }));
            EXPECT_EQ(
                parallel_reduce(
                    first, last, 7, [](Index) { return 1; }, [](int a, int b) { return a + b; }),
                7);
        };
        none(0, 0);
        none(most<Index>, most<Index>);
        none(least<Index>, least<Index>);
        none(most<Index>, least<Index>);
        none(1, 0);
    };
    check();
    thread_pool(2).run(check);
}

// The ends of a range, one index at a time, in loops and reductions.
TYPED_TEST(range_of, the_indices_beside_both_ends_are_visited) {
    using Index = TypeParam;
    const auto check = [] {
        const auto all = [](Index first, Index last) {
            std::vector<atomic<int>> seen(width(first, last));
            EXPECT_TRUE(parallel_for(first, last, [&](Index i) {
                seen[width(first, i)].fetch_add(1, relaxed);  // relaxed: read after the join
            }));
            for (const auto& each : seen) EXPECT_EQ(each.load(relaxed), 1);
            EXPECT_EQ(parallel_reduce(
                          first, last, std::uint64_t{0}, [](Index) { return std::uint64_t{1}; },
                          [](std::uint64_t a, std::uint64_t b) { return a + b; }),
                      width(first, last));
        };
        all(least<Index>, static_cast<Index>(least<Index> + 100));
        all(static_cast<Index>(most<Index> - 100), most<Index>);
        if constexpr (sizeof(Index) == 1) all(least<Index>, most<Index>);
    };
    check();
    for (const std::size_t threads : {2u, 4u}) thread_pool(threads).run(check);
}

// Loops that would take too long are ended by a stop request of their first calls.
TYPED_TEST(range_of, the_widest_loop_and_reduction_can_be_stopped) {
    using Index = TypeParam;
    thread_pool pool(2);
    pool.run([] {
        inplace_stop_source enough;
        fork_join(enough.get_token(), [&] {
            parallel_for(least<Index>, most<Index>, [&](Index) { enough.request_stop(); });
        });
        inplace_stop_source again;
        const auto [some] = fork_join(again.get_token(), [&] {
            return parallel_reduce(
                least<Index>, most<Index>, std::uint64_t{0},
                [&](Index) {
                    again.request_stop();
                    return std::uint64_t{1};
                },
                [](std::uint64_t a, std::uint64_t b) { return a + b; });
        });
        EXPECT_LE(some, width(least<Index>, most<Index>));
    });
}

// Calls f for [0, shape) by bulk_chunked, and returns the sum of the pieces.
template <class Shape>
std::uint64_t covered_by_bulk(auto scheduler, auto policy, Shape shape) {
    std::uint64_t covered = 0;
    atomic<std::uint64_t> sum{0};
    auto work =
        ex::schedule(scheduler) | ex::bulk_chunked(policy, shape, [&](Shape first, Shape last) {
            EXPECT_LT(first, last);
            sum.fetch_add(width(first, last), relaxed);  // relaxed: read after the wait
        });
    EXPECT_TRUE(this_thread::sync_wait(std::move(work)).has_value());
    covered = sum.load(relaxed);
    return covered;
}

TYPED_TEST(range_of, bulk_of_any_shape_covers_it) {
    using Index = TypeParam;
    const auto check = [](auto scheduler) {
        for (const Index shape :
             {Index(0), Index(1), Index(100), sizeof(Index) == 1 ? most<Index> : Index(1000),
              least<Index>, static_cast<Index>(least<Index> / 2)}) {
            const std::uint64_t whole = shape > 0 ? width(Index(0), shape) : 0;
            if (whole > 100'000) continue;  // index by index, as below, it would take too long
            EXPECT_EQ(covered_by_bulk<Index>(scheduler, ex::par, shape), whole);
            EXPECT_EQ(covered_by_bulk<Index>(scheduler, ex::seq, shape), whole);
            atomic<std::uint64_t> calls{0};
            auto each = ex::schedule(scheduler) | ex::bulk(ex::par, shape, [&](Index i) {
                            EXPECT_LT(width(Index(0), i), whole);
                            calls.fetch_add(1, relaxed);  // relaxed: read after the wait
                        });
            EXPECT_TRUE(this_thread::sync_wait(std::move(each)).has_value());
            EXPECT_EQ(calls.load(relaxed), whole);
        }
        EXPECT_EQ(covered_by_bulk<Index>(scheduler, ex::seq, most<Index>),
                  width(Index(0), most<Index>));
    };
    thread_pool pool(2);
    check(pool.get_scheduler());
    contract_pool contracts(2);
    check(contracts.get_scheduler());
    ex::parallel_scheduler_replacement::set_parallel_scheduler_backend(
        std::make_shared<parallel_backend>(pool));
    check(ex::get_parallel_scheduler());
    ex::parallel_scheduler_replacement::set_parallel_scheduler_backend(nullptr);
}

TEST(parallel_for, covers_a_range_of_three_billion_ints) {
    const auto check = [] { cover<int>(-1'500'000'000, 1'500'000'000).expect_all(); };
    check();
    for (const std::size_t threads : {2u, 4u}) thread_pool(threads).run(check);
}

// Some compilers have integers of more than 64 bits that count as integral. Everything that walks a
// range rejects them, because their distances would be cut off.
__extension__ using wide = __int128;
__extension__ using unsigned_wide = unsigned __int128;

template <class Index>
concept is_looped_over = requires(Index i) { parallel_for(i, i, [](Index) {}); };
template <class Index>
concept is_reduced = requires(Index i) {
    parallel_reduce(i, i, 0, [](Index) { return 0; }, [](int a, int b) { return a + b; });
};
template <class Index>
concept is_bulk_shape = requires(Index i) {
    ex::bulk(ex::just(), ex::par, i, [](Index) {});
    ex::just() | ex::bulk(ex::par, i, [](Index) {});
    ex::bulk_unchunked(ex::just(), ex::par, i, [](Index) {});
    ex::bulk_chunked(ex::just(), ex::par, i, [](Index, Index) {});
};
template <class Index>
constexpr bool walks_none = !is_looped_over<Index> && !is_reduced<Index> && !requires(Index i) {
    ex::bulk(ex::just(), ex::par, i, [](Index) {});
} && !requires(Index i) { ex::bulk(ex::par, i, [](Index) {}); } && !requires(Index i) {
    ex::bulk_unchunked(ex::just(), ex::par, i, [](Index) {});
} && !requires(Index i) { ex::bulk_chunked(ex::just(), ex::par, i, [](Index, Index) {}); };

static_assert(is_looped_over<long long> && is_reduced<long long> && is_bulk_shape<long long>);
static_assert(walks_none<wide> && walks_none<unsigned_wide>);

}  // namespace
