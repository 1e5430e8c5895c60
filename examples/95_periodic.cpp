// Periodic work: once every two milliseconds, and no drift.
#include <coppice/coppice.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>

using namespace coppice;
using namespace std::chrono_literals;

// The next time is counted from the last one, not from now: what the work takes does not add up.
task<> every(io::context& loop, std::chrono::nanoseconds period, auto work) {
    io::timer timer(loop);
    for (auto next = monotonic_clock().now() + period;; next += period) {
        co_await timer.wait_until(next);
        work();
    }
}

int main() {
    const auto measure = [count = 0]() mutable {
        std::printf("measured %d\n", ++count);
        if (count == 3) std::raise(SIGINT);  // stands for the user, who presses Ctrl-C
    };
    io::run([&](io::context& loop) { return every(loop, 2ms, measure); }, {.stop_on = {SIGINT}});
    std::printf("stopped\n");
}
