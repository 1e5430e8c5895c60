// timeout of a whole task, awaited by a task: the timer is that of where the task runs.
#include "compose.hpp"

#include <coppice/task.hpp>

#include <system_error>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;

// Two operations after each other, of which a timeout of either alone would see a half.
task<int> two_waits(io::context& loop, std::chrono::nanoseconds each) {
    io::timer timer(loop);
    co_await timer.wait_for(each);
    co_await timer.wait_for(each);
    co_return 7;
}

template <class Place>
struct task_timeouts : testing::Test {
    using scheduler_type = decltype(std::declval<Place&>().scheduler());
    static constexpr bool timed = ex::timed_scheduler<scheduler_type>;

    // A place without timers is told where they are.
    template <class Sndr>
    auto limited(Sndr sndr, std::chrono::nanoseconds limit) {
        if constexpr (timed) {
            return ex::timeout(std::move(sndr), limit);
        } else {
            return ex::write_env(ex::timeout(std::move(sndr), limit),
                                 ex::prop(ex::get_timed_scheduler, clock.loop().get_scheduler()));
        }
    }
    // What a task in the place gets that awaits the other one for so long: -1, timed out; -2, some
    // other error; -3, it went on elsewhere.
    task<int> wait(std::chrono::nanoseconds each, std::chrono::nanoseconds limit) {
        int got = 0;
        try {
            got = co_await limited(two_waits(clock.loop(), each), limit);
        } catch (const std::system_error& error) {
            got = error.code() == std::errc::timed_out ? -1 : -2;
        }
        co_return place.is_here() ? got : -3;
    }
    auto run(task<int> t) {
        return this_thread::sync_wait(ex::starts_on(place.scheduler(), std::move(t)));
    }

    test::clock_loop clock;
    Place place{clock};
};
TYPED_TEST_SUITE(task_timeouts, test::all_places, );

TYPED_TEST(task_timeouts, a_task_that_is_in_time_gives_its_value) {
    EXPECT_EQ(std::get<0>(*this->run(this->wait(100us, 1h))), 7);
}

TYPED_TEST(task_timeouts, a_task_that_is_late_is_stopped_and_timed_out_is_thrown) {
    EXPECT_EQ(std::get<0>(*this->run(this->wait(1h, 2ms))), -1);
}

TYPED_TEST(task_timeouts, an_inner_timeout_ends_the_inner_task_alone) {
    auto outer = [](task_timeouts<TypeParam>& self) -> task<int> {
        co_return co_await self.limited(self.wait(1h, 1ms), 1h);
    };
    EXPECT_EQ(std::get<0>(*this->run(outer(*this))), -1);
}

TYPED_TEST(task_timeouts, a_stop_from_outside_is_a_stop_and_no_timeout) {
    io::timer timer(this->clock.loop());
    auto first = ex::when_any(ex::starts_on(this->place.scheduler(), this->wait(1h, 1h)),
                              timer.wait_for(1ms) | ex::then([] { return 3; }));
    EXPECT_EQ(std::get<0>(*this_thread::sync_wait(std::move(first))), 3);
}

// What a task's scheduler can do is known only when it runs.
TEST(task_timeout, where_no_timer_is_stops_the_process) {
    EXPECT_DEATH(
        {
            test::clock_loop timers;
            thread_pool pool(1);
            auto forgets = [](io::context& loop) -> task<int> {
                co_return co_await ex::timeout(two_waits(loop, 1ms), 1s);
            };
            this_thread::sync_wait(ex::starts_on(pool.get_scheduler(), forgets(timers.loop())));
        },
        "a timer was asked of a scheduler that has none: name one");
}

}  // namespace
