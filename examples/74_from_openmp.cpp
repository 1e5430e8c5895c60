// What a user of OpenMP writes: loops, reductions, sections, tasks with depend, a canceled loop.
// [top]
#include <coppice/execution.hpp>
#include <coppice/graph.hpp>
#include <coppice/parallel.hpp>
#include <coppice/pool.hpp>
#include <coppice/token.hpp>

#include <cstdio>
#include <functional>
#include <optional>
#include <vector>

using namespace coppice;
// [/top]

int main() {
    // [loops]
    std::vector<double> x(100'000), y(x.size(), 2.0);
    // #pragma omp parallel for
    parallel_for(std::size_t{0}, x.size(),
                 [&](std::size_t i) { x[i] = static_cast<double>(i % 10); });
    // #pragma omp parallel for reduction(+ : sum)
    const double sum = parallel_reduce(
        std::size_t{0}, x.size(), 0.0, [&](std::size_t i) { return x[i] * y[i]; }, std::plus<>());
    // #pragma omp parallel for collapse(2)
    const std::size_t rows = 300, columns = 200;
    std::vector<int> grid(rows * columns);
    parallel_for(std::size_t{0}, rows * columns,
                 [&](std::size_t cell) { grid[cell] = cell / columns == cell % columns ? 1 : 0; });
    // [/loops]
    std::printf("sum %.0f, on the diagonal %d\n", sum, parallel::reduce(grid));

    // [sections]
    // #pragma omp parallel sections
    const auto [least, greatest] = fork_join([&] { return *parallel::min_element(x); },
                                             [&] { return *parallel::max_element(x); });
    // [/sections]
    std::printf("from %.0f to %.0f\n", least, greatest);

    // [ordered]
    // #pragma omp parallel for ordered: the first stage runs side by side, the second in order
    int next = 0;
    parallel::pipeline(
        16,
        [&next]() -> std::optional<int> {
            return next == 4 ? std::nullopt : std::optional(next++);
        },
        parallel::stage(parallel::concurrent, [](int n) { return n * n; }),
        parallel::stage(parallel::serial_in_order, [](int n) { std::printf("square %d\n", n); }));
    // [/ordered]

    // [depend]
    // #pragma omp task depend(out : a), depend(out : b), depend(in : a, b)
    int a = 0, b = 0;
    task_graph graph;
    auto [write_a, write_b, read_both] = graph.emplace(
        [&] { a = 40; }, [&] { b = 2; }, [&] { std::printf("a + b is %d\n", a + b); });
    read_both.succeed(write_a, write_b);
    graph.run(default_pool(), block);  // #pragma omp taskwait
    // [/depend]

    // [cancel]
    // #pragma omp cancel for
    inplace_stop_source source;
    const auto [all] = fork_join(source.get_token(), [&] {
        return parallel_for(0, 1'000'000'000, [&](int i) {
            if (i == 7) source.request_stop();
        });
    });
    std::puts(all ? "ran to its end" : "was canceled");
    // [/cancel]
}
