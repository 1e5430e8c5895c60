// Plan: when_all [exec.when.all] for each outcome; stops in both directions; finite tokens
// (P3409R1); a completion that destroys the operation.
#include <coppice/exec/connect.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/when_all.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

namespace {

namespace ex = coppice::execution;
using probes::outcome;
using probes::two_values;

TEST(exec_when_all, sends_all_values_in_the_childrens_order) {
    EXPECT_EQ(outcome(ex::when_all(ex::just(1), ex::just(), ex::just(2, std::string("three")))),
              "value(1, 2, three)");
    EXPECT_EQ(outcome(ex::when_all(ex::just(7))), "value(7)");
}

template <class... Sndrs>
concept can_when_all = requires(Sndrs... sndrs) { ex::when_all(sndrs...); };

TEST(exec_when_all, is_ill_formed_without_senders_or_with_arguments_that_are_not_senders) {
    static_assert(!can_when_all<>);
    static_assert(!can_when_all<int>);
    static_assert(can_when_all<decltype(ex::just())>);
    static_assert(!ex::internal::callable<ex::when_all_with_variant_t>);
}

TEST(exec_when_all, waits_for_all_before_it_sends) {
    probes::by_hand a;
    probes::by_hand b;
    probes::record r;
    auto op = ex::connect(ex::when_all(a.get(), b.get()), probes::receiver<>(r));
    ex::start(op);
    b.value(2);
    EXPECT_EQ(r.said(), "");
    a.value(1);
    EXPECT_EQ(r.said(), "value(1, 2)");
}

TEST(exec_when_all, the_first_error_stops_the_others_and_is_sent_when_all_have_ended) {
    probes::by_hand a;
    probes::by_hand b;
    probes::by_hand c;
    probes::record r;
    auto op = ex::connect(ex::when_all(a.get(), b.get(), c.get()), probes::receiver<>(r));
    ex::start(op);
    EXPECT_FALSE(a.stop_requested());
    b.error(5);
    EXPECT_TRUE(a.stop_requested());
    EXPECT_TRUE(c.stop_requested());
    c.error(6);
    EXPECT_EQ(r.said(), "");
    a.value(1);
    EXPECT_EQ(r.said(), "error(5)");
}

TEST(exec_when_all, a_stopped_child_stops_the_others_and_an_error_wins_over_it) {
    probes::by_hand a;
    probes::by_hand b;
    probes::by_hand c;
    probes::record r;
    auto op = ex::connect(ex::when_all(a.get(), b.get(), c.get()), probes::receiver<>(r));
    ex::start(op);
    a.stopped();
    EXPECT_TRUE(b.stop_requested());
    b.error(7);
    c.value(1);
    EXPECT_EQ(r.said(), "error(7)");
}

TEST(exec_when_all, completes_with_stopped_if_a_child_is_stopped_and_none_fails) {
    EXPECT_EQ(outcome(ex::when_all(ex::just(1), ex::just_stopped(), ex::just(2))), "stopped");
}

TEST(exec_when_all, a_stop_request_from_outside_reaches_every_child) {
    coppice::inplace_stop_source source;
    probes::by_hand a;
    probes::by_hand b;
    probes::record r;
    auto op =
        ex::connect(ex::when_all(a.get(), b.get()), probes::receiver(r, probes::stop_env(source)));
    ex::start(op);
    source.request_stop();
    EXPECT_TRUE(a.stop_requested());
    EXPECT_TRUE(b.stop_requested());
    a.stopped();
    b.value(1);
    EXPECT_EQ(r.said(), "stopped");
}

TEST(exec_when_all, children_are_started_even_after_a_stop_request) {
    coppice::inplace_stop_source source;
    source.request_stop();
    EXPECT_EQ(outcome(ex::when_all(ex::just(1), ex::just(2)), probes::stop_env(source)),
              "value(1, 2)");
    EXPECT_EQ(outcome(ex::when_all(probes::until_stopped(), ex::just(2)), probes::stop_env(source)),
              "stopped");
}

TEST(p3409_when_all, child_i_has_token_i_of_a_finite_source) {
    const auto check = [](auto... tokens) {
        static_assert(
            std::is_same_v<ex::internal::type_list<decltype(tokens)...>,
                           ex::internal::type_list<coppice::finite_inplace_stop_token<3, 0>,
                                                   coppice::finite_inplace_stop_token<3, 1>,
                                                   coppice::finite_inplace_stop_token<3, 2>>>);
        return true;
    };
    const auto token = ex::read_env(coppice::get_stop_token);
    EXPECT_EQ(outcome(ex::when_all(token, token, token) | ex::then(check)), "value(true)");
}

// Destroys the operation that completes it.
template <class Op>
class destroying_receiver {
public:
    using receiver_concept = ex::receiver_tag;
    destroying_receiver(std::optional<Op>& op, coppice::inplace_stop_source& source) noexcept
        : op_(&op), source_(&source) {}
    template <class... Args>
    void set_value(Args&&...) && noexcept {
        op_->reset();
    }
    void set_stopped() && noexcept { op_->reset(); }
    auto get_env() const noexcept { return probes::stop_env(*source_); }

private:
    std::optional<Op>* op_;
    coppice::inplace_stop_source* source_;
};
// An operation that can be constructed in an optional, and names its own receiver.
class self_destroying {
public:
    using sender = decltype(ex::when_all(probes::until_stopped(), probes::until_stopped(),
                                         probes::until_stopped()));
    using receiver = destroying_receiver<self_destroying>;
    self_destroying(std::optional<self_destroying>& self, coppice::inplace_stop_source& source)
        : op_(ex::connect(ex::when_all(probes::until_stopped(), probes::until_stopped(),
                                       probes::until_stopped()),
                          receiver(self, source))) {}
    void start() noexcept { ex::start(op_); }

private:
    ex::connect_result_t<sender, receiver> op_;
};

TEST(p3409_when_all, completing_all_children_inside_the_stop_request_may_destroy_the_operation) {
    coppice::inplace_stop_source source;
    std::optional<self_destroying> op;
    op.emplace(op, source);
    op->start();
    EXPECT_TRUE(op.has_value());
    source.request_stop();
    EXPECT_FALSE(op.has_value());
}

TEST(exec_when_all, an_exception_while_a_value_is_stored_is_an_error) {
    static probes::throwing_copy negative(1);
    negative.value = -1;
    auto sndr =
        ex::just() | ex::then([]() noexcept -> const probes::throwing_copy& { return negative; });
    EXPECT_EQ(outcome(ex::when_all(sndr, ex::just(1))), "error(exception copy)");
}

TEST(exec_when_all, the_signatures_are_the_joined_values_and_all_childrens_failures) {
    using sndr = decltype(ex::when_all(ex::just(1), std::declval<probes::by_hand::sender>()));
    static_assert(
        std::is_same_v<ex::completion_signatures_of_t<sndr, ex::env<>>,
                       ex::completion_signatures<ex::set_value_t(int, int), ex::set_error_t(int),
                                                 ex::set_stopped_t()>>);
    using never_a_value = decltype(ex::when_all(ex::just(1), ex::just_stopped()));
    static_assert(std::is_same_v<ex::completion_signatures_of_t<never_a_value, ex::env<>>,
                                 ex::completion_signatures<ex::set_stopped_t()>>);
    using silent = decltype(ex::when_all(ex::just(1), ex::just(2)));
    static_assert(std::is_same_v<ex::completion_signatures_of_t<silent, ex::env<>>,
                                 ex::completion_signatures<ex::set_value_t(int, int)>>);
}

TEST(exec_when_all, rejects_a_child_with_two_value_completions) {
    using sndr = ex::internal::when_all_sender<two_values>;
    static_assert(!ex::sender_in<sndr, ex::env<>>);
    static_assert(ex::internal::is_pipeline_error<ex::signatures_of<sndr, ex::env<>>>);
}

TEST(exec_when_all, with_variant_takes_children_with_several_value_completions) {
    auto sndr =
        ex::when_all_with_variant(two_values(false), ex::just(1)) | ex::then([](auto a, auto b) {
            return std::get<0>(std::get<1>(a)) + std::to_string(std::get<0>(std::get<0>(b)));
        });
    EXPECT_EQ(outcome(std::move(sndr)), "value(two1)");
}

TEST(exec_when_all, decomposes_into_tag_data_and_children) {
    auto sndr = ex::when_all(ex::just(1), ex::just('c'));
    auto& [tag, data, first, second] = sndr;
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(tag)>, ex::when_all_t>);
    static_assert(std::is_empty_v<std::remove_cvref_t<decltype(data)>>);
    EXPECT_EQ(outcome(first), "value(1)");
    EXPECT_EQ(outcome(sndr), "value(1, 99)");
    static_cast<void>(second);
}

