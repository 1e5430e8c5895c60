// Plan: any_sender: what it can hold, moves, stop tokens.
#include <coppice/exec/any_sender.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/when_all_range.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace {

namespace ex = coppice::execution;
using probes::outcome;

using any_int = ex::any_sender<ex::completion_signatures<
    ex::set_value_t(int), ex::set_error_t(std::exception_ptr), ex::set_stopped_t()>>;

TEST(any_sender, holds_any_sender_with_these_completions) {
    EXPECT_EQ(outcome(any_int(ex::just(1))), "value(1)");
    EXPECT_EQ(outcome(any_int(ex::just() | ex::then([]() -> int { throw 2; }))),
              "error(exception 2)");
    EXPECT_EQ(outcome(any_int(ex::just_stopped())), "stopped");
    static_assert(!std::is_constructible_v<any_int, decltype(ex::just(std::string()))>);
    static_assert(!std::is_constructible_v<any_int, decltype(ex::just_error(1))>);
    static_assert(!std::is_copy_constructible_v<any_int>);
    std::vector<any_int> all;
    all.push_back(ex::just(1));
    all.push_back(ex::just(2) | ex::then([](int i) { return i + 1; }));
    EXPECT_EQ(outcome(ex::when_all_range(std::move(all)) |
                      ex::then([](std::vector<int> v) { return v[0] * 10 + v[1]; })),
              "value(13)");
}

using any_text = ex::any_sender<ex::completion_signatures<ex::set_value_t(std::string)>>;
int chosen(any_int) {
    return 1;
}
int chosen(any_text) {
    return 2;
}

TEST(any_sender, overloads_are_chosen_by_a_senders_completions) {
    EXPECT_EQ(chosen(ex::just(1)), 1);
    EXPECT_EQ(chosen(ex::just(std::string())), 2);
    EXPECT_EQ(chosen(ex::just_stopped()), 1);
}

TEST(any_sender, large_senders_move_and_are_destroyed_once) {
    auto counted = std::make_shared<int>(0);
    {
        any_int large(ex::just(1) | ex::then([counted, pad = std::string(50, 'x')](int i) {
                          return i + static_cast<int>(pad.size());
                      }));
        any_int moved(std::move(large));
        large = std::move(moved);
        EXPECT_EQ(counted.use_count(), 2);
        EXPECT_EQ(outcome(std::move(large)), "value(51)");
    }
    EXPECT_EQ(counted.use_count(), 1);
}

// Converts to an int, or throws.
struct throwing_number {
    operator int() const { throw std::runtime_error("no number"); }
};
struct number {
    operator int() const noexcept { return 4; }
};

TEST(any_sender, results_convert_and_an_exception_of_a_conversion_is_the_error) {
    EXPECT_EQ(outcome(any_int(ex::just(number()))), "value(4)");
    EXPECT_EQ(outcome(any_int(ex::just(throwing_number()))), "error(exception no number)");
    using any_code = ex::any_sender<
        ex::completion_signatures<ex::set_error_t(int), ex::set_error_t(std::exception_ptr)>>;
    EXPECT_EQ(outcome(any_code(ex::just_error(number()))), "error(4)");
    EXPECT_EQ(outcome(any_code(ex::just_error(throwing_number()))), "error(exception no number)");
    // Without an exception_ptr completion the exception could not be sent: such a sender is
    // rejected.
    using no_exception = ex::any_sender<ex::completion_signatures<ex::set_value_t(int)>>;
    static_assert(std::is_constructible_v<no_exception, decltype(ex::just(number()))>);
    static_assert(!std::is_constructible_v<no_exception, decltype(ex::just(throwing_number()))>);
}

TEST(any_sender, stop_tokens_of_any_type_reach_the_sender) {
    coppice::inplace_stop_source source;
    probes::record r;
    auto op = ex::connect(any_int(probes::until_stopped()),
                          probes::receiver(r, probes::stop_env(source)));
    ex::start(op);
    source.request_stop();
    EXPECT_EQ(r.said(), "stopped");
    // A finite token is converted.
    EXPECT_EQ(outcome(ex::when_all(any_int(probes::until_stopped()), ex::just_stopped())),
              "stopped");
}

}  // namespace
