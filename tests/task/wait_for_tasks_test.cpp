// task/wait_for_tasks.hpp: results of l- and r-values, exceptions, stops, and depth. For a pool see
// tests/pool/task_test.cpp.
#include <coppice/task/wait_for_tasks.hpp>

#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/task/internal/task_join.hpp>

#include "allocations.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <tuple>
#include <variant>
#include <vector>

namespace {

namespace ex = coppice::execution;
using coppice::task;
using coppice::wait_for_tasks;
using coppice::this_thread::sync_wait;

task<int> number(int n) {
    co_return n;
}
task<> note(std::vector<int>& order, int n) {
    order.push_back(n);
    co_return;
}
task<int> thrower(const char* what) {
    throw std::runtime_error(what);
    co_return 0;
}

TEST(wait_for_tasks, returns_the_results_of_r_values_in_order) {
    auto body = []() -> task<bool> {
        auto [a, b] = co_await wait_for_tasks(number(1), number(2));
        std::vector<int> order;
        std::tuple<std::monostate, int> mixed = co_await wait_for_tasks(note(order, 1), number(3));
        co_return a == 1 && b == 2 && std::get<1>(mixed) == 3 && order.size() == 1;
    };
    EXPECT_EQ(sync_wait(body()), std::tuple(true));
}

TEST(wait_for_tasks, l_values_keep_their_results) {
    auto body = []() -> task<int> {
        task<int> a = number(40);
        task<int> b = number(2);
        co_await wait_for_tasks(a, b);
        const int first = co_await std::move(a);
        co_return first + std::move(b).get();
    };
    EXPECT_EQ(sync_wait(body()), std::tuple(42));
}

TEST(wait_for_tasks, mixes_l_and_r_values) {
    auto body = []() -> task<int> {
        task<int> a = number(1);
        auto [b] = co_await wait_for_tasks(a, number(2));
        auto [c, d] = co_await wait_for_tasks(number(3), number(4));
        co_return std::move(a).get() * 1000 + b * 100 + c * 10 + d;
    };
    EXPECT_EQ(sync_wait(body()), std::tuple(1234));
}

TEST(wait_for_tasks, off_a_pool_runs_the_tasks_in_order) {
    std::vector<int> order;
    auto body = [&]() -> task<> {
        co_await wait_for_tasks(note(order, 1), note(order, 2), note(order, 3));
    };
    sync_wait(body());
    EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

TEST(wait_for_tasks, throws_the_first_exception_of_an_r_value_after_all_have_ended) {
    std::vector<int> order;
    auto body = [&]() -> task<std::string> {
        try {
            co_await wait_for_tasks(note(order, 1), thrower("second"), note(order, 3),
                                    thrower("fourth"));
        } catch (const std::runtime_error& error) {
            co_return error.what();
        }
        co_return "nothing";
    };
    EXPECT_EQ(sync_wait(body()), std::tuple(std::string("second")));
    EXPECT_EQ(order, (std::vector{1, 3}));
}

TEST(wait_for_tasks, a_failure_that_was_caught_is_forgotten) {
    auto once = [](bool fails) -> task<int> {
        task<int> second = fails ? thrower("now and then") : number(2);
        const auto [a, b, c] = co_await wait_for_tasks(number(1), std::move(second), number(3));
        co_return a * 100 + b * 10 + c;
    };
    auto body = [&]() -> task<std::vector<int>> {
        std::vector<int> got;
        for (const bool fails : {true, false, true, true, false}) {
            try {
                got.push_back(co_await once(fails));
            } catch (const std::runtime_error&) {
                got.push_back(0);
            }
        }
        const auto [a, b] = co_await wait_for_tasks(once(false), number(4));
        got.push_back(a + b);
        co_return got;
    };
    EXPECT_EQ(sync_wait(body()), std::tuple(std::vector{0, 123, 0, 0, 123, 127}));
}

TEST(wait_for_tasks, results_of_the_siblings_of_a_failed_task_are_destroyed) {
    auto counted = std::make_shared<int>(7);
    auto gives = [&]() -> task<std::shared_ptr<int>> { co_return counted; };
    auto body = [&]() -> task<int> {
        try {
            const auto [a, none, b] = co_await wait_for_tasks(gives(), thrower("beside"), gives());
            co_return *a + none + *b;
        } catch (const std::runtime_error&) {
            co_return static_cast<int>(counted.use_count());
        }
    };
    EXPECT_EQ(sync_wait(body()), std::tuple(1));
}

struct refusing_env {
    refusing_env() { throw std::runtime_error("no environment"); }
};
task<int, refusing_env> never_runs(std::shared_ptr<int>) {
    co_return 1;
}

TEST(wait_for_tasks, destroys_the_tasks_if_the_environment_cannot_be_made) {
    const auto counted = std::make_shared<int>(0);
    auto refused = [&](bool two) -> task<bool> {
        try {
            if (two) {
                co_await wait_for_tasks(never_runs(counted), never_runs(counted));
            } else {
                co_await never_runs(counted);
            }
        } catch (const std::runtime_error&) {
            co_return true;
        }
        co_return false;
    };
    EXPECT_EQ(sync_wait(refused(false)), std::tuple(true));
    EXPECT_EQ(sync_wait(refused(true)), std::tuple(true));
    EXPECT_EQ(counted.use_count(), 1);
}

TEST(wait_for_tasks, the_exception_of_an_l_value_is_thrown_when_its_result_is_read) {
    auto body = []() -> task<bool> {
        task<int> fails = thrower("kept");
        task<int> works = number(1);
        co_await wait_for_tasks(fails, works);
        EXPECT_EQ(std::move(works).get(), 1);
        EXPECT_THROW(std::move(fails).get(), std::runtime_error);
        task<int> again = thrower("kept");
        co_await wait_for_tasks(again);
        try {
            co_await std::move(again);
        } catch (const std::runtime_error&) {
            co_return true;
        }
        co_return false;
    };
    EXPECT_EQ(sync_wait(body()), std::tuple(true));
}

TEST(wait_for_tasks, an_l_value_that_ended_with_an_error_keeps_it) {
    struct code_env {
        using error_types = ex::completion_signatures<ex::set_error_t(std::exception_ptr),
                                                      ex::set_error_t(std::error_code)>;
    };
    auto body = []() -> task<int, code_env> {
        auto fails = []() -> task<int, code_env> {
            co_yield coppice::with_error(std::make_error_code(std::errc::timed_out));
            co_return 1;
        };
        task<int, code_env> awaited = fails(), read = fails();
        co_await wait_for_tasks(awaited, read);
        int seen = 0;
        try {
            co_await std::move(awaited);
        } catch (const std::system_error& error) {
            seen += error.code() == std::errc::timed_out ? 1 : 0;
        }
        EXPECT_THROW(std::move(read).get(), std::system_error);
        co_return seen;
    };
    EXPECT_EQ(sync_wait(body()), std::tuple(1));
}

TEST(wait_for_tasks, off_a_pool_a_task_that_suspends_lets_the_next_one_start) {
    std::vector<int> order;
    auto waits = [](std::vector<int>& o) -> task<> {
        o.push_back(1);
        co_await ex::schedule(co_await ex::read_env(ex::get_scheduler));
        o.push_back(3);
    };
    auto body = [&]() -> task<> {
        co_await wait_for_tasks(waits(order), note(order, 2));
        order.push_back(4);
    };
    sync_wait(body());
    EXPECT_EQ(order, (std::vector{1, 2, 3, 4}));
}

TEST(wait_for_tasks, a_task_that_was_waited_for_cannot_be_waited_for_again) {
    EXPECT_DEATH(
        {
            auto twice = []() -> task<> {
                task<int> a = number(1);
                co_await wait_for_tasks(a);
                co_await wait_for_tasks(a);
            };
            sync_wait(twice());
        },
        "waited for twice");
}

TEST(wait_for_tasks, reading_a_result_does_not_run_the_task_again) {
    std::vector<int> order;
    auto body = [&]() -> task<> {
        task<> once = note(order, 1);
        co_await wait_for_tasks(once);
        co_await std::move(once);
    };
    sync_wait(body());
    EXPECT_EQ(order.size(), 1u);
}

TEST(wait_for_tasks, a_stop_ends_the_waiting_task_when_all_have_ended) {
    std::vector<int> order;
    bool went_on = false;
    auto stops = []() -> task<> { co_await ex::just_stopped(); };
    auto body = [&]() -> task<> {
        co_await wait_for_tasks(note(order, 1), stops(), note(order, 3));
        went_on = true;
    };
    EXPECT_EQ(sync_wait(body()), std::nullopt);
    EXPECT_FALSE(went_on);
    EXPECT_EQ(order, (std::vector{1, 3}));
}

task<long> fib(int n) {
    if (n < 2) co_return n;
    const auto [a, b] = co_await wait_for_tasks(fib(n - 1), fib(n - 2));
    co_return a + b;
}
task<long> chain(long n) {
    if (n == 0) co_return 0;
    const auto [rest, one] = co_await wait_for_tasks(chain(n - 1), number(1));
    co_return rest + one;
}

TEST(wait_for_tasks, waits_may_be_nested) {
    EXPECT_EQ(sync_wait(fib(15)), std::tuple(610L));
    EXPECT_EQ(sync_wait(chain(100'000)), std::tuple(100'000L));
}

TEST(wait_for_tasks, steady_state_allocates_nothing) {
    auto body = []() -> task<std::size_t> {
        co_await fib(12);
        const coppice::test::allocation_count count;
        co_await fib(12);
        co_return count.so_far();
    };
    EXPECT_EQ(sync_wait(body()), std::tuple(0u));
}

TEST(wait_for_tasks_death, get_of_a_task_that_was_not_run_stops_the_process) {
    EXPECT_DEATH((void)number(1).get(), "has not been run");
}

}  // namespace
