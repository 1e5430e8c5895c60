// bench_contracts: contracts beside queues, as in the talk (contest.hpp), and the room's budgets.
#include <algorithm>
#include <cstdio>

#include "workloads.hpp"

namespace {

using bench_contracts::results;

class verdict {
public:
    verdict(const results& measured, const bench::options& options)
        : measured_(measured), options_(options) {
        std::printf("what it must show (ratios in this run)\n");
    }

    void faster(unsigned rounds, unsigned threads, const char* ours, const char* theirs,
                double least) {
        const double rival = measured_.contest(rounds, threads, theirs).rate;
        if (rival == 0) return;  // left out
        const double ratio = measured_.contest(rounds, threads, ours).rate / rival;
        char what[160];
        std::snprintf(what, sizeof what, "%s, %s, %u thread(s): x %s's throughput",
                      rounds == 0 ? "empty task" : "task of 20 ns", ours, threads, theirs);
        at_least(what, ratio, least);
    }
    void faster_than_moodycamel(double least) {
        const double rival = std::max(measured_.contest(0, 2, "moodycamel").rate,
                                      measured_.contest(0, 2, "moodycamel, tokens").rate);
        if (rival == 0) return;
        at_least("empty task, execute_contracts, 2 threads: x moodycamel's best",
                 measured_.contest(0, 2, "execute_contracts").rate / rival, least);
    }
    void fair(const char* ours) {
        double task = 0, thread = 0, apart = 0;
        for (const unsigned rounds : {0u, 1u, 64u, 256u}) {
            const bench_contracts::figures& f = measured_.contest(rounds, 2, ours);
            task = std::max(task, f.task_cv);
            // The CV itself, or that relative to the control, whichever is less: processors may be
            // unequal.
            thread = std::max(thread, std::min(f.thread_cv, f.relative_thread_cv));
            apart = std::max(apart, measured_.contest(rounds, 2, "each thread apart").thread_cv);
        }
        at_most((std::string(ours) + ": greatest task CV at 2 threads").c_str(), task, 0.02);
        at_most((std::string(ours) + ": greatest thread CV at 2 threads").c_str(), thread, 0.08);
        std::printf("  %-74s %8.3f\n", "  the same of threads that share nothing", apart);
    }
    void at_least(const char* what, double value, double least) {
        say(what, value, ">=", least, value >= least);
    }
    void at_most(const char* what, double value, double most) {
        say(what, value, "<=", most, value <= most);
    }

private:
    void say(const char* what, double value, const char* sign, double budget, bool met) {
        std::printf("  %-74s %8.3f  %s %g: %s\n", what, value, sign, budget,
                    met ? "met" : "MISSED");
        bench::write_budget(options_, what, value, budget, sign[0] == '<');
    }
    const results& measured_;
    const bench::options& options_;
};

void judge(const results& measured, const bench::options& options) {
    verdict v(measured, options);
    const auto single = [&](const char* name) { return measured.singles.at(name); };
    v.faster(0, 2, "execute_next_contract", "tbb::concurrent_queue", 10);
    v.faster(0, 1, "execute_next_contract", "tbb::concurrent_queue", 1.2);
    v.faster(0, 2, "execute_contracts", "tbb::concurrent_queue", 15);
    v.faster_than_moodycamel(8);
    v.faster(0, 1, "execute_contracts", "tbb::concurrent_queue", 1.8);
    v.faster(1, 2, "execute_next_contract", "tbb::concurrent_queue", 6);
    v.faster(1, 2, "execute_contracts", "tbb::concurrent_queue", 6);
    v.fair("execute_next_contract");
    v.fair("execute_contracts");
    for (const char* const way : {"execute_next_contract", "execute_contracts"}) {
        const double ratio = single((std::string("lone/") + way).c_str());
        const std::string what = std::string("a lone contract beside 64 busy ones, ") + way;
        v.at_least(what.c_str(), ratio, 0.95);
        v.at_most(what.c_str(), ratio, 1.05);
    }
    v.at_most("a million contracts: bytes each, with its handle", single("bytes"), 96);
    v.at_most("a million contracts: one active, x the time in a group of 512",
              single("one of a million") / single("one of 512"), 10);
    if (measured.disturbed != 0) {
        std::printf("  other programs disturbed %d contests: their figures are of less worth\n",
                    measured.disturbed);
    }
    v.at_most("a million contracts: creating the last tenth, x the first",
              single("create, last tenth") / single("create, first tenth"), 1.5);
}

// Takes `--only PART` out of the arguments. Returns PART, or "" if the flag is missing.
std::string taken_part(int& argc, char** argv) {
    for (int i = 1; i + 1 < argc; ++i) {
        if (std::string(argv[i]) != "--only") continue;
        std::string part = argv[i + 1];
        std::copy(argv + i + 2, argv + argc + 1, argv + i);
        argc -= 2;
        return part;
    }
    return "";
}

}  // namespace

// Takes, besides the common flags, --only million|singles|wake|tables|short, for one part without
// the verdict.
int main(int argc, char** argv) {
    const std::string only = taken_part(argc, argv);
    const auto wanted = [&](const char* part) { return only.empty() || only == part; };
    const bench::options options = bench::parse(argc, argv);
    results measured;
    bool right = true;
    // First, while nothing else allocates.
    if (wanted("million")) right = bench_contracts::run_million(options, measured) && right;
    if (wanted("singles")) right = bench_contracts::run_singles(options) && right;
    if (wanted("wake")) bench_contracts::run_wake(options);
    if (wanted("tables") || only == "short") {
        right = bench_contracts::run_tables(options, only == "short", measured) && right;
        bench_contracts::run_lone(options, measured);
    }
    if (!options.tiny && only.empty()) judge(measured, options);
    return right ? 0 : 1;
}
