// task/shared_task.hpp: one run, many waiters, results by reference, stops, places, lifetimes.
#include <coppice/task/shared_task.hpp>

#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/run.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/task/internal/async_generator_next.hpp>
#include <coppice/token/async_generator.hpp>

#include "allocations.hpp"
#include "sanitizers.hpp"
#include "small_stack.hpp"
#include "turnstile.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

namespace ex = coppice::execution;
using namespace std::chrono_literals;
using coppice::shared_task;
using coppice::task;
using coppice::test::counting_receiver;
using coppice::test::counts;
using coppice::test::turnstile;
using coppice::this_thread::sync_wait;

template <class T>
T run(task<T> t) {
    auto result = sync_wait(std::move(t));
    if constexpr (!std::is_void_v<T>) return std::get<0>(*std::move(result));
}

struct witness {
    explicit witness(int& a) : alive(&a) { ++*alive; }
    witness(const witness& other) : alive(other.alive) { ++*alive; }
    witness& operator=(const witness&) = delete;
    ~witness() { --*alive; }
    int* alive;
};

shared_task<std::string> counted(int& runs) {
    ++runs;
    co_return "result";
}
shared_task<int> gated(turnstile& gate, int& alive) {
    const witness local(alive);
    co_await gate.wait();
    co_return 7;
}
// A waiter of its own, with its own stop source.
struct waiter {
    explicit waiter(const shared_task<int>& s) : op(ex::connect(s, counting_receiver(seen))) {}
    counts seen;
    ex::connect_result_t<const shared_task<int>&, counting_receiver> op;
};

static_assert(std::is_copy_constructible_v<shared_task<>>);
static_assert(std::is_nothrow_move_constructible_v<shared_task<>>);
static_assert(ex::sender<shared_task<int>>);

// ---- Results ------------------------------------------------------------------------------------

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

// ---- Waiters ------------------------------------------------------------------------------------

TEST(shared_task, resumes_everything_that_waits) {
    turnstile gate;
    int alive = 0;
    const auto s = gated(gate, alive);
    std::list<waiter> waiters;
    for (int i = 0; i != 100; ++i) ex::start(waiters.emplace_back(s).op);
    for (const waiter& w : waiters) EXPECT_EQ(w.seen.values, 0);
    gate.let_pass();
    for (const waiter& w : waiters) EXPECT_EQ(w.seen.values, 1);
    EXPECT_EQ(alive, 0);
}

TEST(shared_task, a_stopped_waiter_leaves_and_the_others_do_not_notice) {
    turnstile gate;
    int alive = 0;
    const auto s = gated(gate, alive);
    waiter a(s);
    waiter b(s);
    waiter c(s);
    for (waiter* w : {&a, &b, &c}) ex::start(w->op);
    b.seen.source.request_stop();
    EXPECT_EQ(b.seen.stops, 1);
    EXPECT_TRUE(gate.has_waiter());
    a.seen.source.request_stop();  // the one that has started the work
    EXPECT_EQ(a.seen.stops, 1);
    EXPECT_TRUE(gate.has_waiter());
    gate.let_pass();
    EXPECT_EQ(c.seen.values, 1);
}

TEST(shared_task, a_waiter_that_was_stopped_before_it_started_starts_nothing) {
    turnstile gate;
    int alive = 0;
    const auto s = gated(gate, alive);
    waiter a(s);
    a.seen.source.request_stop();
    ex::start(a.op);
    EXPECT_EQ(a.seen.stops, 1);
    EXPECT_FALSE(gate.has_waiter());
    waiter b(s);
    ex::start(b.op);
    gate.let_pass();
    EXPECT_EQ(b.seen.values, 1);
}

TEST(shared_task, goes_on_without_waiters_while_a_copy_is_left) {
    turnstile gate;
    int alive = 0;
    const auto s = gated(gate, alive);
    {
        waiter a(s);
        ex::start(a.op);
        a.seen.source.request_stop();
        EXPECT_EQ(a.seen.stops, 1);
    }
    EXPECT_TRUE(gate.has_waiter());
    gate.let_pass();
    EXPECT_TRUE(s.is_ready());
    EXPECT_EQ(sync_wait(s), std::tuple(7));
}

