// The parts of bench_contracts, and the figures that the budgets are compared with.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "../harness.hpp"

namespace bench_contracts {

struct figures {
    double rate = 0;  // million executions per second
    double task_cv = 0;
    double thread_cv = 0;
    // As thread_cv, with each thread's count divided by its count in the control (apart.cpp): the
    // machine may give its processors unequal time.
    double relative_thread_cv = 0;
};

// The measured figures, for the verdict at the end.
struct results {
    // By table ("0" to "256", the rounds of the task), threads, and rival: "0/2/tbb".
    std::map<std::string, figures> contests;
    std::map<std::string, double> singles;
    int disturbed = 0;  // contests in which other programs took too much of the processors

    const figures& contest(unsigned rounds, unsigned threads, const std::string& rival) const;
};

// Measures the talk's four tables, or those of the two short tasks. Returns false if the rivals
// disagree in a tiny run.
bool run_tables(const bench::options& options, bool short_ones_only, results& out);
// Measures a lone contract beside 64 busy ones.
void run_lone(const bench::options& options, results& out);
// Measures one schedule and execute, and one create and release.
bool run_singles(const bench::options& options);
// Measures a million contracts.
bool run_million(const bench::options& options, results& out);
// Measures wake-up latencies.
void run_wake(const bench::options& options);

// Returns the bytes that are allocated and not freed. Call only while no other thread allocates.
std::size_t live_bytes();

}  // namespace bench_contracts
