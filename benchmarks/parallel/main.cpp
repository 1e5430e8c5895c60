// bench_parallel: the algorithms of room parallel, compared with oneTBB, OpenMP, libstdc++'s
// std::execution::par, Boost.Sort, and std's sequential algorithms, on 1 and 2 threads.
#include "contests.hpp"

int main(int argc, char** argv) {
    const bench::options o = bench::parse(argc, argv);
    bench_parallel::start_companions();
    if (o.tiny) {
        const bool loops = bench_parallel::try_loops();
        return bench_parallel::try_sorts() && loops ? 0 : 1;
    }
    bench_parallel::measure_loops(o);
    bench_parallel::measure_sorts(o);
}
