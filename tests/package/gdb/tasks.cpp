// Four nested tasks below a pipeline of senders. gdb_test.sh stops in it and inspects the stack.
#include <coppice/execution.hpp>
#include <coppice/task.hpp>

#include <cstdio>

namespace ex = coppice::execution;
using coppice::task;

namespace {

[[gnu::noinline]] void stop_here() {
    std::puts("here");
}

// Stops twice: called by three tasks, and then resumed by the loop, with no task below it.
task<int> fourth(int n) {
    const int sum = co_await (ex::just(n) | ex::then([](int i) {
                                  stop_here();
                                  return i;
                              }) |
                              ex::let_value([](int i) { return ex::just(i + 1); }));
    co_await ex::schedule(co_await ex::read_env(ex::get_scheduler));
    stop_here();
    co_return sum;
}
task<int> third(int n) {
    co_return co_await fourth(n + 1);
}
task<int> second(int n) {
    co_return co_await third(n + 1);
}
task<int> first(int n) {
    co_return co_await second(n + 1);
}

}  // namespace

int main() {
    coppice::this_thread::sync_wait(first(1) | ex::then([](int i) { return 2 * i; }));
}
