// Plan: then, upon_error, upon_stopped [exec.then] for each kind of completion; signatures;
// exceptions; pipes and closures [exec.adapt.obj]; attributes that an adaptor passes on
// [exec.adapt.general].
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/then.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace {

namespace ex = coppice::execution;
using probes::outcome;

TEST(exec_then, calls_the_function_with_the_values) {
    EXPECT_EQ(outcome(ex::just(20, 22) | ex::then([](int a, int b) { return a + b; })),
              "value(42)");
    EXPECT_EQ(outcome(ex::then(ex::just(1), [](int) {})), "value()");
    EXPECT_EQ(outcome(ex::just_error(1) | ex::then([] { return 2; })), "error(1)");
    EXPECT_EQ(outcome(ex::just_stopped() | ex::then([] { return 2; })), "stopped");
}

TEST(exec_then, upon_error_and_upon_stopped_send_values) {
    EXPECT_EQ(outcome(ex::just_error(1) | ex::upon_error([](int e) { return e + 1; })), "value(2)");
    EXPECT_EQ(outcome(ex::just(1) | ex::upon_error([](auto) { return 2; })), "value(1)");
    EXPECT_EQ(outcome(ex::just_stopped() | ex::upon_stopped([] { return 3; })), "value(3)");
}

TEST(exec_then, an_exception_of_the_function_is_the_error) {
    EXPECT_EQ(outcome(ex::just() | ex::then([]() -> int { throw std::runtime_error("thrown"); })),
              "error(exception thrown)");
    EXPECT_EQ(outcome(ex::just_error(1) | ex::upon_error([](int) { throw 5; })),
              "error(exception 5)");
}

TEST(exec_then, the_signatures_are_exactly_what_is_sent) {
    auto silent = ex::just(1) | ex::then([](int) noexcept { return 'c'; });
    static_assert(std::is_same_v<ex::completion_signatures_of_t<decltype(silent)>,
                                 ex::completion_signatures<ex::set_value_t(char)>>);
    auto throwing = ex::just(1) | ex::then([](int) {});
    using sigs = ex::completion_signatures_of_t<decltype(throwing)>;
    static_assert(sigs::count_of(ex::set_error) == 1 && sigs::count_of(ex::set_value) == 1);
    auto reference = ex::just() | ex::then([]() noexcept -> int& {
                         static int i = 0;
                         return i;
                     });
    static_assert(std::is_same_v<ex::completion_signatures_of_t<decltype(reference)>,
                                 ex::completion_signatures<ex::set_value_t(int&)>>);
}

TEST(exec_then, a_member_function_and_a_member_can_be_the_function) {
    struct point {
        explicit point(int i) noexcept : x(i) {}
        int twice() const noexcept { return 2 * x; }
        int x;
    };
    EXPECT_EQ(outcome(ex::just(point(4)) | ex::then(&point::twice)), "value(8)");
    EXPECT_EQ(outcome(ex::just(point(4)) | ex::then(&point::x)), "value(4)");
    point p(5);
    EXPECT_EQ(outcome(ex::just(&p) | ex::then(&point::twice)), "value(10)");
}

TEST(exec_then, move_only_functions_and_values_pass_through) {
    auto sndr = ex::just(std::make_unique<int>(1)) |
                ex::then([two = std::make_unique<int>(2)](std::unique_ptr<int> one) {
                    return *one + *two;
                });
    static_assert(!ex::sender_to<decltype(sndr)&, probes::receiver<>>);
    EXPECT_EQ(outcome(std::move(sndr)), "value(3)");
}

TEST(exec_then, connect_throws_what_moving_the_function_throws) {
    auto sndr = ex::just() | ex::then([t = probes::throwing_copy(1)] { return t.value; });
    EXPECT_EQ(outcome(sndr), "value(1)");
    probes::throwing_copy bad(1);
    auto refused = ex::just() | ex::then([bad]() mutable { return bad.value; });
    using sender = decltype(refused);
    static_assert(
        !noexcept(ex::connect(std::declval<sender>(), std::declval<probes::receiver<>>())));
}

TEST(exec_then, the_function_is_called_as_an_rvalue) {
    struct counts {
        counts() noexcept = default;
        int operator()() & noexcept { return 1; }
        int operator()() && noexcept { return 2; }
    };
    EXPECT_EQ(outcome(ex::just() | ex::then(counts())), "value(2)");
}

TEST(exec_then, is_not_a_sender_if_the_function_does_not_accept_the_values) {
    auto f = [](int*) {};
    using sndr =
        ex::internal::then_sender<ex::then_t, ex::set_value_t, decltype(f), decltype(ex::just(1))>;
    static_assert(!ex::sender_in<sndr, ex::env<>>);
    using error = ex::signatures_of<sndr, ex::env<>>;
    static_assert(ex::internal::is_pipeline_error<error>);
}

TEST(exec_then, decomposes_into_tag_function_and_child) {
    auto sndr = ex::just(1) | ex::then([](int i) { return i; });
    auto&& [tag, function, child] = sndr;
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(tag)>, ex::then_t>);
    EXPECT_EQ(function(3), 3);
    EXPECT_EQ(outcome(child), "value(1)");
}

