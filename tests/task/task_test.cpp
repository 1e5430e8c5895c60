// task/task.hpp: laziness, results, exceptions, lifetimes, allocations, and stack use.
#include <coppice/exec/as_awaitable.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/task/task.hpp>

#include "allocations.hpp"

#include <gtest/gtest.h>

#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace ex = coppice::execution;
using coppice::task;

// Runs a task to its end on this thread. The tests' tasks never wait for anything else.
struct driver {
    struct promise_type {
        std::exception_ptr error;
        driver get_return_object() {
            return driver(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { error = std::current_exception(); }
    };
    explicit driver(std::coroutine_handle<promise_type> h) : coroutine(h) {}
    driver(const driver&) = delete;
    ~driver() { coroutine.destroy(); }
    std::coroutine_handle<promise_type> coroutine;
};

template <class T>
T run(task<T> t) {
    if constexpr (std::is_void_v<T>) {
        driver d = [](task<T> inner) -> driver { co_await std::move(inner); }(std::move(t));
        EXPECT_TRUE(d.coroutine.done());
        if (d.coroutine.promise().error) std::rethrow_exception(d.coroutine.promise().error);
    } else {
        std::optional<T> result;
        driver d = [](task<T> inner, std::optional<T>& out) -> driver {
            out.emplace(co_await std::move(inner));
        }(std::move(t), result);
        EXPECT_TRUE(d.coroutine.done());
        if (d.coroutine.promise().error) std::rethrow_exception(d.coroutine.promise().error);
        return std::move(*result);
    }
}

task<int> answer() {
    co_return 42;
}
task<> nothing() {
    co_return;
}
task<int> thrower() {
    throw std::runtime_error("lost");
    co_return 0;
}
task<int> sum(int n) {
    int total = 0;
    for (int i = 0; i != n; ++i) total += co_await answer();
    co_return total;
}
task<int> deep(int n) {
    if (n == 0) co_return 0;
    co_return 1 + co_await deep(n - 1);
}

TEST(task, does_not_run_before_it_is_awaited) {
    bool ran = false;
    auto body = [](bool& flag) -> task<> {
        flag = true;
        co_return;
    };
    {
        task<> never = body(ran);
    }
    EXPECT_FALSE(ran);
    run(body(ran));
    EXPECT_TRUE(ran);
}

TEST(task, gives_its_value_a_move_only_value_a_reference_and_nothing) {
    EXPECT_EQ(run(answer()), 42);
    auto owner = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(7); };
    EXPECT_EQ(*run(owner()), 7);
    int object = 1;
    auto reference = [](int& o) -> task<int&> { co_return o; };
    auto user = [&](int& o) -> task<> {
        int& same = co_await reference(o);
        same = 2;
    };
    run(user(object));
    EXPECT_EQ(object, 2);
    run(nothing());
}

TEST(task, rethrows_its_exception_where_it_is_awaited) {
    EXPECT_THROW(run(thrower()), std::runtime_error);
    auto catcher = []() -> task<std::string> {
        try {
            co_await thrower();
        } catch (const std::runtime_error& e) {
            co_return e.what();
        }
        co_return "nothing was thrown";
    };
    EXPECT_EQ(run(catcher()), "lost");
}

TEST(task, its_frame_is_gone_before_the_awaiters_next_statement) {
    struct witness {
        int& alive;
        explicit witness(int& a) : alive(a) { ++alive; }
        ~witness() { --alive; }
    };
    int alive = 0;
    auto child = [](int& a) -> task<int> {
        witness w(a);
        co_return a;
    };
    auto parent = [&](int& a) -> task<> {
        EXPECT_EQ(co_await child(a), 1);
        EXPECT_EQ(a, 0);
    };
    run(parent(alive));
}

TEST(task, a_result_is_moved_never_copied) {
    struct counted {
        int copies = 0;
        counted() = default;
        counted(const counted& o) : copies(o.copies + 1) {}
        counted(counted&& o) noexcept : copies(o.copies) {}
    };
    auto make = []() -> task<counted> { co_return counted(); };
    EXPECT_EQ(run(make()).copies, 0);
}

TEST(task, steady_state_allocates_nothing) {
    auto counted = []() -> task<std::size_t> {
        co_await sum(10);
        const coppice::test::allocation_count count;
        EXPECT_EQ(co_await sum(1000), 42'000);
        co_return count.so_far();
    };
    EXPECT_EQ(run(counted()), 0u);
}

TEST(task, recursion_uses_coroutine_frames_not_the_stack) {
    EXPECT_EQ(run(deep(10'000)), 10'000);
}

TEST(task, frames_freed_on_another_thread_are_reused_or_freed) {
    std::vector<task<int>> tasks;
    for (int i = 0; i != 2000; ++i) tasks.push_back(answer());
    std::thread other([&] { tasks.clear(); });
    other.join();
    EXPECT_EQ(run(sum(100)), 4200);
}

TEST(task, a_stop_in_a_child_ends_all_awaiting_tasks_and_their_locals) {
    namespace ex = coppice::execution;
    struct witness {
        int& gone;
        explicit witness(int& g) : gone(g) {}
        ~witness() { ++gone; }
    };
    int gone = 0;
    bool went_on = false;
    auto child = [](int& g) -> task<int> {
        witness w(g);
        co_await ex::just_stopped();
        co_return 1;
    };
    auto parent = [&](int& g) -> task<int> {
        witness w(g);
        const int got = co_await child(g);
        went_on = true;
        co_return got;
    };
    EXPECT_EQ(coppice::this_thread::sync_wait(parent(gone)), std::nullopt);
    EXPECT_FALSE(went_on);
    EXPECT_EQ(gone, 2);
}

TEST(task, awaits_senders_and_is_one) {
    namespace ex = coppice::execution;
    auto body = []() -> task<int> { co_return co_await ex::just(40) + 2; };
    EXPECT_EQ(coppice::this_thread::sync_wait(body()), std::tuple(42));
    EXPECT_THROW(coppice::this_thread::sync_wait(thrower()), std::runtime_error);
}

// Waits until the test releases it.
struct held : coppice::immovable {
    held() noexcept {}
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) noexcept { waiting = h; }
    void await_resume() const noexcept {}
    static inline std::coroutine_handle<> waiting;
};
struct ignoring_receiver {
    using receiver_concept = ex::receiver_tag;
    void set_value(auto&&...) && noexcept {}
    void set_error(auto&&) && noexcept {}
    void set_stopped() && noexcept {}
};
task<> waits() {
    co_await held();
}
task<std::string> gives_text_after_waiting() {
    co_await held();
    co_return "text";
}

TEST(task_death, a_connected_task_that_is_started_twice_stops_the_process) {
    EXPECT_DEATH(
        {
            auto op = ex::connect(answer(), ignoring_receiver());
            ex::start(op);
            ex::start(op);
        },
        "an operation of task was started twice");
    EXPECT_DEATH(
        {
            auto op = ex::connect(waits(), ignoring_receiver());
            ex::start(op);
            ex::start(op);
        },
        "an operation of task was started twice");
}

TEST(task_death, a_connected_task_that_is_destroyed_while_it_runs_stops_the_process) {
    EXPECT_DEATH(
        {
            auto op = ex::connect(waits(), ignoring_receiver());
            ex::start(op);
        },
        "an operation of task was destroyed while it was running");
}

TEST(task, a_connected_task_may_be_destroyed_before_its_start_and_in_its_completion) {
    {
        auto op = ex::connect(waits(), ignoring_receiver());
    }
    struct ends_operation {
        using receiver_concept = ex::receiver_tag;
        void set_value() && noexcept { end(address); }
        void set_error(std::exception_ptr) && noexcept {}
        void set_stopped() && noexcept {}
        void (*end)(void*);
        void* address;
    };
    using operation = ex::connect_result_t<task<>, ends_operation>;
    alignas(operation) std::byte memory[sizeof(operation)];
    struct maker {
        operator operation() const {
            return ex::connect(
                waits(), ends_operation{[](void* at) { static_cast<operation*>(at)->~operation(); },
                                        memory});
        }
        void* memory;
    };
    auto* const op = ::new (static_cast<void*>(memory)) operation(maker{memory});
    ex::start(*op);
    held::waiting.resume();
}

// A coroutine of another type, whose owner destroys the frame.
struct owned_coroutine {
    struct promise_type : ex::with_awaitable_senders<promise_type> {
        owned_coroutine get_return_object() noexcept {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void unhandled_exception() noexcept {}
        void return_void() noexcept {}
    };
    std::coroutine_handle<promise_type> coroutine;
};
template <class T>
owned_coroutine awaits(task<T>&& awaited) {
    co_await std::move(awaited);
}

TEST(task_death, a_coroutine_that_is_destroyed_while_it_awaits_a_task_stops_the_process) {
    EXPECT_DEATH(awaits(waits()).coroutine.destroy(),
                 "destroyed while it awaited a task that was running");
    EXPECT_DEATH(awaits(gives_text_after_waiting()).coroutine.destroy(),
                 "destroyed while it awaited a task that was running");
}

TEST(task, a_coroutine_is_destroyed_after_a_task_that_it_awaited_has_ended) {
    const owned_coroutine ended = awaits(gives_text_after_waiting());
    held::waiting.resume();
    EXPECT_TRUE(ended.coroutine.done());
    ended.coroutine.destroy();
}

TEST(task_death, awaiting_twice_stops_the_process) {
    EXPECT_DEATH(
        {
            auto twice = []() -> task<> {
                task<int> t = answer();
                co_await std::move(t);
                co_await std::move(t);
            };
            run(twice());
        },
        "awaited twice");
}

}  // namespace
