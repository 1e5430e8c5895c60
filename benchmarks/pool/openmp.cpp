// OpenMP: tasks, and a parallel loop; by libomp and by libgomp (openmp_main.cpp).
#include "rivals.hpp"

namespace bench_pool {

namespace {

std::uint64_t task_fib(std::uint64_t n) {
    if (n < 2) return n;
    std::uint64_t a = 0, b = 0;
#pragma omp task shared(a)
    a = task_fib(n - 1);
    b = task_fib(n - 2);
#pragma omp taskwait
    return a + b;
}

}  // namespace

std::uint64_t fib_openmp(std::size_t threads, std::size_t size) {
    std::uint64_t result = 0;
#pragma omp parallel num_threads(static_cast<int>(threads))
#pragma omp single
    result = task_fib(size);
    return result;
}

std::uint64_t matmul_openmp(std::size_t threads, std::size_t size) {
    matrices& m = matrices::of(size);
#pragma omp parallel for num_threads(static_cast<int>(threads))
    for (std::size_t i = 0; i < size; ++i) m.row(i);
    return m.sum();
}

}  // namespace bench_pool
