// bench_scaling: contracts and queues on simulated caches, for more cores than this machine has.
//
// The simulation (simulated_caches.hpp) counts transfers and returns throughput. It has no
// prefetching, no store buffers, and no frequency. docs/scaling.md has the argument, and the
// results beside the machine's.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "../harness.hpp"
#include "simulated_structures.hpp"

namespace {

using namespace bench_scaling;

struct outcome {
    double rate = 0;       // million per second
    double transfers = 0;  // per task that ran
};

template <class Structure>
outcome simulate(Structure structure, int cores, double transfer_ns, double microseconds) {
    machine m(cores, transfer_ns);
    std::vector<program> programs;
    for (int i = 0; i != cores; ++i) programs.push_back(structure.run(m[i]));
    m.run(std::move(programs), microseconds * 1e3);
    double runs = 0;
    double transfers = 0;
    for (int i = 0; i != cores; ++i) {
        runs += static_cast<double>(m[i].runs);
        transfers += static_cast<double>(m[i].transfers);
    }
    return {runs / microseconds, transfers / runs};
}

struct structure {
    const char* name;
    outcome (*run)(int cores, double transfer_ns, double microseconds);
};
constexpr structure structures[] = {
    {"execute_contracts",
     [](int n, double t, double us) { return simulate(contracts(true), n, t, us); }},
    {"execute_next_contract",
     [](int n, double t, double us) { return simulate(contracts(false), n, t, us); }},
    {"counters on the way (the talk)",
     [](int n, double t, double us) { return simulate(counter_tree(), n, t, us); }},
    {"sub-queues (moodycamel, tokens)",
     [](int n, double t, double us) { return simulate(subqueues(n), n, t, us); }},
    {"tickets and lanes (TBB)",
     [](int n, double t, double us) { return simulate(ticket_queue(), n, t, us); }},
    {"linked list (Boost)",
     [](int n, double t, double us) { return simulate(list_queue(), n, t, us); }},
};

}  // namespace

int main(int argc, char** argv) {
    const bench::options options = bench::parse(argc, argv);
    const double microseconds = options.tiny ? 20 : 2'000;
    const std::vector<int> core_counts =
        options.tiny ? std::vector<int>{1, 3} : std::vector<int>{1, 2, 4, 16, 64, 128};
    const double transfer_ns = 60;
    if (!options.tiny) {
        std::printf(
            "simulated: million executions per second (line transfers per execution), "
            "%.0f ns per transfer\n  %-32s",
            transfer_ns, "cores");
        for (const int cores : core_counts) std::printf("%9d%9s", cores, "");
        std::printf("\n");
    }
    for (const structure& s : structures) {
        if (!options.tiny) std::printf("  %-32s", s.name);
        for (const int cores : core_counts) {
            const outcome o = s.run(cores, transfer_ns, microseconds);
            if (options.tiny) {
                std::printf("workload simulated, %d cores (%s) hash %016llx\n", cores, s.name,
                            static_cast<unsigned long long>(bench::hash().add(o.rate > 0).value()));
                continue;
            }
            std::printf("%9.1f (%5.2f)", o.rate, o.transfers);
            bench::write(options, {"simulated, " + std::to_string(cores) + " cores", s.name,
                                   "million per s", o.rate, o.rate, o.rate, true});
        }
        if (!options.tiny) std::printf("\n");
        std::fflush(stdout);
    }
    return 0;
}
