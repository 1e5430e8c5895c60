// Plan: affine [exec.affine]: the transfer back, and when it is left out.
#include <coppice/exec/affine.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/then.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

namespace {

namespace ex = coppice::execution;
using probes::by_hand_context;
using probes::outcome;
using probes::refusing_scheduler;

TEST(exec_affine, completes_on_the_start_scheduler) {
    by_hand_context home;
    by_hand_context away;
    probes::record r;
    const auto env = ex::prop(ex::get_start_scheduler, home.get_scheduler());
    auto op =
        ex::connect(ex::affine(ex::schedule(away.get_scheduler()) | ex::then([] { return 1; })),
                    probes::receiver(r, env));
    ex::start(op);
    away.run_one();
    EXPECT_EQ(r.said(), "");
    home.run_one();
    EXPECT_EQ(r.said(), "value(1)");
}

TEST(exec_affine, does_not_schedule_if_the_child_completes_there_already) {
    by_hand_context home;
    const auto env = ex::prop(ex::get_start_scheduler, home.get_scheduler());
    EXPECT_EQ(outcome(ex::affine(ex::just(1)), env), "value(1)");
    probes::record r;
    auto op =
        ex::connect(ex::affine(ex::schedule(home.get_scheduler()) | ex::then([] { return 1; })),
                    probes::receiver(r, env));
    ex::start(op);
    home.run_one();
    EXPECT_EQ(r.said(), "value(1)");
    EXPECT_EQ(home.size(), 0u);
}

TEST(exec_affine, a_stop_does_not_end_the_transfer_back) {
    by_hand_context home;
    probes::by_hand hand;
    coppice::inplace_stop_source source;
    probes::record r;
    auto env = ex::env(ex::prop(ex::get_start_scheduler, home.get_scheduler()),
                       ex::prop(coppice::get_stop_token, source.get_token()));
    auto op = ex::connect(ex::affine(hand.get()), probes::receiver(r, env));
    ex::start(op);
    source.request_stop();
    hand.value(8);
    home.run_one();
    EXPECT_EQ(r.said(), "value(8)");
}

TEST(exec_affine, needs_an_infallible_start_scheduler) {
    using sndr = decltype(ex::affine(std::declval<probes::by_hand::sender>()));
    static_assert(!ex::sender_in<sndr, ex::env<>>);
    static_assert(!ex::sender_in<sndr, ex::prop<ex::get_start_scheduler_t, refusing_scheduler>>);
    static_assert(
        ex::sender_in<sndr, ex::prop<ex::get_start_scheduler_t, by_hand_context::scheduler>>);
}

}  // namespace
