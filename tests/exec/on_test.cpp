// Plan: on [exec.on]: it moves to a scheduler and returns, for senders and for closures.
#include <coppice/exec/connect.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/on.hpp>
#include <coppice/exec/then.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

namespace {

namespace ex = coppice::execution;
using probes::by_hand_context;

TEST(exec_on, runs_a_sender_on_the_scheduler_and_returns) {
    by_hand_context home;
    by_hand_context away;
    probes::record r;
    auto op =
        ex::connect(ex::on(away.get_scheduler(), ex::just(1)),
                    probes::receiver(r, ex::prop(ex::get_start_scheduler, home.get_scheduler())));
    ex::start(op);
    EXPECT_EQ(away.size(), 1u);
    away.run_one();
    EXPECT_EQ(home.size(), 1u);
    EXPECT_EQ(r.said(), "");
    home.run_one();
    EXPECT_EQ(r.said(), "value(1)");
}

TEST(exec_on, runs_a_closure_on_the_scheduler_and_returns) {
    by_hand_context home;
    by_hand_context away;
    probes::record r;
    bool was_away = false;
    auto op =
        ex::connect(ex::schedule(home.get_scheduler()) | ex::on(away.get_scheduler(), ex::then([&] {
                                                                    was_away = true;
                                                                    return 5;
                                                                })),
                    probes::receiver<>(r));
    ex::start(op);
    home.run_one();
    EXPECT_FALSE(was_away);
    away.run_one();
    EXPECT_TRUE(was_away);
    EXPECT_EQ(r.said(), "");
    home.run_one();
    EXPECT_EQ(r.said(), "value(5)");
}

TEST(exec_on, is_not_a_sender_if_the_scheduler_to_return_to_is_unknown) {
    by_hand_context away;
    using sndr = decltype(ex::on(away.get_scheduler(), ex::just()));
    static_assert(ex::dependent_sender<sndr>);
    static_assert(!ex::sender_in<sndr, ex::env<>>);
}

}  // namespace
