// The scheduler of a task, [task.promise]: where it resumes, and how it changes its scheduler.
#include <coppice/task/task.hpp>

#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/write_env.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <thread>

namespace {

namespace ex = coppice::execution;
using coppice::task;
using coppice::this_thread::sync_wait;

// Runs each scheduled operation on a thread of its own.
struct other_thread {
    ex::run_loop loop;
    std::thread thread{[this] { loop.run(); }};
    ~other_thread() {
        loop.finish();
        thread.join();
    }
    auto scheduler() { return loop.get_scheduler(); }
};

TEST(task_sender, awaits_resume_on_the_scheduler_where_it_was_started) {
    other_thread other;
    const auto here = [] { return std::this_thread::get_id(); };
    auto body = [&]() -> task<bool> {
        const std::thread::id home = here();
        std::thread::id there;
        co_await (ex::schedule(other.scheduler()) | ex::then([&] { there = here(); }));
        if (here() != home || there == home) co_return false;
        co_await ex::schedule(other.scheduler());
        if (here() != home) co_return false;
        try {
            co_await (ex::schedule(other.scheduler()) | ex::then([] { throw 1; }));
        } catch (int) {
            co_return here() == home;
        }
        co_return false;
    };
    EXPECT_EQ(sync_wait(body()), std::tuple(true));
    auto nested = [&]() -> task<bool> { co_return co_await body() && co_await body(); };
    EXPECT_EQ(sync_wait(nested()), std::tuple(true));
    EXPECT_EQ(sync_wait(ex::starts_on(other.scheduler(), body())), std::tuple(false));
}

TEST(task_sender, with_an_inline_scheduler_it_continues_where_the_await_ends) {
    struct anywhere {
        using scheduler_type = ex::inline_scheduler;
    };
    other_thread other;
    auto body = [&]() -> task<bool, anywhere> {
        co_await ex::schedule(other.scheduler());
        co_return std::this_thread::get_id() == other.thread.get_id();
    };
    EXPECT_EQ(sync_wait(body()), std::tuple(true));
}

TEST(task_sender, after_a_change_of_scheduler_awaits_resume_there_and_the_awaiter_at_home) {
    other_thread other;
    auto child = [&]() -> task<bool> {
        const auto before =
            co_await ex::change_coroutine_scheduler(ex::task_scheduler(other.scheduler()));
        if (before == other.scheduler()) co_return false;
        if (std::this_thread::get_id() != other.thread.get_id()) co_return false;
        co_await ex::schedule(other.scheduler());
        if (std::this_thread::get_id() != other.thread.get_id()) co_return false;
        co_return (co_await ex::read_env(ex::get_scheduler)) == other.scheduler();
    };
    auto parent = [&]() -> task<bool> {
        const std::thread::id home = std::this_thread::get_id();
        const bool changed = co_await child();
        co_return changed&& std::this_thread::get_id() == home;
    };
    EXPECT_EQ(sync_wait(parent()), std::tuple(true));
    EXPECT_EQ(sync_wait(child()), std::tuple(true));
}

TEST(task_sender, a_scheduler_changed_to_inline_can_be_changed_again) {
    other_thread other;
    auto body = [&]() -> task<bool> {
        const ex::task_scheduler home = co_await ex::read_env(ex::get_scheduler);
        const std::thread::id thread = std::this_thread::get_id();
        co_await ex::change_coroutine_scheduler(ex::task_scheduler(ex::inline_scheduler()));
        co_await ex::schedule(other.scheduler());
        const bool anywhere = std::this_thread::get_id() == other.thread.get_id();
        co_await ex::change_coroutine_scheduler(home);
        co_await ex::schedule(other.scheduler());
        co_return anywhere&& std::this_thread::get_id() == thread;
    };
    EXPECT_EQ(sync_wait(body()), std::tuple(true));
}

TEST(task_sender, a_change_of_scheduler_moves_the_task_there_and_back) {
    other_thread other;
    auto body = [&]() -> task<bool> {
        const std::thread::id thread = std::this_thread::get_id();
        const ex::task_scheduler home =
            co_await ex::change_coroutine_scheduler(ex::task_scheduler(other.scheduler()));
        const bool there = std::this_thread::get_id() == other.thread.get_id();
        co_await ex::just();
        const bool stayed = std::this_thread::get_id() == other.thread.get_id();
        co_await ex::change_coroutine_scheduler(home);
        co_return there&& stayed&& std::this_thread::get_id() == thread;
    };
    EXPECT_EQ(sync_wait(body()), std::tuple(true));
}

// Completes inside start(). A count of connects says which one throws.
struct in_place_scheduler {
    using scheduler_concept = ex::scheduler_tag;
    struct attrs {
        in_place_scheduler query(ex::get_completion_scheduler_t<ex::set_value_t>) const noexcept {
            return {connects_left, id};
        }
        int* connects_left;
        int id;
    };
    template <class Rcvr>
    struct operation {
        using operation_state_concept = ex::operation_state_tag;
        void start() & noexcept { ex::set_value(std::move(rcvr)); }
        Rcvr rcvr;
    };
    struct sender {
        using sender_concept = ex::sender_tag;
        template <class, class...>
        static consteval auto get_completion_signatures() {
            return ex::completion_signatures<ex::set_value_t()>();
        }
        attrs get_env() const noexcept { return made_by; }
        template <class Rcvr>
        operation<Rcvr> connect(Rcvr rcvr) const {
            if ((*made_by.connects_left)-- == 0) throw std::bad_alloc();
            return {std::move(rcvr)};
        }
        attrs made_by;
    };
    sender schedule() const noexcept { return {{connects_left, id}}; }
    bool operator==(const in_place_scheduler&) const = default;
    int* connects_left;
    int id;
};
struct in_place {
    using scheduler_type = in_place_scheduler;
};

TEST(task_sender, a_change_of_scheduler_that_cannot_be_connected_throws_where_it_is_awaited) {
    int left = -1;
    const in_place_scheduler home{&left, 0};
    auto child = [&]() -> task<int, in_place> {
        try {
            co_await ex::change_coroutine_scheduler(in_place_scheduler{&left, 1});
        } catch (const std::bad_alloc&) {
            co_return 1;
        }
        co_return 0;
    };
    auto parent = [&](int fails) -> task<int, in_place> {
        left = fails;
        const int thrown = co_await child();
        left = -1;
        co_return thrown;
    };
    const auto run = [&](int fails) {
        left = -1;
        return sync_wait(ex::write_env(parent(fails), ex::prop(ex::get_start_scheduler, home)));
    };
    EXPECT_EQ(run(0), std::tuple(1));  // the way back
    EXPECT_EQ(run(1), std::tuple(1));  // the way there
    EXPECT_EQ(run(2), std::tuple(0));
}

// Returns how far down the stack the deepest of many successive children was.
template <class Sch, class Env>
std::uintptr_t depth_of_changes(Sch home, Sch to) {
    std::uintptr_t low = UINTPTR_MAX;
    std::uintptr_t high = 0;
    auto child = [&]() -> task<void, Env> {
        co_await ex::change_coroutine_scheduler(to);
        const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
        low = std::min(low, here);
        high = std::max(high, here);
    };
    auto loop = [&]() -> task<void, Env> {
        for (int i = 0; i < 5000; ++i) co_await child();
    };
    sync_wait(ex::write_env(loop(), ex::prop(ex::get_start_scheduler, home)));
    return high - low;
}

TEST(task_sender, children_that_change_their_scheduler_in_a_loop_use_constant_stack) {
    const ex::task_scheduler in_line{ex::inline_scheduler()};
    int left = -1;
    const in_place_scheduler here{&left, 0};
    const in_place_scheduler there{&left, 1};
    constexpr std::uintptr_t limit = 200 * 1024;
    EXPECT_LT((depth_of_changes<ex::task_scheduler, ex::env<>>(in_line, in_line)), limit);
    EXPECT_LT((depth_of_changes<in_place_scheduler, in_place>(here, there)), limit);
}

}  // namespace
