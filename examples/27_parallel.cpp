// Parallel algorithms: on the default pool, on your own pool, and as a sender in a task.
// [top]
#include <coppice/execution.hpp>
#include <coppice/parallel.hpp>
#include <coppice/pool.hpp>
#include <coppice/task.hpp>

#include <cstdio>
#include <numeric>
#include <system_error>
#include <vector>

namespace ex = coppice::execution;
namespace parallel = coppice::parallel;
// [/top]

namespace {

// [task]
coppice::task<long> largest_gap(const std::vector<long>& sorted) {
    std::vector<long> gaps(sorted.size());
    co_await parallel::async::adjacent_difference(sorted, gaps);  // holds no worker meanwhile
    const auto largest = co_await parallel::async::max_element(gaps);
    co_return *largest;
}
// [/task]

}  // namespace

int main() {
    // [blocking]
    std::vector<long> values(100'000);
    std::iota(values.begin(), values.end(), 1);
    parallel::for_each(values, [](long& x) { x = x * x; });  // on the default pool
    coppice::thread_pool pool(2);
    const long sum = parallel::reduce(parallel::on(pool), values, 0L);
    const auto first = parallel::find_if(parallel::on(pool), values.begin(), values.end(),
                                         [](long x) { return x > 1'000'000; });
    std::printf("sum %ld, the first above a million: %ld\n", sum, *first);
    // [/blocking]

    auto work = ex::starts_on(pool.get_scheduler(), largest_gap(values));
    const auto [gap] = coppice::this_thread::sync_wait(std::move(work)).value();
    std::printf("largest gap %ld\n", gap);

    // [stop]
    coppice::inplace_stop_source source;
    coppice::fork_join(source.get_token(), [&] {
        const bool all = parallel::for_each(values, [&](long x) {
            if (x == 4) source.request_stop();
        });
        try {
            parallel::reduce(values, 0L);
        } catch (const std::system_error& error) {
            const bool canceled = error.code() == std::errc::operation_canceled;
            std::printf("all: %d, canceled: %d\n", all, canceled);
        }
    });
    // [/stop]
}