TEST(shared_task, is_stopped_when_the_last_copy_or_waiter_goes) {
    turnstile gate;
    int alive = 0;
    {
        std::optional<shared_task<int>> s(gated(gate, alive));
        waiter a(*s);
        ex::start(a.op);
        waiter b(*s);
        ex::start(b.op);
        s.reset();
        a.seen.source.request_stop();
        EXPECT_EQ(a.seen.stops, 1);
        EXPECT_EQ(alive, 1);
        b.seen.source.request_stop();
        EXPECT_EQ(b.seen.stops, 1);
        EXPECT_EQ(alive, 0);
        EXPECT_FALSE(gate.has_waiter());
    }
    {
        std::optional<shared_task<int>> s(gated(gate, alive));
        std::optional<waiter> a(*s);
        ex::start(a->op);
        a->seen.source.request_stop();
        a.reset();
        EXPECT_EQ(alive, 1);
        s.reset();
        EXPECT_EQ(alive, 0);
    }
}

TEST(shared_task, a_waiter_with_the_last_copy_waits_until_the_stopped_work_has_ended) {
    turnstile cleaned;
    int alive = 0;
    const auto cleans_up = [](turnstile& gate, int& a) -> shared_task<int> {
        const witness local(a);
        co_await (ex::unstoppable(gate.wait()));
        co_return 7;
    };
    counts seen;
    auto op = ex::connect(cleans_up(cleaned, alive), counting_receiver(seen));
    ex::start(op);
    seen.source.request_stop();
    EXPECT_EQ(seen.values + seen.stops, 0);
    EXPECT_EQ(alive, 1);
    cleaned.let_pass();
    EXPECT_EQ(seen.values, 1);
    EXPECT_EQ(alive, 0);
}

TEST(shared_task, a_timeout_of_one_waiter_leaves_the_work_to_the_others) {
    coppice::io::run([&](coppice::io::context& loop) -> task<> {
        coppice::io::timer timer(loop);
        const auto slow = [&]() -> shared_task<int> {
            co_await timer.wait_for(20ms);
            co_return 3;
        };
        const auto s = slow();
        bool expired = false;
        try {
            co_await ex::timeout(s, 1ms);
        } catch (const std::system_error& e) {
            expired = e.code() == std::errc::timed_out;
        }
        EXPECT_TRUE(expired);
        EXPECT_EQ(co_await s, 3);
    });
}

TEST(shared_task, ignores_the_deadline_of_the_waiter_that_starts_it) {
    coppice::io::run([&](coppice::io::context& loop) -> task<> {
        coppice::io::timer timer(loop);
        const auto slow = [&]() -> shared_task<int> {
            co_await timer.wait_for(5ms);
            co_return 3;
        };
        const ex::instant soon = ex::monotonic_now() + ex::time_span(1ms);
        const auto s = slow();
        const int result = co_await ex::write_env(s | ex::then([](int i) { return i; }),
                                                  ex::prop(ex::get_deadline, soon));
        EXPECT_EQ(result, 3);
    });
}

// ---- Places -------------------------------------------------------------------------------------

TEST(shared_task, each_waiter_continues_on_its_own_scheduler) {
    coppice::thread_pool pool(1);
    std::thread::id body_ran;
    const auto work = [&]() -> shared_task<int> {
        co_await (ex::schedule(pool.get_scheduler()) | ex::then([] {}));
        body_ran = std::this_thread::get_id();
        co_return 1;
    };
    const auto here = std::this_thread::get_id();
    const auto waits = [](shared_task<int> s) -> task<std::thread::id> {
        co_await s;
        co_return std::this_thread::get_id();
    };
    const auto s = work();
    coppice::io::run([&](coppice::io::context&) -> task<> {
        const auto [on_loop, on_pool] =
            co_await ex::when_all(waits(s), ex::starts_on(pool.get_scheduler(), waits(s)));
        EXPECT_EQ(on_loop, here);
        EXPECT_NE(on_pool, here);
        EXPECT_EQ(body_ran, here);  // the loop has started it
    });
}

