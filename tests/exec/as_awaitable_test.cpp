// Plan: awaiting senders in a coroutine [exec.as.awaitable], [exec.with.awaitable.senders], on
// constant stack.
#include <coppice/exec/as_awaitable.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/then.hpp>

#include "coroutine.hpp"
#include "probes.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace {

namespace ex = coppice::execution;
using probes::coroutine;
using probes::my_query;
using probes::outcome;

coroutine<std::string> catches_errors() {
    std::string all;
    try {
        co_await ex::just_error(5);
    } catch (int i) {
        all += std::to_string(i);
    }
    try {
        co_await ex::just_error(std::make_error_code(std::errc::timed_out));
    } catch (const std::system_error& e) {
        all += " " + e.code().message();
    }
    try {
        co_await ex::just_error(std::make_exception_ptr(std::runtime_error("pointer")));
    } catch (const std::runtime_error& e) {
        all += std::string(" ") + e.what();
    }
    co_return all;
}

TEST(exec_as_awaitable, errors_are_thrown_with_their_own_type) {
    EXPECT_EQ(outcome(catches_errors()), "value(5 Connection timed out pointer)");
}

coroutine<std::tuple<int, char>> awaits_two() {
    co_return co_await ex::just(1, 'c');
}
coroutine<int> awaits_reference(int& i) {
    int copy = co_await (ex::just() | ex::then([&]() -> int& { return i; }));
    co_return copy;
}

TEST(exec_as_awaitable, several_values_become_a_tuple_and_references_decay) {
    EXPECT_EQ(outcome(awaits_two() | ex::then([](std::tuple<int, char> t) {
                          return std::get<0>(t) == 1 && std::get<1>(t) == 'c';
                      })),
              "value(true)");
    int i = 7;
    EXPECT_EQ(outcome(awaits_reference(i)), "value(7)");
}

coroutine<int> reads_promise_env() {
    co_return co_await ex::read_env(my_query());
}

TEST(exec_as_awaitable, the_sender_sees_the_promises_environment) {
    EXPECT_EQ(outcome(reads_promise_env()), "value(31)");
}

coroutine<long> awaits_a_million() {
    long sum = 0;
    for (int i = 0; i != 1'000'000; ++i) sum += co_await ex::just(i);
    co_return sum;
}
coroutine<int> catches_many() {
    int caught = 0;
    for (int i = 0; i != 100'000; ++i) {
        try {
            co_await ex::just_error(i);
        } catch (int) {
            ++caught;
        }
    }
    co_return caught;
}

TEST(exec_as_awaitable, a_million_immediate_senders_use_constant_stack) {
    EXPECT_EQ(outcome(awaits_a_million()), "value(499999500000)");
    EXPECT_EQ(outcome(catches_many()), "value(100000)");
}

TEST(exec_as_awaitable, a_sender_that_completes_later_resumes_from_its_completion) {
    probes::by_hand hand;
    probes::record r;
    auto make = [](probes::by_hand* h) -> coroutine<int> { co_return co_await h->get() * 2; };
    auto op = ex::connect(make(&hand), probes::receiver<>(r));
    ex::start(op);
    EXPECT_EQ(r.said(), "");
    hand.value(21);
    EXPECT_EQ(r.said(), "value(42)");
}

TEST(exec_as_awaitable, a_sender_that_is_stopped_later_stops_the_coroutine) {
    probes::by_hand hand;
    probes::record r;
    auto make = [](probes::by_hand* h) -> coroutine<int> { co_return co_await h->get(); };
    auto op = ex::connect(make(&hand), probes::receiver<>(r));
    ex::start(op);
    hand.stopped();
    EXPECT_EQ(r.said(), "stopped");
}

TEST(exec_as_awaitable, a_sender_that_completes_on_another_thread_resumes_there_once) {
    for (int round = 0; round != 200; ++round) {
        probes::by_hand hand;
        probes::record r;
        auto make = [](probes::by_hand* h) -> coroutine<int> { co_return co_await h->get() + 1; };
        auto op = ex::connect(make(&hand), probes::receiver<>(r));
        ex::start(op);
        std::thread other([&] { hand.value(round); });
        other.join();
        EXPECT_EQ(r.said(), "value(" + std::to_string(round + 1) + ")");
    }
}

struct immovable_awaiter {
    immovable_awaiter() noexcept = default;
    immovable_awaiter(immovable_awaiter&&) = delete;
    bool await_ready() const noexcept { return true; }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    int await_resume() const noexcept { return 9; }
};
coroutine<int> awaits_immovable() {
    co_return co_await immovable_awaiter();
}

TEST(exec_with_awaitable_senders, awaits_plain_awaiters_without_moving_them) {
    EXPECT_EQ(outcome(awaits_immovable()), "value(9)");
}

struct has_member {
    using sender_concept = ex::sender_tag;
    has_member() noexcept = default;
    template <class Promise>
    immovable_awaiter as_awaitable(Promise&) const noexcept {
        return immovable_awaiter();
    }
};
coroutine<int> awaits_member() {
    co_return co_await has_member();
}

TEST(exec_as_awaitable, a_member_as_awaitable_comes_first) {
    EXPECT_EQ(outcome(awaits_member()), "value(9)");
}

struct adapts {
    using sender_concept = ex::sender_tag;
    using completion_signatures = ex::completion_signatures<ex::set_value_t(int)>;
    struct adaptor {
        adaptor() noexcept = default;
        auto operator()(const adapts&) const noexcept { return ex::just(77); }
    };
    adapts() noexcept = default;
    auto get_env() const noexcept { return ex::prop(ex::get_await_completion_adaptor, adaptor()); }
};
coroutine<int> awaits_adapted() {
    co_return co_await adapts();
}

TEST(exec_get_await_adapt, an_awaited_sender_is_adapted_first) {
    EXPECT_EQ(outcome(awaits_adapted()), "value(77)");
}

}  // namespace
