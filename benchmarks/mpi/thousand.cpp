// bench_thousand: the algorithms of room mpi on a thousand simulated nodes.
//
// The simulation (loggp.hpp) knows messages and computation. It knows no topology, so that no link
// is shared, no operating system that takes the processor away, and no losses. docs/many-nodes.md
// has the argument, the results, and how far predictions for two processes were from measurements.
//
//   bench_thousand --nodes 4000 --loggp 1300,400,300,0.1   another number, another network (in ns)
#include "../harness.hpp"
#include "simulated_work.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

namespace {

using namespace bench_loggp;

struct named_network {
    const char* name;
    parameters of;
};
// Half of a round trip is L + 2o. Where only that and the rate of messages were published, o is g,
// the most that it can be.
const std::vector<named_network> published = {
    // J. Grimm 2021, OSU micro-benchmarks, Open MPI
    {"InfiniBand 100 Gb/s", {538, 181, 181, 0.097}},
    // CODES simulator, Netgauge on the cluster Tukey, MVAPICH
    {"InfiniBand QDR", {3184, 1100, 1080, 0.497}},
    // J. Zhuang 2019, OSU micro-benchmarks, Intel MPI on AWS c5n.18xlarge, EFA and TCP
    {"Ethernet 100 Gb/s, EFA", {12971, 1567, 1567, 0.110}},
    {"Ethernet, TCP", {24590, 5000, 5000, 0.849}},
};

struct settings {
    bench::options options;
    int nodes = 1000;
    double us_of_item = 20;  // of the tree
    std::vector<named_network> networks = published;
};

std::uint64_t hash_of(double ns) {
    return bench::hash().add(static_cast<std::uint64_t>(ns)).value();
}
// Prints a figure in µs, or what a test compares.
void tell(const settings& s, const std::string& what, const char* network, double ns) {
    if (s.options.tiny) {
        std::printf("workload %s (%s) hash %016llx\n", what.c_str(), network,
                    static_cast<unsigned long long>(hash_of(ns)));
        return;
    }
    std::printf("%12.1f", ns / 1000);
    std::fflush(stdout);
    bench::write(s.options, {"simulated, " + std::to_string(s.nodes) + " nodes: " + what, network,
                             "us", ns / 1000, ns / 1000, ns / 1000});
}
void head(const settings& s, const char* title, const std::vector<std::string>& columns) {
    if (s.options.tiny) return;
    std::printf("%s\n  %-26s", title, "us");
    for (const std::string& c : columns) std::printf("%12s", c.c_str());
    std::printf("\n");
}
void row(const settings& s, const char* name) {
    if (!s.options.tiny) std::printf("  %-26s", name);
}
void end_row(const settings& s) {
    if (!s.options.tiny) std::printf("\n");
}

void collectives(const settings& s) {
    struct named_program {
        const char* name;
        collective run;
    };
    constexpr named_program programs[] = {
        {"barrier", &barrier}, {"all_reduce", &agree}, {"map_reduce", &map_reduce}};
    for (const named_program& p : programs) {
        const std::vector<int> sizes =
            s.options.tiny ? std::vector{s.nodes} : std::vector{2, 16, 128, s.nodes};
        std::vector<std::string> columns;
        for (const int n : sizes) columns.push_back(std::to_string(n) + " nodes");
        head(s, p.name, columns);
        for (const named_network& net : s.networks) {
            row(s, net.name);
            for (const int n : sizes) tell(s, p.name, net.name, time_of(net.of, n, p.run));
            end_row(s);
        }
    }
}

// A million keys for each process of 16 workers.
void sorts(const settings& s) {
    const sort_plan plan{1e6, 2048, 16};
    head(s, "sort, until the end of a step", {"samples", "divided", "keys", "sorted"});
    for (const named_network& net : s.networks) {
        network in(net.of, s.nodes);
        sort_times t;
        for (int me = 0; me != s.nodes; ++me) in.start(sort(in, me, plan, t));
        in.run();
        row(s, net.name);
        for (const double ns : {t.samples, t.divided, t.keys, t.sorted})
            tell(s, "sort", net.name, ns);
        end_row(s);
    }
}

void searches(const settings& s) {
    const std::uint64_t of_root = s.options.tiny ? 100 : s.options.quick ? 5000 : 50'000;
    const work_plan plan{of_root, s.us_of_item * 1000};
    const std::string name =
        "tree search, us of an item: " + std::to_string(static_cast<int>(s.us_of_item));
    head(s, name.c_str(), {"time", "bound", "ratio", "most/mean", "messages"});
    for (const named_network& net : s.networks) {
        network in(net.of, s.nodes);
        const work_result r = simulated_work(in, plan).run();
        const double items = static_cast<double>(r.items);
        // All work divided by all processes, or the longest path.
        const double bound =
            std::max(items / s.nodes, static_cast<double>(r.depth + 1)) * plan.ns_of_item;
        row(s, net.name);
        tell(s, name, net.name, r.end);
        if (!s.options.tiny)
            std::printf("%12.1f%12.3f%12.3f%12.3g", bound / 1000, r.end / bound,
                        static_cast<double>(r.most_items) * s.nodes / items,
                        static_cast<double>(r.messages));
        end_row(s);
    }
}

void stops(const settings& s) {
    const int fans[] = {0, 2, 32};
    head(s, "stop_source: until all have heard", {"flat", "tree of 2", "tree of 32"});
    for (const named_network& net : s.networks) {
        row(s, net.name);
        for (const int fan : fans) {
            double last = 0;
            network in(net.of, s.nodes);
            for (int me = 0; me != s.nodes; ++me) in.start(hear_stop(in, me, fan, last));
            in.run();
            tell(s, "stop, fan " + std::to_string(fan), net.name, last);
        }
        end_row(s);
    }
}

// The watch for failures: how long after the death of a process the last one knows, as a part of
// the timeout. The messages of the news take microseconds, which are nothing to that.
void watches(const settings& s) {
    double least = 10, most = 0, sum = 0;
    const int deaths = s.options.tiny ? 10 : 1000;
    std::uint64_t random = 1;
    // A time in a period, for each process another one.
    const auto phase = [&random] { return static_cast<double>(mix(++random) % 1000) / 1000; };
    for (int n = 0; n != deaths; ++n) {
        const double last_beat = -phase();  // the process has died at 0
        // The next process hears it at its own next look. Four looks later it has heard nothing.
        const double declared = last_beat + phase() + 4;
        double known = declared;
        for (int each = 2; each != s.nodes; ++each) known = std::max(known, declared + phase());
        least = std::min(least, known / 4);
        most = std::max(most, known / 4);
        sum += known / 4;
    }
    if (s.options.tiny) {
        tell(s, "watch for failures", "none", most * 1000);
        return;
    }
    std::printf("watch for failures: all know after %.2f to %.2f of the timeout, %.2f on average\n",
                least, most, sum / deaths);
}

// Takes the flags of its own out of the arguments. Exits with 2 if one is wrong.
settings read(int argc, char** argv) {
    settings s;
    std::vector<char*> rest{argv[0]};
    for (int i = 1; i < argc; ++i) {
        bool is_right = true;
        if (std::strcmp(argv[i], "--nodes") == 0 && i + 1 < argc) {
            s.nodes = std::atoi(argv[++i]);
            is_right = s.nodes > 1 && s.nodes <= 100'000;
        } else if (std::strcmp(argv[i], "--item-us") == 0 && i + 1 < argc) {
            s.us_of_item = std::atof(argv[++i]);
            is_right = s.us_of_item >= 0.01 && s.us_of_item <= 1e6;
        } else if (std::strcmp(argv[i], "--loggp") == 0 && i + 1 < argc) {
            s.networks = {{"given", {}}};
            parameters& given = s.networks.front().of;
            is_right = std::sscanf(argv[++i], "%lf,%lf,%lf,%lf", &given.latency, &given.overhead,
                                   &given.gap, &given.per_byte) == 4 &&
                       std::min({given.latency, given.overhead, given.gap, given.per_byte}) >= 0;
        } else {
            rest.push_back(argv[i]);
        }
        if (is_right) continue;
        std::fprintf(stderr,
                     "usage: %s [--nodes 2 to 100000] [--loggp L,o,g,G in ns] [--item-us 0.01 to "
                     "1000000] ...\n",
                     argv[0]);
        std::exit(2);
    }
    s.options = bench::parse(static_cast<int>(rest.size()), rest.data());
    if (s.options.tiny) s.nodes = 20;
    return s;
}

}  // namespace

int main(int argc, char** argv) {
    const settings s = read(argc, argv);
    collectives(s);
    sorts(s);
    searches(s);
    stops(s);
    watches(s);
    return 0;
}
