// Plan: making what a task needs from its environment fails. Nothing leaks, however it is awaited.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/task/task.hpp>
#include <coppice/task/wait_for_tasks.hpp>

#include "allocations.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>

namespace {

namespace ex = coppice::execution;
using coppice::task;
using coppice::this_thread::sync_wait;

// A parameter of a coroutine, which lives as long as the frame.
struct guard {
    guard() { count_.fetch_add(1, coppice::internal::relaxed); }
    guard(const guard&) : guard() {}
    guard& operator=(const guard&) = delete;
    ~guard() { count_.fetch_sub(1, coppice::internal::relaxed); }
    static int alive() { return count_.load(coppice::internal::relaxed); }

private:
    static inline coppice::internal::atomic<int> count_{0};
};

// Throws at the n-th call from now on; 0: never.
int calls_until_failure = 0;
void may_fail() {
    if (calls_until_failure != 0 && --calls_until_failure == 0) throw std::runtime_error("no env");
}

struct environment_of_its_own_fails {
    template <class Outer>
    struct env_type {
        env_type() = delete;
        explicit env_type(const Outer&) { may_fail(); }
    };
};
struct environment_fails {
    template <class Outer>
    explicit environment_fails(const Outer&) {
        may_fail();
    }
};
struct named_allocator : std::allocator<std::byte> {};
struct failing_allocator : std::allocator<std::byte> {
    failing_allocator() = default;
    explicit failing_allocator(const named_allocator&) { may_fail(); }
};
struct allocator_fails {
    using allocator_type = failing_allocator;
};

template <class Env>
task<int, Env> counted(guard) {
    co_return 1;
}
// Returns the task in an environment that has everything an Env can ask for.
template <class Env>
auto around(task<int, Env> inner) {
    return ex::write_env(std::move(inner), ex::prop(coppice::get_allocator, named_allocator()));
}

template <class Make>
task<int> awaiting(Make make) {
    co_return co_await make();
}
template <class Make>
task<int> awaiting_deeper(Make make) {
    co_return co_await awaiting(make);
}
template <class Make>
task<int> waiting_for(Make make) {
    auto [a, b] = co_await coppice::wait_for_tasks(make(), make());
    co_return a + b;
}
template <class Make>
void spawn_it(Make make) {
    ex::counting_scope scope;
    const coppice::scope_exit join([&] { sync_wait(scope.join()); });
    ex::spawn(make() | ex::then([](int) noexcept {}), scope.get_token(),
              [](std::exception_ptr) noexcept {});
}

// Calls each(name, run) for every way to run what make() returns.
template <class Make, class Each>
void in_every_way(Make make, Each each) {
    each("sync_wait", [=] { sync_wait(make()); });
    each("when_all", [=] { sync_wait(ex::when_all(make(), make())); });
    each("let_value", [=] { sync_wait(ex::just() | ex::let_value([=] { return make(); })); });
    each("spawn", [=] { spawn_it(make); });
    each("task", [=] { sync_wait(awaiting(make)); });
    each("task in task", [=] { sync_wait(awaiting_deeper(make)); });
    if constexpr (ex::internal::is_task<decltype(make())>) {
        each("wait_for_tasks", [=] { sync_wait(waiting_for(make)); });
    }
}

// Lets each construction that may fail do so, one at a time, until none fails.
template <class Make>
void fails_without_a_leak(Make make) {
    in_every_way(make, [](const char* way, auto run) {
        SCOPED_TRACE(way);
        int failures = 0;
        for (bool failed = true; failed; failures += failed ? 1 : 0) {
            ASSERT_LT(failures, 10);
            calls_until_failure = failures + 1;
            failed = false;
            try {
                run();
            } catch (const std::runtime_error&) {
                failed = true;
            }
            EXPECT_EQ(failed, calls_until_failure == 0);
            calls_until_failure = 0;
            ASSERT_EQ(guard::alive(), 0);
        }
        EXPECT_GT(failures, 0);
    });
}

template <class Env>
class task_connect : public testing::Test {};
using failing_environments =
    testing::Types<environment_of_its_own_fails, environment_fails, allocator_fails>;
TYPED_TEST_SUITE(task_connect, failing_environments);

TYPED_TEST(task_connect, destroys_the_frame_if_the_environment_cannot_be_made) {
    fails_without_a_leak([] { return around(counted<TypeParam>(guard())); });
    if constexpr (!std::is_same_v<TypeParam, allocator_fails>) {
        fails_without_a_leak([] { return counted<TypeParam>(guard()); });
    }
}

TEST(task_connect_again, a_task_that_failed_to_connect_can_be_connected_again) {
    auto once = counted<environment_fails>(guard());
    calls_until_failure = 1;
    EXPECT_THROW(sync_wait(std::move(once)), std::runtime_error);
    EXPECT_EQ(guard::alive(), 1);
    EXPECT_EQ(sync_wait(std::move(once)), std::tuple(1));
    EXPECT_EQ(guard::alive(), 0);
}

// Runs each scheduled operation on a thread of its own.
struct other_thread {
    ex::run_loop loop;
    std::thread thread{[this] { loop.run(); }};
    ~other_thread() {
        loop.finish();
        thread.join();
    }
};
// A scheduler that is too large for any_scheduler's buffer, as are its operations. Its timers are
// those of the loop.
struct large_scheduler {
    using scheduler_concept = ex::scheduler_tag;
    struct sender;
    sender schedule() const noexcept;
    auto schedule_after(ex::time_span span) const noexcept {
        return ex::schedule_after(loop, span);
    }
    ex::instant now() const noexcept { return ex::now(loop); }
    bool operator==(const large_scheduler& other) const noexcept { return loop == other.loop; }

