// A program of its own for each OpenMP runtime, because two runtimes cannot share a process, and
// for coppice. A loop that waits for memory takes up to a third longer in one process than in
// another, by where the arrays lie in physical memory; so these are compared with each other. Reads
// lines "LOOP THREADS SIZE" and answers each with its result and its time in nanoseconds, which is
// negative if the rival has no such loop.
#include "../harness.hpp"
#include "loop_rivals.hpp"

#include <cstdio>

#include <sys/resource.h>

namespace {

using namespace bench_parallel;

void answer(loop k, std::size_t threads, std::size_t size) {
    static inputs in;
    bool has = false;
    double took = 0;
    const auto run = [&] {
        in.reset(size);  // on the thread that runs the loop, as in the main program
        const double begin = bench::now(false);
#if defined(BENCH_COMPANION_COPPICE)
        has = coppice_loops.run(k, threads, in);
#else
        has = run_openmp(k, threads, in);
#endif
        took = bench::now(false) - begin;
    };
#if defined(BENCH_COMPANION_COPPICE)
    coppice_loops.call(threads, run);
#else
    run();
#endif
    std::printf("%llu %.0f\n", static_cast<unsigned long long>(in.result()), has ? took : -1);
    std::fflush(stdout);
}

}  // namespace

int main() {
    // Both compilers keep the partial sums of a scan on the stack, one per element.
    const rlimit stack{512 << 20, RLIM_INFINITY};
    ::setrlimit(RLIMIT_STACK, &stack);
    char name[32];
    std::size_t threads = 0, size = 0;
    while (std::scanf("%31s %zu %zu", name, &threads, &size) == 3) {
        for (const named_loop& each : loops) {
            if (each.name == name) answer(each.k, threads, size);
        }
    }
}
