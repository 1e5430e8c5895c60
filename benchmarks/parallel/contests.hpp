// The parts of bench_parallel.
#pragma once

#include "../harness.hpp"

namespace bench_parallel {

// Runs every rival on a small input. Returns true if all rivals of each algorithm agree.
bool try_sorts();
bool try_loops();
// Measures and judges. Starts threads: all companions must have been started before.
void measure_sorts(const bench::options& o);
void measure_loops(const bench::options& o);

// Starts the rivals that have programs of their own. Called before there are threads, because it
// forks.
void start_companions();

}  // namespace bench_parallel
