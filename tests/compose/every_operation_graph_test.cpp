// The runs of a graph, stopped in every way.
#include <coppice/graph.hpp>
#include <coppice/sync.hpp>

#include "every_operation.hpp"

namespace {

using namespace coppice;
using namespace coppice::test;

TEST(every_operation, of_a_graph) {
    io::context loop;
    thread_pool pool(1);
    async_event event;
    task_graph graph;
    graph.emplace([&event]() -> task<> { co_await event.wait(); });
    const auto let_go = [&event]() -> task<> {
        event.set();
        co_return;
    };
    const auto check = [&loop, &event](waiting_operation op) {
        event.reset();
        on_loop{loop}(stop_in_every_way(loop, std::move(op), true));
    };
    check(waits(
        "task_graph::run", [&] { return graph.run(pool); }, let_go));
    check(waits(
        "task_graph::run_n", [&] { return graph.run_n(pool, 2); }, let_go));
    check(waits(
        "task_graph::run_until", [&] { return graph.run_until(pool, [] { return true; }); },
        let_go));
}

}  // namespace
