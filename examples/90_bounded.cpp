// Bounded concurrency: many things to do, a few at a time.
#include <coppice/coppice.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;

struct progress {
    int left = 20, running = 0, running_max = 0;
};

task<> fetch(io::context& loop, progress& state) {  // stands for a request
    state.running_max = std::max(state.running_max, ++state.running);
    io::timer timer(loop);
    co_await timer.wait_for(1ms);
    --state.running;
}

// Three of these share the list. All run on the loop's thread, so that the list needs no lock.
task<> worker(io::context& loop, progress& state) {
    while (state.left > 0) {
        --state.left;
        co_await fetch(loop, state);
    }
}

int main() {
    progress state;
    io::run([&](io::context& loop) {
        std::vector<task<>> workers;
        for (int i = 0; i != 3; ++i) workers.push_back(worker(loop, state));
        return ex::when_all_range(std::move(workers));
    });
    std::printf("%d left, %d at a time\n", state.left, state.running_max);
}
