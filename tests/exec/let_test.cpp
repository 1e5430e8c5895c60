// Plan: let_value, let_error, let_stopped [exec.let]: what is called, how long the arguments live,
// every way to fail, where the second sender starts.
#include <coppice/exec/continues_on.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/then.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace {

namespace ex = coppice::execution;
using probes::outcome;

TEST(exec_let, value_runs_the_sender_that_the_function_returns) {
    EXPECT_EQ(
        outcome(ex::just(1, 2) | ex::let_value([](int a, int b) { return ex::just(a, b, a + b); })),
        "value(1, 2, 3)");
    EXPECT_EQ(outcome(ex::just_error(4) | ex::let_value([] { return ex::just(); })), "error(4)");
    EXPECT_EQ(outcome(ex::just_stopped() | ex::let_value([] { return ex::just(); })), "stopped");
}

TEST(exec_let, error_and_stopped_handle_only_their_own_completion) {
    EXPECT_EQ(outcome(ex::just_error(4) | ex::let_error([](int e) { return ex::just(e); })),
              "value(4)");
    EXPECT_EQ(outcome(ex::just_stopped() | ex::let_stopped([] { return ex::just_error(9); })),
              "error(9)");
    EXPECT_EQ(outcome(ex::just(1) | ex::let_error([](auto&) { return ex::just(2); })), "value(1)");
}

TEST(exec_let, the_arguments_are_lvalues_that_live_until_the_second_operation_has_ended) {
    probes::by_hand hand;
    std::weak_ptr<int> watched;
    probes::record r;
    {
        auto op = ex::connect(
            ex::just(std::make_shared<int>(1)) | ex::let_value([&](std::shared_ptr<int>& p) {
                watched = p;
                return hand.get();
            }),
            probes::receiver<>(r));
        ex::start(op);
        EXPECT_FALSE(watched.expired());
        hand.value(5);
        EXPECT_EQ(r.said(), "value(5)");
    }
    EXPECT_TRUE(watched.expired());
}

TEST(exec_let, the_first_operation_is_destroyed_before_the_second_starts) {
    probes::by_hand first;
    probes::by_hand second;
    probes::record r;
    auto op = ex::connect(first.get() | ex::let_value([&](int&) {
                              EXPECT_EQ(first.destroyed, 1);
                              return second.get();
                          }),
                          probes::receiver<>(r));
    ex::start(op);
    first.value(1);
    EXPECT_EQ(second.started, 1);
    second.stopped();
    EXPECT_EQ(r.said(), "stopped");
}

TEST(exec_let, an_exception_of_the_function_is_the_error) {
    EXPECT_EQ(outcome(ex::just() | ex::let_value([]() -> decltype(ex::just()) {
                          throw std::runtime_error("thrown");
                      })),
              "error(exception thrown)");
}

TEST(exec_let, an_exception_while_the_arguments_are_stored_is_the_error) {
    auto sndr = ex::just(1) | ex::then([](int) noexcept -> const probes::throwing_copy& {
                    static const probes::throwing_copy negative = [] {
                        probes::throwing_copy t(1);
                        return t;
                    }();
                    const_cast<int&>(negative.value) = -1;
                    return negative;
                });
    EXPECT_EQ(outcome(std::move(sndr) |
                      ex::let_value([](probes::throwing_copy&) noexcept { return ex::just(); })),
              "error(exception copy)");
}

TEST(exec_let, an_exception_while_the_second_is_connected_is_the_error) {
    EXPECT_EQ(outcome(ex::just() | ex::let_value([]() {
                          auto sndr = ex::just(probes::throwing_copy(1));
                          sndr.data.get<0>().value = 1;
                          return sndr;
                      })),
              "value(1)");
    auto holds = std::make_shared<decltype(ex::just(probes::throwing_copy(1)))>(
        ex::just(probes::throwing_copy(1)));
    holds->data.get<0>().value = -1;
    EXPECT_EQ(outcome(ex::just() | ex::let_value([holds]() noexcept -> auto& { return *holds; })),
              "error(exception copy)");
}

TEST(exec_let, the_exception_signature_is_there_only_if_something_can_throw) {
    auto silent = ex::just(1) | ex::let_value([](int& i) noexcept { return ex::just(i); });
    static_assert(std::is_same_v<ex::completion_signatures_of_t<decltype(silent), ex::env<>>,
                                 ex::completion_signatures<ex::set_value_t(int)>>);
    auto throwing = ex::just(1) | ex::let_value([](int& i) { return ex::just(i); });
    using sigs = ex::completion_signatures_of_t<decltype(throwing), ex::env<>>;
    static_assert(sigs::count_of(ex::set_error) == 1);
}

TEST(exec_let, the_second_sender_starts_where_the_first_completed) {
    probes::by_hand_context context;
    probes::record r;
    auto op = ex::connect(ex::just() | ex::continues_on(context.get_scheduler()) |
                              ex::let_value([] { return ex::read_env(ex::get_start_scheduler); }) |
                              ex::then([&](auto sch) { return sch == context.get_scheduler(); }),
                          probes::receiver<>(r));
    ex::start(op);
    context.run_all();
    EXPECT_EQ(r.said(), "value(true)");
}

TEST(exec_let, the_second_sender_sees_the_receivers_environment_behind_it) {
    coppice::inplace_stop_source source;
    auto sndr = ex::just() | ex::let_value([] { return ex::read_env(coppice::get_stop_token); }) |
                ex::then([&](auto token) { return token == source.get_token(); });
    EXPECT_EQ(outcome(std::move(sndr), probes::stop_env(source)), "value(true)");
}

TEST(exec_let, several_completions_may_lead_to_several_senders) {
    auto sndr =
        ex::just(1) |
        ex::let_value([](int i) { return ex::just(i) | ex::then([](int j) -> int { throw j; }); }) |
        ex::let_error(
            [](auto& error) { return ex::just(std::string("caught ") + probes::text(error)); });
    EXPECT_EQ(outcome(std::move(sndr)), "value(caught exception 1)");
}

TEST(exec_let, is_not_a_sender_if_the_function_does_not_return_one) {
    auto f = [](int&) { return 1; };
    using sndr = ex::internal::let_sender<ex::let_value_t, ex::set_value_t, decltype(f),
                                          decltype(ex::just(1))>;
    static_assert(!ex::sender_in<sndr, ex::env<>>);
    static_assert(ex::internal::is_pipeline_error<ex::signatures_of<sndr, ex::env<>>>);
}

TEST(exec_let, a_pipeline_of_lvalue_copies_can_run_twice) {
    const auto sndr = ex::just(2) | ex::let_value([](int i) { return ex::just(i + 1); });
    EXPECT_EQ(outcome(sndr), "value(3)");
    EXPECT_EQ(outcome(sndr), "value(3)");
}

}  // namespace
