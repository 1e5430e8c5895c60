// A rival: the lazy task with symmetric transfer of textbooks, whose frames come from malloc.
#include "rivals.hpp"

#include "../harness.hpp"

#include <coroutine>
#include <utility>

namespace bench_task {

namespace {

class plain_task {
public:
    struct promise_type {
        std::uint64_t value = 0;
        std::coroutine_handle<> continuation;
        plain_task get_return_object() {
            return plain_task(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        struct final_awaiter {
            bool await_ready() noexcept { return false; }
            std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> h) noexcept {
                return h.promise().continuation;
            }
            void await_resume() noexcept {}
        };
        final_awaiter final_suspend() noexcept { return {}; }
        void return_value(std::uint64_t v) { value = v; }
        void unhandled_exception() { std::terminate(); }
    };
    explicit plain_task(std::coroutine_handle<promise_type> h) : coroutine_(h) {}
    plain_task(plain_task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, {})) {}
    ~plain_task() {
        if (coroutine_) coroutine_.destroy();
    }
    struct awaiter {
        std::coroutine_handle<promise_type> coroutine;
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<> h) noexcept {
            coroutine.promise().continuation = h;
            return coroutine;
        }
        std::uint64_t await_resume() noexcept { return coroutine.promise().value; }
    };
    awaiter operator co_await() && noexcept { return awaiter{coroutine_}; }
    std::uint64_t run() {
        coroutine_.promise().continuation = std::noop_coroutine();
        coroutine_.resume();
        return coroutine_.promise().value;
    }

private:
    std::coroutine_handle<promise_type> coroutine_;
};

[[gnu::noinline]] plain_task child(std::uint64_t n) {
    co_return n;
}

plain_task parent(std::size_t size) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i != size; ++i) sum += co_await child(i);
    co_return sum;
}

}  // namespace

std::uint64_t await_malloc(std::size_t size) {
    return bench::hash().add(parent(size).run()).value();
}

}  // namespace bench_task
