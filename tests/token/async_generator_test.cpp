// token/async_generator.hpp: elements, ends, stops, places, tokens, allocations, and stack use.
#include <coppice/token/async_generator.hpp>
#include <coppice/token/internal/next_initiation.hpp>

#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_any.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/run.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/task/task.hpp>

#include "allocations.hpp"
#include "small_stack.hpp"
#include "turnstile.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
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
using coppice::async_generator;
using coppice::task;
using coppice::test::counting_receiver;
using coppice::test::counts;
using coppice::test::turnstile;
using coppice::this_thread::sync_wait;
using ints = std::vector<int>;

template <class T>
T run(task<T> t) {
    auto result = sync_wait(std::move(t));
    if constexpr (!std::is_void_v<T>) return std::get<0>(*std::move(result));
}
task<ints> all_of(async_generator<int>& g) {
    ints all;
    while (const std::optional<int> item = co_await g.next()) all.push_back(*item);
    co_return all;
}
task<ints> all_of_temporary(async_generator<int> g) {
    co_return co_await all_of(g);
}

async_generator<int> counting(int from, int to) {
    for (int i = from; i < to; ++i) co_yield i;
}
// Lets other work run before each element.
async_generator<int> counting_slowly(int from, int to) {
    for (int i = from; i < to; ++i) {
        co_await ex::just();
        co_yield i;
    }
}

struct witness {
    explicit witness(int& a) : alive(&a) { ++*alive; }
    witness(const witness& other) : alive(other.alive) { ++*alive; }
    witness& operator=(const witness&) = delete;
    ~witness() { --*alive; }
    int* alive;
};

static_assert(std::is_same_v<async_generator<int>::item_type, std::optional<int>>);
static_assert(std::is_same_v<async_generator<int&>::item_type, int*>);
static_assert(std::is_same_v<async_generator<const int&>::item_type, const int*>);
static_assert(!std::is_copy_constructible_v<async_generator<int>>);
static_assert(std::is_nothrow_move_constructible_v<async_generator<int>>);
static_assert(noexcept(std::declval<async_generator<int>&>().next()));

// ---- Elements -----------------------------------------------------------------------------------

TEST(async_generator, gives_its_elements_and_then_nothing_each_time) {
    const auto body = []() -> task<> {
        auto g = counting(0, 2);
        EXPECT_EQ(co_await g.next(), 0);
        EXPECT_EQ(co_await g.next(), 1);
        EXPECT_EQ(co_await g.next(), std::nullopt);
        EXPECT_EQ(co_await g.next(), std::nullopt);
    };
    run(body());
    EXPECT_EQ(run(all_of_temporary(counting_slowly(0, 4))), (ints{0, 1, 2, 3}));
}

TEST(async_generator, runs_only_while_an_element_is_awaited) {
    int step = 0;
    const auto numbers = [](int& at) -> async_generator<int> {
        at = 1;
        co_yield 10;
        at = 2;
    };
    const auto body = [&]() -> task<> {
        auto g = numbers(step);
        EXPECT_EQ(step, 0);
        auto first = g.next();
        EXPECT_EQ(step, 0);
        co_await std::move(first);
        EXPECT_EQ(step, 1);
        co_await g.next();
        EXPECT_EQ(step, 2);
    };
    run(body());
}

TEST(async_generator, gives_move_only_elements_and_copies_of_lvalues) {
    const auto pointers = []() -> async_generator<std::unique_ptr<int>> {
        co_yield std::make_unique<int>(1);
        auto two = std::make_unique<int>(2);
        co_yield std::move(two);
    };
    const auto strings = []() -> async_generator<std::string> {
        std::string kept = "kept";
        co_yield kept;
        EXPECT_EQ(kept, "kept");
        co_yield "converted";
    };
    const auto body = [&]() -> task<> {
        auto p = pointers();
        int sum = 0;
        while (auto each = co_await p.next()) sum += **each;
        EXPECT_EQ(sum, 3);
        auto s = strings();
        std::string all;
        while (auto each = co_await s.next()) all += *each;
        EXPECT_EQ(all, "keptconverted");
    };
    run(body());
}

