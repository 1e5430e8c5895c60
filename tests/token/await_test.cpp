// token/use_await.hpp: operations as awaitables and as senders.
#include <coppice/execution.hpp>
#include <coppice/stop_token.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include "allocations.hpp"
#include "detached.hpp"
#include "system.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace {

using namespace coppice;
using namespace coppice::test;
namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;

static_assert(sizeof(completion<int>) == sizeof(void*));
static_assert(std::is_trivially_copyable_v<completion<std::string>>);
static_assert(std::is_same_v<decltype(get_stop_token(ex::get_env(std::declval<completion<>&>()))),
                             inplace_stop_token>);

using echo_operation = decltype(std::declval<test::system&>().echo(1));
static_assert(noexcept(completion_token_transform<void(std::error_code, int)>(
    use_await, std::declval<test::system::initiation>())));
static_assert(ex::sender<echo_operation> && ex::internal::is_awaitable<echo_operation>);
static_assert(std::is_same_v<
              ex::completion_signatures_of_t<echo_operation, ex::env<>>,
              ex::completion_signatures<ex::set_value_t(int), ex::set_error_t(std::error_code)>>);
static_assert(
    std::is_same_v<ex::completion_signatures_of_t<echo_operation,
                                                  ex::prop<get_stop_token_t, inplace_stop_token>>,
                   ex::completion_signatures<ex::set_value_t(int), ex::set_error_t(std::error_code),
                                             ex::set_stopped_t()>>);

TEST(use_await, the_await_returns_the_result) {
    test::system os;
    int got = 0;
    auto wait = [&]() -> detached {
        got += co_await os.echo(1);
        got += co_await os.echo(20);
    };
    wait();
    EXPECT_EQ(got, 0);
    os.run();
    EXPECT_EQ(got, 21);
}

TEST(use_await, starts_nothing_before_it_is_awaited) {
    test::system os;
    {
        [[maybe_unused]] auto operation = os.echo(1);
        EXPECT_EQ(os.pending(), 0);
    }
    auto first = os.echo(1);
    auto second = std::move(first);
    auto wait = [&]() -> detached { EXPECT_EQ(co_await std::move(second), 1); };
    wait();
    EXPECT_EQ(os.pending(), 1);
    os.run();
}

TEST(use_await, throws_an_error_as_system_error) {
    test::system os;
    std::error_code caught;
    auto wait = [&]() -> task<> {
        try {
            co_await os.echo(-EPIPE);
        } catch (const std::system_error& e) {
            caught = e.code();
        }
    };
    auto run = [&]() -> detached { co_await wait(); };
    run();
    os.run();
    EXPECT_EQ(caught, std::errc::broken_pipe);
}

TEST(use_await, stores_an_error_in_the_given_code) {
    test::system os;
    std::error_code ec = std::make_error_code(std::errc::io_error);
    auto wait = [&]() -> detached {
        EXPECT_EQ(co_await os.echo(3, use_await[ec]), 3);
        EXPECT_FALSE(ec);
        co_await os.echo(-EPIPE, use_await[ec]);
    };
    wait();
    os.run();
    EXPECT_EQ(ec, std::errc::broken_pipe);
}

TEST(use_await, a_million_completions_inside_the_initiation_use_constant_stack) {
    auto loop = []() -> task<int> {
        int sum = 0;
        for (int i = 0; i != 1'000'000; ++i) sum += co_await at_once(1);
        co_return sum;
    };
    EXPECT_EQ(std::get<0>(sync_wait(loop()).value()), 1'000'000);
}

// A task with an inline scheduler continues there; any other task comes home.
TEST(use_await, a_coroutine_continues_where_the_operation_completes) {
    struct anywhere {
        using scheduler_type = coppice::execution::inline_scheduler;
    };
    auto wait = []() -> task<bool, anywhere> {
        const std::thread::id here = std::this_thread::get_id();
        co_await elsewhere(1);
        co_return here != std::this_thread::get_id();
    };
    EXPECT_TRUE(std::get<0>(sync_wait(wait()).value()));
}

TEST(use_await, a_completion_on_another_thread_may_come_before_the_initiation_returns) {
    auto handed_over = [](int value) {
        return completion_token_transform<void(std::error_code, int)>(
            use_await, [value](completion<int> done) noexcept {
                std::thread([value, done]() mutable {
                    std::move(done)(std::error_code(), value);
                }).join();
            });
    };
    auto loop = [&]() -> task<int> {
        int sum = 0;
        for (int i = 0; i != 200; ++i) sum += co_await handed_over(1);
        co_return sum;
    };
    EXPECT_EQ(std::get<0>(sync_wait(loop()).value()), 200);
}

TEST(use_await, several_results_are_moved_into_a_tuple) {
    auto two = [] {
        return completion_token_transform<void(std::error_code, std::unique_ptr<int>, std::string)>(
            use_await, [](completion<std::unique_ptr<int>, std::string> done) noexcept {
                std::move(done)(std::error_code(), std::make_unique<int>(7), "seven");
            });
    };
    auto wait = [&]() -> task<int> {
        auto [number, text] = co_await two();
        EXPECT_EQ(text, "seven");
        co_return *number;
    };
    EXPECT_EQ(std::get<0>(sync_wait(wait()).value()), 7);
}

TEST(use_await, allocates_nothing) {
    test::system os;
    std::size_t allocated = 1;
    auto loop = [&]() -> detached {
        for (int i = 0; i != 10; ++i) co_await os.echo(i);
        const allocation_count count;
        for (int i = 0; i != 100; ++i) {
            co_await os.echo(i);
            co_await at_once(i);
        }
        allocated = count.so_far();
    };
    loop();
    os.run();
    EXPECT_EQ(allocated, 0u);
}

