// What bench_contracts measures, part by part; and what each budget is compared with.
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
    // The same of each thread's count divided by what it ran of tasks of its own in this contest:
    // the machine may give its processors unequal time.
    double relative_thread_cv = 0;
};

// What was measured, for the verdict at the end.
struct results {
    // By table ("0" to "256", rounds of the task), threads and rival: "0/2/tbb".
    std::map<std::string, figures> contests;
    std::map<std::string, double> singles;
    int disturbed = 0;  // contests in which other programs took too much of the processors

    const figures& contest(unsigned rounds, unsigned threads, const std::string& rival) const;
};

// The talk's four tables, or those of the two short tasks. False, in a tiny run: the rivals
// disagree.
bool run_tables(const bench::options& options, bool short_ones_only, results& out);
// A lone contract beside 64 busy ones.
void run_lone(const bench::options& options, results& out);
// One schedule and execute, one create and release.
bool run_singles(const bench::options& options);
// A million contracts.
bool run_million(const bench::options& options, results& out);
// Wake-up latencies.
void run_wake(const bench::options& options);

// Bytes that are allocated and not freed. Threads: only while no other thread allocates.
std::size_t live_bytes();

}  // namespace bench_contracts