TEST(async_generator, of_references_gives_pointers_to_the_yielded_objects) {
    const auto objects = [](int& a, int& b) -> async_generator<int&> {
        co_yield a;
        co_await ex::just();
        co_yield b;
    };
    const auto temporaries = []() -> async_generator<const std::string&> {
        co_yield "a temporary that is too long for the small buffer of strings";
    };
    int a = 1;
    int b = 2;
    const auto body = [&]() -> task<> {
        auto g = objects(a, b);
        while (int* each = co_await g.next()) *each *= 10;
        auto t = temporaries();
        const std::string* text = co_await t.next();
        EXPECT_EQ(text->size(), 60u);
        EXPECT_EQ(co_await t.next(), nullptr);
    };
    run(body());
    EXPECT_EQ(a, 10);
    EXPECT_EQ(b, 20);
}

TEST(async_generator, awaits_tasks_and_other_async_generators) {
    const auto squared = [](int i) -> task<int> {
        co_await ex::just();
        co_return i* i;
    };
    const auto squares = [&](int n) -> async_generator<int> {
        auto inner = counting_slowly(0, n);
        while (auto i = co_await inner.next()) co_yield co_await squared(*i);
    };
    EXPECT_EQ(run(all_of_temporary(squares(4))), (ints{0, 1, 4, 9}));
}

// ---- Ends ---------------------------------------------------------------------------------------

async_generator<int> failing(int& alive, int elements, bool slowly) {
    const witness local(alive);
    for (int i = 0; i < elements; ++i) {
        if (slowly) co_await ex::just();
        co_yield i;
    }
    if (slowly) co_await ex::just();
    throw std::runtime_error("failed");
}

TEST(async_generator, throws_what_its_body_throws_and_has_then_ended) {
    for (const bool slowly : {false, true}) {
        for (const int elements : {0, 2}) {
            int alive = 0;
            const auto body = [&]() -> task<> {
                auto g = failing(alive, elements, slowly);
                for (int i = 0; i != elements; ++i) EXPECT_EQ(co_await g.next(), i);
                bool caught = false;
                try {
                    co_await g.next();
                } catch (const std::runtime_error& e) {
                    caught = std::string(e.what()) == "failed";
                }
                EXPECT_TRUE(caught);
                EXPECT_EQ(alive, 0);
                EXPECT_EQ(co_await g.next(), std::nullopt);
            };
            run(body());
        }
    }
}

TEST(async_generator, an_element_whose_constructor_throws_leaves_the_co_yield) {
    struct fragile {
        explicit fragile(int i) {
            if (i == 1) throw std::runtime_error("element");
        }
    };
    const auto elements = [](int& caught) -> async_generator<fragile> {
        for (int i = 0; i != 3; ++i) {
            try {
                co_yield i;
            } catch (const std::runtime_error&) {
                ++caught;
            }
        }
    };
    int caught = 0;
    const auto body = [&]() -> task<int> {
        auto g = elements(caught);
        int count = 0;
        while (const auto item = co_await g.next()) ++count;
        co_return count;
    };
    EXPECT_EQ(run(body()), 2);
    EXPECT_EQ(caught, 1);
}

TEST(async_generator, a_destructor_that_throws_at_the_end_is_an_error_in_place_of_the_end) {
    struct thrower {
        ~thrower() noexcept(false) { throw std::runtime_error("destructor"); }
    };
    const auto elements = []() -> async_generator<int> {
        const thrower local;
        co_yield 1;
    };
    const auto body = [&]() -> task<> {
        auto g = elements();
        EXPECT_EQ(co_await g.next(), 1);
        bool caught = false;
        try {
            co_await g.next();
        } catch (const std::runtime_error&) {
            caught = true;
        }
        EXPECT_TRUE(caught);
    };
    run(body());
}

