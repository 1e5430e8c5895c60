// Plan: write_env and unstoppable: which answer comes first.
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/write_env.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

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

TEST(exec_write_env, answers_before_the_receivers_environment) {
    auto sndr = ex::read_env(query()) | ex::let_value([](int i) { return ex::just(i); });
    EXPECT_EQ(outcome(ex::write_env(sndr, ex::prop(query(), 1)), ex::prop(query(), 2)), "value(1)");
    EXPECT_EQ(outcome(sndr | ex::write_env(ex::prop(other(), 1)), ex::prop(query(), 2)),
              "value(2)");
}

TEST(exec_write_env, lets_a_dependent_sender_know_its_signatures) {
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

}  // namespace
