// Plan: timeout: in time, late, stopped, deadlines, races of sender and timer.
#include <coppice/exec/any_scheduler.hpp>
#include <coppice/exec/any_sender.hpp>
#include <coppice/exec/deadline.hpp>
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/parallel_scheduler.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timed_scheduler.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/write_env.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <utility>

namespace {

namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;
using namespace std::chrono_literals;

TEST(timeout, the_result_of_a_sender_in_time_is_passed_on) {
    EXPECT_EQ(std::get<0>(*sync_wait(ex::just(1) | ex::timeout(1h))), 1);
    auto later = ex::read_env(ex::get_scheduler) |
                 ex::let_value([](auto sch) { return ex::schedule_after(sch, 1ms); }) |
                 ex::then([] { return 2; });
    EXPECT_EQ(std::get<0>(*sync_wait(ex::timeout(later, 1h))), 2);
}

TEST(timeout, a_late_sender_is_stopped_and_timed_out_is_sent) {
    try {
        sync_wait(ex::timeout(probes::until_stopped(), 1ms));
        FAIL() << "nothing was thrown";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::timed_out);
    }
}

TEST(timeout, accepts_any_limit) {
    using ns = std::chrono::nanoseconds;
    for (const ns limit : {ns::min(), ns::min() + 1ns, ns(-1), ns(0), ns(1)}) {
        EXPECT_THROW(sync_wait(ex::timeout(probes::until_stopped(), limit)), std::system_error)
            << limit.count();
    }
    const auto later = ex::read_env(ex::get_scheduler) |
                       ex::let_value([](auto sch) { return ex::schedule_after(sch, 1us); }) |
                       ex::then([] { return 2; });
    for (const ns limit : {ns::max() - 1ns, ns::max()}) {
        EXPECT_EQ(std::get<0>(*sync_wait(ex::timeout(later, limit))), 2) << limit.count();
    }
    EXPECT_EQ(std::get<0>(*sync_wait(ex::timeout(later, std::chrono::hours::max()))), 2);
    EXPECT_THROW(sync_wait(ex::timeout(probes::until_stopped(), std::chrono::hours::min())),
                 std::system_error);
}

// A sender that completes as stopped after `takes`. It ignores stop tokens and deadlines.
auto stops_itself(std::chrono::nanoseconds takes) {
    return ex::read_env(ex::get_scheduler) |
           ex::let_value([](auto sch) { return ex::schedule(sch); }) | ex::let_value([takes] {
               const ex::instant end = ex::monotonic_now() + ex::time_span(takes);
               while (ex::monotonic_now() < end) {
               }
               return ex::just_stopped();
           });
}
// The outcome of a sender: 1, a value; 2, timed out; 3, stopped.
template <class Sndr>
int fate(Sndr sndr) {
    auto known = std::move(sndr) | ex::then([](auto&&...) { return 1; }) |
                 ex::let_error([](auto error) {
                     if constexpr (std::is_same_v<decltype(error), std::error_code>) {
                         return ex::just(error == std::errc::timed_out ? 2 : -1);
                     } else {
                         return ex::just(-1);
                     }
                 }) |
                 ex::let_stopped([] { return ex::just(3); });
    return std::get<0>(*sync_wait(std::move(known)));
}

TEST(timeout, a_senders_own_stop_is_not_a_timeout) {
    using ns = std::chrono::nanoseconds;
    for (const ns limit : {ns::min(), ns(-1), ns(0), ns(1), ns(1ms), ns::max()}) {
        EXPECT_EQ(fate(ex::timeout(ex::just_stopped(), limit)), 3) << limit.count();
        EXPECT_EQ(fate(ex::timeout(ex::just(1), limit)), 1) << limit.count();
    }
    // The sender stops after the limit, and keeps the loop that has the timer busy until then.
    EXPECT_EQ(fate(ex::timeout(stops_itself(2ms), 1ms)), 3);
    EXPECT_EQ(fate(ex::timeout(stops_itself(2ms), 1ms) | ex::timeout(1h)), 3);
    EXPECT_EQ(fate(ex::timeout(stops_itself(2ms) | ex::timeout(1h), 1h)), 3);
}

// A sender that watches its deadline, as operations of a loop do, and completes as stopped when the
// deadline has passed.
struct keeps_its_deadline {
    using sender_concept = ex::sender_tag;
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return ex::completion_signatures<ex::set_value_t(), ex::set_stopped_t()>();
    }
    template <class Rcvr>
    struct operation {
        using operation_state_concept = ex::operation_state_tag;
        Rcvr rcvr;
        void start() & noexcept {
            while (ex::monotonic_now() < ex::get_deadline(ex::get_env(rcvr))) {
            }
            ex::set_stopped(std::move(rcvr));
        }
    };
    template <class Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>{std::move(rcvr)};
    }
};

