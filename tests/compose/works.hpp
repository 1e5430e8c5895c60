// Shared by the algorithms_* tests: a sender in every place where the library makes its receiver.
#pragma once
// Such a receiver takes only the declared completions: in a task that awaits the sender, and as a
// child of when_all, of timeout, and of spawn. Each file has few algorithms, because each is
// compiled in all places.

#include <coppice/execution.hpp>
#include <coppice/task.hpp>

#include <gtest/gtest.h>

#include <thread>
#include <utility>

namespace coppice::test {

namespace ex = coppice::execution;
inline constexpr ex::time_span an_hour(3'600'000'000'000);

// Discards all results.
template <class Sndr>
auto quiet(Sndr sndr) {
    return std::move(sndr) | ex::then([](auto&&...) noexcept {}) |
           ex::upon_error([](auto&&) noexcept {}) | ex::upon_stopped([]() noexcept {});
}

template <class Sndr>
ex::task<void> awaits(Sndr sndr) {
    co_await std::move(sndr);
}

// make() returns a sender with one value completion.
template <class Make>
void works(Make make) {
    EXPECT_TRUE(this_thread::sync_wait(awaits(make())).has_value());
    EXPECT_TRUE(this_thread::sync_wait(quiet(ex::when_all(make(), ex::timeout(make(), an_hour)))));
    ex::counting_scope scope;
    ex::run_loop loop;
    ex::spawn(quiet(make()), scope.get_token(),
              ex::env(ex::prop(ex::get_start_scheduler, loop.get_scheduler()),
                      ex::prop(ex::get_scheduler, loop.get_scheduler())));
    std::thread runner([&loop] { loop.run(); });
    this_thread::sync_wait(scope.join());
    loop.finish();
    runner.join();
}

}  // namespace coppice::test
