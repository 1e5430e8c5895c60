// oneTBB: parallel_invoke, task_group, parallel_for and enqueue.
#include "rivals.hpp"

#include <coppice/base/internal/futex.hpp>

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_invoke.h>
#include <tbb/parallel_reduce.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <functional>

namespace bench_pool {

namespace {

using namespace coppice;
using namespace coppice::internal;

// Returns an arena in which `threads` work, including the caller. enqueue needs one more worker.
tbb::task_arena& arena(std::size_t threads) {
    static std::unique_ptr<tbb::global_control> limit;
    static std::unique_ptr<tbb::task_arena> kept;
    if (kept == nullptr || static_cast<std::size_t>(kept->max_concurrency()) != threads) {
        limit = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                      threads + 1);
        kept = std::make_unique<tbb::task_arena>(static_cast<int>(threads), 1);
    }
    return *kept;
}

std::uint64_t invoked_fib(std::uint64_t n) {
    if (n < 2) return n;
    std::uint64_t a = 0, b = 0;
    tbb::parallel_invoke([&] { a = invoked_fib(n - 1); }, [&] { b = invoked_fib(n - 2); });
    return a + b;
}
std::uint64_t grouped_fib(std::uint64_t n) {
    if (n < 2) return n;
    std::uint64_t a = 0, b = 0;
    tbb::task_group group;
    group.run([&] { a = grouped_fib(n - 1); });
    b = grouped_fib(n - 2);
    group.wait();
    return a + b;
}
std::uint64_t skynet(std::uint64_t first, std::uint64_t size) {
    if (size == 1) return first;
    const std::uint64_t part = size / 10;
    std::uint64_t sums[10];
    tbb::task_group group;
    for (std::uint64_t i = 1; i != 10; ++i) {
        group.run([&sums, first, part, i] { sums[i] = skynet(first + i * part, part); });
    }
    sums[0] = skynet(first, part);
    group.wait();
    std::uint64_t all = 0;
    for (const std::uint64_t each : sums) all += each;
    return all;
}
std::uint64_t queens(const board& b, unsigned size) {
    if (b.rest == 0) return 1;
    return tbb::parallel_reduce(
        tbb::blocked_range<unsigned>(0, size), std::uint64_t{0},
        [&](const tbb::blocked_range<unsigned>& range, std::uint64_t sum) {
            for (unsigned column = range.begin(); column != range.end(); ++column) {
                if (!b.attacks(column)) sum += queens(b.place(column), size);
            }
            return sum;
        },
        std::plus<>());
}

}  // namespace

std::uint64_t fib_parallel_invoke(std::size_t threads, std::size_t size) {
    return arena(threads).execute([&] { return invoked_fib(size); });
}
std::uint64_t fib_task_group(std::size_t threads, std::size_t size) {
    return arena(threads).execute([&] { return grouped_fib(size); });
}
std::uint64_t matmul_tbb(std::size_t threads, std::size_t size) {
    matrices& m = matrices::of(size);
    arena(threads).execute(
        [&] { tbb::parallel_for(std::size_t{0}, size, [&](std::size_t i) { m.row(i); }); });
    return m.sum();
}
std::uint64_t skynet_tbb(std::size_t threads, std::size_t size) {
    return arena(threads).execute([&] { return skynet(0, size); });
}
std::uint64_t queens_tbb(std::size_t threads, std::size_t size) {
    const unsigned n = static_cast<unsigned>(size);
    return arena(threads).execute([&] { return queens({0, 0, 0, n}, n); });
}
std::uint64_t submit_tbb(std::size_t threads, std::size_t size) {
    // As many workers as threads, without a slot for the submitter.
    static tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads + 1);
    static tbb::task_arena workers(static_cast<int>(threads), 0);
    atomic<std::uint32_t> left{static_cast<std::uint32_t>(size)};
    for (std::size_t i = 0; i != size; ++i) {
        workers.enqueue([&] {
            if (left.fetch_sub(1, acq_rel) == 1) futex_wake_one(left);
        });
    }
    for (std::uint32_t n; (n = left.load(acquire)) != 0;) futex_wait(left, n);
    return size;
}

}  // namespace bench_pool
