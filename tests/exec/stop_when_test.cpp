// Plan: stop_when [exec.stop.when] and the fused token.
#include <coppice/exec/connect.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/stop_when.hpp>
#include <coppice/exec/then.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

namespace {

namespace ex = coppice::execution;
using probes::outcome;

TEST(exec_stop_when, either_token_stops_the_sender) {
    coppice::inplace_stop_source mine;
    coppice::inplace_stop_source theirs;
    for (coppice::inplace_stop_source* first : {&mine, &theirs}) {
        coppice::inplace_stop_source a;
        coppice::inplace_stop_source b;
        probes::record r;
        auto op = ex::connect(ex::stop_when(probes::until_stopped(), a.get_token()),
                              probes::receiver(r, probes::stop_env(b)));
        ex::start(op);
        EXPECT_EQ(r.said(), "");
        (first == &mine ? a : b).request_stop();
        EXPECT_EQ(r.said(), "stopped");
        (first == &mine ? b : a).request_stop();
        EXPECT_EQ(r.said(), "stopped");
    }
}

TEST(exec_stop_when, a_token_that_cannot_stop_changes_nothing) {
    using sndr = decltype(ex::stop_when(ex::just(1), coppice::never_stop_token()));
    static_assert(std::is_same_v<sndr, decltype(ex::just(1))>);
    coppice::inplace_stop_source source;
    auto token = ex::stop_when(ex::read_env(coppice::get_stop_token), source.get_token()) |
                 ex::then([&](auto t) { return t == source.get_token(); });
    EXPECT_EQ(outcome(std::move(token)), "value(true)");
}

TEST(exec_stop_when, the_fused_token_runs_a_callback_once_for_two_stops) {
    coppice::inplace_stop_source a;
    coppice::inplace_stop_source b;
    using token =
        ex::internal::fused_stop_token<coppice::inplace_stop_token, coppice::inplace_stop_token>;
    static_assert(coppice::stoppable_token<token>);
    const token t(a.get_token(), b.get_token());
    EXPECT_TRUE(t.stop_possible());
    EXPECT_FALSE(t.stop_requested());
    int runs = 0;
    auto count = [&runs]() noexcept { ++runs; };
    {
        coppice::stop_callback_for_t<token, decltype(count)> callback(t, count);
        b.request_stop();
        a.request_stop();
        EXPECT_EQ(runs, 1);
    }
    EXPECT_TRUE(t.stop_requested());
    coppice::stop_callback_for_t<token, decltype(count)> late(t, count);
    EXPECT_EQ(runs, 2);
}

}  // namespace