TEST(shared_task, a_stopped_waiter_ends_on_its_own_scheduler) {
    turnstile gate;
    int alive = 0;
    const auto s = gated(gate, alive);
    waiter starter(s);
    ex::start(starter.op);
    coppice::inplace_stop_source source;
    std::thread::id ended;
    const auto waits = [&]() -> task<> {
        const coppice::scope_exit leave([&] { ended = std::this_thread::get_id(); });
        co_await s;
    };
    ex::run_loop loop;
    struct receiver {
        using receiver_concept = ex::receiver_tag;
        ex::run_loop* loop;
        coppice::inplace_stop_source* source;
        void set_value() && noexcept {}
        void set_error(std::exception_ptr) && noexcept {}
        void set_stopped() && noexcept { loop->finish(); }
        auto get_env() const noexcept {
            return ex::env(ex::prop(coppice::get_stop_token, source->get_token()),
                           ex::prop(ex::get_start_scheduler, loop->get_scheduler()));
        }
    };
    auto op = ex::connect(waits(), receiver{&loop, &source});
    ex::start(op);
    std::thread stopper([&] { source.request_stop(); });
    loop.run();
    stopper.join();
    EXPECT_EQ(ended, std::this_thread::get_id());
    gate.let_pass();
    EXPECT_EQ(starter.seen.values, 1);
}

TEST(shared_task, is_awaited_by_async_generators_and_other_coroutines) {
    int runs = 0;
    const auto s = counted(runs);
    const auto sizes =
        [](shared_task<std::string> shared) -> coppice::async_generator<std::size_t> {
        const std::string& text = co_await shared;
        co_yield text.size();
    };
    auto g = sizes(s);
    const auto body = [&]() -> task<> { EXPECT_EQ(co_await g.next(), 6u); };
    run(body());
    struct plain {
        struct promise_type {
            plain get_return_object() noexcept { return {}; }
            std::suspend_never initial_suspend() const noexcept { return {}; }
            std::suspend_never final_suspend() const noexcept { return {}; }
            void unhandled_exception() noexcept { std::terminate(); }
            void return_void() noexcept {}
        };
    };
    std::string seen;
    [](shared_task<std::string> shared, std::string& out, int& r) -> plain {
        const std::string& text = co_await shared;
        out = text + co_await counted(r);
    }(s, seen, runs);
    EXPECT_EQ(seen, "resultresult");
}

// ---- Threads ------------------------------------------------------------------------------------

TEST(shared_task, many_threads_await_it_and_some_are_stopped) {
    coppice::thread_pool pool(3);
    for (int round = 0; round != 100; ++round) {
        int runs = 0;
        const auto work = [](coppice::thread_pool& p, int& count) -> shared_task<std::string> {
            ++count;
            co_await (ex::schedule(p.get_scheduler()) | ex::then([] {}));
            co_return "a result that is too long for the small buffer of strings";
        };
        const auto waits = [](shared_task<std::string> s) -> task<std::size_t> {
            co_return (co_await s).size();
        };
        auto s = work(pool, runs);
        coppice::inplace_stop_source source;
        const auto on_pool = [&] { return ex::starts_on(pool.get_scheduler(), waits(s)); };
        const auto stoppable = [&] {
            return ex::stopped_as_optional(
                ex::write_env(on_pool(), ex::prop(coppice::get_stop_token, source.get_token())));
        };
        std::thread stopper([&] {
            for (int i = 0; i != round % 10; ++i) std::this_thread::yield();
            source.request_stop();
        });
        const auto [a, b, c, d] =
            *sync_wait(ex::when_all(on_pool(), stoppable(), on_pool(), stoppable()));
        stopper.join();
        EXPECT_EQ(a, 57u);
        EXPECT_EQ(c, 57u);
        EXPECT_EQ(b.value_or(57u), 57u);
        EXPECT_EQ(d.value_or(57u), 57u);
        EXPECT_EQ(runs, 1);
    }
}

struct begun_and_ended {
    coppice::internal::atomic<int> begun{0};
    coppice::internal::atomic<int> ended{0};
};
shared_task<int> endless(coppice::thread_pool& pool, begun_and_ended& count) {
    count.begun.fetch_add(1, coppice::internal::relaxed);
    const coppice::scope_exit leave(
        [&count] { count.ended.fetch_add(1, coppice::internal::relaxed); });
    for (;;) co_await (ex::schedule(pool.get_scheduler()) | ex::then([] {}));
}

