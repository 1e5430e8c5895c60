// bench_exec: the cost of senders beside the same work written by hand, and P3409's claim about
// when_all.
#include "rivals.hpp"

#include "../harness.hpp"

#include <cstdio>

int main(int argc, char** argv) {
    using namespace bench_exec;
    const bench::options options = bench::parse(argc, argv);
    std::vector<bench::workload> workloads;
    workloads.push_back({"just | then | then | then",
                         "pipeline",
                         20'000'000,
                         1000,
                         {{"plain expression", then_plain}, {"coppice", then_coppice}}});
    workloads.push_back({"two results gathered",
                         "gathering",
                         5'000'000,
                         1000,
                         {{"countdown by hand", gather_2_plain}, {"when_all", gather_2_coppice}}});
    workloads.push_back(
        {"ten results gathered",
         "gathering",
         1'000'000,
         1000,
         {{"countdown by hand", gather_10_plain}, {"when_all", gather_10_coppice}}});
    std::vector<bench::rival> loops = {{"run_loop", queue_coppice}};
#ifdef BENCH_WITH_ASIO
    loops.insert(loops.begin(), {"Asio io_context", queue_asio});
#endif
    workloads.push_back({"work queued to a loop and run, batches of 64", "item", 2'000'000, 1000,
                         std::move(loops)});
    workloads.push_back(
        {"work started in a scope and joined",
         "spawn",
         2'000'000,
         1000,
         {{"counted new and delete", spawn_plain}, {"spawn and join", spawn_coppice}}});
    workloads.push_back({"when_all of ten cancellable operations, stopped",
                         "stop",
                         500'000,
                         1000,
                         {{"inplace_stop_source", stop_10_inplace},
                          {"finite_inplace_stop_source", stop_10_finite}}});
    const int status = bench::run(workloads, options);
    if (!options.tiny) {
        std::printf(
            "when_all of ten cancellable operations, bytes of operation state\n"
            "  %-34s %10zu\n  %-34s %10zu  x %.3f\n",
            "inplace_stop_source", stop_10_inplace_bytes(), "finite_inplace_stop_source",
            stop_10_finite_bytes(),
            static_cast<double>(stop_10_finite_bytes()) /
                static_cast<double>(stop_10_inplace_bytes()));
        for (const auto& [rival, bytes] :
             {std::pair("inplace_stop_source", stop_10_inplace_bytes()),
              {"finite_inplace_stop_source", stop_10_finite_bytes()}}) {
            const auto value = static_cast<double>(bytes);
            bench::write(options, {"operation state of when_all of ten cancellable operations",
                                   rival, "bytes", value, value, value});
        }
    }
    return status;
}
