// Plan: the scheduler concepts [exec.sched].
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/scheduler.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

namespace {

namespace ex = coppice::execution;
using probes::by_hand_context;

TEST(exec_sched, the_concept_requires_a_tag_a_sender_equality_and_copies) {
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
    static_assert(
        std::is_same_v<ex::schedule_result_t<by_hand_context::scheduler>, by_hand_context::sender>);
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

}  // namespace
