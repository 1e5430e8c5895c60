// Plan: read_env [exec.read.env] sends what the environment answers.
#include <coppice/exec/read_env.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

namespace {

namespace ex = coppice::execution;
using probes::outcome;

struct query {
    template <class Env>
        requires ex::has_query<Env, query>
    decltype(auto) operator()(const Env& env) const noexcept(noexcept(env.query(*this))) {
        return env.query(*this);
    }
};

TEST(exec_read_env, sends_the_receivers_answer) {
    EXPECT_EQ(outcome(ex::read_env(query()), ex::prop(query(), 42)), "value(42)");
    using sndr = decltype(ex::read_env(query()));
    static_assert(ex::dependent_sender<sndr>);
    static_assert(std::is_same_v<ex::completion_signatures_of_t<sndr, ex::prop<query, int>>,
                                 ex::completion_signatures<ex::set_value_t(const int&)>>);
}

TEST(exec_read_env, is_not_a_sender_in_an_environment_without_the_answer) {
    static_assert(!ex::sender_in<decltype(ex::read_env(query())), ex::env<>>);
}

struct throwing_query {
    template <class Env>
    int operator()(const Env&) const {
        throw std::runtime_error("asked");
    }
};

TEST(exec_read_env, a_query_that_throws_becomes_an_error) {
    EXPECT_EQ(outcome(ex::read_env(throwing_query())), "error(exception asked)");
}

}  // namespace
