// Plan: a timeout whose sender answers the stop with a value or an error. With each adaptor that
// can do so, around each kind of operation, the result is timed_out, every time. A deadline that
// comes from no timeout ends the operation itself, inside a timeout and outside.
#include "compose.hpp"

#include "../io/rings.hpp"

#include <coppice/execution.hpp>
#include <coppice/io/simulation.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/task.hpp>

#include <chrono>
#include <functional>
#include <system_error>
#include <vector>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
using this_thread::sync_wait;

// Returns a sender of true if `sndr`, which waits for an hour, has timed out.
template <class Sndr>
auto times_out(Sndr sndr, std::chrono::nanoseconds limit) {
    return ex::timeout(std::move(sndr), limit) | ex::then([](auto&&...) { return false; }) |
           ex::let_error([](auto error) {
               if constexpr (std::is_same_v<decltype(error), std::error_code>) {
                   return ex::just(error == std::errc::timed_out);
               } else {
                   return ex::just(false);
               }
           }) |
           ex::upon_stopped([] { return false; });
}

using erased = ex::any_sender<
    ex::completion_signatures<ex::set_value_t(), ex::set_error_t(std::error_code),
                              ex::set_error_t(std::exception_ptr), ex::set_stopped_t()>>;

// A way of answering the stop of an operation, and a check that a timeout of it has timed out.
struct answer {
    const char* name;
    std::function<task<bool>(std::chrono::nanoseconds)> times_out;
};
template <class Make>
task<bool> in_a_task(Make make, std::chrono::nanoseconds limit) {
    co_return co_await times_out(make(), limit);
}
// Makes every answer around the operations of make().
template <class Make>
std::vector<answer> each_answer(Make make) {
    std::vector<answer> all;
    const auto add = [&all](const char* name, auto answered) {
        all.push_back(
            {name, [=](std::chrono::nanoseconds limit) { return in_a_task(answered, limit); }});
    };
    const auto done = [make] { return make() | ex::then([](auto&&...) {}); };
    add("nothing", done);
    add("upon_stopped", [=] { return done() | ex::upon_stopped([] {}); });
    add("let_stopped", [=] { return done() | ex::let_stopped([] { return ex::just(); }); });
    add("stopped_as_optional",
        [=] { return done() | ex::then([] { return 1; }) | ex::stopped_as_optional; });
    add("stopped_as_error",
        [=] { return done() | ex::stopped_as_error(std::make_error_code(std::errc::io_error)); });
    add("when_any", [=] { return ex::when_any(done(), done()) | ex::upon_stopped([] {}); });
    add("when_all", [=] { return ex::when_all(done(), done()) | ex::upon_stopped([] {}); });
    add("any_sender", [=] { return erased(done() | ex::upon_stopped([] {})); });
    return all;
}
// Erased, so that not every operation is compiled with every answer.
using make_erased = std::function<erased()>;

// Limits around the ticks of a timer wheel.
constexpr std::chrono::nanoseconds limits[] = {0ns, 1us, 300us, 500us, 523'456ns, 1ms, 1'100us};

class answered_timeout : public testing::TestWithParam<io::backend> {
protected:
    void on_loop(task<> work) {
        ex::counting_scope scope;
        ex::spawn(ex::starts_on(loop.get_scheduler(), std::move(work)) |
                      ex::upon_error([](auto&&) noexcept { ADD_FAILURE() << "an exception"; }),
                  scope.get_token());
        loop.run();
        sync_wait(scope.join());
    }
    static task<> each_limit(const char* what, answer answered) {
        for (const std::chrono::nanoseconds limit : limits) {
            const bool late = co_await answered.times_out(limit);
            EXPECT_TRUE(late) << what << ", " << answered.name << ", " << limit.count() << " ns";
        }
    }
    template <class Make>
    void check(const char* what, Make make) {
        for (const answer& each : each_answer(make)) on_loop(each_limit(what, each));
    }
    io::context loop{GetParam()};
    io::timer timer{loop};
};
INSTANTIATE_TEST_SUITE_P(rings, answered_timeout, test::all_rings, test::ring_name);

TEST_P(answered_timeout, of_an_operation_has_timed_out) {
    check("a timer", [this] { return timer.wait_for(1h); });
    check("schedule_after",
          make_erased([this] { return erased(loop.get_scheduler().schedule_after(1h)); }));
    io::tcp::acceptor first(loop, io::loopback(0));
    io::tcp::acceptor second(loop, io::loopback(0));
    int asked = 0;
    check("accept", make_erased([&] {
              io::tcp::acceptor& next = ++asked % 2 == 0 ? first : second;
              return erased(next.accept() | ex::then([](auto&&) {}));
          }));
}

TEST_P(answered_timeout, of_a_task_has_timed_out) {
    const auto waits = [](io::timer& t) -> task<> { co_await t.wait_for(1h); };
    check("a task", [=, this] { return waits(timer); });
}