struct coded {
    using error_types =
        ex::completion_signatures<ex::set_error_t(std::exception_ptr), ex::set_error_t(int)>;
};
async_generator<int, coded> ends_with_code() {
    co_yield 1;
    co_yield ex::with_error(7);
    ADD_FAILURE() << "the body went on";
}

TEST(async_generator, ends_with_an_error_of_its_environment_that_a_sender_sends_unchanged) {
    auto g = ends_with_code();
    struct receiver {
        using receiver_concept = ex::receiver_tag;
        int* code;
        void set_value(std::optional<int>) && noexcept {}
        void set_error(int e) && noexcept { *code = e; }
        void set_error(std::exception_ptr) && noexcept {}
        void set_stopped() && noexcept {}
    };
    int code = 0;
    auto first = ex::connect(g.next(), receiver{&code});
    ex::start(first);
    EXPECT_EQ(code, 0);
    auto second = ex::connect(g.next(), receiver{&code});
    ex::start(second);
    EXPECT_EQ(code, 7);
}

// ---- Lifetimes ----------------------------------------------------------------------------------

async_generator<int> holding(int& alive, int elements) {
    const witness local(alive);
    for (int i = 0; i < elements; ++i) co_yield i;
}

TEST(async_generator, may_be_moved_and_destroyed_between_two_elements_at_each_state) {
    int alive = 0;
    {
        const auto never = holding(alive, 2);
    }
    const auto body = [&]() -> task<> {
        {
            auto a = holding(alive, 2);
            EXPECT_EQ(co_await a.next(), 0);
            EXPECT_EQ(alive, 1);
        }
        EXPECT_EQ(alive, 0);
        auto a = holding(alive, 3);
        auto b = std::move(a);
        EXPECT_EQ(co_await b.next(), 0);
        auto c = std::move(b);
        EXPECT_EQ(co_await c.next(), 1);
        EXPECT_EQ(co_await b.next(), std::nullopt);
        c = holding(alive, 1);  // destroys the body that waits
        EXPECT_EQ(alive, 0);
        const ints rest = co_await all_of(c);
        EXPECT_EQ(rest, ints{0});
    };
    run(body());
    EXPECT_EQ(alive, 0);
}

TEST(async_generator, destroys_its_frame_before_the_end_is_told) {
    int alive = 0;
    const auto elements = [](witness) -> async_generator<int> { co_yield 1; };
    const auto body = [&]() -> task<> {
        auto g = elements(witness(alive));
        EXPECT_EQ(alive, 1);
        co_await g.next();
        EXPECT_EQ(alive, 1);
        co_await g.next();
        EXPECT_EQ(alive, 0);
    };
    run(body());
}

// ---- Stops --------------------------------------------------------------------------------------

async_generator<int> waiting(turnstile& gate, int& alive) {
    const witness local(alive);
    for (int i = 0;; ++i) {
        co_await gate.wait();
        co_yield i;
    }
}

TEST(async_generator, a_stop_ends_the_body_where_it_waits_and_the_generator) {
    turnstile gate;
    int alive = 0;
    auto g = waiting(gate, alive);
    counts first;
    auto op = ex::connect(g.next(), counting_receiver(first));
    ex::start(op);
    gate.let_pass();
    EXPECT_EQ(first.values, 1);
    counts second;
    auto op2 = ex::connect(g.next(), counting_receiver(second));
    ex::start(op2);
    EXPECT_TRUE(gate.has_waiter());
    first.source.request_stop();  // the waiter before: it is not heeded any longer
    EXPECT_TRUE(gate.has_waiter());
    second.source.request_stop();
    EXPECT_EQ(second.stops, 1);
    EXPECT_EQ(alive, 0);
    counts third;
    auto op3 = ex::connect(g.next(), counting_receiver(third));
    ex::start(op3);
    EXPECT_EQ(third.values, 1);
}

