// Tasks that continue wherever an await ended, awaited by a task that does not: it is back at home.
#include <coppice/exec/affine.hpp>
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/task/task.hpp>
#include <coppice/task/wait_for_tasks.hpp>

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <tuple>
#include <utility>

namespace {

namespace ex = coppice::execution;
using coppice::task;
using coppice::wait_for_tasks;
using coppice::this_thread::sync_wait;

class other_thread {
public:
    other_thread() : thread_([this] { loop_.run(); }) {}
    ~other_thread() {
        loop_.finish();
        thread_.join();
    }
    auto get_scheduler() noexcept { return loop_.get_scheduler(); }
    bool is_current() const noexcept { return std::this_thread::get_id() == thread_.get_id(); }

private:
    ex::run_loop loop_;
    std::thread thread_;
};

struct anywhere {
    using scheduler_type = ex::inline_scheduler;
};
enum class ends { with_a_value, with_an_exception, stopped };

task<bool, anywhere> goes_to(other_thread& other, ends how = ends::with_a_value) {
    co_await other.get_scheduler().schedule();
    if (how == ends::with_an_exception) throw 3;
    if (how == ends::stopped) co_await ex::just_stopped();
    co_return other.is_current();
}

task<bool> awaits_it(other_thread& other) {
    const auto home = std::this_thread::get_id();
    const bool there = co_await goes_to(other);
    EXPECT_EQ(std::this_thread::get_id(), home);
    task<bool, anywhere> named = goes_to(other);
    const bool there_again = co_await std::move(named);
    EXPECT_EQ(std::this_thread::get_id(), home);
    co_return there&& there_again;
}

TEST(inline_child, a_task_is_back_at_home_after_it_has_awaited_one) {
    other_thread other;
    for (int i = 0; i != 50; ++i) EXPECT_EQ(sync_wait(awaits_it(other)), std::tuple(true));
}

TEST(inline_child, a_task_is_back_at_home_after_it_has_waited_for_several) {
    other_thread other;
    auto body = [&]() -> task<bool> {
        const auto home = std::this_thread::get_id();
        const auto [a, b] = co_await wait_for_tasks(goes_to(other), goes_to(other));
        EXPECT_EQ(std::this_thread::get_id(), home);
        task<bool, anywhere> c = goes_to(other), d = goes_to(other);
        co_await wait_for_tasks(c, d);
        EXPECT_EQ(std::this_thread::get_id(), home);
        co_return a&& b&& std::move(c).get() && std::move(d).get();
    };
    for (int i = 0; i != 50; ++i) EXPECT_EQ(sync_wait(body()), std::tuple(true));
}

TEST(inline_child, exceptions_and_stops_also_come_home) {
    other_thread other;
    auto body = [&]() -> task<int> {
        const auto home = std::this_thread::get_id();
        int caught = 0;
        try {
            co_await goes_to(other, ends::with_an_exception);
        } catch (int thrown) {
            caught = thrown;
        }
        EXPECT_EQ(std::this_thread::get_id(), home);
        try {
            co_await wait_for_tasks(goes_to(other, ends::with_an_exception), goes_to(other));
        } catch (int thrown) {
            caught += thrown;
        }
        EXPECT_EQ(std::this_thread::get_id(), home);
        const std::optional<bool> none =
            co_await ex::stopped_as_optional(goes_to(other, ends::stopped));
        EXPECT_EQ(std::this_thread::get_id(), home);
        co_return none ? 0 : caught;
    };
    EXPECT_EQ(sync_wait(body()), std::tuple(6));
    auto stopped = [&]() -> task<bool> { co_return co_await goes_to(other, ends::stopped); };
    EXPECT_FALSE(sync_wait(stopped()).has_value());
    auto two_stopped = [&]() -> task<> {
        co_await wait_for_tasks(goes_to(other), goes_to(other, ends::stopped));
    };
    EXPECT_FALSE(sync_wait(two_stopped()).has_value());
}

TEST(inline_child, is_made_affine_like_any_sender) {
    other_thread other;
    const auto home = std::this_thread::get_id();
    const auto is_home = [home](bool there) { return there && std::this_thread::get_id() == home; };
    EXPECT_EQ(sync_wait(ex::affine(goes_to(other)) | ex::then(is_home)), std::tuple(true));
    static_assert(ex::sender<task<int, anywhere>>);
}

// Both continue where the await ended: nothing brings them back.
TEST(inline_child, with_an_inline_parent_continues_where_the_await_ended) {
    other_thread other;
    auto body = [](other_thread& o) -> task<bool, anywhere> {
        const bool there = co_await goes_to(o);
        co_return there&& o.is_current();
    };
    EXPECT_EQ(sync_wait(body(other)), std::tuple(true));
}

}  // namespace
