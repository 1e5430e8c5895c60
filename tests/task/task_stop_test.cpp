// Plan: a stop that leaves a task. Each object that it reaches may end at once; no await loses it.
#include <coppice/task/task.hpp>

#include <coppice/exec/connect.hpp>
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/task/wait_for_tasks.hpp>

#include <gtest/gtest.h>

#include <coroutine>
#include <exception>
#include <functional>
#include <utility>

namespace {

namespace ex = coppice::execution;
using coppice::task;
using coppice::this_thread::sync_wait;

// Destroys its own frame when the operation that it awaits is stopped.
struct ends_when_stopped {
    struct promise_type {
        explicit promise_type(int& stops, auto&&...) noexcept : stopped(&stops) {}
        ends_when_stopped get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }
        void return_void() noexcept {}
        std::coroutine_handle<> unhandled_stopped() noexcept {
            ++*stopped;
            std::coroutine_handle<promise_type>::from_promise(*this).destroy();
            return std::noop_coroutine();
        }
        int* stopped;
    };
};

task<int> stops() {
    co_await ex::just_stopped();
    co_return 1;
}
task<int> stops_below() {
    co_return co_await stops();
}
// Leaves it to the test to resume the coroutine.
struct suspends : std::suspend_always {
    explicit suspends(std::coroutine_handle<>& to) noexcept : kept(&to) {}
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> h) const noexcept {
        *kept = h;
    }
    std::coroutine_handle<>* kept;
};
task<int> stops_later(std::coroutine_handle<>& kept) {
    co_await suspends(kept);
    co_await ex::just_stopped();
    co_return 1;
}

ends_when_stopped awaits_one(int&, task<int> awaited) {
    co_await std::move(awaited);
}
ends_when_stopped awaits_two(int&) {
    co_await coppice::wait_for_tasks(stops(), stops_below());
}
ends_when_stopped awaits_later(int&, std::coroutine_handle<>& kept) {
    co_await stops_later(kept);
}
ends_when_stopped awaits_two_later(int&, std::coroutine_handle<>& kept) {
    co_await coppice::wait_for_tasks(stops(), stops_later(kept));
}

TEST(task_stop, a_coroutine_may_destroy_itself_when_its_await_is_stopped) {
    int stopped = 0;
    awaits_one(stopped, stops());
    awaits_one(stopped, stops_below());
    awaits_two(stopped);
    EXPECT_EQ(stopped, 3);
}
TEST(task_stop, a_coroutine_may_destroy_itself_in_a_stop_after_a_suspension) {
    int stopped = 0;
    std::coroutine_handle<> kept;
    awaits_later(stopped, kept);
    kept.resume();
    awaits_two_later(stopped, kept);
    kept.resume();
    EXPECT_EQ(stopped, 2);
}

// Destroyed by the receiver that it completes.
struct awaitable {
    task<int> awaited;
    auto operator co_await() && { return std::move(awaited).operator co_await(); }
};
template <class Sender>
class owner {
    struct receiver {
        using receiver_concept = ex::receiver_tag;
        owner* self;
        int* stopped;
        void set_value(auto&&...) && noexcept { delete self; }
        void set_error(auto&&) && noexcept { delete self; }
        void set_stopped() && noexcept {
            ++*stopped;
            delete self;
        }
    };

public:
    owner(Sender sender, int& stopped)
        : operation_(ex::connect(std::move(sender), receiver{this, &stopped})) {}
    void start() noexcept { ex::start(operation_); }

private:
    ex::connect_result_t<Sender, receiver> operation_;
};

TEST(task_stop, a_receiver_may_destroy_the_operation_in_set_stopped) {
    int stopped = 0;
    (new owner<task<int>>(stops_below(), stopped))->start();
    (new owner<awaitable>(awaitable{stops_below()}, stopped))->start();
    EXPECT_EQ(stopped, 2);
}

