// Plan: task_scheduler [exec.task.scheduler]: synopsis, allocators, bulk on the held scheduler.
// Tests on a pool and in tasks are in tests/pool/task_scheduler_test.cpp.
#include <coppice/exec/any_scheduler.hpp>
#include <coppice/exec/bulk.hpp>
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/parallel_scheduler.hpp>

#include "logging_allocator.hpp"
#include "strict.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace {

namespace ex = coppice::execution;
using probes::allocation_log;
using probes::logging_allocator;
using probes::outcome;

// ---- Schedulers that tests put into it --------------------------------------------------------

// Runs work at once, and is larger than a task_scheduler's buffer. Extra goes into each operation.
template <std::size_t Extra>
class wide_scheduler {
public:
    using scheduler_concept = ex::scheduler_tag;
    explicit wide_scheduler(std::size_t id) noexcept : id_{id} {}

    class sender {
    public:
        using sender_concept = ex::sender_tag;
        explicit sender(const wide_scheduler& sch) noexcept : sch_(sch) {}
        wide_scheduler query(ex::get_completion_scheduler_t<ex::set_value_t>) const noexcept {
            return sch_;
        }
        const sender& get_env() const noexcept { return *this; }
        template <class Self, class... Env>
        static consteval auto get_completion_signatures() noexcept {
            return ex::completion_signatures<ex::set_value_t()>();
        }
        template <class Rcvr>
        struct operation {
            using operation_state_concept = ex::operation_state_tag;
            explicit operation(Rcvr r) noexcept : rcvr(std::move(r)) {}
            operation(operation&&) = delete;
            void start() & noexcept { ex::set_value(std::move(rcvr)); }
            Rcvr rcvr;
            std::array<char, Extra + 1> extra{};
        };
        template <class Rcvr>
        auto connect(Rcvr rcvr) const noexcept {
            return operation<Rcvr>(std::move(rcvr));
        }

    private:
        wide_scheduler sch_;
    };
    sender schedule() const noexcept { return sender(*this); }
    bool operator==(const wide_scheduler&) const noexcept = default;

private:
    std::array<std::size_t, 8> id_;
};

// ---- The type ---------------------------------------------------------------------------------

TEST(exec_task_scheduler, is_the_drafts_class) {
    using inner = ex::inline_scheduler;
    static_assert(ex::scheduler<ex::task_scheduler>);
    static_assert(ex::infallible_scheduler<ex::task_scheduler, ex::env<>>);
    static_assert(std::constructible_from<ex::task_scheduler, inner>);
    static_assert(std::constructible_from<ex::task_scheduler, inner&, std::allocator<void>>);
    static_assert(std::constructible_from<ex::task_scheduler, inner, std::allocator<int>>);
    static_assert(!std::constructible_from<ex::task_scheduler, inner, int>);
    static_assert(!std::constructible_from<ex::task_scheduler, int>);
    static_assert(!std::constructible_from<ex::task_scheduler, probes::refusing_scheduler>);
    static_assert(std::is_nothrow_copy_constructible_v<ex::task_scheduler>);
    static_assert(std::is_nothrow_copy_assignable_v<ex::task_scheduler>);

    static_assert(std::same_as<decltype(ex::get_completion_domain<ex::set_value_t>(
                                   std::declval<const ex::task_scheduler&>())),
                               ex::internal::task_scheduler_domain>);
    using sender = decltype(ex::schedule(std::declval<const ex::task_scheduler&>()));
    static_assert(
        std::same_as<decltype(ex::get_completion_scheduler<ex::set_value_t>(
                         ex::get_env(std::declval<const sender&>()), std::declval<ex::env<>>())),
                     ex::task_scheduler>);
    static_assert(std::same_as<ex::completion_signatures_of_t<sender, ex::env<>>,
                               ex::completion_signatures<ex::set_value_t()>>);
    using stoppable = ex::prop<coppice::get_stop_token_t, coppice::inplace_stop_token>;
    static_assert(std::same_as<ex::completion_signatures_of_t<sender, stoppable>,
                               ex::completion_signatures<ex::set_value_t(), ex::set_stopped_t()>>);
}