TEST(async_generator, a_stop_that_its_body_awaits_stops_the_consumer) {
    int alive = 0;
    const auto elements = [](int& a) -> async_generator<int> {
        const witness local(a);
        co_yield 1;
        co_await ex::just_stopped();
    };
    bool went_on = false;
    const auto body = [&]() -> task<> {
        auto g = elements(alive);
        co_await g.next();
        co_await g.next();
        went_on = true;
    };
    EXPECT_FALSE(sync_wait(body()).has_value());
    EXPECT_FALSE(went_on);
    EXPECT_EQ(alive, 0);
}

TEST(async_generator, a_timeout_or_when_any_that_stops_next_leaves_an_ended_generator) {
    const auto forever = [](coppice::io::timer& timer, int& alive) -> async_generator<int> {
        const witness local(alive);
        co_yield 0;
        co_await timer.wait_for(1h);
    };
    coppice::io::run([&](coppice::io::context& loop) -> task<> {
        coppice::io::timer timer(loop);
        coppice::io::timer other(loop);
        int alive = 0;
        auto g = forever(timer, alive);
        EXPECT_EQ(co_await g.next(), 0);
        bool expired = false;
        try {
            co_await ex::timeout(g.next(), 1ms);
        } catch (const std::system_error& e) {
            expired = e.code() == std::errc::timed_out;
        }
        EXPECT_TRUE(expired);
        EXPECT_EQ(alive, 0);
        EXPECT_EQ(co_await g.next(), std::nullopt);
        auto h = forever(timer, alive);
        EXPECT_EQ(co_await h.next(), 0);
        const bool given =
            co_await ex::when_any(h.next() | ex::then([](std::optional<int>) { return true; }),
                                  other.wait_for(1ms) | ex::then([] { return false; }));
        EXPECT_FALSE(given);
        EXPECT_EQ(alive, 0);
        EXPECT_EQ(co_await h.next(), std::nullopt);
    });
}

TEST(async_generator, heeds_the_deadline_of_each_waiter) {
    const auto forever = [](coppice::io::timer& timer) -> async_generator<int> {
        co_await timer.wait_for(1h);
        co_yield 0;
    };
    coppice::io::run([&](coppice::io::context& loop) -> task<> {
        coppice::io::timer timer(loop);
        auto g = forever(timer);
        const ex::instant soon = ex::monotonic_now() + ex::time_span(1ms);
        const auto given = co_await (ex::write_env(g.next(), ex::prop(ex::get_deadline, soon)) |
                                     ex::stopped_as_optional);
        EXPECT_FALSE(given.has_value());
        EXPECT_EQ(co_await g.next(), std::nullopt);
    });
}

// ---- Places -------------------------------------------------------------------------------------

TEST(async_generator, runs_on_the_scheduler_of_whichever_waits_for_the_element) {
    coppice::thread_pool pool(1);
    coppice::io::context loop;
    const auto threads = []() -> async_generator<std::thread::id> {
        for (;;) {
            co_yield std::this_thread::get_id();
            co_await ex::just();
        }
    };
    auto g = threads();
    const auto here = std::this_thread::get_id();
    const auto on_pool = [&]() -> task<> {
        for (int i = 0; i != 3; ++i) {
            EXPECT_EQ(co_await g.next(), std::this_thread::get_id());
            EXPECT_NE(std::this_thread::get_id(), here);
        }
    };
    const auto on_loop = [&](coppice::io::context&) -> task<> {
        for (int i = 0; i != 3; ++i) {
            EXPECT_EQ(co_await g.next(), here);
            EXPECT_EQ(std::this_thread::get_id(), here);
        }
    };
    for (int round = 0; round != 3; ++round) {
        sync_wait(ex::starts_on(pool.get_scheduler(), on_pool()));
        coppice::io::run(on_loop);
    }
}

TEST(async_generator, comes_back_to_its_waiters_scheduler_after_each_await) {
    coppice::thread_pool pool(2);
    const auto threads = [&]() -> async_generator<std::thread::id> {
        for (int i = 0; i != 20; ++i) {
            co_await (ex::schedule(pool.get_scheduler()) | ex::then([] {}));
            co_yield std::this_thread::get_id();
        }
    };
    coppice::io::run([&](coppice::io::context&) -> task<> {
        auto g = threads();
        const auto here = std::this_thread::get_id();
        int count = 0;
        while (const auto id = co_await g.next()) {
            EXPECT_EQ(*id, here);
            EXPECT_EQ(std::this_thread::get_id(), here);
            ++count;
        }
        EXPECT_EQ(count, 20);
    });
}

