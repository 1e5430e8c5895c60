// Periodic work: once every two milliseconds, and no drift.
#include <coppice/coppice.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>

using namespace coppice;
using namespace std::chrono_literals;

// Repeats the work until it says that it is done, or until a stop. Each time is counted from the
// previous one, not from now: delays do not add up, and a missed run is made up for.
task<> every(io::context& loop, std::chrono::nanoseconds period, auto work) {
    io::timer timer(loop);
    for (auto next = monotonic_clock().now() + period;; next += period) {
        co_await timer.wait_until(next);
        if (!work()) co_return;
    }
}

int main() {
    const auto measure = [count = 0]() mutable {
        std::printf("measured %d\n", ++count);
        return count != 3;
    };
    const auto work = [&](io::context& loop) { return every(loop, 2ms, measure); };
    const bool done = io::run(work, {.stop_on = {SIGINT, SIGTERM}});
    std::printf(done ? "done\n" : "stopped\n");
}
