// task/shared_task.hpp: one run, and its result or failure for everything that awaits it.
#include <coppice/task/shared_task.hpp>

#include <coppice/exec/just.hpp>
#include <coppice/exec/sync_wait.hpp>

#include "shared_tasks.hpp"
#include "turnstile.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace {

namespace ex = coppice::execution;
using coppice::shared_task;
using coppice::task;
using coppice::test::counted;
using coppice::test::run;
using coppice::test::turnstile;
using coppice::test::waiter;
using coppice::this_thread::sync_wait;

static_assert(std::is_copy_constructible_v<shared_task<>>);
static_assert(std::is_nothrow_move_constructible_v<shared_task<>>);
static_assert(ex::sender<shared_task<int>>);

TEST(shared_task, runs_once_when_it_is_first_awaited_and_gives_all_the_same_object) {
    int runs = 0;
    const auto s = counted(runs);
    EXPECT_EQ(runs, 0);
    EXPECT_FALSE(s.is_ready());
    const auto body = [](shared_task<std::string> shared) -> task<const std::string*> {
        const std::string& first = co_await shared;
        const std::string& again = co_await shared;
        EXPECT_EQ(&first, &again);
        EXPECT_EQ(first, "result");
        co_return &first;
    };
    EXPECT_EQ(run(body(s)), run(body(s)));
    EXPECT_EQ(runs, 1);
    EXPECT_TRUE(s.is_ready());
}

TEST(shared_task, gives_references_move_only_values_and_nothing) {
    int object = 1;
    const auto reference = [](int& o) -> shared_task<int&> { co_return o; };
    const auto owner = []() -> shared_task<std::unique_ptr<int>> {
        co_return std::make_unique<int>(7);
    };
    const auto nothing = []() -> shared_task<> { co_return; };
    const auto body = [&]() -> task<> {
        const auto r = reference(object);
        int& same = co_await r;
        EXPECT_EQ(&same, &object);
        const auto o = owner();
        const std::unique_ptr<int>& pointer = co_await o;
        EXPECT_EQ(*pointer, 7);
        const auto n = nothing();
        co_await n;
        co_await n;
        const int sum = same + *co_await owner();  // a temporary lives until the statement's end
        EXPECT_EQ(sum, 8);
    };
    run(body());
}

TEST(shared_task, is_made_of_a_task) {
    const auto child = [](int i) -> task<int> { co_return i; };
    const shared_task<int> s = child(3);
    EXPECT_EQ(sync_wait(s), std::tuple(3));
    EXPECT_EQ(sync_wait(s), std::tuple(3));
}

TEST(shared_task, throws_its_exception_to_each_waiter) {
    const auto fails = [](turnstile* gate) -> shared_task<int> {
        if (gate != nullptr) co_await gate->wait();
        throw std::runtime_error("lost");
    };
    const auto catches = [](shared_task<int> s) -> task<bool> {
        try {
            co_await s;
        } catch (const std::runtime_error& e) {
            co_return std::string(e.what()) == "lost";
        }
        co_return false;
    };
    const auto s = fails(nullptr);
    for (int i = 0; i != 3; ++i) EXPECT_TRUE(run(catches(s)));
    EXPECT_THROW(sync_wait(s), std::runtime_error);
    turnstile gate;
    const auto later = fails(&gate);
    waiter a(later);
    waiter b(later);
    ex::start(a.op);
    ex::start(b.op);
    gate.let_pass();
    EXPECT_EQ(a.seen.errors, 1);
    EXPECT_EQ(b.seen.errors, 1);
}

TEST(shared_task, a_result_whose_move_throws_is_an_error) {
    struct fragile {
        fragile() = default;
        fragile(fragile&&) { throw std::runtime_error("moved"); }
    };
    const auto gives = []() -> shared_task<fragile> { co_return {}; };
    const auto body = [&]() -> task<bool> {
        const auto s = gives();
        bool caught = false;
        try {
            co_await s;
        } catch (const std::runtime_error&) {
            caught = true;
        }
        co_return caught;
    };
    EXPECT_TRUE(run(body()));
}

TEST(shared_task, that_is_stopped_stops_all_its_waiters) {
    const auto stops = []() -> shared_task<int> {
        co_await ex::just_stopped();
        co_return 1;
    };
    const auto s = stops();
    const auto body = [](shared_task<int> shared) -> task<> {
        co_await shared;
        ADD_FAILURE() << "the waiter went on";
    };
    EXPECT_FALSE(sync_wait(body(s)).has_value());
    EXPECT_FALSE(sync_wait(body(s)).has_value());
    EXPECT_FALSE(sync_wait(s).has_value());
}

// ---- Misuse -------------------------------------------------------------------------------------

TEST(shared_task_death, use_after_a_move_stops_the_process) {
    int runs = 0;
    auto s = counted(runs);
    const auto moved = std::move(s);
    EXPECT_DEATH(static_cast<void>(s.is_ready()), "used after it was moved from");
}

}  // namespace