TEST(async_generator, that_changes_its_scheduler_gives_each_element_at_home) {
    coppice::thread_pool pool(1);
    const auto threads = [&]() -> async_generator<std::thread::id> {
        for (int i = 0; i != 3; ++i) {
            co_await ex::change_coroutine_scheduler<ex::any_scheduler>(pool.get_scheduler());
            co_yield std::this_thread::get_id();  // the next element begins at home
            EXPECT_NE(std::this_thread::get_id(), std::thread::id());
        }
        co_await ex::change_coroutine_scheduler<ex::any_scheduler>(pool.get_scheduler());
        co_await ex::just_stopped();
    };
    coppice::io::run([&](coppice::io::context&) -> task<> {
        const auto here = std::this_thread::get_id();
        auto g = threads();
        for (int i = 0; i != 3; ++i) {
            const auto id = co_await g.next();
            EXPECT_NE(*id, here);
            EXPECT_EQ(std::this_thread::get_id(), here);
        }
        const auto stopped = co_await (g.next() | ex::stopped_as_optional);
        EXPECT_FALSE(stopped.has_value());
        EXPECT_EQ(std::this_thread::get_id(), here);
        EXPECT_EQ(co_await g.next(), std::nullopt);
        auto destroyed = threads();
        co_await destroyed.next();
    });
}

TEST(async_generator, waits_for_timers_of_the_scheduler_around_it) {
    turnstile never;
    const auto ticks = [&]() -> async_generator<int> {
        for (int i = 0; i != 3; ++i) {
            try {
                co_await ex::timeout(never.wait(), 1ms);
            } catch (const std::system_error&) {
            }
            co_yield i;
        }
    };
    coppice::io::run([&](coppice::io::context&) -> task<> {
        auto g = ticks();
        const ints all = co_await all_of(g);
        EXPECT_EQ(all, (ints{0, 1, 2}));
    });
}

TEST(async_generator, on_a_pool_is_stopped_from_another_thread_at_any_time) {
    coppice::thread_pool pool(2);
    const auto busy = [&](int& alive) -> async_generator<int> {
        const witness local(alive);
        for (int i = 0;; ++i) {
            co_await (ex::schedule(pool.get_scheduler()) | ex::then([] {}));
            co_yield i;
        }
    };
    for (int round = 0; round != 50; ++round) {
        int alive = 0;
        coppice::inplace_stop_source source;
        const auto consumer = [&]() -> task<> {
            auto g = busy(alive);
            const coppice::inplace_stop_token stop = co_await ex::read_env(coppice::get_stop_token);
            while (!stop.stop_requested()) co_await g.next();
        };
        std::thread stopper([&] {
            for (int i = 0; i != round % 20; ++i) std::this_thread::yield();
            source.request_stop();
        });
        sync_wait(ex::write_env(ex::starts_on(pool.get_scheduler(), consumer()),
                                ex::prop(coppice::get_stop_token, source.get_token())));
        stopper.join();
        EXPECT_EQ(alive, 0);
    }
}

// ---- Tokens -------------------------------------------------------------------------------------

TEST(async_generator, takes_every_completion_token) {
    auto g = counting(0, 4);
    EXPECT_EQ(g.next(coppice::block), 0);
    EXPECT_EQ(g.next(coppice::use_future).get(), 1);
    std::optional<int> called;
    g.next([&](std::error_code error, std::optional<int> item) {
        EXPECT_FALSE(error);
        called = item;
    });
    EXPECT_EQ(called, 2);
    std::error_code error;
    const auto body = [&]() -> task<> {
        EXPECT_EQ(co_await g.next(coppice::use_await[error]), 3);
        EXPECT_EQ(co_await g.next(coppice::use_await[error]), std::nullopt);
    };
    run(body());
    EXPECT_EQ(g.next(coppice::block), std::nullopt);
    EXPECT_EQ(g.next(coppice::block[error]), std::nullopt);
    EXPECT_FALSE(error);
}

