// Workers bound to processors, and work that starts on one memory node of several.
#include <coppice/execution.hpp>
#include <coppice/pool.hpp>

#include <cstdio>
#include <stdexcept>
#include <tuple>

using namespace coppice;
namespace ex = coppice::execution;

int main() {
    // [pin]
    // One worker for each processor that this process may use, bound to it.
    thread_pool pool({.pin = pinning::processor});
    for (std::size_t node = 0; node != pool.nodes(); ++node) {
        auto where = ex::schedule(pool.get_scheduler(node)) |
                     ex::then([&pool, node] { return pool.is_current(node); });
        const auto [there] = *this_thread::sync_wait(std::move(where));
        if (there && node == 0) std::printf("started on the first node\n");
    }
    // [/pin]

    // [part]
    const topology machine = topology::of_this_process();
    const unsigned first = machine.nodes().front();
    thread_pool part({.pin = pinning::node, .machine = machine.on_nodes({&first, 1})});
    // [/part]
    std::printf("a pool on %zu node\n", part.nodes());

    // [errors]
    const unsigned no_such = 1'000'000;
    try {
        thread_pool none({.pin = pinning::node, .machine = machine.on_nodes({&no_such, 1})});
    } catch (const std::invalid_argument& error) {
        std::printf("%s\n", error.what());
    }
    // [/errors]
}
