// What a user of oneTBB writes: loops, reductions, a task group, an arena, a canceled group.
// [top]
#include <coppice/pool.hpp>
#include <coppice/task.hpp>

#include <cstdio>
#include <numeric>
#include <vector>

using namespace coppice;
namespace ex = coppice::execution;
// [/top]

namespace {

// [group]
// task_group::run and wait: the calls are the arguments, and their results come back.
long sum(const std::vector<long>& values, std::size_t begin, std::size_t end) {
    if (end - begin < 1000) {
        return std::accumulate(values.begin() + static_cast<long>(begin),
                               values.begin() + static_cast<long>(end), 0L);
    }
    const std::size_t middle = begin + (end - begin) / 2;
    const auto [left, right] = fork_join([&, begin] { return sum(values, begin, middle); },
                                         [&, end] { return sum(values, middle, end); });
    return left + right;
}
// [/group]

}  // namespace

int main() {
    // [arena]
    thread_pool pool(2);  // task_arena(2)
    std::vector<long> values(100'000);
    // parallel_for and parallel_reduce: no range to split, and no grain size to choose
    const long squares = pool.run([&] {  // task_arena::execute
        parallel_for(std::size_t{0}, values.size(),
                     [&](std::size_t i) { values[i] = static_cast<long>(i % 10); });
        return parallel_reduce(
            std::size_t{0}, values.size(), 0L, [&](std::size_t i) { return values[i] * values[i]; },
            [](long a, long b) { return a + b; });
    });
    // [/arena]
    std::printf("squares: %ld\n", squares);
    std::printf("sum: %ld\n", pool.run([&] { return sum(values, 0, values.size()); }));

    // [cancel]
    // task_group_context::cancel_group_execution: a stop token, polled on any thread.
    inplace_stop_source source;
    const bool all = pool.run([&] {
        const auto [ran] = fork_join(source.get_token(), [&] {
            return parallel_for(0, 1'000'000'000, [&](int i) {
                if (i == 7) source.request_stop();
            });
        });
        return ran;
    });
    std::puts(all ? "ran to its end" : "was canceled");
    // [/cancel]
}