template <class Exception>
async_generator<int> throwing(Exception e) {
    throw e;
    co_yield 0;
}

TEST(async_generator, tokens_that_throw_throw_the_bodys_exception_and_others_get_a_code) {
    EXPECT_THROW(throwing(std::runtime_error("x")).next(coppice::block), std::runtime_error);
    EXPECT_THROW(throwing(std::runtime_error("x")).next(coppice::use_future).get(),
                 std::runtime_error);
    std::error_code error;
    throwing(std::runtime_error("x")).next(coppice::block[error]);
    EXPECT_EQ(error, std::errc::state_not_recoverable);
    throwing(std::bad_alloc()).next(coppice::block[error]);
    EXPECT_EQ(error, std::errc::not_enough_memory);
    const auto broken = std::make_error_code(std::errc::broken_pipe);
    throwing(std::system_error(broken)).next([&](std::error_code e, std::optional<int> item) {
        EXPECT_EQ(e, broken);
        EXPECT_FALSE(item.has_value());
    });
}

TEST(async_generator, a_callback_is_stopped_by_its_environment) {
    turnstile gate;
    int alive = 0;
    auto g = waiting(gate, alive);
    coppice::inplace_stop_source source;
    std::error_code error;
    g.next(coppice::bind_env(ex::prop(coppice::get_stop_token, source.get_token()),
                             [&](std::error_code e, std::optional<int>) { error = e; }));
    EXPECT_FALSE(error);
    source.request_stop();
    EXPECT_EQ(error, std::errc::operation_canceled);
    EXPECT_EQ(alive, 0);
}

// ---- Allocations and stack ----------------------------------------------------------------------

