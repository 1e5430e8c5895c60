// Offloading: a loop waits for the network, a pool computes, and neither holds the other up.
#include <coppice/coppice.hpp>

#include <cstdio>
#include <thread>

using namespace coppice;
namespace ex = coppice::execution;

long fib(long n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

task<> handle(thread_pool& pool) {
    const std::thread::id loop = std::this_thread::get_id();
    const auto compute = [loop] {
        std::printf("on the loop: %s\n", std::this_thread::get_id() == loop ? "yes" : "no");
        return fib(20);
    };
    const long answer = co_await (ex::schedule(pool.get_scheduler()) | ex::then(compute));
    std::printf("on the loop: %s\n", std::this_thread::get_id() == loop ? "yes" : "no");
    std::printf("answer: %ld\n", answer);
}

int main() {
    thread_pool pool;
    io::run(handle(pool));
}
