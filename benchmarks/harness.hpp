// What the benchmarks share: interleaved timing, medians, tables, hashes, flags, and --json.
#pragma once
// A benchmark is a list of workloads. A workload is a list of rivals that do the same work. Rivals
// take turns, repetition by repetition, so that a change of the machine's speed affects them all.
// Every figure is a median with its spread. Ratios are of medians to the first rival that is marked
// as the base.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <sched.h>
#include <time.h>
#include <unistd.h>

namespace bench {

// Keeps a value, and what computed it, from being optimized away.
template <class T>
inline void keep(const T& value) {
    asm volatile("" : : "r,m"(value) : "memory");
}
// Keeps an object behind a pointer; the pointer stays in a register.
template <class T>
inline void keep(T* pointer) {
    asm volatile("" : : "r"(pointer) : "memory");
}

// Binds the calling thread to that processor, modulo their number, so that threads run at the same
// time, and clients beside servers.
inline void pin(std::size_t processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor % static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN)), &set);
    ::sched_setaffinity(0, sizeof set, &set);
}

// FNV-1a, to compare what rivals computed.
class hash {
public:
    hash& add(std::uint64_t value) {
        for (int i = 0; i != 8; ++i, value >>= 8) {
            state_ = (state_ ^ (value & 255)) * 0x100000001b3;
        }
        return *this;
    }
    std::uint64_t value() const { return state_; }

private:
    std::uint64_t state_ = 0xcbf29ce484222325;
};

// One way to do a workload's work: does it `size` times and returns a hash of the result.
struct rival {
    std::string name;
    std::function<std::uint64_t(std::size_t size)> run;
};

struct workload {
    std::string name;
    std::string unit;  // what `size` counts, for example "await"
    std::size_t size;  // of one repetition
    std::size_t tiny_size;
    std::vector<rival> rivals;  // ratios are to the first
    // True if the calling thread does all the work. Then its own processor time counts, and other
    // programs on the machine do not.
    bool one_thread = false;
};

struct options {
    bool tiny = false;
    bool quick = false;  // takes about a third of the time, with less certainty
    int repetitions = 9;
    std::FILE* json = nullptr;
};

// Returns the options. Prints a message and exits with 2 on wrong arguments.
inline options parse(int argc, char** argv) {
    options o;
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--tiny") == 0) {
            o.tiny = true;
        } else if (std::strcmp(argv[i], "--quick") == 0) {
            o.quick = true;
            o.repetitions = 3;
        } else if (std::strcmp(argv[i], "--repetitions") == 0 && i + 1 < argc) {
            o.repetitions = std::max(1, std::atoi(argv[++i]));
        } else if (std::strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
            o.json = std::fopen(argv[++i], "a");
            if (o.json == nullptr) {
                std::perror(argv[i]);
                std::exit(2);
            }
        } else {
            std::fprintf(stderr, "usage: %s [--tiny] [--quick] [--repetitions N] [--json FILE]\n",
                         argv[0]);
            std::exit(2);
        }
    }
    return o;
}

// One figure, as --json writes it and scripts/report.py reads it.
struct record {
    std::string workload;
    std::string rival;
    std::string unit;  // what is counted: "ns per await", "million per s", "bytes"
    double value;      // the median of the repetitions
    double low;        // the least
    double high;       // the greatest
    bool more_is_better = false;
};

inline std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + '"';
}

// Appends a line to the file of --json, if there is one.
inline void write(const options& o, const record& r) {
    if (o.json == nullptr) return;
    std::fprintf(o.json,
                 "{\"workload\":%s,\"rival\":%s,\"unit\":%s,\"value\":%.6g,\"low\":%.6g,"
                 "\"high\":%.6g,\"better\":\"%s\"}\n",
                 quoted(r.workload).c_str(), quoted(r.rival).c_str(), quoted(r.unit).c_str(),
                 r.value, r.low, r.high, r.more_is_better ? "more" : "less");
}
// Writes the budget of a figure, and whether it was met.
inline void write_budget(const options& o, const std::string& what, double value, double limit,
                         bool at_most = true) {
    if (o.json == nullptr) return;
    std::fprintf(o.json, "{\"budget\":%s,\"value\":%.6g,\"limit\":%.6g,\"sense\":\"%s\"}\n",
                 quoted(what).c_str(), value, limit, at_most ? "most" : "least");
}

