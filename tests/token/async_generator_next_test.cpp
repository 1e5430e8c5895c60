// async_generator::next: it takes every completion token, and its misuse stops the process.
#include <coppice/token/async_generator.hpp>

#include <coppice/token/internal/next_initiation.hpp>

#include <coppice/exec/connect.hpp>
#include <coppice/task/task.hpp>

#include "async_generators.hpp"
#include "turnstile.hpp"

#include <gtest/gtest.h>

#include <new>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace {

namespace ex = coppice::execution;
using coppice::async_generator;
using coppice::task;
using coppice::test::counting;
using coppice::test::counting_receiver;
using coppice::test::counts;
using coppice::test::run;
using coppice::test::turnstile;
using coppice::test::waiting;

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

// An element whose move throws when `left` moves were made.
struct element {
    static inline int left = 0;
    element() = default;
    element(element&&) {
        if (left != 0 && --left == 0) throw std::runtime_error("moved");
    }
};
async_generator<element> elements(int& alive) {
    const coppice::test::witness local(alive);
    for (;;) co_yield element();
}

TEST(async_generator, a_move_of_an_element_that_throws_ends_the_generator_and_leaves_next) {
    int thrown = 0;
    for (int n = 1; n != 3; ++n) {  // into the generator, and out of it
        for (const bool is_sender : {false, true}) {
            int alive = 0;
            auto g = elements(alive);
            const auto consumer = [&]() -> task<> { co_await g.next(); };
            element::left = n;
            try {
                if (is_sender) {
                    coppice::this_thread::sync_wait(g.next());
                } else {
                    run(consumer());
                }
            } catch (const std::runtime_error&) {
                ++thrown;
            }
            EXPECT_EQ(alive, 0);
            EXPECT_FALSE(std::get<0>(*coppice::this_thread::sync_wait(g.next())));
        }
    }
    EXPECT_EQ(thrown, 4);
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
