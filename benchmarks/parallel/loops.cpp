// Loops, reductions, scans, and searches over 4 million elements, rivals in turn.
#include "../companion.hpp"
#include "../harness.hpp"
#include "contests.hpp"
#include "loop_rivals.hpp"

#include <map>
#include <memory>
#include <string>

namespace bench_parallel {

namespace {

// The rivals in this process, and those in programs of their own.
const loop_rival* const rivals[] = {
    &coppice_loops, &coppice_outside, &std_loops,
#if defined(BENCH_WITH_TBB)
    &tbb_loops,     &std_par_loops,
#endif
};
constexpr const char* coppice_companion = "coppice, in a program of its own";
struct outside_rival {
    const char* name;
    std::unique_ptr<bench::companion> program;
};
std::vector<outside_rival>& outside_rivals() {
    static std::vector<outside_rival> all;
    return all;
}

struct outcome {
    double ms;  // less than 0 if the rival has no such loop
    std::uint64_t result;
};

outcome run(const loop_rival& r, const named_loop& l, std::size_t threads, std::size_t size) {
    static inputs in;
    if (r.threads_max < threads) return {-1, 0};
    outcome result{-1, 0};
    const auto run = [&result, &r, &l, threads, size] {
        in.reset(size);
        const double begin = bench::now(false);
        const bool has = r.run(l.k, threads, in);
        const double took = (bench::now(false) - begin) / 1e6;
        if (has) result = {took, in.result()};
    };
    if (r.call != nullptr) {
        r.call(threads, run);
    } else {
        run();
    }
    return result;
}
outcome run(const outside_rival& r, const named_loop& l, std::size_t threads, std::size_t size) {
    const bench::companion::answer a = r.program->run(l.name.data(), threads, size);
    return {a.ns / 1e6, a.result};
}

// Runs each rival of a loop once, in this order or the reverse.
std::map<std::string, outcome> run_all(const named_loop& l, std::size_t threads, std::size_t size,
                                       bool forwards) {
    std::map<std::string, outcome> all;
    const auto keep = [&all](const char* name, const outcome& o) {
        if (o.ms >= 0) all[name] = o;
    };
    const std::size_t here = std::size(rivals);
    const std::size_t count = here + outside_rivals().size();
    for (std::size_t n = 0; n != count; ++n) {
        const std::size_t i = forwards ? n : count - 1 - n;
        if (i < here) {
            keep(rivals[i]->name, run(*rivals[i], l, threads, size));
        } else {
            const outside_rival& r = outside_rivals()[i - here];
            keep(r.name, run(r, l, threads, size));
        }
    }
    return all;
}

std::size_t size_of(const named_loop& l) {
    return l.k == loop::uneven ? 20'000 : 4'000'000;
}

// Checks the promise: no loop is slower than a rival's. Rivals in programs of their own are
// compared with coppice in one.
void measure(const bench::options& o, const named_loop& l, std::size_t threads) {
    run_all(l, threads, size_of(l), true);  // starts the threads, touches the memory
    std::map<std::string, std::vector<double>> times;
    for (int i = 0; i != 2 * o.repetitions; ++i) {
        for (const auto& [name, each] : run_all(l, threads, size_of(l), i % 2 == 0)) {
            times[name].push_back(each.ms);
        }
    }
    const std::string workload = std::string(l.name) + " of " + std::to_string(size_of(l)) +
                                 ", threads: " + std::to_string(threads);
    std::printf("%s, ms\n", workload.c_str());
    const std::vector<double>& ours = times[coppice_loops.name];
    for (const auto& [name, each] : times) {
        std::printf("  %-34s %10.3f  (%.3f to %.3f)  x %.3f\n", name.c_str(), bench::median(each),
                    bench::quantile(each, 0), bench::quantile(each, 1),
                    bench::median(each) / bench::median(ours));
        bench::write(o, bench::of_samples(workload, name, "ms", each));
    }
    for (const auto& [name, each] : times) {
        if (name.starts_with("coppice")) continue;
        const bool is_here = !name.starts_with("OpenMP");
        bench::judge_no_worse(o, workload + ", coppice / " + name,
                              bench::ratios(is_here ? ours : times[coppice_companion], each));
    }
}

}  // namespace

void start_companions() {
    outside_rivals().push_back(
        {coppice_companion, std::make_unique<bench::companion>(BENCH_COPPICE)});
#if defined(BENCH_LIBOMP)
    outside_rivals().push_back(
        {"OpenMP (libomp)", std::make_unique<bench::companion>(BENCH_LIBOMP)});
#endif
#if defined(BENCH_LIBGOMP)
    outside_rivals().push_back(
        {"OpenMP (libgomp)", std::make_unique<bench::companion>(BENCH_LIBGOMP)});
#endif
}

bool try_loops() {
    bool agree = true;
    for (const named_loop& l : loops) {
        const std::map<std::string, outcome> all = run_all(l, 2, 3'000, true);
        const std::uint64_t expected = all.at(coppice_loops.name).result;
        for (const auto& [name, each] : all) {
            agree = agree && each.result == expected;
            std::printf("workload %s (%s) hash %016llx\n", l.name.data(), name.c_str(),
                        static_cast<unsigned long long>(each.result));
        }
    }
    return agree;
}

void measure_loops(const bench::options& o) {
    for (const named_loop& l : loops) {
        for (const std::size_t threads : {1, 2}) measure(o, l, threads);
    }
}

}  // namespace bench_parallel
