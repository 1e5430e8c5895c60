// bench_pool: chapter 6 of the thesis (documents.json) as a report; then the budgets, each ratio by
// a contest of its own, in which the two contenders alternate.
#include "rivals.hpp"

#include "../companion.hpp"
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
#include <utility>

namespace {

using namespace bench_pool;

struct contender {
    const char* name;
    std::function<std::uint64_t(std::size_t threads, std::size_t size)> run;
    const char* program = nullptr;  // the program that does the work, if it is another one
};
struct contest {
    const char* name;
    std::size_t threads;
    std::size_t size;
    std::size_t tiny_size;
    std::vector<contender> contenders;
};

// In ms^2, by contest, threads, and contender.
std::map<std::string, double> variances;

std::string key(const std::string& contest_name, std::size_t threads, const std::string& name) {
    return contest_name + "/" + std::to_string(threads) + "/" + name;
}

// In a table, a contender stops after this many repetitions if they took long enough in all.
constexpr std::size_t table_repetitions_min = 3;
constexpr double patience_ms = 1000;

template <class Run>
double time_ms(const Run& run, std::size_t threads, std::size_t size) {
    // Lets the previous contender's threads go to sleep.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const double begin = bench::now(false);
    bench::keep(run(threads, size));
    return (bench::now(false) - begin) / 1e6;
}

void measure(const contest& c, const bench::options& o) {
    std::vector<std::vector<double>> times(c.contenders.size());
    for (const contender& each : c.contenders) bench::keep(each.run(c.threads, c.tiny_size));
    std::vector<double> spent(c.contenders.size());
    for (int i = 0; i != o.repetitions; ++i) {
        for (std::size_t turn = 0; turn != c.contenders.size(); ++turn) {
            // Forwards and backwards: a machine that slows down slows none of them more often.
            const std::size_t r = i % 2 == 0 ? turn : c.contenders.size() - 1 - turn;
            if (spent[r] > patience_ms && times[r].size() >= table_repetitions_min) continue;
            times[r].push_back(time_ms(c.contenders[r].run, c.threads, c.size));
            spent[r] += times[r].back();
        }
    }
    std::printf("%s, %zu threads, ms (standard deviation in %%) x of the first, round by round\n",
                c.name, c.threads);
    for (std::size_t r = 0; r != c.contenders.size(); ++r) {
        const double median = bench::median(times[r]);
        double mean = 0, square = 0;
        for (const double t : times[r]) mean += t / static_cast<double>(times[r].size());
        for (const double t : times[r])
            square += (t - mean) * (t - mean) / static_cast<double>(times[r].size());
        std::printf("  %-34s %10.2f  (%4.1f)  x %.3f\n", c.contenders[r].name, median,
                    100 * std::sqrt(square) / mean,
                    bench::median(bench::ratios(times[r], times[0])));
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

// One of the two workloads of an OpenMP runtime's program.
[[maybe_unused]] contender openmp(const std::shared_ptr<bench::companion>& runtime,
                                  const char* program, const char* name, const char* workload) {
    return {name,
            [runtime, workload](std::size_t threads, std::size_t size) {
                return runtime->run(workload, threads, size).result;
            },
            program};
}

// Called before there are threads, because companions are forked.
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
    const auto libomp = std::make_shared<bench::companion>(BENCH_LIBOMP);
    fib.push_back(openmp(libomp, BENCH_LIBOMP, "OpenMP tasks (libomp)", "fib"));
    matmul.push_back(openmp(libomp, BENCH_LIBOMP, "OpenMP for (libomp)", "matmul"));
#endif
#ifdef BENCH_LIBGOMP
    const auto libgomp = std::make_shared<bench::companion>(BENCH_LIBGOMP);
    fib.push_back(openmp(libgomp, BENCH_LIBGOMP, "OpenMP tasks (libgomp)", "fib"));
    matmul.push_back(openmp(libgomp, BENCH_LIBGOMP, "OpenMP for (libgomp)", "matmul"));
#endif
    fib.push_back({"coppice tasks", fib_tasks});
    fib.push_back({"coppice fork_join", fib_fork_join});
    fib.push_back({"the plain function", fib_serial_on_worker});
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

// Returns the peak memory in KiB of a separate process that does the work once.
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

// The thesis's table 6.1: the effect of locks on the variance between runs.
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

// One of the contenders that take turns.
struct turn {
    const char* name;
    work run;
    std::size_t threads;
    std::size_t size;
};
using turns_taken = std::map<std::string, std::vector<double>>;  // ms, by name

// Neighbors in the list run one after the other, in both orders.
turns_taken take_turns(std::vector<turn> turns, int repetitions) {
    turns_taken times;
    for (const turn& each : turns) bench::keep(each.run(each.threads, each.size));
    for (int i = 0; i != repetitions; ++i) {
        for (const turn& each : turns) {
            times[each.name].push_back(time_ms(each.run, each.threads, each.size));
        }
        std::reverse(turns.begin(), turns.end());
    }
    return times;
}

// Longer than in the tables: work of some milliseconds ends before the processor has reached its
// full speed, and any disturbance of the machine is a large part of it.
constexpr std::size_t long_fib = 34;

#ifdef BENCH_WITH_TBB
// Returns the times per call of fib, from the times of fib(size).
std::vector<double> per_call(std::vector<double> times, std::size_t size) {
    double calls = 1, before = 1;  // of fib(1) and of fib(0)
    for (std::size_t n = 1; n != size; ++n) before = std::exchange(calls, calls + before + 1);
    for (double& time : times) time /= calls;
    return times;
}

void judge_beside_tbb(const bench::options& o) {
#if defined(__clang__)
    constexpr double task_budget = 0.17;
#else
    constexpr double task_budget = 0.27;
#endif
    for (const std::size_t n : {1, 2}) {
        // Fast contenders make more calls, so that all run for some tenths of a second.
        const turns_taken fib = take_turns({{"tasks", fib_tasks, n, long_fib + 2},
                                            {"oneTBB", fib_parallel_invoke, n, long_fib},
                                            {"fork_join", fib_fork_join, n, long_fib + 4},
                                            {"calls", fib_all_calls, n, long_fib + 4}},
                                           3 * o.repetitions);
        const std::vector<double> rival = per_call(fib.at("oneTBB"), long_fib);
        const std::string where = n == 1 ? ", fib, 1 thread" : ", fib, 2 threads";
        bench::judge(o, "tasks / oneTBB" + where,
                     bench::ratios(per_call(fib.at("tasks"), long_fib + 2), rival), task_budget);
        // No fork_join can beat the calls themselves.
        std::vector<double> calls = per_call(fib.at("calls"), long_fib + 4);
        for (double& time : calls) time /= static_cast<double>(n);
        std::printf("  a plain function that makes both calls / oneTBB%s: %.3f\n", where.c_str(),
                    bench::median(bench::ratios(calls, rival)));
        bench::judge(o, "fork_join / oneTBB" + where,
                     bench::ratios(per_call(fib.at("fork_join"), long_fib + 4), rival), 0.04);
    }
    const turns_taken skynet =
        take_turns({{"tasks", skynet_tasks, 2, 1'000'000}, {"oneTBB", skynet_tbb, 2, 1'000'000}},
                   5 * o.repetitions);
    bench::judge(o, "tasks / oneTBB, skynet, 2 threads",
                 bench::ratios(skynet.at("tasks"), skynet.at("oneTBB")), 0.3);
    const turns_taken submit = take_turns(
        {{"submit", submit_coppice, 1, 1'000'000}, {"enqueue", submit_tbb, 1, 1'000'000}},
        (o.repetitions + 1) / 2);
    bench::judge(o, "submit / oneTBB enqueue, a million",
                 bench::ratios(submit.at("submit"), submit.at("enqueue")), 0.5);
    const turns_taken matmul = take_turns(
        {{"coppice", matmul_coppice, 2, 1024}, {"oneTBB", matmul_tbb, 2, 1024}}, 4 * o.repetitions);
    bench::judge_no_worse(o, "parallel_for / oneTBB, matmul, 2 threads",
                          bench::ratios(matmul.at("coppice"), matmul.at("oneTBB")));
}
#endif

// Two independent calls: the gain that the machine permits.
std::uint64_t two_plain_functions(std::size_t, std::size_t size) {
    std::thread beside([=] { bench::keep(fib_serial(1, size)); });
    const std::uint64_t result = fib_serial(1, size);
    beside.join();
    return result;
}

void judge_speed_up(const bench::options& o) {
    const turns_taken times = take_turns({{"tasks 1", fib_tasks, 1, long_fib},
                                          {"tasks 2", fib_tasks, 2, long_fib},
                                          {"fork_join 1", fib_fork_join, 1, long_fib},
                                          {"fork_join 2", fib_fork_join, 2, long_fib},
                                          {"plain 1", fib_serial_on_worker, 1, long_fib},
                                          {"plain 2", two_plain_functions, 2, long_fib}},
                                         3 * o.repetitions);
    const auto speed_ups = [&](const std::string& name) {
        return bench::ratios(times.at(name + " 1"), times.at(name + " 2"));
    };
    for (const std::string name : {"tasks", "fork_join"}) {
        std::vector<double> shares;
        for (const double speed_up : speed_ups(name)) shares.push_back(1.85 / speed_up);
        bench::judge(o, "1.85 / speed-up from 1 to 2 threads, coppice " + name, shares, 1.0);
    }
    std::printf(
        "  speed-up: tasks %.2f, fork_join %.2f; two plain functions at once %.2f "
        "(medians of ratios of neighbors)\n",
        bench::median(speed_ups("tasks")), bench::median(speed_ups("fork_join")),
        2 * bench::median(speed_ups("plain")));
}

void budgets(const bench::options& o, [[maybe_unused]] const std::map<std::string, long>& memory) {
    std::printf("budgets\n");
#ifdef BENCH_WITH_TBB
    judge_beside_tbb(o);
    const long more = memory.at("coppice tasks") - memory.at("oneTBB parallel_invoke");
    bench::judge(o, "peak memory beyond oneTBB's, MiB", static_cast<double>(more) / 1024, 2,
                 "each in a process of its own");
#endif
    const turns_taken fib = take_turns(
        {{"fork_join", fib_fork_join, 1, long_fib}, {"plain", fib_serial_on_worker, 1, long_fib}},
        3 * o.repetitions);
    bench::judge(o, "fork_join / plain function, 1 thread",
                 bench::ratios(fib.at("fork_join"), fib.at("plain")), 2.5);
    judge_speed_up(o);
    bench::judge(o, "CPU of an idle pool in two seconds, ms", idle_cpu_ms(), 0.5, "once");
}

}  // namespace

int main(int argc, char** argv) {
    const bench::options o = bench::parse(argc, argv);
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
