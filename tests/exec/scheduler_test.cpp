// Plan: the scheduler concepts [exec.sched]; inline_scheduler; continues_on, starts_on, on, affine:
// where each part runs, in which environment, and how failing to schedule completes.
#include <coppice/exec/affine.hpp>
#include <coppice/exec/continues_on.hpp>
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/on.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/scheduled_sender.hpp>
#include <coppice/exec/scheduler.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/then.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

namespace {

namespace ex = coppice::execution;
using probes::by_hand_context;
using probes::outcome;

TEST(exec_sched, the_concept_wants_a_tag_a_sender_equality_and_copies) {
    static_assert(ex::scheduler<ex::inline_scheduler>);
    static_assert(ex::scheduler<by_hand_context::scheduler>);
    struct untagged {
        auto schedule() const { return ex::just(); }
        bool operator==(const untagged&) const = default;
    };
    struct no_equality {
        using scheduler_concept = ex::scheduler_tag;
        auto schedule() const { return ex::just(); }
    };
    static_assert(!ex::scheduler<untagged>);
    static_assert(!ex::scheduler<no_equality>);
    static_assert(!ex::scheduler<int>);
    static_assert(std::is_same_v<ex::schedule_result_t<by_hand_context::scheduler>,
                                 by_hand_context::sender>);
}

TEST(exec_sched, infallible_means_values_only_unless_it_can_be_stopped) {
    static_assert(ex::infallible_scheduler<by_hand_context::scheduler, ex::env<>>);
    struct fails {
        using scheduler_concept = ex::scheduler_tag;
        auto schedule() const { return ex::just_error(1); }
        bool operator==(const fails&) const = default;
    };
    static_assert(!ex::infallible_scheduler<fails, ex::env<>>);
}

TEST(exec_inline_scheduler, completes_in_start_and_all_are_equal) {
    EXPECT_EQ(outcome(ex::schedule(ex::inline_scheduler())), "value()");
    EXPECT_TRUE(ex::inline_scheduler() == ex::inline_scheduler());
    static_assert(std::is_same_v<
                  ex::completion_signatures_of_t<ex::schedule_result_t<ex::inline_scheduler>>,
                  ex::completion_signatures<ex::set_value_t()>>);
    by_hand_context context;
    const auto e = ex::prop(ex::get_scheduler, context.get_scheduler());
    EXPECT_EQ(ex::get_completion_scheduler<ex::set_value_t>(ex::inline_scheduler(), e),
              context.get_scheduler());
}

TEST(exec_continues_on, completes_on_the_scheduler_with_the_childs_results) {
    by_hand_context context;
    probes::record r;
    auto op = ex::connect(ex::just(1, std::string("two")) | ex::continues_on(context.get_scheduler()),
                          probes::receiver<>(r));
    ex::start(op);
    EXPECT_EQ(r.said(), "");
    context.run_one();
    EXPECT_EQ(r.said(), "value(1, two)");
}

TEST(exec_continues_on, errors_and_stops_move_over_too) {
    by_hand_context context;
    probes::record r;
    auto op = ex::connect(ex::just_error(3) | ex::continues_on(context.get_scheduler()),
                          probes::receiver<>(r));
    auto op2 = ex::connect(ex::just_stopped() | ex::continues_on(context.get_scheduler()),
                           probes::receiver<>(r));
    ex::start(op);
    ex::start(op2);
    EXPECT_EQ(r.said(), "");
    context.run_all();
    EXPECT_EQ(r.said(), "error(3) and stopped");
}

TEST(exec_continues_on, results_that_throw_when_kept_become_an_error_on_the_scheduler) {
    by_hand_context context;
    probes::record r;
    auto sndr = ex::just() | ex::then([&]() noexcept -> const probes::throwing_copy& {
                    static probes::throwing_copy negative(1);
                    negative.value = -1;
                    return negative;
                });
    auto op = ex::connect(std::move(sndr) | ex::continues_on(context.get_scheduler()),
                          probes::receiver<>(r));
    ex::start(op);
    EXPECT_EQ(r.said(), "");
    context.run_all();
    EXPECT_EQ(r.said(), "error(exception copy)");
}

struct refuses {
    using sender_concept = ex::sender_tag;
    using completion_signatures =
        ex::completion_signatures<ex::set_value_t(), ex::set_error_t(std::string)>;
    refuses() noexcept = default;
    template <class Rcvr>
    struct operation {
        using operation_state_concept = ex::operation_state_tag;
        explicit operation(Rcvr r) noexcept : rcvr(std::move(r)) {}
        void start() & noexcept { ex::set_error(std::move(rcvr), std::string("full")); }
        Rcvr rcvr;
    };
    template <class Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>(std::move(rcvr));
    }
};
class refusing_scheduler {
public:
    using scheduler_concept = ex::scheduler_tag;
    refusing_scheduler() noexcept = default;
    refuses schedule() const noexcept { return {}; }
    bool operator==(const refusing_scheduler&) const noexcept { return true; }
};

