// bench_pool: the thesis's chapter 6 as a report, with each budget's ratio, met or missed.
#include "companion.hpp"
#include "rivals.hpp"

#include "../harness.hpp"

#include <coppice/pool/thread_pool.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <thread>

namespace {

using namespace bench_pool;

struct contender {
    const char* name;
    std::function<std::uint64_t(std::size_t threads, std::size_t size)> run;
    const char* program = nullptr;  // that does the work, if it is not this one
};
struct contest {
    const char* name;
    std::size_t threads;
    std::size_t size;
    std::size_t tiny_size;
    std::vector<contender> contenders;
};

// Median times in ms, and variances in ms^2, by contest, threads and contender.
std::map<std::string, double> medians;
std::map<std::string, double> variances;

std::string key(const std::string& contest_name, std::size_t threads, const std::string& name) {
    return contest_name + "/" + std::to_string(threads) + "/" + name;
}

// Who has taken longer than this in all is not asked again in the same contest.
constexpr double patience_ms = 3000;

double time_ms(const contender& c, std::size_t threads, std::size_t size) {
    // The threads of the one before have gone to sleep.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const auto begin = std::chrono::steady_clock::now();
    bench::keep(c.run(threads, size));
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
        .count();
}

void measure(const contest& c, const bench::options& o) {
    std::vector<std::vector<double>> times(c.contenders.size());
    for (const contender& each : c.contenders) bench::keep(each.run(c.threads, c.tiny_size));
    std::vector<double> spent(c.contenders.size());
    for (int i = 0; i != o.repetitions; ++i) {
        for (std::size_t r = 0; r != c.contenders.size(); ++r) {
            if (spent[r] > patience_ms) continue;  // OpenMP's spin when their lock is preempted
            times[r].push_back(time_ms(c.contenders[r], c.threads, c.size));
            spent[r] += times[r].back();
        }
    }
    std::printf("%s, %zu threads, ms (standard deviation in %%)\n", c.name, c.threads);
    const double base = bench::median(times[0]);
    for (std::size_t r = 0; r != c.contenders.size(); ++r) {
        const double median = bench::median(times[r]);
        double mean = 0, square = 0;
        for (const double t : times[r]) mean += t / static_cast<double>(times[r].size());
        for (const double t : times[r])
            square += (t - mean) * (t - mean) / static_cast<double>(times[r].size());
        std::printf("  %-34s %10.2f  (%4.1f)  x %.3f\n", c.contenders[r].name, median,
                    100 * std::sqrt(square) / mean, median / base);
        medians[key(c.name, c.threads, c.contenders[r].name)] = median;
        variances[key(c.name, c.threads, c.contenders[r].name)] = square;
        bench::write(o, bench::of_samples(
                            std::string(c.name) + ", " + std::to_string(c.threads) + " threads",
                            c.contenders[r].name, "ms", times[r]));
    }
    std::fflush(stdout);
}

bool run_tiny(const contest& c) {
    bool agree = true;
    const std::uint64_t expected = c.contenders.front().run(c.threads, c.tiny_size);
    for (const contender& each : c.contenders) {
        const std::uint64_t result = each.run(c.threads, c.tiny_size);
        std::printf("workload %s (%s) hash %016llx\n", c.name, each.name,
                    static_cast<unsigned long long>(bench::hash().add(result).value()));
        agree = agree && result == expected;
    }
    if (!agree) std::printf("workload %s: the rivals disagree\n", c.name);
    return agree;
}

// One of the two things that an OpenMP runtime's program does.
[[maybe_unused]] contender openmp(const std::shared_ptr<companion>& runtime, const char* program,
                                  const char* name, const char* workload) {
    return {name,
            [runtime, workload](std::size_t threads, std::size_t size) {
                return runtime->run(workload, threads, size);
            },
            program};
}

// Before there are any threads: companions are forked.
std::vector<contest> contests() {
    std::vector<contest> all;
    std::vector<contender> fib, matmul, skynet, queens, submit;
#ifdef BENCH_WITH_TBB
    fib = {{"oneTBB parallel_invoke", fib_parallel_invoke}, {"oneTBB task_group", fib_task_group}};
    matmul = {{"oneTBB parallel_for", matmul_tbb}};
    skynet = {{"oneTBB task_group", skynet_tbb}};
    queens = {{"oneTBB parallel_reduce", queens_tbb}};
    submit = {{"oneTBB enqueue", submit_tbb}};
#endif
#ifdef BENCH_LIBOMP
    const auto libomp = std::make_shared<companion>(BENCH_LIBOMP);
    fib.push_back(openmp(libomp, BENCH_LIBOMP, "OpenMP tasks (libomp)", "fib"));
    matmul.push_back(openmp(libomp, BENCH_LIBOMP, "OpenMP for (libomp)", "matmul"));
#endif
#ifdef BENCH_LIBGOMP
    const auto libgomp = std::make_shared<companion>(BENCH_LIBGOMP);
    fib.push_back(openmp(libgomp, BENCH_LIBGOMP, "OpenMP tasks (libgomp)", "fib"));
    matmul.push_back(openmp(libgomp, BENCH_LIBGOMP, "OpenMP for (libgomp)", "matmul"));
#endif
    fib.push_back({"coppice tasks", fib_tasks});
    fib.push_back({"coppice fork_join", fib_fork_join});
    fib.push_back({"the plain function", fib_serial});
    matmul.push_back({"coppice parallel_for", matmul_coppice});
    skynet.push_back({"coppice tasks", skynet_tasks});
    skynet.push_back({"coppice fork_join", skynet_fork_join});
    queens.push_back({"coppice parallel_reduce", queens_coppice});
    submit.push_back({"coppice submit", submit_coppice});
    const std::vector<contender> schedulers = {
        {"global queue, mutex", items_mutex_queue},
        {"global queue, lock-free", items_lockfree_queue},
        {"work stealing, mutex", items_mutex_deques},
        {"work stealing, lock-free, bounded", items_bounded_deques},
        {"the same, growing, buffers kept", items_kept_deques},
        {"the same, growing, counted", items_counted_deques}};
    for (const std::size_t threads : {1, 2, 4, 8, 16}) {
        all.push_back({"fib(30)", threads, 30, 10, fib});
        all.push_back({"matmul 1024", threads, 1024, 64, matmul});
        all.push_back({"an item per call of fib(20)", threads, 20, 8, schedulers});
    }
    for (const std::size_t threads : {1, 2}) {
        all.push_back({"skynet", threads, 1'000'000, 100, skynet});
        all.push_back({"queens 12", threads, 12, 5, queens});
    }
    all.push_back({"a million jobs from outside", 1, 1'000'000, 100, submit});
    all.push_back({"100,000 schedules by a task",
                   1,
                   100'000,
                   100,
                   {{"static", schedule_static}, {"dynamic (any_scheduler)", schedule_dynamic}}});
    return all;
}

// Peak memory in KiB of a process of its own that does the work once.
long peak_memory(const contender& c) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (c.program != nullptr) {
            ::close(1);
            ::execl(c.program, c.program, "fib", "2", "30", nullptr);
        }
        bench::keep(c.run(2, 30));
        ::_exit(0);
    }
    int status = 0;
    rusage used{};
    ::wait4(child, &status, 0, &used);
    return used.ru_maxrss;
}

