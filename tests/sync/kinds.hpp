// The types of room sync as the tests see them: each is something that is waited for and granted.
#pragma once

#include <coppice/execution.hpp>
#include <coppice/stop_token.hpp>
#include <coppice/sync.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <system_error>
#include <utility>

namespace coppice::test {

namespace ex = coppice::execution;

// A kind is made for a number of waits. Before grant(), a wait has to wait. After it, all waits
// end, one after the other if a waiter has to pass on what it got, by its result or by pass_on().
// untouched() says that no wait that was stopped has taken anything.
struct mutex_kind {
    explicit mutex_kind(int) {}
    template <class Token = use_await_t>
    decltype(auto) wait(Token&& token = {}) {
        return mutex.lock(std::forward<Token>(token));
    }
    void grant() { held.reset(); }
    bool untouched() { return mutex.try_lock().has_value(); }

    async_mutex mutex;
    std::optional<async_mutex::guard> held = mutex.try_lock();
};

struct semaphore_kind {
    explicit semaphore_kind(int) {}
    template <class Token = use_await_t>
    decltype(auto) wait(Token&& token = {}) {
        return semaphore.acquire(2, std::forward<Token>(token));
    }
    void grant() { held.reset(); }
    bool untouched() { return semaphore.available() == 3; }

    async_semaphore semaphore{3};
    std::optional<async_semaphore::permit> held = semaphore.try_acquire(2);
};

struct writer_kind {
    explicit writer_kind(int) {}
    template <class Token = use_await_t>
    decltype(auto) wait(Token&& token = {}) {
        return mutex.lock(std::forward<Token>(token));
    }
    void grant() { held.reset(); }
    bool untouched() { return mutex.try_lock().has_value(); }

    async_shared_mutex mutex;
    std::optional<async_shared_mutex::shared_guard> held = mutex.try_lock_shared();
};

struct reader_kind {
    explicit reader_kind(int) {}
    template <class Token = use_await_t>
    decltype(auto) wait(Token&& token = {}) {
        return mutex.lock_shared(std::forward<Token>(token));
    }
    void grant() { held.reset(); }
    bool untouched() { return mutex.try_lock().has_value(); }

    async_shared_mutex mutex;
    std::optional<async_shared_mutex::guard> held = mutex.try_lock();
};

struct event_kind {
    explicit event_kind(int) {}
    template <class Token = use_await_t>
    decltype(auto) wait(Token&& token = {}) {
        return event.wait(std::forward<Token>(token));
    }
    void grant() { event.set(); }
    bool untouched() { return event.is_set(); }

    async_event event;
};

struct auto_event_kind {
    explicit auto_event_kind(int) {}
    template <class Token = use_await_t>
    decltype(auto) wait(Token&& token = {}) {
        return event.wait(std::forward<Token>(token));
    }
    void grant() { event.set(); }
    void pass_on() { event.set(); }
    bool untouched() { return event.try_wait(); }

    async_auto_event event;
};

struct latch_kind {
    explicit latch_kind(int waits) : latch(static_cast<std::size_t>(waits) + 1) {}
    template <class Token = use_await_t>
    decltype(auto) wait(Token&& token = {}) {
        return latch.arrive_and_wait(std::forward<Token>(token));
    }
    void grant() { latch.count_down(); }
    bool untouched() { return latch.try_wait(); }

    async_latch latch;
};

struct barrier_kind {
    explicit barrier_kind(int waits) : barrier(static_cast<std::size_t>(waits) + 1) {}
    template <class Token = use_await_t>
    decltype(auto) wait(Token&& token = {}) {
        return barrier.arrive_and_wait(std::forward<Token>(token));
    }
    void grant() { barrier.arrive_and_drop(); }
    bool untouched() { return true; }

    async_barrier barrier;
};

using all_kinds = testing::Types<mutex_kind, semaphore_kind, writer_kind, reader_kind, event_kind,
                                 auto_event_kind, latch_kind, barrier_kind>;

template <class Kind>
void pass_on(Kind& kind) {
    if constexpr (requires { kind.pass_on(); }) kind.pass_on();
}

// One wait by a callback, which can be stopped, and how it ended.
template <class Kind>
struct probe {
    template <class Then>
    void wait(Kind& kind, Then then) {
        kind.wait(bind_env(ex::prop(get_stop_token, stop.get_token()),
                           [this, then, &kind](std::error_code ec, auto&&...) mutable {
                               ++ended;
                               error = ec;
                               then();
                               if (!ec) pass_on(kind);
                           }));
    }
    void wait(Kind& kind) {
        wait(kind, [] {});
    }
    bool was_stopped() const { return ended == 1 && error == std::errc::operation_canceled; }
    bool was_granted() const { return ended == 1 && !error; }

    inplace_stop_source stop;
    int ended = 0;
    std::error_code error;
};

// Waits in a task, and drops the result.
template <class Kind>
task<> wait_in_task(Kind& kind) {
    if constexpr (std::is_void_v<decltype(std::declval<Kind&>().wait(block))>) {
        co_await kind.wait();
    } else {
        [[maybe_unused]] auto result = co_await kind.wait();
    }
    pass_on(kind);
}

}  // namespace coppice::test
