// Plan: the three factories [exec.just]: what they send, to which receivers, and that they send
// once.
#include <coppice/exec/connect.hpp>
#include <coppice/exec/just.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace {

namespace ex = coppice::execution;
using probes::outcome;

TEST(exec_just, sends_exactly_its_values) {
    EXPECT_EQ(outcome(ex::just()), "value()");
    EXPECT_EQ(outcome(ex::just(1, std::string("two"))), "value(1, two)");
    using sigs = ex::completion_signatures_of_t<decltype(ex::just(1, 2.0)), ex::env<>>;
    static_assert(std::is_same_v<sigs, ex::completion_signatures<ex::set_value_t(int, double)>>);
}

TEST(exec_just, error_sends_an_error_and_stopped_sends_a_stop) {
    EXPECT_EQ(outcome(ex::just_error(7)), "error(7)");
    EXPECT_EQ(outcome(ex::just_stopped()), "stopped");
    static_assert(std::is_same_v<ex::completion_signatures_of_t<decltype(ex::just_error(1))>,
                                 ex::completion_signatures<ex::set_error_t(int)>>);
    static_assert(std::is_same_v<ex::completion_signatures_of_t<decltype(ex::just_stopped())>,
                                 ex::completion_signatures<ex::set_stopped_t()>>);
}

template <class Cpo, class... Args>
concept makes = requires(Cpo cpo, Args&&... args) { cpo(std::forward<Args>(args)...); };

TEST(exec_just, is_ill_formed_for_arguments_the_draft_forbids) {
    struct immovable {
        immovable(immovable&&) = delete;
    };
    static_assert(!makes<ex::just_t, immovable>);
    static_assert(!makes<ex::just_error_t>);
    static_assert(!makes<ex::just_error_t, int, int>);
    static_assert(!makes<ex::just_stopped_t, int>);
    static_assert(makes<ex::just_t, std::unique_ptr<int>>);
}

TEST(exec_just, a_sender_of_move_only_values_connects_as_rvalue_only) {
    auto sndr = ex::just(std::make_unique<int>(5));
    using sender = decltype(sndr);
    static_assert(ex::sender_to<sender, probes::receiver<>>);
    static_assert(!ex::sender_to<sender&, probes::receiver<>>);
    EXPECT_EQ(outcome(std::move(sndr)), "value(?)");
}

TEST(exec_just, an_lvalue_sender_keeps_its_values) {
    auto sndr = ex::just(std::string("kept"));
    EXPECT_EQ(outcome(sndr), "value(kept)");
    EXPECT_EQ(outcome(sndr), "value(kept)");
    EXPECT_EQ(outcome(std::move(sndr)), "value(kept)");
}

TEST(exec_just, decomposes_into_tag_and_values) {
    auto sndr = ex::just(1, 'c');
    auto& [tag, values] = sndr;
    auto& [one, letter] = values;
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(tag)>, ex::just_t>);
    EXPECT_EQ(one, 1);
    EXPECT_EQ(letter, 'c');
    static_assert(std::is_same_v<ex::tag_of_t<decltype(sndr)>, ex::just_t>);
}

TEST(exec_just, connecting_throws_only_what_moving_the_values_throws) {
    static_assert(noexcept(ex::connect(ex::just(1), std::declval<probes::receiver<>>())));
    using throwing = decltype(ex::just(probes::throwing_copy(1)));
    static_assert(
        !noexcept(ex::connect(std::declval<throwing>(), std::declval<probes::receiver<>>())));
    auto sndr = ex::just(probes::throwing_copy(1));
    sndr.data.get<0>().value = -1;
    probes::record r;
    EXPECT_THROW(static_cast<void>(ex::connect(std::move(sndr), probes::receiver<>(r))),
                 std::runtime_error);
    EXPECT_EQ(r.said(), "");
}

TEST(exec_just_death, a_second_start_ends_the_process) {
    EXPECT_DEATH(
        {
            probes::record r;
            auto op = ex::connect(ex::just(), probes::receiver<>(r));
            ex::start(op);
            ex::start(op);
        },
        "started twice");
}

TEST(exec_opstate_start, is_ill_formed_for_rvalues) {
    using op = ex::connect_result_t<decltype(ex::just()), probes::receiver<>>;
    static_assert(ex::operation_state<op>);
    static_assert(!ex::internal::callable<ex::start_t, op>);
    static_assert(!std::is_move_constructible_v<op>);
}

struct query {
    template <class Env>
        requires ex::has_query<Env, query>
    decltype(auto) operator()(const Env& env) const noexcept(noexcept(env.query(*this))) {
        return env.query(*this);
    }
};

struct throwing_query {
    template <class Env>
    int operator()(const Env&) const {
        throw std::runtime_error("asked");
    }
};

}  // namespace