// No thread waits for the end of work whose last copy went. What it refers to is the pool, which
// runs it to its end, and the counts, which outlive the pool. The work is no lambda with captures,
// because those would have to outlive the pool too.
TEST(shared_task, the_last_of_many_threads_stops_it) {
    begun_and_ended count;
    {
        coppice::thread_pool pool(2);
        const auto waits = [](shared_task<int> s) -> task<> { co_await s; };
        for (int round = 0; round != 50; ++round) {
            coppice::inplace_stop_source source;
            const auto s = endless(pool, count);
            std::thread stopper([&] {
                for (int i = 0; i != round % 10; ++i) std::this_thread::yield();
                source.request_stop();
            });
            const auto result =
                sync_wait(ex::write_env(ex::when_all(ex::starts_on(pool.get_scheduler(), waits(s)),
                                                     ex::starts_on(pool.get_scheduler(), waits(s))),
                                        ex::prop(coppice::get_stop_token, source.get_token())));
            stopper.join();
            EXPECT_FALSE(result.has_value());
        }
    }
    EXPECT_EQ(count.begun.load(coppice::internal::relaxed),
              count.ended.load(coppice::internal::relaxed));
}

// ---- Allocations and stack ----------------------------------------------------------------------

TEST(shared_task, allocates_only_when_it_is_made_and_recycles_that) {
    int runs = 0;
    const auto waits = [](shared_task<std::string> s) -> task<std::size_t> {
        co_return (co_await s).size();
    };
    const auto use = [&] {
        const auto s = counted(runs);
        std::size_t sum = 0;
        for (int i = 0; i != 3; ++i) sum += run(waits(s));
        return sum;
    };
    use();
    const std::size_t before = coppice::test::allocations();
    for (int i = 0; i != 100; ++i) EXPECT_EQ(use(), 18u);
    EXPECT_EQ(coppice::test::allocations(), before);
}

template <class T>
struct failing_allocator {
    using value_type = T;
    failing_allocator() = default;
    template <class U>
    failing_allocator(const failing_allocator<U>&) {}
    T* allocate(std::size_t) { throw std::bad_alloc(); }
    void deallocate(T*, std::size_t) {}
    friend bool operator==(const failing_allocator&, const failing_allocator&) = default;
};
[[gnu::noinline]] shared_task<int> without_memory(std::allocator_arg_t,
                                                  failing_allocator<std::byte>, witness) {
    co_return 1;
}

TEST(shared_task, an_allocation_that_fails_throws_from_the_call) {
    int alive = 0;
    EXPECT_THROW(static_cast<void>(without_memory(std::allocator_arg,
                                                  failing_allocator<std::byte>(), witness(alive))),
                 std::bad_alloc);
    EXPECT_EQ(alive, 0);
}

shared_task<int> chained(int links, turnstile* gate) {
    if (links == 0) {
        if (gate != nullptr) co_await gate->wait();
        co_return 0;
    }
    const auto below = chained(links - 1, gate);
    co_return 1 + co_await below;
}

TEST(shared_task, a_chain_of_ten_thousand_uses_constant_stack) {
    coppice::test::on_a_stack_of(256 * 1024, [] {
        const auto waits = [](shared_task<int> s) -> task<int> { co_return co_await s; };
        EXPECT_EQ(run(waits(chained(10'000, nullptr))), 10'000);
        turnstile gate;
        counts seen;
        auto op = ex::connect(waits(chained(10'000, &gate)), counting_receiver(seen));
        ex::start(op);
        gate.let_pass();
        EXPECT_EQ(seen.values, 1);
    });
}

// ---- Misuse -------------------------------------------------------------------------------------

TEST(shared_task_death, use_after_a_move_stops_the_process) {
    int runs = 0;
    auto s = counted(runs);
    const auto moved = std::move(s);
    EXPECT_DEATH(static_cast<void>(s.is_ready()), "used after it was moved from");
}

TEST(shared_task_death, a_waiter_that_is_destroyed_while_it_waits_stops_the_process) {
    turnstile gate;
    int alive = 0;
    const auto s = gated(gate, alive);
    std::optional<waiter> w(s);
    ex::start(w->op);
    EXPECT_DEATH(w.reset(), "destroyed while it waited");
    gate.let_pass();
}

}  // namespace
