// Plan: any_sender: what it holds, moving, stop tokens.
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

TEST(any_sender, large_senders_move_and_end_once) {
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

TEST(any_sender, stop_tokens_of_any_type_reach_the_sender) {
    coppice::inplace_stop_source source;
    probes::record r;
    auto op = ex::connect(any_int(probes::until_stopped()),
                          probes::receiver(r, probes::stop_env(source)));
    ex::start(op);
    source.request_stop();
    EXPECT_EQ(r.said(), "stopped");
    // A finite token is adapted.
    EXPECT_EQ(outcome(ex::when_all(any_int(probes::until_stopped()), ex::just_stopped())),
              "stopped");
}

}  // namespace