TEST(async_generator, allocates_nothing_for_an_element) {
    const auto body = [&]() -> task<> {
        auto quick = counting(0, 1000);
        auto slow = counting_slowly(0, 1000);
        co_await quick.next();
        co_await slow.next();
        const std::size_t before = coppice::test::allocations();
        long sum = 0;
        while (const auto item = co_await quick.next()) sum += *item;
        while (const auto item = co_await slow.next()) sum += *item;
        EXPECT_EQ(coppice::test::allocations(), before);
        EXPECT_EQ(sum, 999'000);
    };
    run(body());
    const std::size_t before = coppice::test::allocations();
    for (int i = 0; i != 10; ++i) {
        auto g = counting(0, 3);
        g.next([](std::error_code, std::optional<int>) {});
        int sum = 0;
        while (const auto item = g.next(coppice::block)) sum += *item;
        EXPECT_EQ(sum, 3);
    }
    EXPECT_EQ(coppice::test::allocations(), before);
}

TEST(async_generator, a_million_elements_use_constant_stack) {
    coppice::test::on_a_stack_of(256 * 1024, [] {
        const auto sum_of = [](async_generator<int> g) -> task<long> {
            long sum = 0;
            while (const auto item = co_await g.next()) sum += *item;
            co_return sum;
        };
        EXPECT_EQ(run(sum_of(counting(0, 1'000'000))), 499'999'500'000);
        EXPECT_EQ(run(sum_of(counting_slowly(0, 100'000))), 4'999'950'000);
    });
}

async_generator<int> deep(int levels, int elements, bool slowly) {
    if (levels == 0) {
        for (int i = 0; i != elements; ++i) {
            if (slowly) co_await ex::just();
            co_yield i;
        }
    } else {
        auto inner = deep(levels - 1, elements, slowly);
        while (const auto item = co_await inner.next()) co_yield *item;
    }
}

TEST(async_generator, ten_thousand_levels_use_constant_stack) {
    coppice::test::on_a_stack_of(256 * 1024, [] {
        const auto body = [](bool slowly) -> task<> {
            auto g = deep(10'000, 3, slowly);
            for (int i = 0; i != 3; ++i) EXPECT_EQ(co_await g.next(), i);
            EXPECT_EQ(co_await g.next(), std::nullopt);
        };
        run(body(false));
        run(body(true));
    });
}

// A coroutine that knows nothing of coppice.
struct plain {
    struct promise_type {
        plain get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void unhandled_exception() noexcept { std::terminate(); }
        void return_void() noexcept {}
    };
};

TEST(async_generator, is_awaited_by_coroutines_of_other_types_with_constant_stack) {
    coppice::test::on_a_stack_of(256 * 1024, [] {
        long sum = 0;
        [](long& s) -> plain {
            auto quick = counting(0, 100'000);
            while (const auto item = co_await quick.next()) s += *item;
            auto slow = counting_slowly(0, 1000);
            while (const auto item = co_await slow.next()) s += *item;
        }(sum);
        EXPECT_EQ(sum, 4'999'950'000 + 499'500);
    });
}

struct books {
    int allocated = 0;
    int deallocated = 0;
    bool fails = false;
};
template <class T>
struct counting_allocator {
    using value_type = T;
    explicit counting_allocator(books& b) : kept(&b) {}
    template <class U>
    counting_allocator(const counting_allocator<U>& other) : kept(other.kept) {}
    T* allocate(std::size_t n) {
        if (kept->fails) throw std::bad_alloc();
        ++kept->allocated;
        return std::allocator<T>().allocate(n);
    }
    void deallocate(T* memory, std::size_t n) {
        ++kept->deallocated;
        std::allocator<T>().deallocate(memory, n);
    }
    friend bool operator==(const counting_allocator&, const counting_allocator&) = default;
    books* kept;
};

// noinline: clang would put the frame on the stack.
[[gnu::noinline]] async_generator<int> allocated(std::allocator_arg_t,
                                                 const counting_allocator<std::byte>&, witness) {
    co_yield 1;
}

TEST(async_generator, takes_its_frame_from_an_allocator_that_may_fail) {
    books book;
    int alive = 0;
    const counting_allocator<std::byte> from_book(book);
    EXPECT_EQ(run(all_of_temporary(allocated(std::allocator_arg, from_book, witness(alive)))),
              ints{1});
    EXPECT_EQ(book.allocated, 1);
    EXPECT_EQ(book.deallocated, 1);
    book.fails = true;
    EXPECT_THROW(static_cast<void>(allocated(std::allocator_arg, from_book, witness(alive))),
                 std::bad_alloc);
    EXPECT_EQ(alive, 0);
}

// ---- Misuse -------------------------------------------------------------------------------------

TEST(async_generator_death, a_second_next_during_the_first_stops_the_process) {
    turnstile gate;
    int alive = 0;
    auto g = waiting(gate, alive);
    counts c;
    auto first = ex::connect(g.next(), counting_receiver(c));
    ex::start(first);
    EXPECT_DEATH(
        {
            auto second = ex::connect(g.next(), counting_receiver(c));
            ex::start(second);
        },
        "whose last next\\(\\) has not ended");
    gate.let_pass();
}

TEST(async_generator_death, destroying_or_moving_it_during_next_stops_the_process) {
    turnstile gate;
    int alive = 0;
    std::optional<async_generator<int>> g(waiting(gate, alive));
    counts c;
    auto first = ex::connect(g->next(), counting_receiver(c));
    ex::start(first);
    EXPECT_DEATH(g.reset(), "before its next\\(\\) had ended");
    EXPECT_DEATH(auto moved = std::move(*g), "before its next\\(\\) had ended");
    gate.let_pass();
}

TEST(async_generator_death, a_next_that_is_used_twice_stops_the_process) {
    auto g = counting(0, 3);
    counts c;
    auto next = g.next();
    auto first = ex::connect(std::move(next), counting_receiver(c));
    EXPECT_DEATH(static_cast<void>(ex::connect(std::move(next), counting_receiver(c))),
                 "used twice");
}

}  // namespace
