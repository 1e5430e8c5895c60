// A rate limit: at most one call per millisecond, however many callers there are.
#include <coppice/coppice.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;

// Gives each caller a time of its own, in the order in which they ask. Used on one loop, so it
// needs no lock. A caller that is stopped while it waits leaves its time unused.
class rate_limit {
public:
    rate_limit(io::context& loop, std::chrono::nanoseconds interval)
        : loop_(loop), interval_(interval) {}

    task<> turn() {
        const auto mine = std::max(next_, monotonic_clock().now());
        next_ = mine + interval_;
        io::timer timer(loop_);
        co_await timer.wait_until(mine);
    }

private:
    io::context& loop_;
    std::chrono::nanoseconds interval_;
    decltype(monotonic_clock().now()) next_{};
};

task<> client(char name, rate_limit& limit) {
    for (int i = 1; i != 4; ++i) {
        co_await limit.turn();
        std::printf("%c%d ", name, i);
    }
}

int main() {
    const auto begin = monotonic_clock().now();
    io::run([](io::context& loop) -> task<> {
        rate_limit limit(loop, 1ms);
        co_await ex::when_all(client('a', limit), client('b', limit));
    });
    const bool kept = monotonic_clock().now() - begin >= 5ms;  // the first call waits for nothing
    std::printf("\n%s\n", kept ? "six calls took 5 ms or more" : "too fast");
}
