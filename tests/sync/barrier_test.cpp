// sync/barrier.hpp: phases, participants that are stopped, and participants that drop.
#include <coppice/sync/barrier.hpp>

#include <coppice/pool.hpp>

#include "kinds.hpp"

#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;

task<bool> take_part(async_barrier& barrier, std::vector<int>& arrived, int me, int phases) {
    bool together = true;
    for (int phase = 0; phase != phases; ++phase) {
        arrived[static_cast<std::size_t>(me)] = phase;
        const std::uint64_t ended = co_await barrier.arrive_and_wait();
        together &= ended == static_cast<std::uint64_t>(2 * phase);
        for (const int a : arrived) together &= a == phase;
        co_await barrier.arrive_and_wait();  // no task writes before all have read
    }
    co_return together;
}

TEST(async_barrier, participants_on_a_pool_go_on_phase_by_phase) {
    thread_pool pool(2);
    async_barrier barrier(3);
    std::vector<int> arrived(3, -1);
    const auto one = [&](int me) {
        return ex::starts_on(pool.get_scheduler(), take_part(barrier, arrived, me, 200));
    };
    EXPECT_EQ(this_thread::sync_wait(ex::when_all(one(0), one(1), one(2))).value(),
              std::tuple(true, true, true));
}

TEST(async_barrier, two_participants_meet_half_a_million_times_in_constant_stack) {
    async_barrier barrier(2);
    const auto meet = [](async_barrier& b) -> task<std::uint64_t> {
        std::uint64_t last = 0;
        for (int i = 0; i != 500'000; ++i) last = co_await b.arrive_and_wait();
        co_return last;
    };
    EXPECT_EQ(this_thread::sync_wait(ex::when_all(meet(barrier), meet(barrier))).value(),
              std::tuple(499'999u, 499'999u));
}

TEST(async_barrier, a_stopped_participant_has_arrived) {
    async_barrier barrier(3);
    inplace_stop_source stop;
    std::error_code ends[2];
    const auto arrive = [&](int i) {
        barrier.arrive_and_wait(
            bind_env(ex::prop(get_stop_token, stop.get_token()),
                     [&ends, i](std::error_code ec, std::uint64_t) { ends[i] = ec; }));
    };
    arrive(0);
    stop.request_stop();
    arrive(1);  // stopped before it begins
    EXPECT_EQ(ends[0], std::errc::operation_canceled);
    EXPECT_EQ(ends[1], std::errc::operation_canceled);
    EXPECT_EQ(std::get<0>(this_thread::sync_wait(barrier.arrive_and_wait()).value()), 0u);
}

TEST(async_barrier, a_participant_that_drops_is_not_waited_for_in_later_phases) {
    async_barrier barrier(2);
    int ended = 0;
    const auto arrive = [&] {
        barrier.arrive_and_wait([&](std::error_code, std::uint64_t) { ++ended; });
    };
    arrive();
    EXPECT_EQ(ended, 0);
    barrier.arrive_and_drop();
    EXPECT_EQ(ended, 1);
    arrive();
    arrive();
    EXPECT_EQ(ended, 3);
    barrier.arrive_and_drop();  // the last one
}

TEST(async_barrier_death_test, an_arrival_without_participants_stops_the_process) {
    async_barrier barrier(0);
    EXPECT_DEATH(barrier.arrive_and_drop(), "an async_barrier got more arrivals in one phase");
}

}  // namespace
