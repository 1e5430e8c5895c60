// Plan: an Env whose stop source takes one callback, with several listeners: the children of a
// wait, the awaits of one expression, two callbacks of a body. Varies the outer token: of another
// type, one that takes several callbacks, one that takes one, none. Checks that the outer token is
// free again when the end of the task is reported.
#include <coppice/task/task.hpp>

#include <coppice/exec/as_awaitable.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/split.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/timed_scheduler.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/stop/single.hpp>
#include <coppice/task/wait_for_tasks.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

namespace {

namespace ex = coppice::execution;
using coppice::inplace_stop_source;
using coppice::single_inplace_stop_source;
using coppice::single_inplace_stop_token;
using coppice::task;
using coppice::wait_for_tasks;
using coppice::this_thread::sync_wait;
using namespace std::chrono_literals;

struct strict {
    using stop_source_type = single_inplace_stop_source;
};
struct strict_too {
    using stop_source_type = single_inplace_stop_source;
};
static_assert(std::is_same_v<task<void, strict>::stop_token_type, single_inplace_stop_token>);

// Completes with a stop when one is requested. `listening` counts the awaits that listen.
struct until_stopped {
    using sender_concept = ex::sender_tag;
    using completion_signatures = ex::completion_signatures<ex::set_value_t(), ex::set_stopped_t()>;
    template <class Rcvr>
    struct operation : coppice::immovable {
        using operation_state_concept = ex::operation_state_tag;
        struct on_stop {
            operation* self;
            void operator()() noexcept {
                if (self->started) self->stop();
            }
        };
        using token_type = coppice::stop_token_of_t<ex::env_of_t<Rcvr>>;

