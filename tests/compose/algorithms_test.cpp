// Plan: every algorithm of room exec is awaited in a task, and is a child of when_all, timeout and
// spawn, where a receiver takes what is declared and nothing else.
#include <coppice/base/atomic.hpp>
#include <coppice/execution.hpp>
#include <coppice/task.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;

// Whatever it sends, nothing is left of it.
template <class Sndr>
auto quiet(Sndr sndr) {
    return std::move(sndr) | ex::then([](auto&&...) noexcept {}) |
           ex::upon_error([](auto&&) noexcept {}) | ex::upon_stopped([]() noexcept {});
}

template <class Make>
ex::task<void> awaits(Make make) {
    co_await make();
    try {
        co_await (make() | ex::then([](auto&&...) { throw std::runtime_error("after"); }));
        throw std::logic_error("not reached");
    } catch (const std::runtime_error&) {
    }
}

// make() gives a sender of one value completion.
template <class Make>
void works(Make make) {
    EXPECT_TRUE(sync_wait(awaits(make)).has_value());
    EXPECT_TRUE(sync_wait(quiet(ex::when_all(make(), ex::just()))).has_value());
    EXPECT_TRUE(sync_wait(quiet(ex::timeout(make(), ex::time_span(3'600'000'000'000)))));
    EXPECT_TRUE(sync_wait(ex::scoped([make](auto scope) { ex::spawn(quiet(make()), scope); })));
    ex::counting_scope scope;
    ex::run_loop loop;
    ex::spawn(quiet(make()), scope.get_token(),
              ex::env(ex::prop(ex::get_start_scheduler, loop.get_scheduler()),
                      ex::prop(ex::get_scheduler, loop.get_scheduler())));
    std::thread runner([&loop] { loop.run(); });
    sync_wait(scope.join());
    loop.finish();
    runner.join();
}

TEST(algorithms, loops_work_in_tasks_joins_timeouts_and_scopes) {
    works([] { return ex::just(true) | ex::repeat_until; });
    works([] { return ex::just(1) | ex::retry; });
    int rounds = 0;
    works([&rounds] {
        rounds = 0;
        return ex::just() | ex::let_value([&rounds] {
                   if (++rounds < 5) throw rounds;
                   return ex::just(rounds);
               }) |
               ex::retry;
    });
}

TEST(algorithms, adaptors_work_in_tasks_joins_timeouts_and_scopes) {
    works([] { return ex::just(1) | ex::then([](int i) { return i; }); });
    works([] { return ex::just(1) | ex::let_value([](int& i) { return ex::just(i); }); });
    works([] { return ex::just_error(1) | ex::let_error([](int& i) { return ex::just(i); }); });
    works([] { return ex::just_stopped() | ex::let_stopped([] { return ex::just(1); }); });
    works([] { return ex::just(1) | ex::into_variant; });
    works([] { return ex::just(1) | ex::stopped_as_optional; });
    works([] { return ex::just(1) | ex::stopped_as_error(2); });
    works([] { return ex::just(1) | ex::unstoppable; });
    works([] { return ex::just(1) | ex::bulk(ex::par, 3, [](int, int&) {}); });
    works([] { return ex::read_env(coppice::get_stop_token); });
}

TEST(algorithms, moves_work_in_tasks_joins_timeouts_and_scopes) {
    const auto pool = ex::get_parallel_scheduler();
    works([pool] { return ex::schedule(pool); });
    works([pool] { return ex::just(1) | ex::continues_on(pool); });
    works([pool] { return ex::starts_on(pool, ex::just(1)); });
    works([pool] { return ex::on(pool, ex::just(1)); });
    works([] { return ex::just(1) | ex::affine; });
    works([] { return ex::schedule(ex::inline_scheduler()); });
}

TEST(algorithms, joins_work_in_tasks_joins_timeouts_and_scopes) {
    works([] { return ex::when_all(ex::just(1), ex::just(2)); });
    works([] { return ex::when_all_with_variant(ex::just(1), ex::just(2)); });
    works([] { return ex::when_any(ex::just(1), ex::just(2)); });
    works([] { return ex::when_all_range(std::vector(2, ex::just(1))); });
    works([] { return ex::timeout(ex::just(1), ex::time_span(3'600'000'000'000)); });
}

TEST(algorithms, what_keeps_a_state_works_in_tasks_joins_timeouts_and_scopes) {
    using any = ex::any_sender<ex::completion_signatures<
        ex::set_value_t(int), ex::set_error_t(std::exception_ptr), ex::set_stopped_t()>>;
    works([] { return ex::just(1) | ex::split; });
    works([] { return any(ex::just(1)); });
    works([] { return ex::scoped([](auto) { return ex::just(1); }); });
    works([] {
        return ex::scoped(
            [](auto scope) { return ex::spawn_future(ex::just(1), scope) | ex::into_variant; });
    });
    works([] { return ex::scoped([](auto scope) { return ex::just(1) | ex::associate(scope); }); });
}