TEST(exec_adapt_obj, a_closure_of_closures_is_a_closure) {
    auto twice = ex::then([](int i) { return 2 * i; }) | ex::then([](int i) { return i + 1; });
    EXPECT_EQ(outcome(ex::just(4) | twice), "value(9)");
    EXPECT_EQ(outcome(twice(ex::just(5))), "value(11)");
    EXPECT_EQ(outcome(ex::just(6) | std::move(twice)), "value(13)");
}

// A user's closure and adaptor, as in [exec.adapt.obj].
struct plus_one : ex::sender_adaptor_closure<plus_one> {
    plus_one() noexcept = default;
    template <ex::sender Sndr>
    auto operator()(Sndr&& sndr) const {
        return ex::then(std::forward<Sndr>(sndr), [](int i) { return i + 1; });
    }
};

TEST(exec_adapt_obj, a_users_closure_pipes_like_the_librarys) {
    EXPECT_EQ(outcome(ex::just(1) | plus_one()), "value(2)");
    EXPECT_EQ(outcome(ex::just(1) | (plus_one() | ex::then([](int i) { return i * 10; }))),
              "value(20)");
}

TEST(exec_adapt_general, forwarding_attributes_of_the_child_pass_through) {
    struct my_query : coppice::forwarding_query_t {};
    struct private_query {};
    struct sndr {
        using sender_concept = ex::sender_tag;
        using completion_signatures = ex::completion_signatures<ex::set_value_t()>;
        sndr() noexcept = default;
        auto get_env() const noexcept {
            return ex::env(ex::prop(my_query(), 1), ex::prop(private_query(), 2));
        }
    };
    const auto adapted = sndr() | ex::then([] {});
    EXPECT_EQ(ex::get_env(adapted).query(my_query()), 1);
    static_assert(!ex::has_query<ex::env_of_t<decltype(adapted)>, private_query>);
}

TEST(exec_adapt_general, the_child_sees_the_forwarding_part_of_the_environment) {
    struct private_query {};
    using env = ex::env<ex::prop<coppice::get_stop_token_t, coppice::inplace_stop_token>,
                        ex::prop<private_query, int>>;
    using seen =
        ex::env_of_t<ex::internal::then_receiver<ex::set_value_t, int, probes::receiver<env>>>;
    static_assert(std::is_same_v<coppice::stop_token_of_t<seen>, coppice::inplace_stop_token>);
    static_assert(!ex::has_query<seen, private_query>);
}

TEST(exec_get_compl_sched, then_completes_with_values_where_its_child_does) {
    probes::by_hand_context context;
    const auto sndr = ex::schedule(context.get_scheduler()) | ex::then([] {});
    EXPECT_EQ(ex::get_completion_scheduler<ex::set_value_t>(ex::get_env(sndr)),
              context.get_scheduler());
}

}  // namespace
