// Retry with backoff: try again, a little later each time, and finally give up.
#include <coppice/coppice.hpp>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>

using namespace coppice;
using namespace std::chrono_literals;

task<std::string> fetch(int& calls) {  // stands for a request; the third one succeeds
    if (++calls < 3) throw std::runtime_error("connection refused");
    co_return "hello";
}

// Waits 1 ms, 2 ms, 4 ms ... between tries. Throws the error of the last try. A stop ends a try or
// a wait at once.
task<std::string> fetch_with_retry(io::context& loop, int& calls, int tries_max) {
    io::timer timer(loop);
    std::chrono::milliseconds pause = 1ms;
    for (int tries = 1;; ++tries) {
        try {
            co_return co_await fetch(calls);
        } catch (const std::runtime_error& error) {
            std::printf("try %d: %s\n", tries, error.what());
            if (tries == tries_max) throw;
        }
        co_await timer.wait_for(pause);
        pause *= 2;
    }
}

int main() {
    int calls = 0;
    const auto work = [&](io::context& loop) { return fetch_with_retry(loop, calls, 5); };
    std::printf("answer: %s\n", io::run(work)->c_str());
}
