// Plan: scoped in a task: results, exceptions of the body and of nested tasks, stops, nested spawns
// from many threads.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/execution.hpp>
#include <coppice/task.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>

namespace {

namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;

ex::task<void> add(coppice::internal::atomic<int>& sum, int n) {
    sum.fetch_add(n, coppice::internal::relaxed);
    co_return;
}
ex::task<void> fails() {
    throw std::runtime_error("nested");
    co_return;
}

TEST(scoped_in_a_task, waits_for_nested_tasks_and_returns_the_result) {
    coppice::internal::atomic<int> sum{0};
    const auto run = [](coppice::internal::atomic<int>& all) -> ex::task<int> {
        const int result = co_await ex::scoped([&all](auto scope) -> ex::task<int> {
            for (int i = 1; i != 11; ++i) ex::spawn(add(all, i), scope);
            co_return 7;
        });
        co_return result * 1000 + all.load(coppice::internal::relaxed);
    };
    EXPECT_EQ(std::get<0>(*sync_wait(run(sum))), 7055);
}

TEST(scoped_in_a_task, an_exception_joins_the_spawned_work_and_leaves) {
    coppice::internal::atomic<int> sum{0};
    const auto run = [](coppice::internal::atomic<int>& all) -> ex::task<std::string> {
        try {
            co_await ex::scoped([&all](auto scope) -> ex::task<void> {
                ex::spawn(ex::starts_on(ex::get_parallel_scheduler(), add(all, 1)), scope);
                ex::spawn(ex::starts_on(ex::get_parallel_scheduler(), add(all, 1)), scope);
                throw std::runtime_error("the body");
                co_return;
            });
        } catch (const std::runtime_error& e) {
            co_return std::string(e.what()) + " after " +
                std::to_string(all.load(coppice::internal::relaxed));
        }
        co_return "";
    };
    // The two may have been stopped before they began, but both have ended.
    const std::string said = std::get<0>(*sync_wait(run(sum)));
    EXPECT_EQ(said, "the body after " + std::to_string(sum.load(coppice::internal::relaxed)));
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

// A tree of tasks, each of which spawns its children into the one scope.
template <class Scope>
ex::task<void> grow(Scope scope, coppice::internal::atomic<int>& nodes, int depth) {
    nodes.fetch_add(1, coppice::internal::relaxed);
    for (int i = 0; i != 2 && depth != 0; ++i) ex::spawn(grow(scope, nodes, depth - 1), scope);
    co_return;
}

TEST(scoped_in_a_task, nested_tasks_spawn_more_from_many_threads) {
    coppice::internal::atomic<int> nodes{0};
    const auto run = [](coppice::internal::atomic<int>& all) -> ex::task<void> {
        co_await ex::scoped([&all](auto scope) -> ex::task<void> {
            for (int i = 0; i != 4; ++i) {
                ex::spawn(ex::starts_on(ex::get_parallel_scheduler(), grow(scope, all, 6)), scope);
            }
            co_return;
        });
    };
    sync_wait(run(nodes));
    EXPECT_EQ(nodes.load(coppice::internal::relaxed), 4 * 127);
}

}  // namespace
