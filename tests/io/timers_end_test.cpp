// A loop is destroyed while operations wait, and the end of each operation stops others.
#include <coppice/execution.hpp>
#include <coppice/io.hpp>
#include <coppice/task.hpp>

#include "rings.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;

// Counts the ways in which work spawned through it ends.
class ends {
public:
    explicit ends(io::context& l) : loop_(l) {}
    template <class Sndr>
    void spawn(Sndr sndr) {
        const auto loop = loop_.get_scheduler();
        ++spawned_;
        ex::spawn(ex::write_env(std::move(sndr), ex::prop(ex::get_timed_scheduler, loop)) |
                      ex::then([this](auto&&...) noexcept { ++ended_; }) |
                      ex::upon_error([this](auto&&) noexcept { ++ended_; }) |
                      ex::upon_stopped([this]() noexcept { ++ended_; }),
                  scope_.get_token());
    }
    void expect_all() {
        this_thread::sync_wait(scope_.join());
        EXPECT_EQ(ended_, spawned_);
    }

private:
    io::context& loop_;
    ex::counting_scope scope_;
    int spawned_ = 0;
    int ended_ = 0;  // written by the loop's thread
};

ex::task<void> wait_in_a_task(ex::any_scheduler loop) {
    co_await ex::when_any(ex::schedule_after(loop, 10s), ex::schedule_after(loop, 10s));
}

// Makes operations that all wait in one slot of the wheel; later ones are behind those that stop
// them.
template <class Sch>
void wait_in_groups(ends& waiting, Sch loop) {
    const auto timer = [&] { return ex::schedule_after(loop, 10s); };
    for (int i = 0; i != 3; ++i) {
        waiting.spawn(ex::when_any(timer(), timer()));
        waiting.spawn(ex::when_all(timer(), timer(), timer()));
        waiting.spawn(ex::timeout(timer(), 10s));
        waiting.spawn(ex::timeout(ex::timeout(timer(), 10s), 10s));
        waiting.spawn(ex::when_any(ex::timeout(timer(), 10s), timer()));
        waiting.spawn(ex::when_all_range(std::vector{timer(), timer()}));
        waiting.spawn(ex::starts_on(loop, wait_in_a_task(loop)));
    }
}

class timers_end : public testing::TestWithParam<io::backend> {};

TEST_P(timers_end, drain_ends_timers_that_stop_one_another) {
    io::context loop(GetParam());
    ends waiting(loop);
    wait_in_groups(waiting, loop.get_scheduler());
    EXPECT_FALSE(loop.drain(1ms));
    waiting.expect_all();
}

TEST_P(timers_end, the_destructor_ends_timers_that_stop_one_another) {
    std::optional<io::context> loop(std::in_place, GetParam());
    ends waiting(*loop);
    wait_in_groups(waiting, loop->get_scheduler());
    loop->run_for(1ms);
    loop.reset();
    waiting.expect_all();
}

// The end of one timer destroys the operation of another timer behind it.
TEST_P(timers_end, an_ended_timer_may_start_and_end_others) {
    io::context loop(GetParam());
    ends waiting(loop);
    const auto sch = loop.get_scheduler();
    for (int i = 0; i != 4; ++i) {
        waiting.spawn(ex::when_any(ex::schedule_after(sch, 10s), ex::schedule_after(sch, 10s)) |
                      ex::let_stopped([sch] { return ex::schedule_after(sch, 10s); }));
    }
    EXPECT_FALSE(loop.drain(1ms));
    waiting.expect_all();
}

INSTANTIATE_TEST_SUITE_P(rings, timers_end, coppice::test::all_rings, coppice::test::ring_name);

}  // namespace
