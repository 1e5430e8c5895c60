// A separate program for each OpenMP runtime: two runtimes cannot share a process.
//   bench_openmp_NAME WORKLOAD THREADS SIZE    does it once
//   bench_openmp_NAME                          reads such lines, and answers each with its result
//                                              and its time in nanoseconds
#include "../harness.hpp"
#include "rivals.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

bool answer(const char* workload, std::size_t threads, std::size_t size) {
    const double begin = bench::now(false);
    std::uint64_t result = 0;
    if (std::strcmp(workload, "fib") == 0) {
        result = bench_pool::fib_openmp(threads, size);
    } else if (std::strcmp(workload, "matmul") == 0) {
        result = bench_pool::matmul_openmp(threads, size);
    } else {
        return false;
    }
    std::printf("%llu %.0f\n", static_cast<unsigned long long>(result), bench::now(false) - begin);
    std::fflush(stdout);
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 4) {
        return answer(argv[1], std::strtoul(argv[2], nullptr, 10),
                      std::strtoul(argv[3], nullptr, 10))
                   ? 0
                   : 2;
    }
    char workload[16];
    std::size_t threads = 0, size = 0;
    while (std::scanf("%15s %zu %zu", workload, &threads, &size) == 3) {
        if (!answer(workload, threads, size)) return 2;
    }
    return 0;
}
