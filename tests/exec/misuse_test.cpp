// Plan: an operation that is started twice, or destroyed while it is running, ends the process with
// a message that names the algorithm. Misuse of scopes is in scope_test.cpp. The senders are in a
// list.
#include <coppice/execution.hpp>

#include "coroutine.hpp"
#include "probes.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace {

namespace ex = coppice::execution;
using namespace std::chrono_literals;

// What the senders refer to. It outlives their operations.
struct world {
    ex::run_loop loop;
    probes::by_hand hand;
    ex::counting_scope scope;
    coppice::inplace_stop_source source;
};
auto env_of(world& w) {
    return ex::env(ex::prop(ex::get_scheduler, w.loop.get_scheduler()),
                   ex::prop(ex::get_start_scheduler, w.loop.get_scheduler()),
                   ex::prop(coppice::get_stop_token, w.source.get_token()));
}
using receiver = probes::receiver<decltype(env_of(std::declval<world&>()))>;

// Death tests: the process ends inside these functions.
template <class Make>
void start_twice(Make make) {
    world w;
    probes::record r;
    auto op = ex::connect(make(w), receiver(r, env_of(w)));
    ex::start(op);
    ex::start(op);
}
template <class Make>
void destroy_running(Make make) {
    world w;
    probes::record r;
    coppice::manual_lifetime<ex::connect_result_t<decltype(make(w)), receiver>> op;
    op.construct_with([&] { return ex::connect(make(w), receiver(r, env_of(w))); });
    ex::start(op.get());
    op.destroy();
}

template <class Make>
void dies_when_started_twice(const char* says, Make make) {
    EXPECT_DEATH(start_twice(make), says);
}
template <class Make>
void dies_when_destroyed_running(const char* says, Make make) {
    EXPECT_DEATH(destroy_running(make), says);
}

probes::coroutine<int> suspended() {
    co_await std::suspend_always();
    co_return 1;
}

TEST(misuse, an_operation_that_completes_at_once_is_not_started_twice) {
    dies_when_started_twice("operation of just was started twice",
                            [](world&) { return ex::just(1); });
    dies_when_started_twice("operation of just was started twice",
                            [](world&) { return ex::just_error(1); });
    dies_when_started_twice("operation of just was started twice",
                            [](world&) { return ex::just_stopped(); });
    dies_when_started_twice("read_env was started twice",
                            [](world&) { return ex::read_env(coppice::get_stop_token); });
    dies_when_started_twice("inline_scheduler was started twice",
                            [](world&) { return ex::schedule(ex::inline_scheduler()); });
    dies_when_started_twice("operation of just was started twice",
                            [](world&) { return ex::just() | ex::then([] {}); });
    dies_when_started_twice(
        "operation of let_value, _error or _stopped was started twice",
        [](world&) { return ex::just(1) | ex::let_value([](int) { return ex::just(); }); });
    dies_when_started_twice("when_all was started twice",
                            [](world&) { return ex::when_all(ex::just(), ex::just()); });
    dies_when_started_twice("when_any was started twice",
                            [](world&) { return ex::when_any(ex::just(), ex::just()); });
    dies_when_started_twice("when_all_range was started twice",
                            [](world&) { return ex::when_all_range(std::vector(2, ex::just())); });
    dies_when_started_twice("timeout was started twice",
                            [](world&) { return ex::timeout(ex::just(), 1h); });
    dies_when_started_twice("repeat_until or retry was started twice",
                            [](world&) { return ex::just(true) | ex::repeat_until(); });
    dies_when_started_twice("repeat_until or retry was started twice",
                            [](world&) { return ex::just(1) | ex::retry(); });
    dies_when_started_twice("split was started twice",
                            [](world&) { return ex::just(1) | ex::split(); });
    dies_when_started_twice("spawn_future was started twice", [](world& w) {
        return ex::spawn_future(ex::just(1), w.scope.get_token());
    });
    dies_when_started_twice("associate was started twice", [](world& w) {
        w.scope.close();
        return ex::associate(ex::just(1), w.scope.get_token());
    });
    dies_when_started_twice("join was started twice", [](world& w) { return w.scope.join(); });
    using any = ex::any_sender<ex::completion_signatures<ex::set_value_t(int)>>;
    dies_when_started_twice("operation of just was started twice",
                            [](world&) { return any(ex::just(1)); });
}

