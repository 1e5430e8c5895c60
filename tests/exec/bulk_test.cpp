// Plan: bulk, bulk_chunked, bulk_unchunked [exec.bulk]: indices, values, exceptions, constraints.
#include <coppice/exec/bulk.hpp>
#include <coppice/exec/execution_policy.hpp>
#include <coppice/exec/just.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace {

namespace ex = coppice::execution;
using probes::outcome;

TEST(exec_bulk, calls_the_function_for_every_index_with_lvalues_and_passes_the_values_on) {
    std::vector<int> seen;
    EXPECT_EQ(outcome(ex::just(10) | ex::bulk(ex::par, 4,
                                              [&](int i, int& v) {
                                                  seen.push_back(i);
                                                  v += i;
                                              })),
              "value(16)");
    EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 3}));
}

TEST(exec_bulk, chunked_gets_ranges_and_unchunked_single_indices) {
    int total = 0;
    EXPECT_EQ(outcome(ex::just() | ex::bulk_chunked(ex::seq, 10u,
                                                    [&](unsigned b, unsigned e) {
                                                        total += static_cast<int>(e - b);
                                                    })),
              "value()");
    EXPECT_EQ(total, 10);
    EXPECT_EQ(
        outcome(ex::just() | ex::bulk_unchunked(ex::unseq, 3, [&](int i) noexcept { total += i; })),
        "value()");
    EXPECT_EQ(total, 13);
}

TEST(exec_bulk, over_an_empty_range_calls_nothing) {
    EXPECT_EQ(outcome(ex::just() | ex::bulk_chunked(ex::seq, 0, [](int, int) { FAIL(); })),
              "value()");
    EXPECT_EQ(outcome(ex::just() | ex::bulk(ex::seq, -1, [](int) { FAIL(); })), "value()");
}

// [exec.bulk] p3: any integral shape is allowed, and bool is integral.
TEST(exec_bulk, counts_with_bool) {
    for (const bool shape : {false, true}) {
        std::string said;
        const auto each = [&](bool i) { said += i ? "1 " : "0 "; };
        const auto range = [&](bool begin, bool end) { said += begin || !end ? "? " : "0-1 "; };
        EXPECT_EQ(outcome(ex::just() | ex::bulk(ex::par, shape, each)), "value()");
        EXPECT_EQ(outcome(ex::just() | ex::bulk_unchunked(ex::seq, shape, each)), "value()");
        EXPECT_EQ(outcome(ex::just() | ex::bulk_chunked(ex::seq, shape, range)), "value()");
        EXPECT_EQ(said, shape ? "0 0 0-1 " : "");
    }
}

TEST(exec_bulk, an_exception_skips_the_remaining_calls) {
    int calls = 0;
    EXPECT_EQ(outcome(ex::just() | ex::bulk(ex::par_unseq, 5,
                                            [&](int i) {
                                                ++calls;
                                                if (i == 2) throw 3;
                                            })),
              "error(exception 3)");
    EXPECT_EQ(calls, 3);
    EXPECT_EQ(outcome(ex::just_stopped() | ex::bulk(ex::seq, 5, [](int) {})), "stopped");
}

template <class Policy>
concept can_bulk = requires(Policy p) { ex::just() | ex::bulk(p, 1, [](int) {}); };

TEST(exec_bulk, requires_a_policy_an_integer_and_a_copyable_function) {
    static_assert(can_bulk<ex::parallel_policy>);
    static_assert(!can_bulk<int>);
    static_assert(coppice::is_execution_policy_v<ex::sequenced_policy>);
    static_assert(!coppice::is_execution_policy_v<int>);
    auto move_only = [p = std::make_unique<int>(1)](int) {};
    static_assert(!ex::internal::callable<ex::bulk_t, ex::parallel_policy, int,
                                          decltype(std::move(move_only))>);
    static_assert(!ex::internal::callable<ex::bulk_t, ex::parallel_policy, double, void (*)(int)>);
}

}  // namespace
