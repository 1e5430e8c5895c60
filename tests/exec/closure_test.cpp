// Plan: an adaptor without arguments is a closure, with and without parentheses [exec.adapt.obj]
// p5.
#include <coppice/execution.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

namespace {

namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;
using probes::outcome;

TEST(exec_adapt_obj, an_adaptor_without_arguments_is_a_closure) {
    EXPECT_EQ(std::get<0>(*sync_wait(ex::just(1) | ex::into_variant)).index(), 0u);
    EXPECT_EQ(outcome(ex::just(1) | ex::unstoppable), "value(1)");
    EXPECT_TRUE(std::get<0>(*sync_wait(ex::just(1) | ex::stopped_as_optional)).has_value());
    EXPECT_EQ(outcome(ex::just(1) | ex::split), "value(1)");
    EXPECT_EQ(outcome(ex::just(true) | ex::repeat_until), "value()");
    EXPECT_EQ(outcome(ex::just(1) | ex::retry), "value(1)");
    EXPECT_EQ(std::get<0>(*sync_wait(ex::just(1) | ex::affine)), 1);
}

TEST(exec_adapt_obj, an_adaptor_without_arguments_composes_with_closures) {
    constexpr auto plus_one = [](int i) noexcept { return i + 1; };
    EXPECT_EQ(outcome(ex::just(1) | (ex::unstoppable | ex::then(plus_one))), "value(2)");
    EXPECT_EQ(outcome(ex::just(1) | (ex::then(plus_one) | ex::unstoppable)), "value(2)");
    EXPECT_EQ(outcome(ex::just(1) | (ex::unstoppable | ex::unstoppable | ex::split)), "value(1)");
    const auto kept = ex::stopped_as_optional | ex::then([](auto o) noexcept { return *o; });
    EXPECT_EQ(outcome(ex::just(1) | kept), "value(1)");
    EXPECT_EQ(outcome(ex::just(2) | kept), "value(2)");
    ex::inline_scheduler here;
    EXPECT_EQ(std::get<0>(*sync_wait(ex::schedule(here) | ex::then([] { return 3; }) |
                                     ex::on(here, ex::unstoppable))),
              3);
}

TEST(exec_adapt_obj, an_adaptor_without_arguments_may_have_parentheses) {
    EXPECT_EQ(outcome(ex::just(1) | ex::unstoppable()), "value(1)");
    EXPECT_EQ(outcome(ex::just(true) | ex::repeat_until()), "value()");
    EXPECT_EQ(outcome(ex::just(1) | (ex::split() | ex::unstoppable())), "value(1)");
}

// A closure is not a sender, and only an adaptor without arguments is a closure.
static_assert(!ex::sender<ex::into_variant_t>);
template <class T>
concept piped = requires(const T& closure) { ex::just(1) | closure; };
static_assert(piped<ex::into_variant_t> && piped<ex::unstoppable_t>);
static_assert(!piped<ex::then_t> && !piped<ex::continues_on_t> && !piped<ex::when_all_t>);
static_assert(!piped<ex::bulk_t> && !piped<ex::stopped_as_error_t>);

}  // namespace