// Returns the coroutine that a stop resumes, or resumes it.
struct stopped_by_its_awaiter {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> h) const noexcept {
        return h.promise().unhandled_stopped();
    }
    void await_resume() const noexcept { ADD_FAILURE() << "a stopped awaiter gave a value"; }
};
struct stopped_inside : stopped_by_its_awaiter {
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> h) const {
        h.promise().unhandled_stopped().resume();
    }
};
struct resumed_by_its_awaiter : stopped_by_its_awaiter {
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> h) const noexcept { return h; }
    int await_resume() const noexcept { return 1; }
};

template <class Awaiter>
task<int> awaits() {
    co_await Awaiter();
    co_return 1;
}
template <class Awaiter>
task<int> awaits_an_l_value() {
    Awaiter awaiter;
    co_await awaiter;
    co_return 1;
}
bool gives_a_value(task<int> (*make)()) {
    const bool inside = sync_wait(make()).has_value();
    EXPECT_EQ(sync_wait(ex::starts_on(ex::inline_scheduler(), make())).has_value(), inside);
    return inside;
}

TEST(task_stop, an_awaiter_that_returns_the_handle_of_a_stop_stops_the_task_on_any_scheduler) {
    EXPECT_FALSE(gives_a_value(&awaits<stopped_by_its_awaiter>));
    EXPECT_FALSE(gives_a_value(&awaits_an_l_value<stopped_by_its_awaiter>));
    EXPECT_FALSE(gives_a_value(&awaits<stopped_inside>));
    EXPECT_TRUE(gives_a_value(&awaits<resumed_by_its_awaiter>));
}

// The stop waits for the last child. If that child has no room on the stack to continue, the stop
// must be deferred too, because it ends the wait, which is deferred.
task<int> ends_later(std::coroutine_handle<>& kept) {
    co_await suspends(kept);
    co_return 1;
}
task<int> ends_at_once() {
    co_return 1;
}
task<int> waits_below(std::coroutine_handle<>& first, std::coroutine_handle<>& last) {
    co_await coppice::wait_for_tasks(stops_later(first), ends_later(last));
    co_return 1;
}
task<int> keeps_and_waits(std::coroutine_handle<>& first, std::coroutine_handle<>& last) {
    task<int> stopped = stops_later(first);
    task<int> ended = ends_later(last);
    co_await coppice::wait_for_tasks(stopped, ended);
    co_return 1;
}
task<int> waits_above(std::coroutine_handle<>& first, std::coroutine_handle<>& last) {
    co_await coppice::wait_for_tasks(ends_at_once(), waits_below(first, last));
    co_return 1;
}
ends_when_stopped awaits_the_last(int&, std::coroutine_handle<>& first,
                                  std::coroutine_handle<>& last) {
    co_await coppice::wait_for_tasks(stops_later(first), ends_later(last));
}
// Resumes at a depth beyond a loop's share of the stack, or without a loop.
[[gnu::noinline]] void resume_far_down(std::coroutine_handle<> coroutine) {
    volatile char used[64 * 1024];
    used[0] = 0;
    used[sizeof used - 1] = 0;
    coroutine.resume();
    used[1] = 0;
}
task<> resumes(std::coroutine_handle<>& coroutine) {
    resume_far_down(coroutine);
    co_return;
}

TEST(task_stop, a_stop_waits_for_the_last_child_even_if_that_has_no_room_on_the_stack) {
    using handle = std::coroutine_handle<>;
    const std::function<void(handle&)> ways[] = {
        [](handle& last) { last.resume(); },
        [](handle& last) { resume_far_down(last); },
        [](handle& last) { sync_wait(resumes(last)); },
    };
    for (const auto& end : ways) {
        int stopped = 0;
        handle first, last;
        for (const auto make : {waits_below, keeps_and_waits, waits_above}) {
            (new owner<task<int>>(make(first, last), stopped))->start();
            first.resume();
            end(last);
        }
        EXPECT_EQ(stopped, 3);
        awaits_the_last(stopped, first, last);
        first.resume();
        end(last);
        EXPECT_EQ(stopped, 4);
    }
}

}  // namespace
