// Bounded concurrency: many things to do, a few at a time.
#include <coppice/coppice.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

using namespace coppice;
using namespace std::chrono_literals;

struct progress {
    int done = 0, running = 0, running_max = 0;
};

task<> fetch(io::context& loop, const std::string&, progress& state) {  // stands for a request
    state.running_max = std::max(state.running_max, ++state.running);
    io::timer timer(loop);
    co_await timer.wait_for(1ms);
    --state.running;
    ++state.done;
}

int main() {
    progress state;
    const std::vector<std::string> urls(20, "http://example.org/");
    io::run([&](io::context& loop) {  // one thread, so that the progress needs no lock
        return for_each_bounded(urls, 3,
                                [&](const std::string& url) { return fetch(loop, url, state); });
    });
    std::printf("%d done, %d at a time\n", state.done, state.running_max);
}
