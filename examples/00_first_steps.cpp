// The first ten minutes: compute on a pool, wait without holding a thread, stop slow work.
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
// Waits on the loop without holding a thread, then continues there.
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
// Takes the first of the two. The other is stopped and has ended before this continues.
task<bool> in_time(io::context& loop, std::chrono::nanoseconds limit) {
    io::timer work(loop), clock(loop);
    co_return co_await ex::when_any(clock.wait_for(limit) | ex::then([] { return false; }),
                                    work.wait_for(3ms) | ex::then([] { return true; }));
}
// [/limit]

}  // namespace

int main() {
    // [pool]
    thread_pool pool;  // one thread per processor; idle threads sleep
    const long answer = pool.run([] { return fib(25); });
    std::printf("fib(25) is %ld\n", answer);
    // [/pool]

    // [loop]
    const std::optional<int> sum = io::run(sum_of_two);  // empty if it was stopped
    std::printf("the sum is %d\n", *sum);
    // [/loop]
    const auto within = [](std::chrono::nanoseconds limit) {
        return *io::run([limit](io::context& loop) { return in_time(loop, limit); });
    };
    std::printf("within a second: %s\n", within(1s) ? "yes" : "no");
    std::printf("within a moment: %s\n", within(1ns) ? "yes" : "no");
}