TEST(use_await, is_a_sender) {
    EXPECT_EQ(std::get<0>(sync_wait(at_once(20) | ex::then([](int n) { return n + 1; })).value()),
              21);
    const auto both = sync_wait(ex::when_all(elsewhere(1), elsewhere(2))).value();
    EXPECT_EQ(both, std::tuple(1, 2));
}

TEST(use_await, sends_an_error_as_error_code) {
    std::error_code sent;
    sync_wait(failing() | ex::upon_error([&](auto error) {
                  if constexpr (std::is_same_v<decltype(error), std::error_code>) sent = error;
              }));
    EXPECT_EQ(sent, std::errc::io_error);
    EXPECT_THROW(sync_wait(failing()), std::system_error);
}

// A stop request ends a sender with set_stopped, whatever the type of the token.
TEST(use_await, a_stopped_operation_sends_stopped) {
    // finite_inplace_stop_token: the first result stops the other operation.
    EXPECT_TRUE(sync_wait(ex::when_any(until_stopped(), ex::just())));

    inplace_stop_source inplace;
    inplace.request_stop();
    EXPECT_FALSE(
        sync_wait(ex::write_env(until_stopped(), ex::prop(get_stop_token, inplace.get_token()))));
    stop_source shared;
    std::thread stopper([&] { shared.request_stop(); });
    EXPECT_FALSE(
        sync_wait(ex::write_env(until_stopped(), ex::prop(get_stop_token, shared.get_token()))));
    stopper.join();
}

TEST(use_await, a_cancellation_without_a_stop_request_is_sent_as_an_error) {
    auto cancelled = [] {
        return completion_token_transform<void(std::error_code)>(
            use_await, [](completion<> done) noexcept {
                std::move(done)(std::make_error_code(std::errc::operation_canceled));
            });
    };
    inplace_stop_source source;
    EXPECT_THROW(
        sync_wait(ex::write_env(cancelled(), ex::prop(get_stop_token, source.get_token()))),
        std::system_error);
}

TEST(use_await, a_passed_deadline_sends_stopped) {
    auto waits_for_deadline = [] {
        return completion_token_transform<void(std::error_code)>(
            use_await, [](completion<> done) noexcept {
                EXPECT_NE(ex::get_deadline(ex::get_env(done)), ex::instant::never());
                std::move(done)(std::make_error_code(std::errc::operation_canceled));
            });
    };
    EXPECT_FALSE(sync_wait(
        ex::write_env(waits_for_deadline(), ex::prop(ex::get_deadline, ex::monotonic_now()))));
}

// A coroutine with a stop token of its own.
template <class Token>
struct stoppable {
    struct promise_type : ex::with_awaitable_senders<promise_type> {
        template <class... Others>
        promise_type(bool& stopped, Token token, Others&...) noexcept
            : stopped_(&stopped), token_(token) {}
        stoppable get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }
        std::coroutine_handle<> unhandled_stopped() noexcept {
            *stopped_ = true;
            std::coroutine_handle<promise_type>::from_promise(*this).destroy();
            return std::noop_coroutine();
        }
        auto get_env() const noexcept { return ex::prop(get_stop_token, token_); }

    private:
        bool* stopped_;
        Token token_;
    };
};

template <class Token>
stoppable<Token> awaits_until_stopped(bool&, Token) {
    co_await until_stopped();
    ADD_FAILURE() << "a stopped operation gave a result";
}

TEST(use_await, a_stop_ends_the_awaiting_coroutine) {
    for (const bool before : {true, false}) {
        bool stopped = false;
        inplace_stop_source inplace;
        if (before) inplace.request_stop();
        awaits_until_stopped(stopped, inplace.get_token());
        EXPECT_EQ(stopped, before);
        inplace.request_stop();
        EXPECT_TRUE(stopped);

        stopped = false;
        stop_source shared;
        if (before) shared.request_stop();
        awaits_until_stopped(stopped, shared.get_token());
        EXPECT_EQ(stopped, before);
        shared.request_stop();
        EXPECT_TRUE(stopped);
    }
}

stoppable<inplace_stop_token> awaits_with_code(bool&, inplace_stop_token, std::error_code& ec) {
    co_await until_stopped(use_await[ec]);
}

TEST(use_await, a_stop_is_stored_as_an_error_in_the_given_code) {
    bool stopped = false;
    std::error_code ec;
    inplace_stop_source source;
    awaits_with_code(stopped, source.get_token(), ec);
    source.request_stop();
    EXPECT_FALSE(stopped);
    EXPECT_EQ(ec, std::errc::operation_canceled);
}

detached awaits_twice(test::system& os) {
    auto operation = os.echo(1);
    co_await operation;
    co_await operation;
}
detached awaits_what_was_moved_from(test::system& os) {
    auto operation = os.echo(1);
    auto other = std::move(operation);
    co_await operation;
}

TEST(use_await_death, awaiting_twice_or_after_a_move_stops_the_process) {
    test::system os;
    EXPECT_DEATH(
        {
            awaits_twice(os);
            os.run();
        },
        "used twice, or after it was moved from");
    EXPECT_DEATH(awaits_what_was_moved_from(os), "used twice, or after it was moved from");
}

TEST(completion_death, completing_an_empty_handle_stops_the_process) {
    EXPECT_DEATH(completion<>()(std::error_code()), "an empty completion was completed");
}

}  // namespace
