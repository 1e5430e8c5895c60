// A task_graph: a diamond, a loop, a node that waits, nodes made while it runs, and a module.
// [top]
#include <coppice/execution.hpp>
#include <coppice/graph.hpp>
#include <coppice/sync.hpp>
#include <coppice/task.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <numeric>
#include <stdexcept>
#include <vector>

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
// [/top]

namespace {

// [diamond]
task<void> sums(thread_pool& pool) {
    std::vector<int> numbers(1000);
    long low = 0, high = 0;
    task_graph graph;
    auto [fill, left, right, print] =
        graph.emplace([&] { std::iota(numbers.begin(), numbers.end(), 1); },
                      [&] { low = std::accumulate(numbers.begin(), numbers.begin() + 500, 0L); },
                      [&] { high = std::accumulate(numbers.begin() + 500, numbers.end(), 0L); },
                      [&] { std::printf("%ld + %ld\n", low, high); });
    fill.precede(left, right);
    print.succeed(left, right);
    co_await graph.run(pool);
}
// [/diamond]

// [loop]
void halve(thread_pool& pool) {
    int n = 0, steps = 0;
    task_graph graph;
    auto [begin, step, is_done, end] =
        graph.emplace([&] { n = 100; }, [&] { n /= 2, ++steps; }, [&] { return n > 1 ? 0 : 1; },
                      [&] { std::printf("halved %d times\n", steps); });
    begin.name("begin").precede(step);
    step.name("step").precede(is_done);
    is_done.name("is it done?").precede(step, end);  // 0: step again; 1: end
    end.name("end");
    graph.run(pool, block);
    graph.dump(std::cout);
}
// [/loop]

// [waiting]
void wait_without_workers(thread_pool& pool) {
    async_semaphore connections(2);
    std::atomic<int> answers{0};
    task_graph graph;
    node count = graph.emplace([&] { std::printf("%d answers\n", answers.load()); });
    for (int i = 0; i != 100; ++i) {
        node ask = graph.emplace([&pool]() -> task<void> {
            co_await ex::schedule_after(pool.get_scheduler(), 100us);  // a request, in a program
        });
        ask.acquire(connections);  // two at once; the other nodes hold no worker meanwhile
        node note = graph.emplace([&answers] { ++answers; }).priority(1);
        ask.precede(note);
        note.precede(count);
    }
    graph.run(pool, block);
}
// [/waiting]

// [inside]
void made_while_it_runs(thread_pool& pool) {
    task_graph greeting;
    auto [hello, world] =
        greeting.emplace([] { std::printf("hello"); }, [] { std::printf(", world\n"); });
    hello.precede(world);

    std::vector<int> squares;
    task_graph graph;
    node module = graph.compose(greeting);
    node make = graph.emplace([&](subgraph& inside) {
        squares.assign(5, 0);
        for (int i = 0; i != 5; ++i) inside.emplace([&squares, i] { squares[i] = i * i; });
    });
    node sum = graph.emplace(
        [&] { std::printf("%d\n", std::accumulate(squares.begin(), squares.end(), 0)); });
    module.precede(make);
    make.precede(sum);  // when all nodes inside have ended
    graph.run_n(pool, 2, block);
}
// [/inside]

// [errors]
void errors(thread_pool& pool) {
    async_event never;
    task_graph graph;
    graph.emplace([&never]() -> task<void> { co_await never.wait(); });  // is stopped
    node fails = graph.emplace([] { throw std::runtime_error("the first one thrown"); });
    fails.precede(graph.emplace([] { std::puts("does not run"); }));
    try {
        graph.run(pool, block);
    } catch (const std::runtime_error& error) {
        std::printf("%s\n", error.what());
    }
    node a = graph.emplace([] {});
    a.precede(a);
    try {
        graph.run(pool, block);
    } catch (const std::system_error& error) {
        std::printf("%s\n", error.what());
    }
}
// [/errors]

}  // namespace

int main() {
    thread_pool pool(2);
    this_thread::sync_wait(sums(pool));
    halve(pool);
    wait_without_workers(pool);
    made_while_it_runs(pool);
    errors(pool);
}
