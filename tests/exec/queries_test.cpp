// Plan: each query object of [exec.queries]: its answer, its default, and what it falls back to.
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/queries.hpp>
#include <coppice/exec/run_loop.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace {

namespace ex = coppice::execution;

TEST(exec_get_stop_token, is_never_stop_token_by_default) {
    static_assert(std::is_same_v<coppice::stop_token_of_t<ex::env<>>, coppice::never_stop_token>);
    coppice::inplace_stop_source source;
    const auto e = probes::stop_env(source);
    EXPECT_EQ(coppice::get_stop_token(e), source.get_token());
    static_assert(
        std::is_same_v<coppice::stop_token_of_t<decltype(e)>, coppice::inplace_stop_token>);
}

TEST(exec_get_allocator, is_ill_formed_where_there_is_none) {
    static_assert(!ex::internal::callable<coppice::get_allocator_t, ex::env<>>);
    const auto e = ex::prop(coppice::get_allocator, std::allocator<int>());
    static_assert(
        std::is_same_v<std::decay_t<decltype(coppice::get_allocator(e))>, std::allocator<int>>);
}

TEST(exec_get_scheduler, is_the_environments_scheduler) {
    probes::by_hand_context context;
    const auto e = ex::prop(ex::get_scheduler, context.get_scheduler());
    EXPECT_EQ(ex::get_scheduler(e), context.get_scheduler());
    static_assert(!ex::internal::callable<ex::get_scheduler_t, ex::env<>>);
}

TEST(exec_get_start_scheduler, is_the_environments_answer_as_it_is) {
    probes::by_hand_context context;
    const auto e = ex::prop(ex::get_start_scheduler, context.get_scheduler());
    EXPECT_EQ(ex::get_start_scheduler(e), context.get_scheduler());
    static_assert(!ex::internal::callable<ex::get_start_scheduler_t, ex::env<>>);
}

TEST(exec_get_delegation_scheduler, is_the_environments_answer_as_it_is) {
    probes::by_hand_context context;
    const auto e = ex::prop(ex::get_delegation_scheduler, context.get_scheduler());
    EXPECT_EQ(ex::get_delegation_scheduler(e), context.get_scheduler());
}

TEST(exec_get_fwd_progress, is_the_schedulers_promise_or_weakly_parallel) {
    ex::run_loop loop;
    EXPECT_EQ(ex::get_forward_progress_guarantee(loop.get_scheduler()),
              ex::forward_progress_guarantee::parallel);
    probes::by_hand_context context;
    EXPECT_EQ(ex::get_forward_progress_guarantee(context.get_scheduler()),
              ex::forward_progress_guarantee::weakly_parallel);
    static_assert(!ex::internal::callable<ex::get_forward_progress_guarantee_t, int>);
}

TEST(exec_get_compl_sched, comes_from_the_senders_attributes) {
    ex::run_loop loop;
    const auto sch = loop.get_scheduler();
    EXPECT_EQ(ex::get_completion_scheduler<ex::set_value_t>(ex::get_env(ex::schedule(sch))), sch);
    EXPECT_EQ(ex::get_completion_scheduler<ex::set_stopped_t>(ex::get_env(ex::schedule(sch))), sch);
    using attrs = ex::env_of_t<decltype(ex::schedule(sch))>;
    static_assert(!ex::internal::callable<ex::get_completion_scheduler_t<ex::set_error_t>, attrs>);
    static_assert(!ex::internal::callable<ex::get_completion_scheduler_t<int>, attrs>);
}

TEST(exec_get_compl_sched, of_a_scheduler_with_an_environment_is_itself) {
    probes::by_hand_context context;
    const auto sch = context.get_scheduler();
    EXPECT_EQ(ex::get_completion_scheduler<ex::set_value_t>(sch, ex::env<>()), sch);
    static_assert(
        !ex::internal::callable<ex::get_completion_scheduler_t<ex::set_value_t>, decltype(sch)>);
}

class on_another {
public:
    using scheduler_concept = ex::scheduler_tag;
    explicit on_another(probes::by_hand_context& context) noexcept : context_(&context) {}
    auto schedule() const noexcept { return context_->get_scheduler().schedule(); }
    auto query(ex::get_completion_scheduler_t<ex::set_value_t>) const noexcept {
        return context_->get_scheduler();
    }
    bool operator==(const on_another&) const = default;

private:
    probes::by_hand_context* context_;
};

TEST(exec_get_compl_sched, follows_schedulers_that_complete_on_another_until_one_names_itself) {
    probes::by_hand_context context;
    const auto e = ex::prop(ex::get_scheduler, on_another(context));
    EXPECT_EQ(ex::get_scheduler(e), context.get_scheduler());
}

TEST(exec_get_compl_sched, just_completes_where_it_starts) {
    probes::by_hand_context context;
    const auto e = ex::prop(ex::get_start_scheduler, context.get_scheduler());
    EXPECT_EQ(ex::get_completion_scheduler<ex::set_value_t>(ex::get_env(ex::just()), e),
              context.get_scheduler());
    using attrs = ex::env_of_t<decltype(ex::just())>;
    static_assert(!ex::internal::callable<ex::get_completion_scheduler_t<ex::set_error_t>, attrs,
                                          decltype(e)>);
    static_assert(!ex::internal::callable<ex::get_completion_scheduler_t<ex::set_value_t>, attrs>);
}

struct my_domain {};
struct scheduler_of_domain {
    using scheduler_concept = ex::scheduler_tag;
    auto schedule() const noexcept { return ex::schedule(ex::inline_scheduler()); }
    my_domain query(ex::get_completion_domain_t<ex::set_value_t>) const noexcept { return {}; }
    bool operator==(const scheduler_of_domain&) const = default;
};

TEST(exec_get_compl_domain, of_a_scheduler_is_its_own_or_the_default) {
    const ex::env<> none;
    static_assert(
        std::is_same_v<decltype(ex::get_completion_domain<ex::set_value_t>(scheduler_of_domain())),
                       my_domain>);
    probes::by_hand_context context;
    const auto sch = context.get_scheduler();
    static_assert(std::is_same_v<decltype(ex::get_completion_domain<ex::set_value_t>(sch, none)),
                                 ex::default_domain>);
    static_assert(
        !ex::internal::callable<ex::get_completion_domain_t<ex::set_value_t>, decltype(sch)>);
}

TEST(exec_get_compl_domain, void_asks_for_the_domain_of_the_values) {
    struct attrs {
        attrs() noexcept = default;
        my_domain query(ex::get_completion_domain_t<ex::set_value_t>) const noexcept { return {}; }
    };
    static_assert(std::is_same_v<decltype(ex::get_completion_domain<>(attrs())), my_domain>);
}

TEST(exec_get_domain, is_the_environments_or_its_schedulers_or_the_default) {
    struct knows {
        knows() noexcept = default;
        my_domain query(ex::get_domain_t) const noexcept { return {}; }
    };
    static_assert(std::is_same_v<decltype(ex::get_domain(knows())), my_domain>);
    static_assert(
        std::is_same_v<decltype(ex::get_domain(ex::prop(ex::get_scheduler, scheduler_of_domain()))),
                       my_domain>);
    static_assert(std::is_same_v<decltype(ex::get_domain(ex::env<>())), ex::default_domain>);
}

}  // namespace