        operation(Rcvr r, int& l) noexcept : rcvr(std::move(r)), listening(&l) {}
        void start() & noexcept {
            ++*listening;
            callback.emplace(coppice::get_stop_token(ex::get_env(rcvr)), on_stop{this});
            started = true;
            if (coppice::get_stop_token(ex::get_env(rcvr)).stop_requested()) stop();
        }
        void stop() noexcept {
            callback.reset();
            --*listening;
            ex::set_stopped(std::move(rcvr));
        }
        Rcvr rcvr;
        int* listening;
        bool started = false;
        std::optional<coppice::stop_callback_for_t<token_type, on_stop>> callback;
    };
    template <class Rcvr>
    operation<Rcvr> connect(Rcvr rcvr) const noexcept {
        return {std::move(rcvr), *listening};
    }
    int* listening;
};

template <class Env>
task<void, Env> waits(int& listening) {
    co_await until_stopped{&listening};
}
template <class Env>
task<void, Env> waits_for_three(int& listening) {
    co_await wait_for_tasks(waits<Env>(listening), waits<Env>(listening), waits<Env>(listening));
}
template <class Env>
task<void, Env> waits_for_waits(int& listening) {
    co_await wait_for_tasks(waits_for_three<Env>(listening), waits<Env>(listening));
}

// Counts how an operation ended, and may then run a function.
struct ending {
    std::function<void()> then = [] {};
    int values = 0;
    int stops = 0;
};
template <class Token>
struct receiver {
    using receiver_concept = ex::receiver_tag;
    ending* end;
    Token token;
    void set_value(auto&&...) && noexcept {
        ++end->values;
        end->then();
    }
    void set_error(auto&&) && noexcept { std::terminate(); }
    void set_stopped() && noexcept {
        ++end->stops;
        end->then();
    }
    auto get_env() const noexcept { return ex::prop(coppice::get_stop_token, token); }
};
template <class Sender, class Source>
auto start_with(Sender sender, Source& source, ending& end) {
    using token_type = decltype(source.get_token());
    auto op = std::make_unique<std::optional<ex::connect_result_t<Sender, receiver<token_type>>>>();
    struct made {
        Sender& sender;
        receiver<token_type> rcvr;
        operator ex::connect_result_t<Sender, receiver<token_type>>() {
            return ex::connect(std::move(sender), std::move(rcvr));
        }
    };
    op->emplace(made{sender, receiver<token_type>{&end, source.get_token()}});
    ex::start(**op);
    return op;
}

template <class Source>
class strict_source : public testing::Test {
public:
    template <class Sender>
    void stops(Sender sender, int& listening, int count) {
        Source source;
        ending end;
        auto op = start_with(std::move(sender), source, end);
        EXPECT_EQ(listening, count);
        source.request_stop();
        EXPECT_EQ(listening, 0);
        EXPECT_EQ(end.stops, 1);
    }
};
using outer_sources = testing::Types<single_inplace_stop_source, inplace_stop_source,
                                     coppice::internal::tolerant_single_stop_source>;
TYPED_TEST_SUITE(strict_source, outer_sources);

TYPED_TEST(strict_source, a_stop_reaches_every_child_of_a_wait) {
    int listening = 0;
    this->stops(waits_for_three<strict>(listening), listening, 3);
}
TYPED_TEST(strict_source, a_stop_reaches_the_children_of_children) {
    int listening = 0;
    this->stops(waits_for_waits<strict>(listening), listening, 4);
}
TYPED_TEST(strict_source, a_stop_reaches_children_of_another_environment) {
    int listening = 0;
    auto mixed = [](int& l) -> task<void, strict_too> {
        co_await wait_for_tasks(waits<strict>(l), waits_for_three<strict>(l));
    };
    this->stops(mixed(listening), listening, 4);
}
TYPED_TEST(strict_source, a_wait_in_a_wait_of_plain_tasks_is_stopped) {
    int listening = 0;
    auto below = [](int& l) -> task<> { co_await waits_for_three<strict>(l); };
    auto plain = [&](int& l) -> task<> { co_await wait_for_tasks(below(l), below(l)); };
    this->stops(plain(listening), listening, 6);
}
TYPED_TEST(strict_source, a_body_may_register_callbacks_in_addition_to_its_awaits) {
    int listening = 0;
    int calls = 0;
    auto body = [](int& l, int& c) -> task<void, strict> {
        const single_inplace_stop_token token = co_await ex::read_env(coppice::get_stop_token);
        const auto count = [&c]() noexcept { ++c; };
        const coppice::single_inplace_stop_callback one(token, count);
        const coppice::single_inplace_stop_callback two(token, count);
        co_await until_stopped{&l};
    };
    this->stops(body(listening, calls), listening, 1);
    EXPECT_GT(calls, 0);  // callbacks that remain when the body is destroyed do not run
}
TYPED_TEST(strict_source, a_stop_before_the_start_ends_all_children) {
    int listening = 0;
    TypeParam source;
    source.request_stop();
    ending end;
    auto op = start_with(waits_for_waits<strict>(listening), source, end);
    EXPECT_EQ(end.stops, 1);
    EXPECT_EQ(listening, 0);
}

// Awaits a task in a coroutine of another type, by connecting the awaitable.
template <class Env>
struct awaitable {
    task<void, Env> awaited;
    template <class Promise>
    auto as_awaitable(Promise& promise) && {
        return std::move(awaited).as_awaitable(promise);
    }
};
template <class Env>
struct awaitable_wait {
    task<void, Env> first, second;
    template <class Promise>
    auto as_awaitable(Promise& promise) && {
        return wait_for_tasks(std::move(first), std::move(second)).as_awaitable(promise);
    }
};
template <class Env>
task<void, Env> nothing() {
    co_return;
}

TYPED_TEST(strict_source, the_outer_source_may_end_as_soon_as_the_task_has_ended) {
    int listening = 0;
    for (const bool stopped : {false, true}) {
        const auto make = [&] { return stopped ? waits<strict>(listening) : nothing<strict>(); };
        const auto run = [&](auto sender) {
            auto owned = std::make_unique<TypeParam>();
            TypeParam& source = *owned;
            ending end{[&owned] { owned.reset(); }};
            auto op = start_with(std::move(sender), source, end);
            if (stopped) source.request_stop();
            EXPECT_EQ(end.values, stopped ? 0 : 1);
            EXPECT_EQ(end.stops, stopped ? 1 : 0);
        };
        run(make());
        run(awaitable<strict>{make()});
        run(awaitable_wait<strict>{make(), make()});
    }
}

// A coroutine whose environment has a strict token, and that awaits two tasks in one expression.
struct strange {
    struct promise_type {
        explicit promise_type(single_inplace_stop_token t, auto&&...) noexcept : token(t) {}
        strange get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }
        void return_void() noexcept {}
        std::coroutine_handle<> unhandled_stopped() noexcept { std::terminate(); }
        auto get_env() const noexcept { return ex::prop(coppice::get_stop_token, token); }
        single_inplace_stop_token token;
    };
};
task<int, strict> registers_for_a_while(int n) {
    const auto token = co_await ex::read_env(coppice::get_stop_token);
    const coppice::single_inplace_stop_callback callback(token, []() noexcept {});
    co_return n;
}

