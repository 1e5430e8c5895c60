// A program on the single header: a stop token, a pipeline, a timeout, and a task.
#include "coppice_single.hpp"

#include <chrono>
#include <cstdio>

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;

namespace {

task<int> doubled(int n) {
    co_return 2 * n;
}

task<int> sum() {
    const auto [a, b] =
        co_await ex::when_all(doubled(3), ex::just(4) | ex::then([](int n) { return n * n; }));
    co_return a + b;
}

}  // namespace

int main() {
    inplace_stop_source source;
    int stopped = 0;
    {
        const auto count = [&stopped] { ++stopped; };
        const stop_callback_for_t<inplace_stop_token, decltype(count)> callback(source.get_token(),
                                                                                count);
        source.request_stop();
    }
    const auto result = this_thread::sync_wait(ex::timeout(sum(), 1h));
    std::printf("%d %d\n", stopped, result ? std::get<0>(*result) : -1);
}
