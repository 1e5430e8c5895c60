// Plan: prop and env [exec.envs]; get_env and forwarding_query [exec.queries]; what adaptors pass
// on.
#include <coppice/exec/env.hpp>
#include <coppice/exec/internal/fwd_env.hpp>
#include <coppice/exec/queries.hpp>

#include <gtest/gtest.h>

#include <functional>

namespace {

namespace ex = coppice::execution;

struct forwarding : coppice::forwarding_query_t {
    template <class Env>
        requires ex::has_query<Env, forwarding>
    decltype(auto) operator()(const Env& env) const noexcept {
        return env.query(*this);
    }
};
struct not_forwarding {
    template <class Env>
        requires ex::has_query<Env, not_forwarding>
    decltype(auto) operator()(const Env& env) const noexcept {
        return env.query(*this);
    }
};
struct says_so {
    static constexpr bool query(coppice::forwarding_query_t) noexcept { return true; }
};

TEST(exec_fwd_env, a_query_forwards_if_it_says_so_or_is_derived) {
    static_assert(coppice::forwarding_query(forwarding()));
    static_assert(coppice::forwarding_query(says_so()));
    static_assert(!coppice::forwarding_query(not_forwarding()));
    static_assert(!coppice::forwarding_query(1));
    static_assert(coppice::forwarding_query(coppice::get_stop_token));
    static_assert(coppice::forwarding_query(coppice::get_allocator));
    static_assert(coppice::forwarding_query(ex::get_domain));
    static_assert(coppice::forwarding_query(ex::get_scheduler));
    static_assert(coppice::forwarding_query(ex::get_start_scheduler));
    static_assert(coppice::forwarding_query(ex::get_delegation_scheduler));
    static_assert(coppice::forwarding_query(ex::get_await_completion_adaptor));
    static_assert(coppice::forwarding_query(ex::get_completion_scheduler<ex::set_value_t>));
    static_assert(coppice::forwarding_query(ex::get_completion_domain<>));
}

TEST(exec_prop, answers_its_query_and_no_other) {
    constexpr auto p = ex::prop(forwarding(), 42);
    static_assert(p.query(forwarding()) == 42);
    static_assert(!ex::has_query<decltype(p), not_forwarding>);
    static_assert(std::is_same_v<decltype(p.query(forwarding())), const int&>);
    static_assert(p.query(forwarding(), 1, "ignored") == 42);
}

TEST(exec_prop, keeps_a_reference_given_as_reference_wrapper) {
    int value = 1;
    const auto p = ex::prop(forwarding(), std::reference_wrapper<int>(value));
    static_assert(std::is_same_v<decltype(p), const ex::prop<forwarding, int&>>);
    EXPECT_EQ(&p.query(forwarding()), &value);
}

TEST(exec_prop, is_not_assignable) {
    static_assert(!std::is_copy_assignable_v<ex::prop<forwarding, int>>);
    static_assert(std::is_copy_constructible_v<ex::prop<forwarding, int>>);
}

TEST(exec_env, the_first_part_that_has_the_answer_gives_it) {
    const auto e = ex::env(ex::prop(forwarding(), 1), ex::prop(not_forwarding(), 2),
                           ex::prop(forwarding(), 3));
    EXPECT_EQ(e.query(forwarding()), 1);
    EXPECT_EQ(e.query(not_forwarding()), 2);
    static_assert(!ex::has_query<decltype(e), says_so>);
    static_assert(noexcept(e.query(forwarding())));
    static_assert(!std::is_copy_assignable_v<decltype(ex::env(ex::prop(forwarding(), 1)))>);
}

TEST(exec_env, can_be_made_with_braces_as_in_the_draft) {
    auto e = ex::env{ex::prop(forwarding{}, 1), ex::prop(not_forwarding{}, 2)};
    EXPECT_EQ(e.query(not_forwarding{}), 2);
    auto single = ex::env{ex::prop(forwarding{}, 5)};
    EXPECT_EQ(single.query(forwarding{}), 5);
    auto copy = ex::env{single};
    static_assert(std::is_same_v<decltype(copy), decltype(single)>);
    static_assert(std::is_default_constructible_v<ex::env<>>);
}

TEST(exec_env, queries_with_arguments_go_to_the_part_that_accepts_them) {
    struct takes_int {
        takes_int() noexcept = default;
        int query(forwarding, int i) const noexcept { return i; }
    };
    const auto e = ex::env(takes_int(), ex::prop(not_forwarding(), 2));
    EXPECT_EQ(e.query(forwarding(), 7), 7);
    static_assert(!ex::has_query<decltype(e), forwarding>);
    static_assert(ex::has_query<decltype(e), forwarding, int>);
}

TEST(exec_get_env, returns_the_members_answer_or_an_empty_env) {
    struct has_env {
        has_env() noexcept = default;
        ex::prop<forwarding, int> get_env() const noexcept { return {forwarding(), 9}; }
    };
    EXPECT_EQ(ex::get_env(has_env()).query(forwarding()), 9);
    static_assert(std::is_same_v<ex::env_of_t<int>, ex::env<>>);
    static_assert(noexcept(ex::get_env(has_env())));
}

TEST(exec_snd_expos, an_adaptor_passes_on_the_forwarding_queries_only) {
    const auto base = ex::env(ex::prop(forwarding(), 1), ex::prop(not_forwarding(), 2));
    const auto passed = ex::internal::forward_env(base);
    EXPECT_EQ(passed.query(forwarding()), 1);
    static_assert(!ex::has_query<decltype(passed), not_forwarding>);
    // Forwarding twice has the same type as forwarding once, which saves compile time.
    static_assert(std::is_same_v<std::remove_cvref_t<ex::internal::fwd_env_t<decltype(passed)>>,
                                 std::remove_cvref_t<decltype(passed)>>);
}

}  // namespace