TEST(exec_continues_on, a_scheduler_that_fails_completes_with_its_error) {
    EXPECT_EQ(outcome(ex::just(1) | ex::continues_on(refusing_scheduler())), "error(full)");
    EXPECT_EQ(outcome(ex::starts_on(refusing_scheduler(), ex::just(1))), "error(full)");
    using sndr = decltype(ex::just(1) | ex::continues_on(refusing_scheduler()));
    static_assert(std::is_same_v<
                  ex::completion_signatures_of_t<sndr, ex::env<>>,
                  ex::completion_signatures<ex::set_value_t(int), ex::set_error_t(std::string)>>);
}

TEST(exec_continues_on, its_attributes_name_the_scheduler) {
    by_hand_context context;
    const auto sndr = ex::just() | ex::continues_on(context.get_scheduler());
    EXPECT_EQ(ex::get_completion_scheduler<ex::set_value_t>(ex::get_env(sndr)),
              context.get_scheduler());
    EXPECT_EQ(ex::get_completion_scheduler<ex::set_value_t>(ex::get_env(sndr), ex::env<>()),
              context.get_scheduler());
    auto& [tag, sch, child] = sndr;
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(tag)>, ex::continues_on_t>);
    static_assert(std::is_same_v<ex::tag_of_t<decltype(child)>, ex::schedule_from_t>);
    EXPECT_EQ(sch, context.get_scheduler());
}

TEST(exec_starts_on, starts_the_child_on_the_scheduler_and_tells_it) {
    by_hand_context context;
    probes::record r;
    auto op = ex::connect(ex::starts_on(context.get_scheduler(),
                                        ex::read_env(ex::get_start_scheduler)) |
                              ex::then([&](auto sch) { return sch == context.get_scheduler(); }),
                          probes::receiver<>(r));
    ex::start(op);
    EXPECT_EQ(r.said(), "");
    context.run_one();
    EXPECT_EQ(r.said(), "value(true)");
}

TEST(exec_starts_on, completes_where_its_child_does) {
    by_hand_context context;
    const auto sndr = ex::starts_on(context.get_scheduler(), ex::just());
    EXPECT_EQ(ex::get_completion_scheduler<ex::set_value_t>(ex::get_env(sndr), ex::env<>()),
              context.get_scheduler());
}

TEST(exec_on, runs_a_sender_elsewhere_and_comes_back) {
    by_hand_context home;
    by_hand_context away;
    probes::record r;
    auto op = ex::connect(ex::on(away.get_scheduler(), ex::just(1)),
                          probes::receiver(r, ex::prop(ex::get_start_scheduler, home.get_scheduler())));
    ex::start(op);
    EXPECT_EQ(away.size(), 1u);
    away.run_one();
    EXPECT_EQ(home.size(), 1u);
    EXPECT_EQ(r.said(), "");
    home.run_one();
    EXPECT_EQ(r.said(), "value(1)");
}

TEST(exec_on, runs_a_closure_elsewhere_and_comes_back) {
    by_hand_context home;
    by_hand_context away;
    probes::record r;
    bool was_away = false;
    auto op = ex::connect(ex::schedule(home.get_scheduler()) |
                              ex::on(away.get_scheduler(), ex::then([&] {
                                         was_away = true;
                                         return 5;
                                     })),
                          probes::receiver<>(r));
    ex::start(op);
    home.run_one();
    EXPECT_FALSE(was_away);
    away.run_one();
    EXPECT_TRUE(was_away);
    EXPECT_EQ(r.said(), "");
    home.run_one();
    EXPECT_EQ(r.said(), "value(5)");
}

TEST(exec_on, is_no_sender_where_nobody_says_what_back_is) {
    by_hand_context away;
    using sndr = decltype(ex::on(away.get_scheduler(), ex::just()));
    static_assert(ex::dependent_sender<sndr>);
    static_assert(!ex::sender_in<sndr, ex::env<>>);
}

TEST(exec_affine, comes_back_to_the_start_scheduler) {
    by_hand_context home;
    by_hand_context away;
    probes::record r;
    const auto env = ex::prop(ex::get_start_scheduler, home.get_scheduler());
    auto op = ex::connect(ex::affine(ex::schedule(away.get_scheduler()) | ex::then([] { return 1; })),
                          probes::receiver(r, env));
    ex::start(op);
    away.run_one();
    EXPECT_EQ(r.said(), "");
    home.run_one();
    EXPECT_EQ(r.said(), "value(1)");
}

TEST(exec_affine, does_not_schedule_for_what_is_there_already) {
    by_hand_context home;
    const auto env = ex::prop(ex::get_start_scheduler, home.get_scheduler());
    EXPECT_EQ(outcome(ex::affine(ex::just(1)), env), "value(1)");
    probes::record r;
    auto op = ex::connect(ex::affine(ex::schedule(home.get_scheduler()) | ex::then([] { return 1; })),
                          probes::receiver(r, env));
    ex::start(op);
    home.run_one();
    EXPECT_EQ(r.said(), "value(1)");
    EXPECT_EQ(home.size(), 0u);
}

TEST(exec_affine, the_way_back_is_not_stopped) {
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
    static_assert(ex::sender_in<
                  sndr, ex::prop<ex::get_start_scheduler_t, by_hand_context::scheduler>>);
}

}  // namespace
