// Plan: when_any: which child wins, which children are stopped, what is sent.
#include <coppice/exec/connect.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/parallel_scheduler.hpp>
#include <coppice/exec/when_any.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

namespace {

namespace ex = coppice::execution;
using probes::outcome;

TEST(when_any, the_first_value_or_error_wins_and_the_others_are_stopped_and_awaited) {
    probes::by_hand a;
    probes::by_hand b;
    probes::record r;
    auto op = ex::connect(ex::when_any(a.get(), b.get()), probes::receiver<>(r));
    ex::start(op);
    b.value(2);
    EXPECT_TRUE(a.stop_requested());
    EXPECT_EQ(r.said(), "");
    a.value(1);
    EXPECT_EQ(r.said(), "value(2)");

    probes::record e;
    auto op2 = ex::connect(ex::when_any(a.get(), b.get()), probes::receiver<>(e));
    ex::start(op2);
    a.error(3);
    b.stopped();
    EXPECT_EQ(e.said(), "error(3)");
}

TEST(when_any, a_stopped_child_does_not_win) {
    EXPECT_EQ(outcome(ex::when_any(ex::just_stopped(), ex::just(5))), "value(5)");
    EXPECT_EQ(outcome(ex::when_any(ex::just_stopped(), ex::just_stopped())), "stopped");
}

TEST(when_any, sends_values_of_different_types) {
    using sndr = decltype(ex::when_any(ex::just(1), ex::just(std::string())));
    static_assert(
        std::is_same_v<ex::completion_signatures_of_t<sndr, ex::env<>>,
                       ex::completion_signatures<ex::set_value_t(int), ex::set_value_t(std::string),
                                                 ex::set_stopped_t()>>);
    EXPECT_EQ(outcome(ex::when_any(probes::until_stopped(), ex::just(std::string("text")))),
              "value(text)");
}

TEST(when_any, a_stop_from_outside_reaches_every_child) {
    coppice::inplace_stop_source source;
    probes::record r;
    auto op = ex::connect(ex::when_any(probes::until_stopped(), probes::until_stopped()),
                          probes::receiver(r, probes::stop_env(source)));
    ex::start(op);
    source.request_stop();
    EXPECT_EQ(r.said(), "stopped");
}

}  // namespace