TEST(timeout, a_stop_by_a_sender_that_keeps_the_deadline_is_a_timeout) {
    using ns = std::chrono::nanoseconds;
    using erased =
        ex::any_sender<ex::completion_signatures<ex::set_value_t(), ex::set_stopped_t()>>;
    for (const ns limit : {ns::min(), ns(-1), ns(0), ns(1), ns(1ms)}) {
        EXPECT_EQ(fate(ex::timeout(keeps_its_deadline(), limit)), 2) << limit.count();
        EXPECT_EQ(fate(ex::timeout(erased(keeps_its_deadline()), limit)), 2) << limit.count();
        EXPECT_EQ(fate(ex::just() | ex::let_value([] { return keeps_its_deadline(); }) |
                       ex::timeout(limit)),
                  2)
            << limit.count();
    }
    // The inner timeout asks for the outer one's deadline. So its stop after that deadline looks
    // like a timeout.
    EXPECT_EQ(fate(stops_itself(3ms) | ex::timeout(1ms) | ex::timeout(2ms)), 2);
    // The sender keeps the deadline of the outer timeout, which is the earlier one.
    EXPECT_EQ(fate(ex::timeout(keeps_its_deadline(), 1h) | ex::timeout(1ms)), 2);
    // The sender keeps a deadline that belongs to no timeout.
    const auto when = ex::monotonic_now() + ex::time_span(1ms);
    EXPECT_EQ(fate(ex::timeout(keeps_its_deadline(), 1h) |
                   ex::write_env(ex::prop(ex::get_deadline, when))),
              3);
}

// The sender requests the stop itself, and completes as stopped when its limit has passed.
TEST(timeout, a_stop_from_outside_is_not_a_timeout_even_if_it_outlasts_the_limit) {
    coppice::inplace_stop_source source;
    const auto slow = [&] {
        return ex::read_env(ex::get_deadline) | ex::let_value([&](ex::instant end) {
                   source.request_stop();
                   while (ex::monotonic_now() < end) {
                   }
                   return ex::just_stopped();
               });
    };
    EXPECT_EQ(fate(ex::write_env(ex::timeout(slow(), 1ms),
                                 ex::prop(coppice::get_stop_token, source.get_token()))),
              3);
}

TEST(timeout, a_stop_from_outside_is_not_a_timeout) {
    auto both = ex::when_all(ex::timeout(probes::until_stopped(), 1h), ex::just_stopped()) |
                ex::let_stopped([] { return ex::just(7); });
    EXPECT_EQ(std::get<0>(*sync_wait(both)), 7);
}

TEST(timeout, the_senders_environment_has_the_earlier_deadline) {
    const ex::instant before = ex::monotonic_now();
    auto [mine] = *sync_wait(ex::read_env(ex::get_deadline) | ex::timeout(1h));
    EXPECT_GE(mine, before + ex::time_span(1h));
    EXPECT_LE(mine, ex::monotonic_now() + ex::time_span(1h));
    auto [nested] = *sync_wait(ex::read_env(ex::get_deadline) | ex::timeout(3h) | ex::timeout(1h));
    EXPECT_LE(nested, ex::monotonic_now() + ex::time_span(1h));
    auto [outer] = *sync_wait(ex::read_env(ex::get_deadline) | ex::timeout(1h) |
                              ex::write_env(ex::prop(ex::get_deadline, before)));
    EXPECT_EQ(outer, before);
}

TEST(timeout, needs_a_timed_scheduler) {
    using sndr = decltype(ex::timeout(ex::just(), 1ms));
    static_assert(!ex::sender_in<sndr, ex::env<>>);
    static_assert(ex::sender_in<sndr, coppice::this_thread::sync_wait_env>);
}

TEST(timeout, a_loop_times_its_own_senders) {
    using loop = decltype(std::declval<ex::run_loop&>().get_scheduler());
    using now = decltype(std::declval<loop>().schedule());
    using later = decltype(std::declval<loop>().schedule_after(1ms));
    static_assert(ex::sender_in<decltype(ex::timeout(std::declval<now>(), 1ms)), ex::env<>>);
    static_assert(ex::sender_in<decltype(ex::timeout(std::declval<later>(), 1ms)), ex::env<>>);
    ex::run_loop l;
    probes::record r;
    auto op = ex::connect(ex::timeout(l.get_scheduler().schedule_after(1h), 1ms) |
                              ex::upon_error([&](auto) noexcept { l.finish(); }),
                          probes::receiver<>(r));
    ex::start(op);
    l.run();
    EXPECT_EQ(r.said(), "value()");
}

// A task's scheduler is type-erased. It is used only if no other scheduler is certain to have
// timers.
TEST(timeout, prefers_schedulers_that_are_certain_to_have_timers) {
    const auto within = [](const ex::any_scheduler& where) {
        return ex::write_env(ex::timeout(probes::until_stopped(), 1ms),
                             ex::prop(ex::get_start_scheduler, where));
    };
    // sync_wait's own loop always has timers, and is the delegation scheduler.
    EXPECT_THROW(sync_wait(within(ex::inline_scheduler())), std::system_error);
    // A receiver that names no timer leaves only the erased scheduler.
    probes::record r;
    EXPECT_DEATH((void)ex::connect(within(ex::inline_scheduler()), probes::receiver<>(r)),
                 "asked of a scheduler that has none");
}

TEST(timeout, completes_once_if_sender_and_timer_run_on_different_threads) {
    for (int round = 0; round != 100; ++round) {
        ex::run_loop loop;
        std::thread runner([&] { loop.run(); });
        const auto outcome_of = [&](auto limit) {
            return ex::timeout(ex::schedule(loop.get_scheduler()), limit) |
                   ex::then([] { return 1; }) | ex::upon_error([](auto) { return 2; });
        };
        const int result = std::get<0>(*sync_wait(outcome_of(std::chrono::microseconds(round))));
        EXPECT_TRUE(result == 1 || result == 2);
        loop.finish();
        runner.join();
    }
}

}  // namespace
