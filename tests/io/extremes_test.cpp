// Every number and time that a loop, a timer, an option, or a simulation accepts, at the extremes
// of its type.
#include <coppice/io/context.hpp>
#include <coppice/io/context_pool.hpp>
#include <coppice/io/file.hpp>
#include <coppice/io/option.hpp>
#include <coppice/io/resolver.hpp>
#include <coppice/io/simulation.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>

#include "detached.hpp"
#include "extremes.hpp"
#include "outcome.hpp"
#include "rings.hpp"

#include <gtest/gtest.h>

#include <climits>
#include <memory>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;
namespace ex = coppice::execution;

class extremes_on : public testing::TestWithParam<io::backend> {};

INSTANTIATE_TEST_SUITE_P(rings, extremes_on, all_rings, ring_name);

// Runs a wait. A short wait ends; a long one lasts until its context is destroyed.
template <class Start>
void expect_wait(io::backend kind, bool is_short, Start start) {
    outcome ended;
    {
        std::optional<io::context> loop(std::in_place, kind);
        auto operation = start(*loop, outcome_receiver(ended));
        ex::start(operation);
        if (is_short) {
            loop->run();
            EXPECT_EQ(ended.values, 1);
        } else {
            (void)loop->run_for(duration(0));
            (void)loop->run_for(duration(1));
            EXPECT_EQ(ended.ends(), 0);
        }
        loop.reset();  // ends what is pending
    }
    EXPECT_EQ(ended.ends(), 1);
}

TEST_P(extremes_on, a_timer_waits_for_any_time) {
    for (const duration time : every_duration) {
        const bool is_short = time <= duration(1);
        expect_wait(GetParam(), is_short, [&](io::context& loop, outcome_receiver to) {
            return ex::connect(io::timer(loop).wait_for(time), to);
        });
        expect_wait(GetParam(), is_short, [&](io::context& loop, outcome_receiver to) {
            return ex::connect(io::timer(loop).wait_until(time_point(time)), to);
        });
        expect_wait(GetParam(), is_short, [&](io::context& loop, outcome_receiver to) {
            return ex::connect(loop.get_scheduler().schedule_after(time), to);
        });
        expect_wait(GetParam(), is_short, [&](io::context& loop, outcome_receiver to) {
            return ex::connect(loop.get_scheduler().schedule_at(time_point(time)), to);
        });
    }
}

TEST_P(extremes_on, a_deadline_may_be_any_time) {
    for (const duration time : every_duration) {
        outcome ended;
        io::context loop(GetParam());
        auto operation = ex::connect(io::timer(loop).wait_for(duration(1)),
                                     outcome_receiver(ended, {}, ex::instant(time_point(time))));
        ex::start(operation);
        loop.run();
        EXPECT_EQ(ended.ends(), 1) << time.count();
        if (time > duration(1)) {
            EXPECT_EQ(ended.values, 1) << time.count();
        }
    }
}

TEST_P(extremes_on, a_loop_runs_and_drains_for_any_time) {
    for (const duration time : every_duration) {
        io::context idle(GetParam());
        (void)idle.run_for(time);  // nothing is pending
        EXPECT_TRUE(idle.drain(time));
        if (time > duration(1)) continue;
        outcome ended;
        io::context busy(GetParam());
        auto operation =
            ex::connect(io::timer(busy).wait_for(std::chrono::hours(1)), outcome_receiver(ended));
        ex::start(operation);
        EXPECT_TRUE(busy.run_for(time));
        EXPECT_EQ(ended.ends(), 0);
        EXPECT_FALSE(busy.drain(time));
        busy.run();
        EXPECT_EQ(ended.ends(), 1);
    }
}

TEST_P(extremes_on, a_context_pool_drains_for_any_time_and_refuses_impossible_thread_counts) {
    if (GetParam() == io::backend::sim) GTEST_SKIP() << "a simulation has one loop";
    for (const duration time : every_duration) {
        io::context_pool pool(1, GetParam());
        pool.drain(time);
    }
    for (const std::uint64_t n : every_number) {
        const std::string said =
            refusal_of([&] { (void)io::context_pool(static_cast<std::size_t>(n), GetParam()); });
        if (n <= 1) {
            EXPECT_EQ(said, "");
        } else {
            expect_refusal(said, "context_pool: threads", n);
        }
    }
}

