// What a user of std::thread and std::stop_token writes, and the same with fewer threads.
// [top]
#include <coppice/coppice.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
// [/top]

namespace {

// [poll]
// Works with a std::stop_token as with ours: the names and their meanings are the standard's.
template <stoppable_token Token>
int count_until_stopped(Token token, int most) {
    int n = 0;
    while (n != most && !token.stop_requested()) ++n;
    return n;
}
// [/poll]

// [periodic]
// A thread that sleeps and polls becomes a task that waits. A stop wakes it at once: there is no
// condition variable, and no flag that is read only after the sleep.
task<> tick(io::context& loop, std::atomic<int>& ticks) {
    io::timer timer(loop);
    for (;;) {
        co_await timer.wait_for(1ms);
        ++ticks;
    }
}
// [/periodic]

}  // namespace

int main() {
    // [source]
    stop_source source;  // std::stop_source, and more:
    stop_source child = stop_source::linked_to(source.get_token());
    child.request_stop_after(1h);
    stop_callback note(child.get_token(), [] { std::puts("the child is stopped too"); });
    std::printf("counted %d\n", count_until_stopped(child.get_token(), 1000));
    source.request_stop({1, "shutdown"});
    std::printf("because of %s\n", child.get_token().cause().text);
    // [/source]

    io::context loop;
    std::optional<io::context::work_guard> guard(loop);
    std::thread network([&] { loop.run(); });
    // [jthread]
    // A jthread is a spawn into a scope: request_stop() and join() are the scope's.
    std::atomic<int> ticks{0};
    ex::counting_scope scope;
    ex::spawn(ex::starts_on(loop.get_scheduler(), tick(loop, ticks)), scope.get_token(),
              [](auto&&) noexcept {});
    while (ticks < 3) std::this_thread::sleep_for(1ms);
    scope.request_stop();
    this_thread::sync_wait(scope.join());
    std::puts("it ticked, and is over");
    // [/jthread]
    guard.reset();
    network.join();
}
