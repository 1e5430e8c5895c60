// The groups of P3409R1's Appendix A, and the figures of the CoreCLR pull request.
#pragma once

#include "../harness.hpp"

#include <vector>

namespace bench_stop {

// Each adds its workloads; ratios are to the first rival of each.
void add_register_unregister(std::vector<bench::workload>& workloads);        // 8.1
void add_request_without_callbacks(std::vector<bench::workload>& workloads);  // 8.2
void add_register_request_remove(std::vector<bench::workload>& workloads);    // 8.3
void add_many_callbacks(std::vector<bench::workload>& workloads);  // the shared source's list

// 8.4: several threads at once. Prints its tables, or its hashes in a tiny run. Each sample of a
// figure is the mean over the threads of one repetition.
void run_threads_at_once(const bench::options& options, std::vector<bench::figure>& figures);
// Prints the bytes and allocations of each source and registration, beside the pull request's.
void print_memory(const bench::options& options);

// Prints the paper's tables beside ours, and then each budget with its ratio, met or missed.
// Returns false if a name in them belongs to no figure. Without samples, checks only the names.
bool print_paper(const std::vector<bench::figure>& figures);
bool print_budgets(const std::vector<bench::figure>& figures, const bench::options& options);

}  // namespace bench_stop
