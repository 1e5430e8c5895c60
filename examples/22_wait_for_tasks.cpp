// Tasks that wait for several others, which run in parallel on the pool.
#include <coppice/execution.hpp>
#include <coppice/pool.hpp>
#include <coppice/task.hpp>

#include <cstdio>

using namespace coppice;
namespace ex = coppice::execution;

namespace {

// [wait]
task<long> fib(long n) {
    if (n < 2) co_return n;
    const auto [a, b] = co_await wait_for_tasks(fib(n - 1), fib(n - 2));
    co_return a + b;
}

task<long> named() {
    task<long> a = fib(10), b = fib(11);
    co_await wait_for_tasks(a, b);
    co_return co_await std::move(a) + std::move(b).get();
}
// [/wait]

}  // namespace

int main() {
    thread_pool pool(2);
    const auto run = [&](task<long> t) {
        return std::get<0>(
            *this_thread::sync_wait(ex::starts_on(pool.get_scheduler(), std::move(t))));
    };
    std::printf("%ld\n", run(fib(20)));
    std::printf("%ld\n", run(named()));
}
