// A task continues on its scheduler after every await, whatever it awaits, however that is spelled,
// and wherever the task runs.
#include <coppice/exec/as_awaitable.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/task/task.hpp>
#include <coppice/task/wait_for_tasks.hpp>
#include <coppice/token/transform.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <coroutine>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

namespace {

namespace ex = coppice::execution;
using coppice::task;
using coppice::this_thread::sync_wait;

// Runs a function on a new thread, which belongs to no scheduler.
class elsewhere {
public:
    ~elsewhere() {
        post(nullptr);
        thread_.join();
    }
    void post(std::function<void()> work) {
        const std::lock_guard lock(mutex_);
        work_.push_back(std::move(work));
        more_.notify_one();
    }

private:
    void run() {
        for (;;) {
            std::unique_lock lock(mutex_);
            more_.wait(lock, [this] { return !work_.empty(); });
            const std::function<void()> work = std::move(work_.front());
            work_.pop_front();
            lock.unlock();
            if (!work) return;
            work();
        }
    }
    std::mutex mutex_;
    std::condition_variable more_;
    std::deque<std::function<void()>> work_;
    std::thread thread_{[this] { run(); }};
};
elsewhere& away() {
    static elsewhere one;
    return one;
}

// Awaitables of every kind. All return 7 and complete on another thread than the task's.
struct sent_from_elsewhere {
    using sender_concept = ex::sender_tag;
    using completion_signatures = ex::completion_signatures<ex::set_value_t(int)>;
    template <class Rcvr>
    struct operation {
        using operation_state_concept = ex::operation_state_tag;
        explicit operation(Rcvr r) : rcvr(std::move(r)) {}
        operation(operation&&) = delete;
        void start() & noexcept {
            away().post([this] { ex::set_value(std::move(rcvr), 7); });
        }
        Rcvr rcvr;
    };
    template <class Rcvr>
    operation<Rcvr> connect(Rcvr rcvr) const {
        return operation<Rcvr>(std::move(rcvr));
    }
};
struct resumed_elsewhere {
    resumed_elsewhere() noexcept {}
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) const {
        away().post([h] { h.resume(); });
    }
    int await_resume() const noexcept { return 7; }
};
struct immovable_awaiter : resumed_elsewhere {
    immovable_awaiter() noexcept {}
    immovable_awaiter(immovable_awaiter&&) = delete;
};
struct with_a_member {
    with_a_member() noexcept {}
    resumed_elsewhere operator co_await() const noexcept { return {}; }
};
struct immovable_with_a_member {
    immovable_with_a_member() noexcept {}
    immovable_with_a_member(immovable_with_a_member&&) = delete;
    immovable_awaiter operator co_await() const noexcept { return {}; }
};
struct with_an_operator {
    with_an_operator() noexcept {}
};
resumed_elsewhere operator co_await(const with_an_operator&) noexcept {
    return {};
}
struct immovable_with_an_operator {
    immovable_with_an_operator() noexcept {}
    immovable_with_an_operator(immovable_with_an_operator&&) = delete;
};
immovable_awaiter operator co_await(const immovable_with_an_operator&) noexcept {
    return {};
}
struct customised {
    customised() noexcept {}
    template <class Promise>
    resumed_elsewhere as_awaitable(Promise&) const noexcept {
        return {};
    }
};
struct immovable_customised {
    immovable_customised() noexcept {}
    immovable_customised(immovable_customised&&) = delete;
    template <class Promise>
    immovable_awaiter as_awaitable(Promise&) const noexcept {
        return {};
    }
};
// Awaiters whose await_suspend() returns a bool or a handle, so that it need not suspend.
struct suspends_by_bool : immovable_awaiter {
    bool await_suspend(std::coroutine_handle<> h) const {
        resumed_elsewhere::await_suspend(h);
        return true;
    }
};
struct suspends_by_handle : immovable_awaiter {
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> h) const {
        resumed_elsewhere::await_suspend(h);
        return std::noop_coroutine();
    }
};
// An awaiter that requires a promise with unhandled_stopped(), as those of other libraries do.
struct wants_a_promise : immovable_awaiter {
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> h) const {
        static_assert(requires { h.promise().unhandled_stopped(); });
        static_cast<void>(coppice::get_stop_token(ex::get_env(h.promise())));
        resumed_elsewhere::await_suspend(h);
    }
};
// A coroutine of another type. Another thread resumes its body, and it resumes its awaiter.
class other_coroutine {
public:
    struct promise_type : ex::with_awaitable_senders<promise_type> {
        other_coroutine get_return_object() noexcept {
            return other_coroutine(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        struct final_awaiter {
            final_awaiter() noexcept {}
            bool await_ready() const noexcept { return false; }
            std::coroutine_handle<> await_suspend(
                std::coroutine_handle<promise_type> self) const noexcept {
                return self.promise().continuation();
            }
            void await_resume() const noexcept {}
        };
        final_awaiter final_suspend() noexcept { return {}; }
        [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }
        void return_value(int v) noexcept { value = v; }
        int value = 0;
    };
    explicit other_coroutine(std::coroutine_handle<promise_type> h) noexcept : h_(h) {}
    other_coroutine(other_coroutine&& other) noexcept : h_(std::exchange(other.h_, {})) {}
    ~other_coroutine() {
        if (h_) h_.destroy();
    }
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> h) const noexcept {
        h_.promise().set_continuation(h);
        return h_;
    }
    int await_resume() const noexcept { return h_.promise().value; }

private:
    std::coroutine_handle<promise_type> h_;
};
other_coroutine make_other_coroutine() {
    co_return co_await resumed_elsewhere();
}
// An operation with a completion token.
template <class Token = coppice::use_await_t>
auto read_elsewhere(Token&& token = {}) {
    return coppice::completion_token_transform<void(std::error_code, int)>(
        std::forward<Token>(token), [](coppice::completion<int> done) noexcept {
            away().post([done] { std::move(coppice::completion<int>(done))({}, 7); });
        });
}
task<int> nested() {
    co_return co_await resumed_elsewhere();
}

// Awaits each awaitable in all its spellings. `ok` counts the awaits that returned to the task.
struct awaits {
    std::thread::id home = std::this_thread::get_id();
    int made = 0;
    int ok = 0;
    void check(int result) {
        ++made;
        ok += result == 7 && std::this_thread::get_id() == home;
    }
    bool all() const { return made == ok && made != 0; }
};

task<bool> await_senders() {
    awaits a;
    a.check(co_await sent_from_elsewhere());
    sent_from_elsewhere named;
    a.check(co_await named);
    const sent_from_elsewhere fixed;
    a.check(co_await fixed);
    a.check(co_await (ex::just() | ex::then([] { return 7; })));
    a.check(co_await (sent_from_elsewhere() | ex::then([](int i) { return i; })));
    const auto piped = sent_from_elsewhere() | ex::then([](int i) { return i; });
    a.check(co_await piped);
    co_return a.all();
}
template <class Awaitable>
task<bool> await_kind() {
    awaits a;
    a.check(co_await Awaitable());
    Awaitable named;
    a.check(co_await named);
    const Awaitable fixed;
    a.check(co_await fixed);
    a.check(co_await std::move(named));
    co_return a.all();
}
task<bool> await_operations() {
    awaits a;
    a.check(co_await read_elsewhere());
    auto op = read_elsewhere();
    a.check(co_await op);
    auto moved = read_elsewhere();
    a.check(co_await std::move(moved));
    std::error_code ec;
    auto with_error = read_elsewhere(coppice::use_await[ec]);
    a.check(co_await with_error);
    co_return a.all();
}
task<bool> await_coroutines() {
    awaits a;
    a.check(co_await make_other_coroutine());
    auto named = make_other_coroutine();
    a.check(co_await named);
    a.check(co_await nested());
    const auto [x, y] = co_await coppice::wait_for_tasks(nested(), nested());
    a.check(x);
    a.check(y);
    co_return a.all();
}
task<int> await_everything() {
    int failed = 0;
    failed += !co_await await_senders();
    failed += !co_await await_kind<resumed_elsewhere>();
    failed += !co_await await_kind<immovable_awaiter>();
    failed += !co_await await_kind<with_a_member>();
    failed += !co_await await_kind<immovable_with_a_member>();
    failed += !co_await await_kind<with_an_operator>();
    failed += !co_await await_kind<immovable_with_an_operator>();
    failed += !co_await await_kind<customised>();
    failed += !co_await await_kind<immovable_customised>();
    failed += !co_await await_kind<suspends_by_bool>();
    failed += !co_await await_kind<suspends_by_handle>();
    failed += !co_await await_kind<wants_a_promise>();
    failed += !co_await await_operations();
    failed += !co_await await_coroutines();
    co_return failed;
}

TEST(affinity, holds_in_sync_wait_whatever_is_awaited) {
    EXPECT_EQ(sync_wait(await_senders()), std::tuple(true));
    EXPECT_EQ(sync_wait(await_kind<resumed_elsewhere>()), std::tuple(true));
    EXPECT_EQ(sync_wait(await_kind<immovable_awaiter>()), std::tuple(true));
    EXPECT_EQ(sync_wait(await_kind<with_a_member>()), std::tuple(true));
    EXPECT_EQ(sync_wait(await_kind<immovable_with_a_member>()), std::tuple(true));
    EXPECT_EQ(sync_wait(await_kind<with_an_operator>()), std::tuple(true));
    EXPECT_EQ(sync_wait(await_kind<immovable_with_an_operator>()), std::tuple(true));
    EXPECT_EQ(sync_wait(await_kind<customised>()), std::tuple(true));
    EXPECT_EQ(sync_wait(await_kind<immovable_customised>()), std::tuple(true));
    EXPECT_EQ(sync_wait(await_kind<suspends_by_bool>()), std::tuple(true));
    EXPECT_EQ(sync_wait(await_kind<suspends_by_handle>()), std::tuple(true));
    EXPECT_EQ(sync_wait(await_kind<wants_a_promise>()), std::tuple(true));
    EXPECT_EQ(sync_wait(await_operations()), std::tuple(true));
    EXPECT_EQ(sync_wait(await_coroutines()), std::tuple(true));
}

TEST(affinity, holds_on_a_run_loop) {
    ex::run_loop loop;
    std::thread thread([&] { loop.run(); });
    EXPECT_EQ(sync_wait(ex::starts_on(loop.get_scheduler(), await_everything())), std::tuple(0));
    loop.finish();
    thread.join();
}

TEST(affinity, holds_on_a_pool_of_one_thread) {
    coppice::thread_pool pool(1);
    EXPECT_EQ(sync_wait(ex::starts_on(pool.get_scheduler(), await_everything())), std::tuple(0));
}

TEST(affinity, holds_on_an_io_context) {
    coppice::io::context loop;
    const coppice::io::context::work_guard guard(loop);
    std::thread thread([&] { loop.run(); });
    EXPECT_EQ(sync_wait(ex::starts_on(loop.get_scheduler(), await_everything())), std::tuple(0));
    loop.stop();
    thread.join();
}

// An earlier version lost this case silently: a named operation of another thread's loop.
TEST(affinity, holds_for_a_named_operation_of_another_loop) {
    coppice::io::context loop;
    const coppice::io::context::work_guard guard(loop);
    std::thread thread([&] { loop.run(); });
    coppice::io::timer timer(loop);
    auto body = [&]() -> task<bool> {
        const std::thread::id home = std::this_thread::get_id();
        auto op = timer.wait_for(std::chrono::milliseconds(1));
        co_await op;
        co_return std::this_thread::get_id() == home;
    };
    EXPECT_EQ(sync_wait(body()), std::tuple(true));
    loop.stop();
    thread.join();
}

}  // namespace
