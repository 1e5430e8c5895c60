// Plan: connect calls the member or awaits [exec.connect]; awaitables are senders [exec.awaitable].
#include <coppice/exec/as_awaitable.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/as_exception.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/then.hpp>

#include "coroutine.hpp"
#include "probes.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace {

namespace ex = coppice::execution;
using probes::coroutine;
using probes::outcome;

coroutine<int> awaits_int(int i) {
    co_return co_await ex::just(i) + 1;
}
coroutine<int> throws() {
    co_await ex::just();
    throw std::runtime_error("thrown");
}
coroutine<int> stops() {
    co_await ex::just_stopped();
    co_return 1;
}
coroutine<int> awaits_another_that_stops() {
    co_return co_await stops() + 1;
}

TEST(exec_awaitable, an_awaitable_is_a_sender_with_its_result_an_exception_and_stopped) {
    static_assert(ex::sender<coroutine<int>>);
    static_assert(
        std::is_same_v<
            ex::completion_signatures_of_t<coroutine<int>, ex::env<>>,
            ex::completion_signatures<ex::set_value_t(int), ex::set_error_t(std::exception_ptr),
                                      ex::set_stopped_t()>>);
    static_assert(std::is_same_v<
                  ex::completion_signatures_of_t<std::suspend_always, ex::env<>>,
                  ex::completion_signatures<ex::set_value_t(), ex::set_error_t(std::exception_ptr),
                                            ex::set_stopped_t()>>);
    static_assert(!ex::internal::is_awaitable<int>);
}

TEST(exec_connect, the_operation_awaits_an_awaitable) {
    EXPECT_EQ(outcome(awaits_int(41)), "value(42)");
    EXPECT_EQ(outcome(throws()), "error(exception thrown)");
    EXPECT_EQ(outcome(stops()), "stopped");
    EXPECT_EQ(outcome(awaits_another_that_stops()), "stopped");
    EXPECT_EQ(outcome(awaits_int(1) | ex::then([](int i) { return i * 10; })), "value(20)");
}

TEST(exec_general, as_exception_keeps_pointers_and_wraps_codes) {
    const auto pointer = std::make_exception_ptr(1);
    EXPECT_EQ(ex::internal::as_exception(pointer), pointer);
    EXPECT_THROW(std::rethrow_exception(
                     ex::internal::as_exception(std::make_error_code(std::errc::timed_out))),
                 std::system_error);
    EXPECT_THROW(std::rethrow_exception(ex::internal::as_exception(3)), int);
}

TEST(exec_general_death, a_null_exception_pointer_ends_the_process) {
    EXPECT_DEATH(static_cast<void>(ex::internal::as_exception(std::exception_ptr())),
                 "null exception_ptr");
}

}  // namespace