// Returns the value below which `part` of the values are.
inline double quantile(std::vector<double> values, double part) {
    std::sort(values.begin(), values.end());
    if (values.empty()) return 0;
    const auto at = static_cast<std::size_t>(part * static_cast<double>(values.size()));
    return values[std::min(at, values.size() - 1)];
}
inline double median(std::vector<double> values) {
    return quantile(std::move(values), 0.5);
}
// Returns the ratios of adjacent repetitions: a slow moment of the machine affects both alike.
inline std::vector<double> ratios(const std::vector<double>& ours,
                                  const std::vector<double>& base) {
    std::vector<double> all;
    const std::size_t size = std::min(ours.size(), base.size());
    for (std::size_t i = 0; i != size; ++i) all.push_back(ours[i] / base[i]);
    return all;
}
// Prints and writes the verdict on a figure; `how` says how the figure was made.
inline void judge(const options& o, const std::string& what, double value, double most,
                  const std::string& how) {
    std::printf("  budget: %-62s %.3f, at most %.3g: %s%s%s\n", what.c_str(), value, most,
                value <= most ? "met" : "missed", how.empty() ? "" : "; ", how.c_str());
    std::fflush(stdout);
    write_budget(o, what, value, most);
}
// Judges a ratio: the median of the ratios of adjacent repetitions.
inline void judge(const options& o, const std::string& what, const std::vector<double>& ratios,
                  double most) {
    char how[100];
    std::snprintf(how, sizeof how, "median of %zu ratios of neighbors, half are %.3f to %.3f",
                  ratios.size(), quantile(ratios, 0.25), quantile(ratios, 0.75));
    judge(o, what, median(ratios), most, how);
}
// Judges a ratio that must be at most 1. If both rivals take the same time, half of all runs
// measure a ratio above 1. The verdict therefore uses the lower end of the interval that holds the
// true median with 95 % certainty (sign test).
inline void judge_no_worse(const options& o, const std::string& what,
                           const std::vector<double>& ratios) {
    const double size = static_cast<double>(ratios.size());
    const double beside = 0.98 / std::sqrt(size);  // ranks on either side of the middle
    char how[160];
    std::snprintf(how, sizeof how,
                  "the least that the median, %.3f of %zu ratios of neighbors, can be; the most is "
                  "%.3f (95 %%)",
                  median(ratios), ratios.size(), quantile(ratios, 0.5 + beside));
    judge(o, what + ", 95 % sure", quantile(ratios, std::max(0.0, 0.5 - beside)), 1.0, how);
}
// Makes a record of repetitions.
inline record of_samples(std::string workload, std::string rival, std::string unit,
                         const std::vector<double>& samples, bool more_is_better = false) {
    return {std::move(workload),  std::move(rival),     std::move(unit), median(samples),
            quantile(samples, 0), quantile(samples, 1), more_is_better};
}

// The time of a rival in each repetition, in ns per unit, for a benchmark that judges its figures.
struct figure {
    std::string workload;
    std::string rival;
    std::vector<double> samples;
};

// Runs every rival once on a small input. Returns false if the results differ. Records no times.
inline bool run_tiny(const workload& w, std::vector<figure>& figures) {
    bool agree = true;
    std::uint64_t expected = 0;
    for (const rival& r : w.rivals) {
        const std::uint64_t result = r.run(w.tiny_size);
        if (&r == &w.rivals.front()) expected = result;
        agree = agree && result == expected;
        figures.push_back({w.name, r.name, {}});
        std::printf("workload %s (%s) hash %016llx\n", w.name.c_str(), r.name.c_str(),
                    static_cast<unsigned long long>(result));
    }
    if (!agree) std::printf("workload %s: the rivals disagree\n", w.name.c_str());
    return agree;
}

// Returns the calling thread's processor time if `own`, else the monotonic clock, in ns.
inline double now(bool own) {
    timespec t{};
    ::clock_gettime(own ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

inline void measure(const workload& w, const options& o, std::vector<figure>& figures) {
    std::vector<std::vector<double>> times(w.rivals.size());       // ns per unit
    for (const rival& r : w.rivals) keep(r.run(w.size / 10 + 1));  // warms up
    for (int i = 0; i != o.repetitions; ++i) {
        for (std::size_t r = 0; r != w.rivals.size(); ++r) {
            const double begin = now(w.one_thread);
            keep(w.rivals[r].run(w.size));
            times[r].push_back((now(w.one_thread) - begin) / static_cast<double>(w.size));
        }
    }
    std::printf("%s, ns per %s\n", w.name.c_str(), w.unit.c_str());
    const double base = median(times[0]);
    for (std::size_t r = 0; r != w.rivals.size(); ++r) {
        const auto [low, high] = std::minmax_element(times[r].begin(), times[r].end());
        std::printf("  %-34s %10.2f  (%.2f to %.2f)  x %.3f\n", w.rivals[r].name.c_str(),
                    median(times[r]), *low, *high, median(times[r]) / base);
        figures.push_back({w.name, w.rivals[r].name, times[r]});
        write(o, {w.name, w.rivals[r].name, "ns per " + w.unit, median(times[r]), *low, *high});
    }
    std::fflush(stdout);
}

// Runs a benchmark's workloads, for its main(). The second form keeps the figures.
inline int run(const std::vector<workload>& workloads, const options& o,
               std::vector<figure>& figures) {
    bool agree = true;
    for (const workload& w : workloads) {
        if (o.tiny) {
            agree = run_tiny(w, figures) && agree;
        } else {
            measure(w, o, figures);
        }
    }
    return agree ? 0 : 1;
}
inline int run(const std::vector<workload>& workloads, const options& o) {
    std::vector<figure> figures;
    return run(workloads, o, figures);
}

}  // namespace bench
