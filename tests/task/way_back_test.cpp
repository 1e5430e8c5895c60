// Plan: way_back: results, errors, stops, and costs of awaiting something other than a sender.
#include <coppice/task/internal/way_back.hpp>

#include <coppice/exec/any_scheduler.hpp>
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/task/task.hpp>

#include "allocations.hpp"

#include <gtest/gtest.h>

#include <coroutine>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <utility>

namespace {

namespace ex = coppice::execution;
using coppice::task;
using coppice::this_thread::sync_wait;

struct immovable_result {
    immovable_result() = default;
    immovable_result(immovable_result&&) = delete;
    int value = 5;
};
// Resumes at once, inside await_suspend, and returns a reference to an object that cannot move.
struct gives_a_reference : coppice::immovable {
    explicit gives_a_reference(immovable_result& r) noexcept : result(r) {}
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) const { h.resume(); }
    immovable_result& await_resume() const noexcept { return result; }
    immovable_result& result;
};

TEST(way_back, the_task_takes_the_result_directly_from_the_awaiter) {
    immovable_result result;
    auto body = [&]() -> task<bool> {
        immovable_result& got = co_await gives_a_reference(result);
        gives_a_reference named(result);
        immovable_result& again = co_await named;
        co_return &got == &result && &again == &result;
    };
    EXPECT_EQ(sync_wait(body()), std::tuple(true));
}

// An awaiter is an l-value when it is awaited ([expr.await]).
struct l_value_awaiter {
    explicit l_value_awaiter(bool is_ready) noexcept : ready(is_ready) {}
    bool await_ready() & noexcept { return ready; }
    void await_suspend(std::coroutine_handle<> h) & { h.resume(); }
    int await_resume() & noexcept { return 4; }
    bool ready;
};

TEST(way_back, an_awaiter_of_l_values_is_awaited_by_its_name_and_as_an_r_value) {
    auto body = [](bool is_ready) -> task<int> {
        l_value_awaiter named(is_ready);
        const int first = co_await named;
        const int second = co_await l_value_awaiter(is_ready);
        co_return first * 10 + second;
    };
    for (const bool is_ready : {true, false}) {
        EXPECT_EQ(sync_wait(body(is_ready)), std::tuple(44));
        EXPECT_EQ(sync_wait(ex::starts_on(ex::inline_scheduler(), body(is_ready))), std::tuple(44));
        EXPECT_EQ(sync_wait(ex::then(l_value_awaiter(is_ready), [](int value) { return value; })),
                  std::tuple(4));
    }
}

struct ready : coppice::immovable {
    ready() noexcept {}
    bool await_ready() const noexcept { return true; }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    void await_resume() const noexcept {}
};
struct stays : coppice::immovable {
    stays() noexcept {}
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<>) const noexcept { return false; }
    void await_resume() const noexcept {}
};
struct transfers_back : coppice::immovable {
    transfers_back() noexcept {}
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> h) const noexcept { return h; }
    void await_resume() const noexcept {}
};

TEST(way_back, an_await_that_resumes_at_once_allocates_nothing_and_keeps_the_order) {
    ex::run_loop loop;
    int turns = 0;
    auto other = [&]() -> task<> {
        ++turns;
        co_return;
    };
    auto body = [&]() -> task<int> {
        co_await ready();
        co_await stays();
        co_await transfers_back();
        const coppice::test::allocation_count count;
        co_await ready();
        co_await stays();
        co_await transfers_back();
        EXPECT_EQ(count.so_far(), 0u);
        co_return turns;
    };
    auto first = ex::starts_on(loop.get_scheduler(), body());
    auto second = ex::starts_on(loop.get_scheduler(), other());
    int seen = -1;
    auto all =
        ex::when_all(std::move(first) | ex::then([&](int t) { seen = t; }), std::move(second));
    std::thread runner([&] { loop.run(); });
    sync_wait(std::move(all));
    loop.finish();
    runner.join();
    EXPECT_EQ(seen, 0);
}

TEST(way_back, a_million_awaits_that_resume_at_once_use_constant_stack) {
    auto body = []() -> task<int> {
        for (int i = 0; i != 1'000'000; ++i) {
            co_await stays();
            co_await transfers_back();
        }
        co_return 3;
    };
    EXPECT_EQ(sync_wait(body()), std::tuple(3));
}

TEST(way_back, a_hundred_thousand_resumptions_inside_await_suspend_use_constant_stack) {
    immovable_result result;
    auto body = [&]() -> task<int> {
        for (int i = 0; i != 100'000; ++i) co_await gives_a_reference(result);
        co_return 3;
    };
    EXPECT_EQ(sync_wait(body()), std::tuple(3));
}

struct throws_at : coppice::immovable {
    explicit throws_at(int where) noexcept : at(where) {}
    bool await_ready() const {
        if (at == 0) throw std::runtime_error("ready");
        return false;
    }
    void await_suspend(std::coroutine_handle<> h) const {
        if (at == 1) throw std::runtime_error("suspend");
        h.resume();
    }
    void await_resume() const { throw std::runtime_error("resume"); }
    int at;
};

TEST(way_back, an_exception_of_the_awaiter_leaves_the_await) {
    auto body = []() -> task<int> {
        int caught = 0;
        for (int at = 0; at != 3; ++at) {
            try {
                co_await throws_at(at);
            } catch (const std::runtime_error&) {
                ++caught;
            }
        }
        co_return caught;
    };
    EXPECT_EQ(sync_wait(body()), std::tuple(3));
}

// Stops its coroutine on another thread.
struct stops : coppice::immovable {
    stops() noexcept {}
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> h) {
        std::thread([h] { h.promise().unhandled_stopped().resume(); }).detach();
    }
    void await_resume() const noexcept {}
};

TEST(way_back, a_stop_ends_the_task_on_its_scheduler) {
    const std::thread::id home = std::this_thread::get_id();
    struct leaves {
        ~leaves() { there = std::this_thread::get_id(); }
        std::thread::id& there;
    };
    std::thread::id inner, outer;
    auto child = [&]() -> task<> {
        const leaves at_end{inner};
        co_await stops();
    };
    auto parent = [&]() -> task<> {
        const leaves at_end{outer};
        co_await child();
    };
    EXPECT_FALSE(sync_wait(parent()));
    EXPECT_EQ(inner, home);
    EXPECT_EQ(outer, home);
}

// Declares on which scheduler it completes.
class at_home : coppice::immovable {
public:
    explicit at_home(ex::task_scheduler sch, int& others) noexcept
        : sch_(std::move(sch)), others_(others) {}
    class attrs {
    public:
        explicit attrs(const at_home& a) noexcept : of_(&a) {}
        template <class Tag>
        ex::task_scheduler query(ex::get_completion_scheduler_t<Tag>) const noexcept {
            return of_->sch_;
        }

    private:
        const at_home* of_;
    };
    attrs get_env() const noexcept { return attrs(*this); }
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise>) const noexcept {
        others_ += !std::is_same_v<Promise, task<int>::promise_type>;
        return false;
    }
    void await_resume() const noexcept {}

private:
    ex::task_scheduler sch_;
    int& others_;
};

TEST(way_back, is_omitted_for_awaits_that_complete_on_the_tasks_scheduler) {
    ex::run_loop other;
    auto body = [&]() -> task<int> {
        const ex::task_scheduler home = co_await ex::read_env(ex::get_scheduler);
        int others = 0;
        co_await at_home(home, others);
        if (others != 0) co_return -1;
        co_await at_home(other.get_scheduler(), others);
        co_return others;
    };
    EXPECT_EQ(sync_wait(body()), std::tuple(1));
}

}  // namespace
