// What a user of stdexec writes: the same names, and what stdexec leaves to others.
// [top]
#include <coppice/coppice.hpp>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace ex = coppice::execution;  // namespace ex = stdexec;
using namespace std::chrono_literals;
// [/top]

namespace {

// [task]
// exec::task becomes coppice::task, the draft's task. It is affine, and the hop costs nothing if
// the scheduler is the same.
coppice::task<int> twice(int n) {
    co_return 2 * co_await ex::just(n);
}
// [/task]

}  // namespace

int main() {
    // [pipeline]
    coppice::thread_pool pool(2);  // exec::static_thread_pool
    auto work = ex::schedule(pool.get_scheduler()) | ex::then([] { return 20; }) |
                ex::let_value([](int n) { return ex::when_all(ex::just(n), twice(11)); }) |
                ex::then([](int a, int b) { return a + b; });
    const auto [answer] = coppice::this_thread::sync_wait(std::move(work)).value();
    std::printf("%d\n", answer);
    // [/pipeline]

    // [range]
    // As many as the program finds at run time, and one time limit for all.
    coppice::io::context loop;
    coppice::io::timer timer(loop);
    std::vector<coppice::task<int>> many;
    for (int i = 1; i <= 3; ++i) many.push_back(twice(i));
    const auto results = coppice::this_thread::sync_wait(ex::when_all_range(std::move(many)));
    int sum = 0;
    for (const int each : std::get<0>(*results)) sum += each;
    std::printf("%d\n", sum);
    // [/range]
}