// ---- scoped, in tasks ------------------------------------------------------------------------

ex::task<void> add(coppice::atomic<int>& sum, int n) {
    sum.fetch_add(n, coppice::relaxed);
    co_return;
}
ex::task<void> fails() {
    throw std::runtime_error("nested");
    co_return;
}

TEST(scoped_in_a_task, waits_for_nested_tasks_and_gives_the_result) {
    coppice::atomic<int> sum{0};
    const auto run = [](coppice::atomic<int>& all) -> ex::task<int> {
        const int result = co_await ex::scoped([&all](auto scope) -> ex::task<int> {
            for (int i = 1; i != 11; ++i) ex::spawn(add(all, i), scope);
            co_return 7;
        });
        co_return result * 1000 + all.load(coppice::relaxed);
    };
    EXPECT_EQ(std::get<0>(*sync_wait(run(sum))), 7055);
}

TEST(scoped_in_a_task, an_exception_joins_what_was_spawned_and_leaves) {
    coppice::atomic<int> sum{0};
    const auto run = [](coppice::atomic<int>& all) -> ex::task<std::string> {
        try {
            co_await ex::scoped([&all](auto scope) -> ex::task<void> {
                ex::spawn(ex::starts_on(ex::get_parallel_scheduler(), add(all, 1)), scope);
                ex::spawn(ex::starts_on(ex::get_parallel_scheduler(), add(all, 1)), scope);
                throw std::runtime_error("the body");
                co_return;
            });
        } catch (const std::runtime_error& e) {
            co_return std::string(e.what()) + " after " +
                std::to_string(all.load(coppice::relaxed));
        }
        co_return "";
    };
    // The two may have been stopped before they began; but they have ended.
    const std::string said = std::get<0>(*sync_wait(run(sum)));
    EXPECT_EQ(said, "the body after " + std::to_string(sum.load(coppice::relaxed)));
}

TEST(scoped_in_a_task, an_exception_of_nested_work_stops_the_rest_and_is_thrown) {
    const auto run = []() -> ex::task<std::string> {
        try {
            co_await ex::scoped([](auto scope) -> ex::task<void> {
                ex::spawn(fails(), scope);
                co_await ex::schedule_after(co_await ex::read_env(ex::get_start_scheduler),
                                            ex::time_span(3'600'000'000'000));
            });
        } catch (const std::runtime_error& e) {
            co_return e.what();
        }
        co_return "";
    };
    EXPECT_EQ(std::get<0>(*sync_wait(run())), "nested");
}

TEST(scoped_in_a_task, a_stop_ends_it_and_all_nested_work) {
    coppice::inplace_stop_source source;
    std::thread stopper;
    const auto hour = [](auto sch) {
        return ex::schedule_after(sch, ex::time_span(3'600'000'000'000));
    };
    const auto run = [hour](coppice::inplace_stop_source& s, std::thread& t) -> ex::task<void> {
        const auto sch = co_await ex::read_env(ex::get_start_scheduler);
        co_await ex::scoped([&](auto scope) -> ex::task<void> {
            for (int i = 0; i != 3; ++i) ex::spawn(hour(sch), scope);
            t = std::thread([&s] { s.request_stop(); });
            co_await hour(sch);
        });
    };
    const auto result = sync_wait(
        ex::write_env(run(source, stopper), ex::prop(coppice::get_stop_token, source.get_token())));
    EXPECT_FALSE(result.has_value());
    stopper.join();
}

// A tree of tasks, each of which spawns its children into the scope of them all.
template <class Scope>
ex::task<void> grow(Scope scope, coppice::atomic<int>& nodes, int depth) {
    nodes.fetch_add(1, coppice::relaxed);
    for (int i = 0; i != 2 && depth != 0; ++i) ex::spawn(grow(scope, nodes, depth - 1), scope);
    co_return;
}

TEST(scoped_in_a_task, nested_tasks_spawn_more_from_many_threads) {
    coppice::atomic<int> nodes{0};
    const auto run = [](coppice::atomic<int>& all) -> ex::task<void> {
        co_await ex::scoped([&all](auto scope) -> ex::task<void> {
            for (int i = 0; i != 4; ++i) {
                ex::spawn(ex::starts_on(ex::get_parallel_scheduler(), grow(scope, all, 6)), scope);
            }
            co_return;
        });
    };
    sync_wait(run(nodes));
    EXPECT_EQ(nodes.load(coppice::relaxed), 4 * 127);
}

}  // namespace
