// What tests of a timeout on a pool share: work that keeps its workers busy, and ends when stopped.
#pragma once

#include <coppice/exec/completion_signatures.hpp>
#include <coppice/exec/env.hpp>
#include <coppice/exec/scheduler.hpp>
#include <coppice/exec/sender.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/stop/concepts.hpp>
#include <coppice/task/task.hpp>

#include "emulated.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

namespace coppice::test {

// Computes for about ten microseconds.
inline void compute() {
    volatile int left = 5'000;
    while (left != 0) left = left - 1;
}

// Says whether a timeout in a task ends the sender that make() returns.
template <class Make>
task<bool> timed_out(Make make, std::chrono::nanoseconds limit) {
    try {
        co_await execution::timeout(make(), limit);
    } catch (const std::system_error& error) {
        co_return error.code() == std::errc::timed_out;
    }
    co_return false;
}
// Says so of a task that it runs on the pool.
template <class Pool, class Make>
bool times_out(Pool& pool, Make make,
               std::chrono::nanoseconds limit = std::chrono::milliseconds(1)) {
    auto work = execution::starts_on(pool.get_scheduler(), timed_out(std::move(make), limit));
    return std::get<0>(*this_thread::sync_wait(std::move(work)));
}

// A sender that waits until it is stopped, and calls a function inside the stop callback.
template <class F>
struct calls_when_stopped {
    using sender_concept = execution::sender_tag;
    // It never sends a value; sync_wait wants one.
    using completion_signatures =
        execution::completion_signatures<execution::set_value_t(), execution::set_stopped_t()>;
    template <class Rcvr>
    struct operation {
        using operation_state_concept = execution::operation_state_tag;
        struct stop {
            operation* op;
            void operator()() const noexcept {
                op->function();
                execution::set_stopped(std::move(op->rcvr));
            }
        };
        void start() & noexcept {
            on_stop.emplace(get_stop_token(execution::get_env(rcvr)), stop{this});
        }
        F function;
        Rcvr rcvr;
        std::optional<stop_callback_for_t<stop_token_of_t<execution::env_of_t<Rcvr>>, stop>>
            on_stop = {};
    };
    template <class Rcvr>
    operation<Rcvr> connect(Rcvr rcvr) const {
        return {function, std::move(rcvr)};
    }
    F function;
};
template <class F>
calls_when_stopped(F) -> calls_when_stopped<F>;

template <class Pool>
class busy_pool : public testing::Test {
public:
    // Calls f with pools of one and of two workers.
    template <class F>
    static void with_each(F f) {
        for (const std::size_t workers : {1U, 2U}) {
            SCOPED_TRACE(workers);
            Pool pool(workers);
            for (int round = 0; round != repeated(3); ++round) f(pool);
        }
    }
};

}  // namespace coppice::test
