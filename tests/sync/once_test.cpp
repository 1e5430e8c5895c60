// sync/once.hpp: one run at a time; its value or error for all; a stop passes the run on.
#include <coppice/sync/once.hpp>

#include <coppice/pool.hpp>
#include <coppice/sync/event.hpp>

#include "allocations.hpp"
#include "kinds.hpp"

#include <stdexcept>
#include <string>
#include <thread>

namespace {

using namespace coppice;
using namespace coppice::test;

TEST(async_once, makes_the_value_once_and_gives_the_same_object_to_all) {
    async_once<std::string> once;
    EXPECT_EQ(once.try_get(), nullptr);
    int calls = 0;
    const auto make = [&]() -> task<std::string> {
        ++calls;
        co_return "value";
    };
    const auto work = [&]() -> task<> {
        std::string& first = co_await once.get(make);
        std::string& second = co_await once.get([] { return std::string("other"); });
        EXPECT_EQ(&first, &second);
        EXPECT_EQ(first, "value");
        EXPECT_EQ(&first, once.try_get());
    };
    EXPECT_TRUE(this_thread::sync_wait(work()));
    EXPECT_EQ(calls, 1);
}

TEST(async_once, the_others_wait_while_one_makes_the_value) {
    async_once<int> once;
    async_event go;
    int calls = 0;
    const auto make = [&]() -> task<int> {
        ++calls;
        co_await go.wait();
        co_return 7;
    };
    const auto get = [&]() -> task<int> { co_return co_await once.get(make); };
    const auto open = [&]() -> task<int> {
        EXPECT_EQ(once.try_get(), nullptr);
        go.set();
        co_return 0;
    };
    EXPECT_EQ(this_thread::sync_wait(ex::when_all(get(), get(), get(), open())).value(),
              std::tuple(7, 7, 7, 0));
    EXPECT_EQ(calls, 1);
}

TEST(async_once, an_error_goes_to_all_that_wait_and_the_next_get_tries_again) {
    async_once<int> once;
    async_event go;
    const auto fail = [&]() -> task<int> {
        co_await go.wait();
        throw std::runtime_error("no value");
    };
    const auto get = [&]() -> task<std::string> {
        try {
            co_return std::to_string(co_await once.get(fail));
        } catch (const std::runtime_error& e) {
            co_return e.what();
        }
    };
    const auto open = [&]() -> task<int> {
        go.set();
        co_return 0;
    };
    EXPECT_EQ(this_thread::sync_wait(ex::when_all(get(), get(), open())).value(),
              std::tuple("no value", "no value", 0));
    EXPECT_EQ(once.try_get(), nullptr);
    EXPECT_EQ(once.get([] { return 5; }, block), 5);
}

TEST(async_once, a_waiter_takes_over_when_the_running_one_is_stopped) {
    async_once<int> once;
    inplace_stop_source stop;
    async_event never;
    const auto hang = [&]() -> task<int> {
        co_await never.wait();
        co_return 1;
    };
    std::error_code first;
    std::error_code second;
    once.get(hang, bind_env(ex::prop(get_stop_token, stop.get_token()),
                            [&](std::error_code ec, int&) { first = ec; }));
    int got = 0;
    once.get([] { return 2; },
             [&](std::error_code ec, int& v) {
                 second = ec;
                 got = v;
             });
    EXPECT_EQ(got, 0);
    stop.request_stop();
    EXPECT_EQ(first, std::errc::operation_canceled);
    EXPECT_FALSE(second);
    EXPECT_EQ(got, 2);
}

TEST(async_once, the_next_get_tries_when_the_running_one_was_stopped_alone) {
    async_once<int> once;
    inplace_stop_source stop;
    async_event never;
    const auto hang = [&]() -> task<int> {
        co_await never.wait();
        co_return 1;
    };
    once.get(hang,
             bind_env(ex::prop(get_stop_token, stop.get_token()), [](std::error_code, int&) {}));
    stop.request_stop();
    EXPECT_EQ(once.try_get(), nullptr);
    EXPECT_EQ(once.get([] { return 3; }, use_future).get(), 3);
}

TEST(async_once, a_stopped_waiter_leaves_the_others) {
    async_once<int> once;
    async_event go;
    const auto make = [&]() -> task<int> {
        co_await go.wait();
        co_return 4;
    };
    int ended[3]{};
    inplace_stop_source stop;
    once.get(make, [&](std::error_code, int& v) { ended[0] = v; });
    once.get(make, bind_env(ex::prop(get_stop_token, stop.get_token()),
                            [&](std::error_code ec, int&) { ended[1] = ec ? -1 : 1; }));
    once.get(make, [&](std::error_code, int& v) { ended[2] = v; });
    stop.request_stop();
    EXPECT_EQ(ended[1], -1);
    go.set();
    EXPECT_EQ(ended[0], 4);
    EXPECT_EQ(ended[2], 4);
}

TEST(async_once, tokens_are_given_the_code_of_a_system_error) {
    async_once<int> once;
    std::error_code got;
    once.get([]() -> int { throw std::system_error(std::make_error_code(std::errc::io_error)); },
             [&](std::error_code ec, int&) { got = ec; });
    EXPECT_EQ(got, std::errc::io_error);
    once.get([]() -> int { throw 1; }, [&](std::error_code ec, int&) { got = ec; });
    EXPECT_EQ(got, std::errc::state_not_recoverable);
    once.get([]() -> int { throw std::bad_alloc(); }, [&](std::error_code ec, int&) { got = ec; });
    EXPECT_EQ(got, std::errc::not_enough_memory);
    EXPECT_EQ(once.try_get(), nullptr);
}

// A function whose move throws when `left` moves were made.
struct moves_badly {
    static inline int left = 0;
    moves_badly() = default;
    moves_badly(moves_badly&&) {
        if (left != 0 && --left == 0) throw std::system_error(EIO, std::generic_category());
    }
    int operator()() { return 5; }
};

TEST(async_once, a_move_of_the_function_that_throws_leaves_get) {
    int thrown = 0, made = 0;
    for (int n = 1; n != 9; ++n) {
        async_once<int> once;
        std::error_code got;
        moves_badly::left = n;
        try {
            once.get(moves_badly(), [&](std::error_code ec, int&) { got = ec; });
            ++made;
        } catch (const std::system_error&) {
            ++thrown;
        }
        moves_badly::left = 0;
        EXPECT_FALSE(got);
        EXPECT_EQ(once.get([] { return 6; }, block), made != 0 ? 5 : 6);  // it can be used again
    }
    EXPECT_GT(thrown, 0);
    EXPECT_GT(made, 0);
}

struct pinned {
    explicit pinned(int v) : value(v) {}
    pinned(const pinned&) = delete;
    pinned& operator=(const pinned&) = delete;
    int value;
};

TEST(async_once, a_value_that_cannot_move_is_made_in_place) {
    async_once<pinned> once;
    EXPECT_EQ(once.get([] { return pinned(6); }, block).value, 6);
}

TEST(async_once, a_constant_value_is_made_by_a_function_or_a_task) {
    async_once<const std::string> by_function;
    EXPECT_EQ(by_function.get([] { return std::string("made"); }, block), "made");
    async_once<const std::string> by_task;
    const auto make = []() -> task<std::string> { co_return "made"; };
    EXPECT_EQ(by_task.get(make, block), "made");
    EXPECT_EQ(*by_task.try_get(), "made");
}

TEST(async_once, getting_a_value_that_is_there_allocates_nothing) {
    async_once<int> once;
    std::size_t allocated = 1;
    const auto work = [&]() -> task<> {
        for (int round = 0; round != 2; ++round) {
            const allocation_count count;
            for (int i = 0; i != 100; ++i) co_await once.get([] { return 1; });
            allocated = count.so_far();
        }
    };
    this_thread::sync_wait(work());
    EXPECT_EQ(allocated, 0u);
}

TEST(async_once, tasks_on_a_pool_of_which_some_fail_and_some_are_stopped_make_one_value) {
    thread_pool pool(2);
    for (int round = 0; round != 200; ++round) {
        async_once<int> once;
        coppice::internal::atomic<int> made{0};
        const auto get = [&](int me) -> task<int> {
            const auto make = [&, me]() -> task<int> {
                co_await ex::schedule(pool.get_scheduler());
                if (me == 0) throw std::runtime_error("once");
                made.fetch_add(1, coppice::internal::relaxed);
                co_return me;
            };
            for (;;) {
                try {
                    if (me != 1) co_return co_await once.get(make);
                    co_return co_await ex::when_any(
                        once.get(make) | ex::then([](int& v) noexcept { return v; }),
                        ex::schedule(pool.get_scheduler()) | ex::then([]() noexcept { return 0; }));
                } catch (const std::runtime_error&) {
                    if (me == 0) co_return 0;
                }
            }
        };
        const auto on_pool = [&](int me) { return ex::starts_on(pool.get_scheduler(), get(me)); };
        const auto [a, b, c, d] =
            this_thread::sync_wait(ex::when_all(on_pool(0), on_pool(1), on_pool(2), on_pool(3)))
                .value();
        ASSERT_NE(once.try_get(), nullptr);
        EXPECT_EQ(c, *once.try_get());
        EXPECT_EQ(d, *once.try_get());
        EXPECT_TRUE(a == 0 || a == c);
        EXPECT_TRUE(b == 0 || b == c);
        EXPECT_EQ(made.load(coppice::internal::relaxed), 1);
    }
}

}  // namespace
