// One function, every completion token: await, sender, callback, future, block.
// [top]
#include <coppice/coppice.hpp>

#include <chrono>
#include <cstdio>
#include <thread>

using namespace coppice;
using namespace std::chrono_literals;
// [/top]

namespace {

task<> awaits(io::timer& timer) {
    // [await]
    co_await timer.wait_for(1ms);  // the default: use_await
    std::error_code ec;
    co_await timer.wait_for(1ms, use_await[ec]);  // the error is a value; nothing is thrown
    // [/await]
    std::puts("awaited");
}

void all_tokens(io::timer& timer) {
    // [sender]
    // The object that is awaited is also a sender.
    this_thread::sync_wait(execution::when_all(timer.wait_for(1ms), timer.wait_for(2ms)) |
                           execution::then([] { std::puts("both waits, as senders"); }));
    // [/sender]

    // [future]
    std::future<void> future = timer.wait_for(1ms, use_future);
    future.get();  // throws std::system_error
    std::puts("future");
    // [/future]

    // [block]
    timer.wait_for(1ms, block);  // throws std::system_error
    std::error_code ec;
    timer.wait_for(1ms, block[ec]);
    std::puts("blocked");
    // [/block]
}

}  // namespace

int main() {
    io::context loop;
    io::timer timer(loop);
    {
        const io::context::work_guard guard(loop);
        std::thread runner([&] { loop.run(); });
        this_thread::sync_wait(awaits(timer));
        all_tokens(timer);
        loop.stop();
        runner.join();
        loop.restart();
    }
    // [callback]
    timer.wait_for(1ms, [](std::error_code error) {
        std::puts(error ? "called back with an error" : "called back");
    });
    // [/callback]
    loop.run();

    // [drive]
    timer.wait_for(1ms, block);  // no thread runs the loop: this one does, until the wait ends
    // [/drive]
    std::puts("driven");
}