double idle_cpu_ms() {
    coppice::thread_pool pool(2);
    pool.run([] {});
    const auto used = [] {
        rusage u{};
        ::getrusage(RUSAGE_SELF, &u);
        const auto ms = [](const timeval& t) {
            return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
        };
        return ms(u.ru_utime) + ms(u.ru_stime);
    };
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const double before = used();
    std::this_thread::sleep_for(std::chrono::seconds(2));
    return used() - before;
}

// The thesis's table 6.1: what locks do to the differences between runs.
void variance_table() {
    std::printf("variance of an item per call of fib(20), ms^2, at 2, 4, 8 and 16 threads\n");
    for (const char* const name :
         {"global queue, mutex", "global queue, lock-free", "work stealing, mutex",
          "work stealing, lock-free, bounded", "the same, growing, buffers kept",
          "the same, growing, counted"}) {
        std::printf("  %-34s", name);
        for (const std::size_t threads : {2, 4, 8, 16}) {
            std::printf(" %10.3f", variances[key("an item per call of fib(20)", threads, name)]);
        }
        std::printf("\n");
    }
}

// How much more two threads do than one if they have nothing to do with each other: what the
// machine, and what else it runs, leaves to be won.
double machine_speed_up() {
    std::vector<double> ratios;
    for (int i = 0; i != 9; ++i) {
        const double one = time_ms({"", fib_serial}, 1, 36);
        const contender both{"", [](std::size_t threads, std::size_t size) {
                                 std::thread beside([=] { bench::keep(fib_serial(1, size)); });
                                 const std::uint64_t result = fib_serial(threads, size);
                                 beside.join();
                                 return result;
                             }};
        const double two = time_ms(both, 1, 36);
        ratios.push_back(2 * one / two);
    }
    return bench::median(ratios);
}