TEST_P(answered_timeout, of_a_timeout_has_timed_out) {
    check("a longer one",
          make_erased([this] { return erased(ex::timeout(timer.wait_for(1h), 100ms)); }));
    check("an answered one", make_erased([this] {
              return erased(ex::timeout(timer.wait_for(1h) | ex::upon_stopped([] {}), 100ms));
          }));
    for (const std::chrono::nanoseconds limit : limits) {
        const auto same = [=, this] { return erased(ex::timeout(timer.wait_for(1h), limit)); };
        for (const answer& each : each_answer(make_erased(same))) {
            on_loop([](answer answered, std::chrono::nanoseconds time) -> task<> {
                const bool late = co_await answered.times_out(time);
                EXPECT_TRUE(late) << "the same, " << answered.name << ", " << time.count();
            }(each, limit));
        }
    }
}

// These deadlines come from no timeout: the operation ends by itself, and that is answered.
TEST_P(answered_timeout, leaves_other_deadlines_to_the_operation) {
    const auto soon = [this] {
        return ex::prop(ex::get_deadline, ex::instant(loop.now() + std::chrono::milliseconds(1)));
    };
    const auto waits = [](io::timer& t) -> task<> { co_await t.wait_for(1h); };
    const auto stops = [&](const char* what, auto make) {
        on_loop([](auto made, const char* which) -> task<> {
            const bool stopped = co_await (made() | ex::then([] { return false; }) |
                                           ex::upon_stopped([] { return true; }));
            EXPECT_TRUE(stopped) << which;
        }(make, what));
    };
    stops("in front", [&] { return ex::timeout(ex::write_env(timer.wait_for(1h), soon()), 1h); });
    stops("in front of a task",
          [&] { return ex::timeout(ex::write_env(waits(timer), soon()), 1h); });
    stops("in front of an any_sender",
          [&] { return ex::timeout(ex::write_env(erased(timer.wait_for(1h)), soon()), 1h); });
    stops("behind", [&] { return ex::write_env(ex::timeout(timer.wait_for(1h), 1h), soon()); });
    stops("behind two", [&] {
        return ex::write_env(ex::timeout(ex::timeout(timer.wait_for(1h), 1h), 2h), soon());
    });
    stops("behind an any_sender",
          [&] { return ex::write_env(ex::timeout(erased(timer.wait_for(1h)), 1h), soon()); });
    stops("behind a task", [&] { return ex::write_env(ex::timeout(waits(timer), 1h), soon()); });
}

// A loop whose timers do not belong to io.
class loop_thread : immovable {
public:
    auto scheduler() noexcept { return loop_.get_scheduler(); }
    ~loop_thread() {
        loop_.finish();
        runner_.join();
    }

private:
    ex::run_loop loop_;
    std::thread runner_{[this] { loop_.run(); }};
};

// The timer is on sync_wait's loop, and the operation is on another.
void check_elsewhere(const make_erased& make) {
    for (const answer& each : each_answer(make)) {
        for (const std::chrono::nanoseconds limit : limits) {
            EXPECT_EQ(sync_wait(each.times_out(limit)), std::tuple(true))
                << each.name << ", " << limit.count() << " ns";
        }
    }
}

TEST(run_loop_timeout, that_is_answered_has_timed_out) {
    loop_thread other;
    const make_erased make = [&] { return erased(ex::schedule_after(other.scheduler(), 1h)); };
    check_elsewhere(make);
    for (const answer& each : each_answer(make)) {
        for (const std::chrono::nanoseconds limit : limits) {
            EXPECT_EQ(sync_wait(ex::starts_on(other.scheduler(), each.times_out(limit))),
                      std::tuple(true))
                << each.name << ", " << limit.count() << " ns";
        }
    }
}

TEST(other_threads_timeout, that_is_answered_has_timed_out) {
    test::clock_loop clock;
    io::timer timer(clock.loop());
    check_elsewhere([&] { return erased(timer.wait_for(1h)); });
}

// A late value is in time if it comes before the timer does.
TEST(run_loop_timeout, accepts_a_late_value_that_comes_before_the_timer) {
    loop_thread loop;
    const auto slow = [&] {
        return ex::schedule(loop.scheduler()) | ex::then([] {
                   const ex::instant end = ex::monotonic_now() + ex::time_span(20ms);
                   while (ex::monotonic_now() < end) {
                   }
               });
    };
    const auto check = [&](auto sndr) {
        auto limited = ex::starts_on(loop.scheduler(), times_out(std::move(sndr), 10ms));
        EXPECT_EQ(sync_wait(std::move(limited)), std::tuple(false));
    };
    check(slow());
    check(slow() | ex::upon_stopped([] {}));
    check(erased(slow()) | ex::upon_stopped([] {}));
}

}  // namespace