    ex::run_loop::scheduler loop;
    void* more[8];
};
using loop_sender = ex::schedule_result_t<const ex::run_loop::scheduler&>;
template <class Rcvr>
struct large_operation {
    using operation_state_concept = ex::operation_state_tag;
    ex::connect_result_t<loop_sender, Rcvr> inner;
    std::byte more[1000];
    void start() & noexcept { ex::start(inner); }
};
struct large_scheduler::sender {
    using sender_concept = ex::sender_tag;
    struct attrs {
        large_scheduler sch;
        template <class Tag>
        large_scheduler query(ex::get_completion_scheduler_t<Tag>) const noexcept {
            return sch;
        }
    };
    attrs get_env() const noexcept { return {sch}; }
    template <class, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return ex::completion_signatures_of_t<loop_sender, Env...>();
    }
    template <ex::receiver Rcvr>
    large_operation<Rcvr> connect(Rcvr rcvr) const {
        return {ex::connect(ex::schedule(sch.loop), std::move(rcvr)), {}};
    }
    large_scheduler sch;
};
large_scheduler::sender large_scheduler::schedule() const noexcept {
    return {*this};
}

task<int> with_awaits(guard) {
    co_await ex::just();
    co_await (ex::just() | ex::timeout(std::chrono::hours(1)));
    co_return 1;
}

// Lets each allocation fail, one at a time, also on the scheduler's thread, until none fails.
template <class Make>
void fails_in_every_allocation_without_a_leak(Make make) {
    in_every_way(make, [](const char* way, auto run) {
        SCOPED_TRACE(way);
        int thrown = 0;
        bool failed = true;
        for (std::size_t n = 1; failed; ++n) {
            ASSERT_LT(n, 200u);
            bool threw = false;
            coppice::test::fail_allocation(n);
            std::thread([&] {
                try {
                    run();
                } catch (const std::bad_alloc&) {
                    threw = true;
                }
            }).join();
            failed = coppice::test::allocation_has_failed();
            thrown += threw ? 1 : 0;
            EXPECT_FALSE(threw && !failed);
            ASSERT_EQ(guard::alive(), 0) << n;
        }
        EXPECT_GT(thrown, 1);  // at the frame and the scheduler
    });
}

class task_connect_without_memory : public testing::Test {
protected:
    void SetUp() override {
        if (!coppice::test::fail_allocation(0)) GTEST_SKIP() << "operator new is the sanitizer's";
    }
    other_thread other;
    large_scheduler large{other.loop.get_scheduler(), {}};
};

TEST_F(task_connect_without_memory, for_a_large_start_scheduler_throws) {
    fails_in_every_allocation_without_a_leak([sch = large] {
        return ex::write_env(with_awaits(guard()), ex::prop(ex::get_start_scheduler, sch));
    });
}
TEST_F(task_connect_without_memory, for_a_large_scheduler_around_the_task_throws) {
    fails_in_every_allocation_without_a_leak(
        [sch = large] { return ex::starts_on(sch, with_awaits(guard())); });
}
TEST_F(task_connect_without_memory, for_a_large_timed_scheduler_throws) {
    fails_in_every_allocation_without_a_leak([sch = large] {
        return ex::write_env(with_awaits(guard()), ex::prop(ex::get_timed_scheduler, sch));
    });
}

}  // namespace