double speed_up(const char* name) {
    return medians[key("fib(30)", 1, name)] / medians[key("fib(30)", 2, name)];
}

void budget(const bench::options& o, const char* what, double value, double most) {
    bench::write_budget(o, what, value, most);
    std::printf("  %-52s %8.3f  <= %-6.3g %s\n", what, value, most,
                value <= most ? "met" : "MISSED");
}

double ratio(const char* contest_name, std::size_t threads, const char* ours, const char* theirs) {
    return medians[key(contest_name, threads, ours)] / medians[key(contest_name, threads, theirs)];
}

void budgets(const bench::options& o, const std::map<std::string, long>& memory) {
#if defined(__clang__)
    constexpr double task_budget = 0.17;
#else
    constexpr double task_budget = 0.27;
#endif
    std::printf("budgets\n");
#ifdef BENCH_WITH_TBB
    const char* const tbb = "oneTBB parallel_invoke";
    budget(o, "tasks / oneTBB, fib, 1 thread", ratio("fib(30)", 1, "coppice tasks", tbb),
           task_budget);
    budget(o, "tasks / oneTBB, fib, 2 threads", ratio("fib(30)", 2, "coppice tasks", tbb),
           task_budget);
    budget(o, "fork_join / oneTBB, fib, 1 thread", ratio("fib(30)", 1, "coppice fork_join", tbb),
           0.04);
    budget(o, "fork_join / oneTBB, fib, 2 threads", ratio("fib(30)", 2, "coppice fork_join", tbb),
           0.04);
    budget(o, "tasks / oneTBB, skynet, 2 threads",
           ratio("skynet", 2, "coppice tasks", "oneTBB task_group"), 0.3);
    budget(o, "submit / oneTBB enqueue, a million",
           ratio("a million jobs from outside", 1, "coppice submit", "oneTBB enqueue"), 0.5);
    budget(o, "parallel_for / oneTBB, matmul, 2 threads",
           ratio("matmul 1024", 2, "coppice parallel_for", "oneTBB parallel_for"), 1.0);
    budget(o, "peak memory beyond oneTBB's, MiB",
           static_cast<double>(memory.at("coppice tasks") - memory.at(tbb)) / 1024, 2);
#endif
    budget(o, "fork_join / plain function, 1 thread",
           ratio("fib(30)", 1, "coppice fork_join", "the plain function"), 2.5);
    for (const char* const name : {"coppice tasks", "coppice fork_join"}) {
        const std::string what = std::string("1.85 / speed-up from 1 to 2 threads, ") + name;
        budget(o, what.c_str(), 1.85 / speed_up(name), 1.0);
    }
    std::printf("  speed-up: tasks %.2f, fork_join %.2f; two plain functions at once %.2f\n",
                speed_up("coppice tasks"), speed_up("coppice fork_join"), machine_speed_up());
    budget(o, "CPU of an idle pool in two seconds, ms", idle_cpu_ms(), 0.5);
}

}  // namespace

int main(int argc, char** argv) {
    bench::options o = bench::parse(argc, argv);
    o.repetitions = std::min(o.repetitions, 5);
    const std::vector<contest> all = contests();
    if (o.tiny) {
        bool agree = true;
        for (const contest& c : all) agree = run_tiny(c) && agree;
        return agree ? 0 : 1;
    }
    std::map<std::string, long> memory;
    std::printf("peak memory, fib(30) on 2 threads, KiB\n");
    for (const contender& each : all.front().contenders) {  // before there are any threads
        memory[each.name] = peak_memory(each);
        std::printf("  %-34s %10ld\n", each.name, memory[each.name]);
        const auto mib = static_cast<double>(memory[each.name]) / 1024;
        bench::write(o, {"peak memory, fib(30) on 2 threads", each.name, "MiB", mib, mib, mib});
    }
    for (const contest& c : all) measure(c, o);
    variance_table();
    budgets(o, memory);
}
