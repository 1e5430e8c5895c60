// A program that computes on a pool, from a task that waits on a loop.
#include <coppice/coppice.hpp>

#include <csignal>
#include <cstdio>

using namespace coppice;
namespace ex = coppice::execution;

namespace {

long fib(long n) {
    if (n < 20) return n < 2 ? n : fib(n - 1) + fib(n - 2);
    const auto [a, b] = fork_join([n] { return fib(n - 1); }, [n] { return fib(n - 2); });
    return a + b;
}

}  // namespace

// [main]
int main() {
    thread_pool pool;
    const auto work = [&](io::context& loop) -> task<long> {
        io::timer clock(loop);
        const auto on_pool = [&](long n) {
            return ex::schedule(pool.get_scheduler()) | ex::then([n] { return fib(n); });
        };
        const auto [a, b] = co_await ex::when_all(on_pool(24), on_pool(25));
        co_await clock.wait_for(std::chrono::milliseconds(1));  // on the loop again
        co_return a + b;
    };
    const std::optional<long> sum = io::run(work, {.stop_on = {SIGINT}});
    if (sum) std::printf("fib(26) is %ld\n", *sum);  // else stopped, by Ctrl-C
}
// [/main]