strange adds_five_numbers(single_inplace_stop_token, int& sum) {
    sum = co_await registers_for_a_while(1) + co_await registers_for_a_while(2);
    auto [a, b] = co_await wait_for_tasks(registers_for_a_while(3), registers_for_a_while(4));
    sum += a + b + co_await registers_for_a_while(5);
}

TEST(strict_source_of_a_coroutine, awaits_of_one_expression_follow_each_other) {
    single_inplace_stop_source source;
    int sum = 0;
    adds_five_numbers(source.get_token(), sum);
    EXPECT_EQ(sum, 15);
}

// The algorithms' tokens of this type already take several callbacks, so they are passed unchanged.
TEST(strict_source_of_a_task, a_token_that_takes_several_callbacks_is_passed_on) {
    coppice::internal::tolerant_single_stop_source tolerant;
    single_inplace_stop_source single;
    for (const auto token :
         {tolerant.get_token(), single.get_token(), single_inplace_stop_token()}) {
        auto read = [&]() -> task<bool, strict> {
            co_return token == co_await ex::read_env(coppice::get_stop_token);
        };
        const auto [same] =
            *sync_wait(ex::write_env(read(), ex::prop(coppice::get_stop_token, token)));
        EXPECT_EQ(same, token != single.get_token());
    }
}

task<void, strict> pause(ex::run_loop::scheduler on) {
    co_await ex::schedule_after(on, 1ms);
}
task<void, strict> pauses(ex::run_loop::scheduler on) {
    co_await wait_for_tasks(pause(on), pause(on));
}

TEST(strict_source_of_a_task, timers_of_two_children_run_side_by_side_in_a_loop) {
    ex::run_loop loop;
    std::thread thread([&] { loop.run(); });
    single_inplace_stop_source single;
    inplace_stop_source many;
    const auto on = loop.get_scheduler();
    const auto with = [&](auto token) {
        return ex::write_env(pauses(on), ex::prop(coppice::get_stop_token, token));
    };
    EXPECT_TRUE(sync_wait(with(single.get_token())));
    EXPECT_TRUE(sync_wait(with(many.get_token())));
    EXPECT_TRUE(sync_wait(ex::when_all(pauses(on), pauses(on))));
    EXPECT_TRUE(sync_wait(ex::split(pauses(on))));
    EXPECT_TRUE(sync_wait(ex::starts_on(on, pauses(on))));
    // A stop from another thread, while the children wait or before.
    for (int i = 0; i != 200; ++i) {
        single_inplace_stop_source stop;
        std::thread stopper([&] { stop.request_stop(); });
        sync_wait(ex::starts_on(
            on, ex::write_env(pauses(on), ex::prop(coppice::get_stop_token, stop.get_token()))));
        stopper.join();
    }
    loop.finish();
    thread.join();
}

}  // namespace
