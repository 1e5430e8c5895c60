// Ctrl-C: the program ends its work, cleans up, and exits.
#include <coppice/coppice.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>

using namespace coppice;
using namespace std::chrono_literals;

struct database {
    database() { std::printf("opened\n"); }
    ~database() { std::printf("closed\n"); }
};

task<> work(io::context& loop) {
    const database open;  // destructors run when the task is stopped
    io::timer timer(loop);
    std::raise(SIGINT);  // stands for a user pressing Ctrl-C
    for (;;) co_await timer.wait_for(1h);
}

int main() {
    const bool whole = io::run(work, {.stop_on = {SIGINT, SIGTERM}});
    std::printf(whole ? "done\n" : "stopped\n");
}
