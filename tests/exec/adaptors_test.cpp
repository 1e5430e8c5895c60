// Plan: the smaller adaptors: write_env, unstoppable, stop_when, stopped_as_optional,
// stopped_as_error, bulk and its two forms.
#include <coppice/exec/bulk.hpp>
#include <coppice/exec/execution_policy.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/stop_when.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/write_env.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace {

namespace ex = coppice::execution;
using probes::outcome;

struct query : coppice::forwarding_query_t {
    template <class Env>
        requires ex::has_query<Env, query>
    int operator()(const Env& env) const noexcept {
        return env.query(*this);
    }
};
struct other : coppice::forwarding_query_t {
    template <class Env>
        requires ex::has_query<Env, other>
    int operator()(const Env& env) const noexcept {
        return env.query(*this);
    }
};

TEST(exec_write_env, its_answers_come_before_the_receivers) {
    auto sndr = ex::read_env(query()) |
                ex::let_value([](int i) { return ex::just(i); });
    EXPECT_EQ(outcome(ex::write_env(sndr, ex::prop(query(), 1)), ex::prop(query(), 2)), "value(1)");
    EXPECT_EQ(outcome(sndr | ex::write_env(ex::prop(other(), 1)), ex::prop(query(), 2)), "value(2)");
}

TEST(exec_write_env, makes_a_dependent_sender_complete) {
    auto sndr = ex::read_env(query()) | ex::write_env(ex::prop(query(), 5));
    static_assert(ex::sender_in<decltype(sndr), ex::env<>>);
    EXPECT_EQ(outcome(std::move(sndr)), "value(5)");
}

TEST(exec_unstoppable, hides_the_stop_token) {
    coppice::inplace_stop_source source;
    source.request_stop();
    auto sndr = ex::read_env(coppice::get_stop_token) |
                ex::then([](auto token) { return token.stop_requested(); });
    EXPECT_EQ(outcome(sndr, probes::stop_env(source)), "value(true)");
    EXPECT_EQ(outcome(ex::unstoppable(sndr), probes::stop_env(source)), "value(false)");
    EXPECT_EQ(outcome(sndr | ex::unstoppable(), probes::stop_env(source)), "value(false)");
}

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
    using token = ex::fused_stop_token<coppice::inplace_stop_token, coppice::inplace_stop_token>;
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

TEST(exec_stopped_opt, a_stop_is_an_empty_optional) {
    const auto has = [](auto o) { return o.has_value(); };
    EXPECT_EQ(outcome(ex::just(1) | ex::stopped_as_optional() | ex::then(has)), "value(true)");
    auto stops = ex::just(1) | ex::let_value([](int) { return ex::just_stopped(); });
    probes::by_hand hand;
    probes::record r;
    auto op = ex::connect(ex::stopped_as_optional(hand.get()) | ex::then(has), probes::receiver<>(r));
    ex::start(op);
    hand.stopped();
    EXPECT_EQ(r.said(), "value(false)");
    EXPECT_EQ(outcome(ex::just_error(2) | ex::let_error([](int e) { return ex::just_error(e); }) |
                      ex::let_error([](auto&&) { return ex::just(1); }) | ex::stopped_as_optional() |
                      ex::then(has)),
              "value(true)");
    static_cast<void>(stops);
}

TEST(exec_stopped_opt, several_values_are_an_optional_tuple_and_none_is_ill_formed) {
    using two = decltype(ex::stopped_as_optional(ex::just(1, 'c')));
    static_assert(
        std::is_same_v<ex::completion_signatures_of_t<two, ex::env<>>,
                       ex::completion_signatures<ex::set_value_t(
                           std::optional<std::tuple<int, char>>)>>);
    static_assert(!ex::sender_in<ex::stopped_as_optional_sender<decltype(ex::just())>, ex::env<>>);
}

TEST(exec_stopped_err, a_stop_is_the_given_error) {
    EXPECT_EQ(outcome(ex::just_stopped() | ex::stopped_as_error(7)), "error(7)");
    EXPECT_EQ(outcome(ex::just(1) | ex::stopped_as_error(7)), "value(1)");
    using sndr = decltype(ex::stopped_as_error(ex::just_stopped(), 7));
    static_assert(std::is_same_v<ex::completion_signatures_of_t<sndr, ex::env<>>,
                                 ex::completion_signatures<ex::set_error_t(int)>>);
}

TEST(exec_bulk, calls_the_function_for_every_index_with_lvalues_and_passes_the_values_on) {
    std::vector<int> seen;
    EXPECT_EQ(outcome(ex::just(10) | ex::bulk(ex::par, 4, [&](int i, int& v) {
                          seen.push_back(i);
                          v += i;
                      })),
              "value(16)");
    EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 3}));
}

TEST(exec_bulk, chunked_gets_ranges_and_unchunked_single_indices) {
    int total = 0;
    EXPECT_EQ(outcome(ex::just() | ex::bulk_chunked(ex::seq, 10u, [&](unsigned b, unsigned e) {
                          total += static_cast<int>(e - b);
                      })),
              "value()");
    EXPECT_EQ(total, 10);
    EXPECT_EQ(outcome(ex::just() | ex::bulk_unchunked(ex::unseq, 3, [&](int i) noexcept { total += i; })),
              "value()");
    EXPECT_EQ(total, 13);
}

TEST(exec_bulk, of_nothing_calls_nothing) {
    EXPECT_EQ(outcome(ex::just() | ex::bulk_chunked(ex::seq, 0, [](int, int) { FAIL(); })), "value()");
    EXPECT_EQ(outcome(ex::just() | ex::bulk(ex::seq, -1, [](int) { FAIL(); })), "value()");
}

TEST(exec_bulk, an_exception_ends_the_rest) {
    int calls = 0;
    EXPECT_EQ(outcome(ex::just() | ex::bulk(ex::par_unseq, 5, [&](int i) {
                          ++calls;
                          if (i == 2) throw 3;
                      })),
              "error(exception 3)");
    EXPECT_EQ(calls, 3);
    EXPECT_EQ(outcome(ex::just_stopped() | ex::bulk(ex::seq, 5, [](int) {})), "stopped");
}

template <class Policy>
concept can_bulk = requires(Policy p) { ex::just() | ex::bulk(p, 1, [](int) {}); };

TEST(exec_bulk, wants_a_policy_an_integer_and_a_copyable_function) {
    static_assert(can_bulk<ex::parallel_policy>);
    static_assert(!can_bulk<int>);
    static_assert(coppice::is_execution_policy_v<ex::sequenced_policy>);
    static_assert(!coppice::is_execution_policy_v<int>);
    auto move_only = [p = std::make_unique<int>(1)](int) {};
    static_assert(!ex::callable<ex::bulk_t, ex::parallel_policy, int, decltype(std::move(move_only))>);
    static_assert(!ex::callable<ex::bulk_t, ex::parallel_policy, double, void (*)(int)>);
}

}  // namespace
