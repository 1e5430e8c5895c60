// Plan: stopped_as_optional and stopped_as_error for each kind of completion.
#include <coppice/exec/connect.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/then.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

namespace {

namespace ex = coppice::execution;
using probes::outcome;

TEST(exec_stopped_opt, a_stop_becomes_an_empty_optional) {
    const auto has = [](auto o) { return o.has_value(); };
    EXPECT_EQ(outcome(ex::just(1) | ex::stopped_as_optional() | ex::then(has)), "value(true)");
    auto stops = ex::just(1) | ex::let_value([](int) { return ex::just_stopped(); });
    probes::by_hand hand;
    probes::record r;
    auto op =
        ex::connect(ex::stopped_as_optional(hand.get()) | ex::then(has), probes::receiver<>(r));
    ex::start(op);
    hand.stopped();
    EXPECT_EQ(r.said(), "value(false)");
    EXPECT_EQ(outcome(ex::just_error(2) | ex::let_error([](int e) { return ex::just_error(e); }) |
                      ex::let_error([](auto&&) { return ex::just(1); }) |
                      ex::stopped_as_optional() | ex::then(has)),
              "value(true)");
    static_cast<void>(stops);
}

TEST(exec_stopped_opt, several_values_become_an_optional_tuple_and_no_value_is_ill_formed) {
    using two = decltype(ex::stopped_as_optional(ex::just(1, 'c')));
    static_assert(
        std::is_same_v<
            ex::completion_signatures_of_t<two, ex::env<>>,
            ex::completion_signatures<ex::set_value_t(std::optional<std::tuple<int, char>>)>>);
    static_assert(
        !ex::sender_in<ex::internal::stopped_as_optional_sender<decltype(ex::just())>, ex::env<>>);
}

TEST(exec_stopped_err, a_stop_becomes_the_given_error) {
    EXPECT_EQ(outcome(ex::just_stopped() | ex::stopped_as_error(7)), "error(7)");
    EXPECT_EQ(outcome(ex::just(1) | ex::stopped_as_error(7)), "value(1)");
    using sndr = decltype(ex::stopped_as_error(ex::just_stopped(), 7));
    static_assert(std::is_same_v<ex::completion_signatures_of_t<sndr, ex::env<>>,
                                 ex::completion_signatures<ex::set_error_t(int)>>);
}

}  // namespace
