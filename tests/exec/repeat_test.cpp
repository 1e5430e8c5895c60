// Plan: repeat_until and retry: rounds, completions, constant stack, rounds on other threads.
#include <coppice/exec/connect.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/repeat.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace {

namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;
using probes::outcome;

TEST(repeat_until, repeats_until_true_is_sent) {
    int rounds = 0;
    EXPECT_EQ(outcome(ex::just() | ex::then([&] { return ++rounds == 5; }) | ex::repeat_until()),
              "value()");
    EXPECT_EQ(rounds, 5);
}

TEST(repeat_until, ends_with_an_error_or_a_stop) {
    EXPECT_EQ(outcome(ex::repeat_until(ex::just_error(3))), "error(3)");
    EXPECT_EQ(outcome(ex::repeat_until(ex::just_stopped())), "stopped");
    int rounds = 0;
    EXPECT_EQ(outcome(ex::just() | ex::then([&]() -> bool {
                          if (++rounds == 3) throw rounds;
                          return false;
                      }) |
                      ex::repeat_until()),
              "error(exception 3)");
}

// Converts to true, or throws.
struct throwing_bool {
    operator bool() const { throw 5; }
};

TEST(repeat_until, an_exception_of_the_conversion_to_bool_is_the_error) {
    EXPECT_EQ(outcome(ex::just(throwing_bool()) | ex::repeat_until()), "error(exception 5)");
}

TEST(repeat_until, a_million_immediate_rounds_use_constant_stack) {
    int rounds = 0;
    EXPECT_EQ(outcome(ex::just() | ex::then([&]() noexcept { return ++rounds == 1'000'000; }) |
                      ex::repeat_until()),
              "value()");
    EXPECT_EQ(rounds, 1'000'000);
}

TEST(repeat_until, a_round_that_completes_later_is_followed_from_its_completion) {
    probes::by_hand hand;
    probes::record r;
    auto op = ex::connect(hand.get() | ex::then([](int i) { return i != 0; }) | ex::repeat_until(),
                          probes::receiver<>(r));
    ex::start(op);
    hand.value(0);
    hand.value(0);
    EXPECT_EQ(hand.started, 3);
    EXPECT_EQ(hand.destroyed, 2);
    hand.value(1);
    EXPECT_EQ(r.said(), "value()");
}

// Sends true on a thread of its own before start() returns.
struct elsewhere {
    using sender_concept = ex::sender_tag;
    template <class, class...>
    static consteval auto get_completion_signatures() {
        return ex::completion_signatures<ex::set_value_t(bool)>();
    }
    template <class Rcvr>
    struct operation {
        using operation_state_concept = ex::operation_state_tag;
        explicit operation(Rcvr r) : rcvr(std::move(r)) {}
        operation(operation&&) = delete;
        void start() & noexcept {
            std::thread([this] { ex::set_value(std::move(rcvr), true); }).join();
        }
        Rcvr rcvr;
    };
    template <class Rcvr>
    operation<Rcvr> connect(Rcvr rcvr) const {
        return operation<Rcvr>(std::move(rcvr));
    }
};

TEST(repeat_until, completes_where_its_last_round_does_even_before_start_has_returned) {
    std::thread::id completed;
    sync_wait(ex::repeat_until(elsewhere()) |
              ex::then([&] { completed = std::this_thread::get_id(); }));
    EXPECT_NE(completed, std::thread::id());
    EXPECT_NE(completed, std::this_thread::get_id());
}

TEST(repeat_until, a_stop_between_rounds_ends_it) {
    coppice::inplace_stop_source source;
    int rounds = 0;
    EXPECT_EQ(outcome(ex::just() | ex::then([&] {
                          if (++rounds == 10) source.request_stop();
                          return false;
                      }) | ex::repeat_until(),
                      probes::stop_env(source)),
              "stopped");
    EXPECT_EQ(rounds, 10);
}

TEST(retry, repeats_on_errors_and_passes_values_and_stops) {
    int tries = 0;
    EXPECT_EQ(outcome(ex::just() | ex::let_value([&]() {
                          if (++tries < 4) throw tries;
                          return ex::just(tries);
                      }) |
                      ex::retry()),
              "value(4)");
    EXPECT_EQ(outcome(ex::retry(ex::just_stopped())), "stopped");
}

TEST(retry, a_hundred_thousand_immediate_errors_use_constant_stack) {
    int tries = 0;
    EXPECT_EQ(outcome(ex::just() | ex::then([&] {
                          if (++tries < 100'000) throw 1;
                          return tries;
                      }) |
                      ex::retry()),
              "value(100000)");
}

TEST(retry, on_many_threads_runs_each_round_once) {
    ex::run_loop loop;
    std::thread runner([&] { loop.run(); });
    int tries = 0;
    auto [result] = *sync_wait(ex::schedule(loop.get_scheduler()) | ex::then([&] {
                                   if (++tries < 10'000) throw 1;
                                   return tries;
                               }) |
                               ex::retry());
    EXPECT_EQ(result, 10'000);
    loop.finish();
    runner.join();
}

}  // namespace