TEST_P(extremes_on, socket_options_and_offsets_take_any_number_or_give_an_error) {
    if (GetParam() == io::backend::sim) GTEST_SKIP() << "the kernel's options";
    io::context loop(GetParam());
    for (const int backlog : {INT_MIN, -1, 0, 1, INT_MAX - 1, INT_MAX}) {
        io::tcp::acceptor_options how;
        how.backlog = backlog;
        const io::tcp::acceptor acceptor(loop, io::loopback(0), how);
        EXPECT_NE(acceptor.local().port(), 0) << backlog;
    }
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    io::tcp::socket socket(loop);
    outcome connected;
    auto connecting = ex::connect(socket.connect(acceptor.local()), outcome_receiver(connected));
    ex::start(connecting);
    loop.run();
    ASSERT_EQ(connected.values, 1);
    for (const int n : {INT_MIN, -1, 0, 1, INT_MAX - 1, INT_MAX}) {
        (void)socket.set(io::receive_buffer_size(n));
        (void)socket.set(io::send_buffer_size(n));
        (void)socket.set(io::keep_alive_idle(n));
        (void)socket.set(io::keep_alive_interval(n));
        (void)socket.set(io::keep_alive_probes(n));
        (void)socket.set(io::user_timeout(n));
    }
    // A negative time would be a long one for the kernel. The socket is closed with a time of 0.
    using seconds = std::chrono::seconds;
    for (const seconds time : {seconds::min(), seconds(-1), seconds(1), seconds::max() - seconds(1),
                               seconds::max(), seconds(0)}) {
        const auto kept = io::linger(time).value();
        ASSERT_TRUE(kept);
        EXPECT_GE(*kept, seconds(0));
        if (time.count() <= 1) {
            EXPECT_EQ(*kept, std::max(time, seconds(0)));
        }
        (void)socket.set(io::linger(time));
    }
}

TEST(simulation_extremes, its_times_and_shares_are_accepted_or_refused_by_name) {
    for (const duration time : every_duration) {
        io::simulated_faults faults;
        faults.delay_max = time;
        const std::string said = refusal_of([&] {
            io::simulation world(1, faults);
            world.plant_host("a", {io::loopback(1)}, time);
            world.plant_host_failure("b", 1, time);
            world.raise(1, time);
            io::context loop(world);
            outcome waited;
            auto operation =
                ex::connect(io::timer(loop).wait_for(duration(1)), outcome_receiver(waited));
            ex::start(operation);
            loop.run();
            EXPECT_EQ(waited.values, 1);
        });
        if (time >= duration::zero()) {
            EXPECT_EQ(said, "");
        } else {
            expect_refusal(said, "simulated_faults::delay_max", time.count());
        }
    }
    for (const unsigned share : {0u, 1u, UINT_MAX - 1, UINT_MAX}) {
        io::simulated_faults faults;
        faults.short_transfers = faults.reordered = share;
        io::simulation world(1, faults);
        io::context loop(world);
        outcome waited;
        auto operation =
            ex::connect(io::timer(loop).wait_for(duration(1)), outcome_receiver(waited));
        ex::start(operation);
        loop.run();
        EXPECT_EQ(waited.values, 1);
    }
}

TEST(simulation_extremes, a_look_up_may_take_any_time) {
    for (const duration time : every_duration) {
        io::simulation world(1);
        world.plant_host("a", {io::loopback(1)}, time);
        outcome found;
        auto loop = std::make_unique<io::context>(world);
        io::resolver names(*loop);
        auto operation = ex::connect(names.resolve("a", 1), outcome_receiver(found));
        ex::start(operation);
        (void)loop->run_for(std::chrono::hours(1));
        EXPECT_EQ(found.values, time <= duration(1) ? 1 : 0);
        loop.reset();  // ends what still waits, so `found` must outlive it
        EXPECT_EQ(found.ends(), 1);
    }
}

}  // namespace
