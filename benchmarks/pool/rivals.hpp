// The rivals of the pool benchmark: the thesis's chapter 6, and the usual benchmarks of pools.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace bench_pool {

// Does the work on `threads` workers, which are started before the first call and kept.
using work = std::uint64_t (*)(std::size_t threads, std::size_t size);

// fib(size), one task per call.
std::uint64_t fib_serial(std::size_t threads, std::size_t size);
// fib_serial on the worker that runs fib_fork_join in a pool of one: at the speed of its processor.
std::uint64_t fib_serial_on_worker(std::size_t threads, std::size_t size);
// fib_serial with both calls made, as fork_join must make them; compilers turn the second call of
// fib_serial into a loop. Done once on each of the threads.
std::uint64_t fib_all_calls(std::size_t threads, std::size_t size);
std::uint64_t fib_fork_join(std::size_t threads, std::size_t size);
std::uint64_t fib_tasks(std::size_t threads, std::size_t size);
std::uint64_t fib_parallel_invoke(std::size_t threads, std::size_t size);
std::uint64_t fib_task_group(std::size_t threads, std::size_t size);
std::uint64_t fib_openmp(std::size_t threads, std::size_t size);

// A product of two size x size matrices, a row at a time.
std::uint64_t matmul_coppice(std::size_t threads, std::size_t size);
std::uint64_t matmul_tbb(std::size_t threads, std::size_t size);
std::uint64_t matmul_openmp(std::size_t threads, std::size_t size);

// A tree with `size` leaves, a power of ten: every node sums its ten children.
std::uint64_t skynet_fork_join(std::size_t threads, std::size_t size);
std::uint64_t skynet_tasks(std::size_t threads, std::size_t size);
std::uint64_t skynet_tbb(std::size_t threads, std::size_t size);

// Returns the number of ways to place `size` queens.
std::uint64_t queens_coppice(std::size_t threads, std::size_t size);
std::uint64_t queens_tbb(std::size_t threads, std::size_t size);

// Submits `size` empty jobs from a thread outside the pool.
std::uint64_t submit_coppice(std::size_t threads, std::size_t size);
std::uint64_t submit_tbb(std::size_t threads, std::size_t size);

// fib(size) with an item for each call on each of the thesis's schedulers.
std::uint64_t items_mutex_queue(std::size_t threads, std::size_t size);
std::uint64_t items_lockfree_queue(std::size_t threads, std::size_t size);
std::uint64_t items_mutex_deques(std::size_t threads, std::size_t size);
std::uint64_t items_bounded_deques(std::size_t threads, std::size_t size);
std::uint64_t items_kept_deques(std::size_t threads, std::size_t size);
std::uint64_t items_counted_deques(std::size_t threads, std::size_t size);

// `size` scheduled operations, one after the other, by the pool's own scheduler or an erased one.
std::uint64_t schedule_static(std::size_t threads, std::size_t size);
std::uint64_t schedule_dynamic(std::size_t threads, std::size_t size);

// Two matrices and room for their product.
struct matrices {
    explicit matrices(std::size_t n) : size(n), a(n * n), b(n * n), product(n * n) {
        for (std::size_t i = 0; i != n * n; ++i) {
            a[i] = static_cast<float>(i % 7);
            b[i] = static_cast<float>(i % 5);
        }
    }
    // Compiled once, by the compiler of the build (matrices.cpp), and linked into the programs of
    // all rivals: what is compared is how loops are run, not how compilers vectorize.
    void row(std::size_t i);
    std::uint64_t sum() const {
        double all = 0;
        for (const float each : product) all += static_cast<double>(each);
        return static_cast<std::uint64_t>(all);
    }
    static matrices& of(std::size_t n) {
        static std::unique_ptr<matrices> kept;
        if (kept == nullptr || kept->size != n) kept = std::make_unique<matrices>(n);
        return *kept;
    }
    std::size_t size;
    std::vector<float> a, b, product;
};

// The queens placed so far, as bits; `rest` is the number of remaining rows.
struct board {
    unsigned columns = 0, left = 0, right = 0, rest = 0;
    bool attacks(unsigned column) const { return ((columns | left | right) >> column & 1) != 0; }
    board place(unsigned column) const {
        const unsigned queen = 1u << column;
        return {columns | queen, (left | queen) << 1, (right | queen) >> 1, rest - 1};
    }
};

}  // namespace bench_pool
