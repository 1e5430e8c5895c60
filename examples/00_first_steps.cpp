// The first ten minutes: compute on a pool, wait without a thread, stop what takes too long.
// [top]
#include <coppice/coppice.hpp>

#include <chrono>
#include <cstdio>
#include <optional>

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
// [/top]

namespace {

// [compute]
long fib(long n) {
    if (n < 20) return n < 2 ? n : fib(n - 1) + fib(n - 2);
    const auto [a, b] = fork_join([n] { return fib(n - 1); }, [n] { return fib(n - 2); });
    return a + b;
}
// [/compute]

// [wait]
// Waits on the loop, holds no thread, and goes on where it was.
task<int> slow_answer(io::context& loop, int value) {
    io::timer timer(loop);
    co_await timer.wait_for(2ms);
    co_return value;
}

task<int> sum_of_two(io::context& loop) {
    const auto [a, b] = co_await wait_for_tasks(slow_answer(loop, 20), slow_answer(loop, 22));
    co_return a + b;
}
// [/wait]

// [limit]
// The first of the two; the other one is stopped, and over, before this goes on.
task<bool> in_time(io::context& loop, std::chrono::nanoseconds limit) {
    io::timer work(loop), clock(loop);
    co_return co_await ex::when_any(clock.wait_for(limit) | ex::then([] { return false; }),
                                    work.wait_for(3ms) | ex::then([] { return true; }));
}
// [/limit]

}  // namespace

int main() {
    // [pool]
    thread_pool pool;  // one thread per processor; they sleep when there is nothing to do
    const long answer = pool.run([] { return fib(25); });
    std::printf("fib(25) is %ld\n", answer);
    // [/pool]

    // [loop]
    const std::optional<int> sum = io::run(sum_of_two);  // nothing, if it was stopped
    std::printf("the sum is %d\n", *sum);
    // [/loop]
    const auto within = [](std::chrono::nanoseconds limit) {
        return *io::run([limit](io::context& loop) { return in_time(loop, limit); });
    };
    std::printf("within a second: %s\n", within(1s) ? "yes" : "no");
    std::printf("within a moment: %s\n", within(1ns) ? "yes" : "no");
}
