// Operations that wait for others, stopped in every way: algorithms, scopes, tasks, and contracts.
#include <coppice/contract.hpp>
#include <coppice/generator.hpp>

#include "every_operation.hpp"

#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
using namespace std::chrono_literals;

class every_operation_of_exec : public testing::Test {
protected:
    void check(waiting_operation op) {
        on_loop{loop}(stop_in_every_way(loop, without_clock(std::move(op)), true));
    }
    // An algorithm around an operation that never ends, and around one that does.
    template <class Algorithm>
    void around(const char* name, Algorithm algorithm) {
        check(waits_never_again(
            name, [this, algorithm] { return algorithm(timer.wait_for(1h)); },
            [this, algorithm] { return algorithm(timer.wait_for(0ms)); }));
    }

    io::context loop;
    io::timer timer{loop};
};

constexpr auto nothing = [](auto&&...) noexcept {};

TEST_F(every_operation_of_exec, adaptors_end_by_every_kind_of_stop) {
    around("then", [](auto s) { return ex::then(std::move(s), nothing); });
    around("upon_error", [](auto s) { return ex::upon_error(std::move(s), nothing); });
    around("let_value", [](auto s) {
        return ex::let_value(std::move(s), []() noexcept { return ex::just(); });
    });
    around("let_async_scope", [](auto s) {
        return ex::let_async_scope(std::move(s), [](auto&&...) noexcept { return ex::just(); });
    });
    around("scoped", [](auto s) {
        return ex::scoped([s = std::move(s)](auto) mutable { return std::move(s); });
    });
    around("let_error", [](auto s) {
        return ex::let_error(std::move(s), [](auto&&) noexcept { return ex::just(); });
    });
    around("into_variant", [](auto s) { return ex::into_variant(std::move(s)); });
    around("write_env", [](auto s) {
        return ex::write_env(std::move(s), ex::prop(get_allocator, std::allocator<int>()));
    });
    around("stop_when", [](auto s) { return ex::stop_when(std::move(s), inplace_stop_token()); });
    around("timeout", [](auto s) { return ex::timeout(std::move(s), 2h); });
}

TEST_F(every_operation_of_exec, joins_end_by_every_kind_of_stop) {
    around("when_all", [this](auto s) { return ex::when_all(std::move(s), timer.wait_for(0ms)); });
    around("when_all_with_variant",
           [this](auto s) { return ex::when_all_with_variant(std::move(s), timer.wait_for(0ms)); });
    around("when_all_range", [](auto s) {
        std::vector<decltype(s)> all;
        all.push_back(std::move(s));
        return ex::when_all_range(std::move(all));
    });
    around("when_any", [this](auto s) { return ex::when_any(std::move(s), timer.wait_for(2h)); });
    const auto again = [this](bool value, std::chrono::nanoseconds time) {
        return ex::just() | ex::let_value([this, time]() { return timer.wait_for(time); }) |
               ex::then([value] { return value; });
    };
    const auto erased = [](auto s) { return any_operation(ex::then(std::move(s), nothing)); };
    check(waits_never_again(
        "repeat_until", [=] { return erased(ex::repeat_until(again(false, 1us))); },
        [=] { return erased(ex::repeat_until(again(true, 0ms))); }));
    check(waits_never_again(
        "retry", [=] { return erased(ex::retry(again(true, 1h))); },
        [=] { return erased(ex::retry(again(true, 0ms))); }));
}

TEST_F(every_operation_of_exec, changes_of_scheduler_end_by_every_kind_of_stop) {
    const auto here = loop.get_scheduler();
    around("starts_on", [here](auto s) { return ex::starts_on(here, std::move(s)); });
    around("continues_on", [here](auto s) { return ex::continues_on(std::move(s), here); });
    around("on", [here](auto s) { return ex::starts_on(here, ex::on(here, std::move(s))); });
    around("affine", [here](auto s) { return ex::starts_on(here, ex::affine(std::move(s))); });
}

TEST_F(every_operation_of_exec, shared_and_spawned_work_ends_by_every_kind_of_stop) {
    around("split", [](auto s) { return ex::split(std::move(s)); });
    ex::counting_scope scope;
    around("associate", [&](auto s) { return ex::associate(std::move(s), scope.get_token()); });
    around("spawn_future",
           [&](auto s) { return ex::spawn_future(std::move(s), scope.get_token()); });
    on_loop{loop}([](ex::counting_scope& s) -> task<> { co_await s.join(); }(scope));
}

task<> both(io::timer& timer, std::chrono::nanoseconds time) {
    const auto one = [](io::timer& t, std::chrono::nanoseconds d) -> task<> {
        co_await t.wait_for(d);
    };
    co_await wait_for_tasks(one(timer, time), one(timer, time));
}

task<> several(io::timer& timer, std::chrono::nanoseconds time) {
    const auto one = [&timer, time](int) { return timer.wait_for(time); };
    co_await for_each_bounded(std::vector<int>(1), 2, one);
}

async_generator<int> one_element(io::timer& timer, std::chrono::nanoseconds time) {
    co_await timer.wait_for(time);
    co_yield 1;
}
task<> next_of(io::timer& timer, std::chrono::nanoseconds time) {
    auto elements = one_element(timer, time);
    co_await elements.next();
}
task<> awaits_shared(io::timer& timer, std::chrono::nanoseconds time) {
    const auto work = [](io::timer& t, std::chrono::nanoseconds d) -> shared_task<> {
        co_await t.wait_for(d);
    };
    co_await work(timer, time);
}

TEST_F(every_operation_of_exec, waits_for_tasks_end_by_every_kind_of_stop) {
    check(waits_never_again(
        "an element of an async generator", [this] { return next_of(timer, 1h); },
        [this] { return next_of(timer, 0ms); }));
    check(waits_never_again(
        "shared_task", [this] { return awaits_shared(timer, 1h); },
        [this] { return awaits_shared(timer, 0ms); }));
    check(waits_never_again(
        "wait_for_tasks", [this] { return both(timer, 1h); }, [this] { return both(timer, 0ms); }));
    check(waits_never_again(
        "for_each_bounded", [this] { return several(timer, 1h); },
        [this] { return several(timer, 0ms); }));
}

TEST_F(every_operation_of_exec, waits_for_a_run_loop_or_a_contract_end_by_every_kind_of_stop) {
    ex::run_loop other;
    std::thread runner([&] { other.run(); });
    const auto scheduler = other.get_scheduler();
    const auto back = [this](auto s) { return ex::continues_on(s, loop.get_scheduler()); };
    auto timer_of_other = waits_never_again(
        "scheduler::schedule_after of a run_loop",
        [&] { return back(scheduler.schedule_after(1h)); },
        [&] { return back(scheduler.schedule_after(0ms)); });
    on_loop{loop}(stop_in_every_way(loop, std::move(timer_of_other), true));  // has a clock
    other.finish();
    runner.join();

    work_contract_group group(8);
    work_contract contract = group.create_contract([] {});
    check(waits(
        "work_contract::completion", [&] { return contract.completion(); },
        [&]() -> task<> {
            contract.release();
            group.execute_next_contract();
            co_return;
        }));
}

}  // namespace
