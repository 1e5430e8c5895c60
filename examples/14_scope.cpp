// Work that is started on demand in a scope that waits for it, results that are fetched later, time
// limits, and how to find the work that keeps a scope from ending.
#include <coppice/execution.hpp>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <source_location>
#include <string>
#include <system_error>
#include <thread>

namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;
using namespace std::chrono_literals;

// Waits on the loop; a stop request ends it early.
auto wait_for(ex::run_loop::scheduler sch, std::chrono::milliseconds time) {
    return ex::schedule_after(sch, time);
}

std::size_t spawned_count(ex::counting_scope& scope) {
    std::size_t count = 0;
    scope.for_each_outstanding([&](const std::source_location&) { ++count; });
    return count;
}

int main() {
    ex::run_loop loop;
    std::thread thread([&] { loop.run(); });
    const auto sch = loop.get_scheduler();

    // A scope that remembers where its work was spawned. That costs a lock per spawn.
    ex::counting_scope scope(ex::record_outstanding);

    // Fire and forget: the work must handle its errors itself.
    ex::spawn(ex::starts_on(sch, ex::just(std::string("spawned"))) |
                  ex::then([](std::string text) noexcept { std::printf("%s\n", text.c_str()); }),
              scope.get_token());

    // Starts now. The result is fetched later.
    auto future = ex::spawn_future(
        ex::starts_on(sch, ex::just(6)) | ex::then([](int i) { return 7 * i; }), scope.get_token());
    std::printf("future: %d\n", std::get<0>(*sync_wait(std::move(future))));

    // Work that takes too long.
    ex::spawn(wait_for(sch, 1h) | ex::upon_stopped([]() noexcept { std::printf("stopped\n"); }),
              scope.get_token());

    // [stalled]
    // The join does not complete. Which work does it wait for? (print_outstanding() tells stderr.)
    auto watchdog = wait_for(sch, 10ms) | ex::then([&] {
                        std::printf("still running: %zu\n", spawned_count(scope));
                        scope.for_each_outstanding([](const std::source_location& where) {
                            const char* const name = std::strrchr(where.file_name(), '/');
                            std::printf("  spawned at %s:%u\n", name + 1, unsigned(where.line()));
                        });
                        scope.request_stop();
                    });
    sync_wait(ex::when_all(scope.join(), std::move(watchdog)));
    // [/stalled]
    std::printf("joined\n");

    // Work with a time limit of its own. The timer is the loop's.
    try {
        sync_wait(ex::on(sch, ex::schedule_after(sch, 1h)) | ex::timeout(5ms));
    } catch (const std::system_error& error) {
        std::printf("%s\n", error.code() == std::errc::timed_out ? "timed out" : "?");
    }

    loop.finish();
    thread.join();
}