TEST(exec_when_all, nests_in_itself) {
    auto inner = ex::when_all(ex::just(1), probes::until_stopped());
    coppice::inplace_stop_source source;
    probes::record r;
    auto op = ex::connect(ex::when_all(std::move(inner), probes::until_stopped()),
                          probes::receiver(r, probes::stop_env(source)));
    ex::start(op);
    source.request_stop();
    EXPECT_EQ(r.said(), "stopped");
}

TEST(exec_when_all, completes_once_under_concurrent_arrivals_and_a_stop) {
    for (int round = 0; round != 200; ++round) {
        coppice::inplace_stop_source source;
        probes::by_hand a;
        probes::by_hand b;
        probes::record r;
        auto op = ex::connect(ex::when_all(a.get(), b.get()),
                              probes::receiver(r, probes::stop_env(source)));
        ex::start(op);
        std::thread ta([&] { a.value(1); });
        std::thread tb([&] { b.error(2); });
        std::thread ts([&] { source.request_stop(); });
        ta.join();
        tb.join();
        ts.join();
        EXPECT_EQ(r.said(), "error(2)");
    }
}

TEST(exec_when_all_death, a_second_start_ends_the_process) {
    EXPECT_DEATH(
        {
            probes::record r;
            auto op = ex::connect(ex::when_all(ex::just()), probes::receiver<>(r));
            ex::start(op);
            ex::start(op);
        },
        "when_all was started twice");
}

}  // namespace