TEST(exec_task_scheduler, asks_the_held_scheduler_for_its_progress) {
    EXPECT_EQ(ex::get_forward_progress_guarantee(ex::task_scheduler(ex::get_parallel_scheduler())),
              ex::forward_progress_guarantee::parallel);
    EXPECT_EQ(ex::get_forward_progress_guarantee(ex::task_scheduler(ex::inline_scheduler())),
              ex::get_forward_progress_guarantee(ex::inline_scheduler()));
}

TEST(exec_task_scheduler,
     is_equal_to_the_held_scheduler_and_to_a_task_scheduler_that_holds_an_equal_one) {
    allocation_log log;
    const wide_scheduler<0> one(1);
    const wide_scheduler<0> two(2);
    const ex::task_scheduler a(one);
    const ex::task_scheduler b(one, logging_allocator<int>(log));
    EXPECT_TRUE(a == b);
    EXPECT_TRUE(a == one);
    EXPECT_TRUE(one == b);
    EXPECT_FALSE(a == two);
    EXPECT_FALSE(a == ex::task_scheduler(two));
    EXPECT_FALSE(a == ex::task_scheduler(ex::inline_scheduler()));
    EXPECT_FALSE(a == ex::inline_scheduler());
    EXPECT_TRUE(ex::task_scheduler(ex::inline_scheduler()) == ex::inline_scheduler());
}

TEST(exec_task_scheduler, stays_a_scheduler_when_it_is_moved_from_or_assigned_to_itself) {
    const wide_scheduler<0> wide(1);
    ex::task_scheduler from(wide);
    ex::task_scheduler to(std::move(from));
    EXPECT_TRUE(from == to);
    to = ex::task_scheduler(ex::inline_scheduler());
    EXPECT_TRUE(to == ex::inline_scheduler());
    from = std::move(to);
    EXPECT_TRUE(to == from);
    const ex::task_scheduler& same = to;
    to = same;
    EXPECT_TRUE(to == ex::inline_scheduler());
    EXPECT_EQ(outcome(ex::schedule(to)), "value()");
}

// ---- Its allocator ----------------------------------------------------------------------------

TEST(exec_task_scheduler, allocates_a_large_scheduler_once_for_all_copies) {
    allocation_log log;
    {
        const ex::task_scheduler sch(wide_scheduler<0>(1), logging_allocator<char>(log));
        EXPECT_EQ(log.made, 1);
        ex::task_scheduler copy = sch;
        copy = sch;
        const std::vector<ex::task_scheduler> copies(10, copy);
        EXPECT_EQ(outcome(ex::schedule(copies[9]) | ex::bulk(ex::par, 2, [](int) {})), "value()");
        EXPECT_EQ(log.made, 1);
    }
    EXPECT_EQ(log.live, 0);
}

TEST(exec_task_scheduler, allocates_nothing_for_a_small_scheduler) {
    allocation_log log;
    probes::by_hand_context context;
    const ex::task_scheduler sch(context.get_scheduler(), logging_allocator<void>(log));
    const ex::task_scheduler copy = sch;
    EXPECT_EQ(log.made, 0);
}

TEST(exec_task_scheduler, throws_what_its_allocator_throws) {
    allocation_log log{.fails = true};
    EXPECT_THROW(ex::task_scheduler(wide_scheduler<0>(1), logging_allocator<char>(log)),
                 std::bad_alloc);
    EXPECT_EQ(log.live, 0);
}

TEST(exec_task_scheduler, allocates_a_large_operation_with_its_allocator) {
    allocation_log log;
    const ex::task_scheduler sch(wide_scheduler<1000>(1), logging_allocator<char>(log));
    log.made = 0;
    EXPECT_EQ(outcome(ex::schedule(sch)), "value()");
    EXPECT_EQ(log.made, 1);
    EXPECT_EQ(log.live, 1);  // the scheduler
    log.fails = true;
    EXPECT_THROW(outcome(ex::schedule(sch)), std::bad_alloc);
    EXPECT_EQ(log.live, 1);
}

}  // namespace
