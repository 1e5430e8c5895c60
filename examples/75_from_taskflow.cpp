// What a user of Taskflow writes: a graph, a condition that loops, a subflow, a module, semaphores.
// [top]
#include <coppice/graph.hpp>
#include <coppice/pool.hpp>
#include <coppice/sync.hpp>
#include <coppice/token.hpp>

#include <array>
#include <cstdio>
#include <numeric>

using namespace coppice;
// [/top]

int main() {
    // [graph]
    thread_pool pool(2);  // tf::Executor executor(2)
    task_graph graph;     // tf::Taskflow taskflow
    int left = 0, right = 0, sum = 0;
    auto [begin, a, b, end] = graph.emplace([&] { left = right = 0; }, [&] { left += 40; },
                                            [&] { right += 2; }, [&] { sum += left + right; });
    begin.precede(a, b);
    end.succeed(a, b);
    graph.run_n(pool, 3, block);  // executor.run_n(taskflow, 3).wait()
    // [/graph]
    std::printf("three sums: %d\n", sum);

    // [condition]
    task_graph loop;
    int turns = 0;
    auto [start, body, again, done] =
        loop.emplace([&] { turns = 0; }, [&] { ++turns; }, [&] { return turns < 5 ? 0 : 1; },
                     [&] { std::printf("%d turns\n", turns); });
    start.precede(body);
    body.precede(again);
    again.precede(body, done);  // 0: body again; 1: done
    loop.run(pool, block);
    // [/condition]

    // [inside]
    async_semaphore two(2);  // tf::Semaphore two(2)
    std::array<int, 8> squares{};
    task_graph outer;
    node module = outer.compose(loop);                    // composed_of
    node subflow = outer.emplace([&](subgraph& inside) {  // tf::Subflow
        for (int i = 0; i != 8; ++i) {
            node square = inside.emplace([&squares, i] { squares[i] = i * i; });
            square.acquire(two);  // gives the permit back by itself
        }
    });
    node print = outer.emplace(
        [&] { std::printf("squares: %d\n", std::accumulate(squares.begin(), squares.end(), 0)); });
    module.precede(subflow);
    subflow.precede(print);  // the subflow is joined first
    outer.run(pool, block);
    // [/inside]
}
