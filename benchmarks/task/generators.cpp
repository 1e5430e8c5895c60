// Generators, and the coroutine that a program without them would write by hand.
#include "rivals.hpp"

#include "../harness.hpp"

#include <coppice/exec/sync_wait.hpp>
#include <coppice/generator.hpp>
#include <coppice/task/task.hpp>

#include <coroutine>
#include <exception>
#include <optional>
#include <tuple>

namespace bench_task {

namespace {

using namespace coppice;

struct by_hand {
    struct promise_type {
        std::uint64_t value = 0;
        by_hand get_return_object() noexcept {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(std::uint64_t v) noexcept {
            value = v;
            return {};
        }
        void return_void() noexcept {}
        void unhandled_exception() { throw; }
    };
    std::coroutine_handle<promise_type> coroutine;
};

// noinline: the rivals are compared with their frames in memory.
[[gnu::noinline]] by_hand numbers_by_hand(std::uint64_t n) {
    for (std::uint64_t i = 0; i != n; ++i) co_yield i;
}
[[gnu::noinline]] generator<std::uint64_t> numbers(std::uint64_t n) {
    for (std::uint64_t i = 0; i != n; ++i) co_yield i;
}
[[gnu::noinline]] generator<std::uint64_t> deep_numbers(int levels, std::uint64_t n) {
    if (levels == 0) {
        for (std::uint64_t i = 0; i != n; ++i) co_yield i;
    } else {
        co_yield coppice::ranges::elements_of(deep_numbers(levels - 1, n));
    }
}
[[gnu::noinline]] async_generator<std::uint64_t> async_numbers(std::uint64_t n) {
    for (std::uint64_t i = 0; i != n; ++i) co_yield i;
}
task<std::uint64_t> sum_of(std::uint64_t n) {
    auto all = async_numbers(n);
    std::uint64_t sum = 0;
    while (const std::optional<std::uint64_t> i = co_await all.next()) sum += *i;
    co_return sum;
}

}  // namespace

std::uint64_t generate_by_hand(std::size_t size) {
    const auto coroutine = numbers_by_hand(size).coroutine;
    std::uint64_t sum = 0;
    for (coroutine.resume(); !coroutine.done(); coroutine.resume()) {
        sum += coroutine.promise().value;
    }
    coroutine.destroy();
    return bench::hash().add(sum).value();
}

std::uint64_t generate_coppice(std::size_t size) {
    std::uint64_t sum = 0;
    for (const std::uint64_t i : numbers(size)) sum += i;
    return bench::hash().add(sum).value();
}

std::uint64_t generate_deep_coppice(std::size_t size) {
    std::uint64_t sum = 0;
    for (const std::uint64_t i : deep_numbers(1000, size)) sum += i;
    return bench::hash().add(sum).value();
}

std::uint64_t generate_async_coppice(std::size_t size) {
    return bench::hash().add(std::get<0>(*this_thread::sync_wait(sum_of(size)))).value();
}

}  // namespace bench_task
