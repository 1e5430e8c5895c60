// Counters and a histogram that one thread writes and another reads, and limits that do not wrap.
// [top]
#include <coppice/base.hpp>
#include <coppice/trace.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>

using namespace coppice;
using namespace std::chrono_literals;
// [/top]

int main() {
    // [counters]
    trace::counter requests;     // one writer, any number of readers, no locked operation
    trace::histogram latencies;  // any 64-bit value to within 1/16, in 8 KiB
    std::thread server([&] {
        for (std::uint64_t i = 1; i <= 1000; ++i) {
            requests.add();
            latencies.record(i);  // microseconds, in a program
        }
    });
    server.join();  // from now on a reader sees the exact values
    trace::histogram_snapshot all;
    latencies.add_to(all);
    std::printf("%llu requests, the median is at most %llu\n",
                static_cast<unsigned long long>(requests.read()),
                static_cast<unsigned long long>(all.quantile(0.5)));
    // [/counters]

    // [limits]
    manual_clock clock;  // time for tests: it moves only when it is told to
    clock.advance(24h);
    const auto no_limit = std::chrono::nanoseconds::max();
    const auto deadline = saturating_add(clock.now(), no_limit);  // a plain sum would overflow
    std::puts(clock.now() < deadline ? "in time" : "late");
    // [/limits]
}
