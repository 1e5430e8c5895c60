// Plan: when_all_range: order, failures, an empty range, a large range.
#include <coppice/exec/connect.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/parallel_scheduler.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/when_all_range.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

namespace ex = coppice::execution;
using probes::outcome;

TEST(when_all_range, sends_a_vector_in_the_senders_order) {
    probes::by_hand a;
    probes::by_hand b;
    std::vector<probes::by_hand::sender> sndrs{a.get(), b.get()};
    probes::record r;
    auto sum = [](const std::vector<int>& v) {
        return std::to_string(v[0]) + std::to_string(v[1]);
    };
    auto op =
        ex::connect(ex::when_all_range(std::move(sndrs)) | ex::then(sum), probes::receiver<>(r));
    ex::start(op);
    b.value(2);
    EXPECT_EQ(r.said(), "");
    a.value(1);
    EXPECT_EQ(r.said(), "value(12)");
}

TEST(when_all_range, an_empty_range_completes_at_once) {
    EXPECT_EQ(outcome(ex::when_all_range(std::vector<decltype(ex::just(1))>()) |
                      ex::then([](auto v) { return v.size(); })),
              "value(0)");
    EXPECT_EQ(outcome(ex::when_all_range(std::vector<decltype(ex::just())>())), "value()");
    EXPECT_EQ(outcome(ex::when_all_range(std::vector<decltype(ex::just_stopped())>())), "value()");
}

TEST(when_all_range, the_first_failure_stops_the_others) {
    probes::by_hand a;
    probes::by_hand b;
    std::vector<probes::by_hand::sender> sndrs{a.get(), b.get()};
    probes::record r;
    auto op = ex::connect(ex::when_all_range(std::move(sndrs)), probes::receiver<>(r));
    ex::start(op);
    a.stopped();
    EXPECT_TRUE(b.stop_requested());
    b.error(4);
    EXPECT_EQ(r.said(), "error(4)");
}

TEST(when_all_range, a_stop_from_outside_reaches_all_of_a_thousand_senders) {
    coppice::inplace_stop_source source;
    probes::record r;
    auto op = ex::connect(ex::when_all_range(std::vector<probes::until_stopped>(1000)),
                          probes::receiver(r, probes::stop_env(source)));
    ex::start(op);
    source.request_stop();
    EXPECT_EQ(r.said(), "stopped");
}

TEST(when_all_range, sends_tuples_if_the_senders_send_several_values) {
    std::vector<decltype(ex::just(1, 'c'))> sndrs(3, ex::just(1, 'c'));
    using sigs = ex::completion_signatures_of_t<decltype(ex::when_all_range(sndrs)), ex::env<>>;
    static_assert(sigs::count_of(ex::set_value) == 1);
    EXPECT_EQ(outcome(ex::when_all_range(sndrs) |
                      ex::then([](std::vector<std::tuple<int, char>> v) { return v.size(); })),
              "value(3)");
}

}  // namespace
