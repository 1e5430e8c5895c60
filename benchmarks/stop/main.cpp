// bench_stop: stop sources beside the standard's, the published in-place design and the paper's.
#include "workloads.hpp"

int main(int argc, char** argv) {
    bench::options options = bench::parse(argc, argv);
    // Many short repetitions: a preemption spoils one of them, but not the median.
    options.repetitions *= 25;
    std::vector<bench::workload> workloads;
    bench_stop::add_register_unregister(workloads);
    bench_stop::add_request_without_callbacks(workloads);
    bench_stop::add_register_request_remove(workloads);
    bench_stop::add_many_callbacks(workloads);
    for (bench::workload& each : workloads) each.one_thread = true;
    std::vector<bench::figure> figures;
    const int status = bench::run(workloads, options, figures);
    bench_stop::run_threads_at_once(options, figures);
    if (!options.tiny) bench_stop::print_memory(options);
    const bool tables = bench_stop::print_paper(figures);
    const bool budgets = bench_stop::print_budgets(figures, options);
    return tables && budgets ? status : 1;
}