TEST(misuse, an_operation_that_completes_later_is_not_started_twice) {
    dies_when_started_twice("on a run_loop was started twice",
                            [](world& w) { return ex::schedule(w.loop.get_scheduler()); });
    dies_when_started_twice("timer on a run_loop was started twice", [](world& w) {
        return ex::schedule_after(w.loop.get_scheduler(), 1h);
    });
    dies_when_started_twice("operation of just was started twice", [](world& w) {
        return ex::just() | ex::continues_on(w.loop.get_scheduler());
    });
    dies_when_started_twice("on a run_loop was started twice", [](world& w) {
        return ex::starts_on(w.loop.get_scheduler(), ex::just());
    });
    dies_when_started_twice("on a run_loop was started twice",
                            [](world& w) { return ex::on(w.loop.get_scheduler(), ex::just()); });
    dies_when_started_twice("parallel_scheduler was started twice",
                            [](world&) { return ex::schedule(ex::get_parallel_scheduler()); });
    dies_when_started_twice("operation of an awaitable was started twice",
                            [](world&) { return suspended(); });
}

TEST(misuse, an_operation_is_not_destroyed_while_it_is_running) {
    dies_when_destroyed_running("on a run_loop was destroyed while it was queued",
                                [](world& w) { return ex::schedule(w.loop.get_scheduler()); });
    dies_when_destroyed_running(
        "a timer on a run_loop was destroyed while it was running",
        [](world& w) { return ex::schedule_after(w.loop.get_scheduler(), 1h); });
    dies_when_destroyed_running("on a run_loop was destroyed while it was queued", [](world& w) {
        return ex::schedule(w.loop.get_scheduler()) | ex::then([] {});
    });
    dies_when_destroyed_running("when_all was destroyed while it was running",
                                [](world& w) { return ex::when_all(ex::just(), w.hand.get()); });
    dies_when_destroyed_running("when_all was destroyed while it was running", [](world& w) {
        return ex::when_all(w.hand.get()) | ex::let_value([](int) { return ex::just(); });
    });
    dies_when_destroyed_running("when_any was destroyed while it was running", [](world& w) {
        return ex::when_any(w.hand.get(), probes::until_stopped());
    });
    dies_when_destroyed_running("when_all_range was destroyed while it was running", [](world& w) {
        return ex::when_all_range(std::vector(1, w.hand.get()));
    });
    dies_when_destroyed_running("timeout was destroyed while it was running",
                                [](world& w) { return ex::timeout(w.hand.get(), 1h); });
    dies_when_destroyed_running(
        "repeat_until or retry was destroyed while it was running", [](world& w) {
            return w.hand.get() | ex::then([](int) { return true; }) | ex::repeat_until();
        });
    dies_when_destroyed_running("repeat_until or retry was destroyed while it was running",
                                [](world& w) { return w.hand.get() | ex::retry(); });
    dies_when_destroyed_running("split was destroyed while it was running",
                                [](world& w) { return w.hand.get() | ex::split(); });
    dies_when_destroyed_running("spawn_future was destroyed while it was running", [](world& w) {
        return ex::spawn_future(w.hand.get(), w.scope.get_token());
    });
    dies_when_destroyed_running("join was destroyed while it waited", [](world& w) {
        ex::spawn(w.hand.get() | ex::upon_error([](int) noexcept { return 0; }) |
                      ex::then([](int) noexcept {}),
                  w.scope.get_token());
        return w.scope.join();
    });
}

}  // namespace
