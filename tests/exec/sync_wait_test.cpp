// Plan: sync_wait [exec.sync.wait] and its results; the loop that it offers to the sender.
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/when_all.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace {

namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;
using coppice::this_thread::sync_wait_with_variant;

TEST(exec_sync_wait, returns_the_values_or_nothing) {
    static_assert(std::is_same_v<decltype(sync_wait(ex::just(1, 'c'))),
                                 std::optional<std::tuple<int, char>>>);
    EXPECT_EQ(sync_wait(ex::just(1, 'c')), std::make_tuple(1, 'c'));
    EXPECT_EQ(sync_wait(ex::just()), std::tuple<>());
    probes::by_hand hand;
    const auto result =
        sync_wait(ex::when_all(hand.get() | ex::let_error([](int) { return ex::just(0); }),
                               ex::just() | ex::then([&] { hand.stopped(); })));
    EXPECT_FALSE(result.has_value());
}

TEST(exec_sync_wait, throws_the_error) {
    EXPECT_THROW(sync_wait(ex::just() | ex::then([] { throw std::runtime_error("thrown"); })),
                 std::runtime_error);
    probes::by_hand hand;
    EXPECT_THROW(sync_wait(ex::when_all(hand.get(), ex::just() | ex::then([&] { hand.error(5); }))),
                 int);
}

TEST(exec_sync_wait, gives_the_sender_a_loop_to_delegate_to) {
    const auto here = std::this_thread::get_id();
    const auto on_loop = [](auto query) {
        return ex::read_env(query) | ex::let_value([](auto sch) { return ex::schedule(sch); }) |
               ex::then([] { return std::this_thread::get_id(); });
    };
    EXPECT_EQ(std::get<0>(*sync_wait(on_loop(ex::get_scheduler))), here);
    EXPECT_EQ(std::get<0>(*sync_wait(on_loop(ex::get_start_scheduler))), here);
    EXPECT_EQ(std::get<0>(*sync_wait(on_loop(ex::get_delegation_scheduler))), here);
}

TEST(exec_sync_wait_var, returns_a_variant_of_tuples) {
    const auto result = sync_wait_with_variant(ex::just(1, 2));
    static_assert(
        std::is_same_v<decltype(result), const std::optional<std::variant<std::tuple<int, int>>>>);
    EXPECT_EQ(std::get<0>(*result), std::make_tuple(1, 2));
}

TEST(exec_sync_wait, throws_what_copying_a_value_throws) {
    static probes::throwing_copy negative(1);
    negative.value = -1;
    EXPECT_THROW(
        sync_wait(ex::just() | ex::then([]() -> probes::throwing_copy& { return negative; })),
        std::runtime_error);
}

}  // namespace
