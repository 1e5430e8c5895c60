// The talk's four tables: throughput, and fairness to tasks and threads.
#include <algorithm>
#include <barrier>
#include <cmath>
#include <ctime>
#include <thread>

#include "contest.hpp"
#include "workloads.hpp"

namespace bench_contracts {

namespace {

constexpr unsigned thread_counts[] = {1, 2, 4, 8};
constexpr std::size_t contest_tasks = std::size_t{1} << 14;

// The first rival is the control: its threads share nothing.
constexpr contest_rival rivals[] = {
    {"each thread apart", make_apart},      {"execute_next_contract", make_next},
    {"execute_contracts", make_fused},      {"execute_contracts, batch", make_batched},
#if defined(BENCH_WITH_BOOST)
    {"boost::lockfree::queue", make_boost},
#endif
#if defined(BENCH_WITH_TBB)
    {"tbb::concurrent_queue", make_tbb},
#endif
#if defined(BENCH_WITH_MOODYCAMEL)
    {"moodycamel", make_moodycamel},        {"moodycamel, tokens", make_moodycamel_tokens},
#endif
};

// A contestant with its threads, which wait between turns.
class crew {
public:
    crew(contestant_ptr served, unsigned threads)
        : served_(std::move(served)), turn_(threads + 1), ran_(threads) {
        for (unsigned i = 0; i != threads; ++i) threads_.emplace_back([this, i] { work(i); });
    }
    ~crew() {
        over_ = true;
        turn_.arrive_and_wait();
        for (std::thread& t : threads_) t.join();
    }

    // The figures of one turn.
    struct turn {
        double rate = 0;       // million executions per second
        double processor = 0;  // processor time used, as a share of what the threads could use
        std::vector<std::uint64_t> by_thread;
    };
    turn serve(std::chrono::milliseconds time) {
        stop_.store(false, coppice::internal::relaxed);
        turn_.arrive_and_wait();
        const auto begin = std::chrono::steady_clock::now();
        std::this_thread::sleep_for(time);
        stop_.store(true, coppice::internal::relaxed);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        turn_.arrive_and_wait();
        turn result;
        std::uint64_t sum = 0;
        double used = 0;
        for (const share& s : ran_) {
            result.by_thread.push_back(s.runs);
            sum += s.runs;
            used += s.processor_seconds;
        }
        total_ += sum;
        const std::size_t processors =
            std::min<std::size_t>(ran_.size(), std::thread::hardware_concurrency());
        result.rate = static_cast<double>(sum) / took.count() / 1e6;
        result.processor = used / took.count() / static_cast<double>(processors);
        return result;
    }
    std::uint64_t total() const { return total_; }
    contestant& served() { return *served_; }

private:
    struct alignas(64) share {  // of the last turn; written by its thread
        std::uint64_t runs = 0;
        double processor_seconds = 0;
    };
    static double processor_seconds() {
        timespec t;
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
    }
    void work(unsigned thread) {
        bench::pin(thread);
        for (;;) {
            turn_.arrive_and_wait();
            if (over_) return;
            const double before = processor_seconds();
            ran_[thread].runs = served_->serve(thread, stop_);
            ran_[thread].processor_seconds = processor_seconds() - before;
            turn_.arrive_and_wait();
        }
    }

    contestant_ptr served_;
    std::barrier<> turn_;
    coppice::internal::atomic<bool> stop_{false};
    bool over_ = false;  // ordered by turn_
    std::uint64_t total_ = 0;
    std::vector<share> ran_;
    std::vector<std::thread> threads_;
};

template <class Count>
double coefficient_of_variation(const std::vector<Count>& counts) {
    double sum = 0;
    for (const Count c : counts) sum += static_cast<double>(c);
    const double mean = sum / static_cast<double>(counts.size());
    double squares = 0;
    for (const Count c : counts) {
        const double off = static_cast<double>(c) - mean;
        squares += off * off;
    }
    return mean == 0 ? 0 : std::sqrt(squares / static_cast<double>(counts.size())) / mean;
}

bool all_there(const std::vector<std::uint64_t>& counts, std::uint64_t ran) {
    std::uint64_t sum = 0;
    for (const std::uint64_t c : counts) {
        if (c == ~std::uint64_t{0}) return false;
        sum += c;
    }
    return sum == ran;
}

std::string key(unsigned rounds, unsigned threads, const std::string& rival) {
    return std::to_string(rounds) + "/" + std::to_string(threads) + "/" + rival;
}

// The turns of one contestant that count: those in which its threads had the processors, or the
// better half if other programs took the processors too often.
class turns {
public:
    void add(crew::turn t) { all_.push_back(std::move(t)); }
    std::vector<double> rates() {
        std::vector<double> all;
        for (const crew::turn& t : undisturbed()) all.push_back(t.rate);
        return all;
    }
    std::vector<std::uint64_t> by_thread() {
        std::vector<std::uint64_t> sums(all_.front().by_thread.size());
        for (const crew::turn& t : undisturbed()) {
            for (std::size_t i = 0; i != sums.size(); ++i) sums[i] += t.by_thread[i];
        }
        return sums;
    }
    bool disturbed() { return undisturbed().back().processor < enough; }

private:
    static constexpr double enough = 0.95;
    std::vector<crew::turn> undisturbed() {
        std::sort(all_.begin(), all_.end(), [](const crew::turn& a, const crew::turn& b) {
            return a.processor > b.processor;
        });
        std::size_t good = (all_.size() + 1) / 2;
        while (good < all_.size() && all_[good].processor >= enough) ++good;
        return {all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(good)};
    }
    std::vector<crew::turn> all_;
};

double relative_cv(const std::vector<std::uint64_t>& counts,
                   const std::vector<std::uint64_t>& apart) {
    std::vector<double> relative;
    for (std::size_t i = 0; i != counts.size(); ++i) {
        relative.push_back(static_cast<double>(counts[i]) / static_cast<double>(apart[i]));
    }
    return coefficient_of_variation(relative);
}

// Returns the length of a turn. Long tasks need time for enough rounds, or the last round, which is
// cut short, dominates the CV. With two threads the CV is judged.
std::chrono::milliseconds turn_time(unsigned rounds, unsigned threads) {
    if (rounds < 64) return std::chrono::milliseconds(50);
    if (threads != 2) return std::chrono::milliseconds(150);
    return std::chrono::milliseconds(rounds == 64 ? 500 : 1500);
}

void run_contest(unsigned rounds, unsigned threads, const bench::options& options, results& out) {
    const std::chrono::milliseconds time = turn_time(rounds, threads);
    std::vector<std::unique_ptr<crew>> crews;
    for (const contest_rival& r : rivals) {
        crews.push_back(std::make_unique<crew>(r.make(rounds, contest_tasks, threads), threads));
    }
    for (const auto& c : crews) c->serve(time / 4);  // warms up
    std::vector<turns> measured(crews.size());
    for (int i = 0; i != options.repetitions; ++i) {
        for (std::size_t r = 0; r != crews.size(); ++r) measured[r].add(crews[r]->serve(time));
    }
    for (std::size_t r = 0; r != crews.size(); ++r) {
        const std::vector<std::uint64_t> runs = crews[r]->served().finish();
        if (!all_there(runs, crews[r]->total())) {
            std::fprintf(stderr, "bench_contracts: %s lost a task\n", rivals[r].name);
            std::exit(1);
        }
        const std::vector<double> rates = measured[r].rates();
        const std::vector<std::uint64_t> by_thread = measured[r].by_thread();
        const figures f{bench::median(rates), coefficient_of_variation(runs),
                        coefficient_of_variation(by_thread),
                        relative_cv(by_thread, measured.front().by_thread())};
        out.contests[key(rounds, threads, rivals[r].name)] = f;
        out.disturbed += measured[r].disturbed() ? 1 : 0;
        const std::string title = "contest, " + std::to_string(rounds) + " rounds, " +
                                  std::to_string(threads) + " threads";
        bench::write(options,
                     bench::of_samples(title, rivals[r].name, "million per s", rates, true));
        for (const auto& [unit, cv] : {std::pair("task CV", f.task_cv), {"thread CV", f.thread_cv}})
            bench::write(options, {title, rivals[r].name, unit, cv, cv, cv});
    }
}

template <unsigned Rounds>
double task_ns() {
    std::vector<double> times;
    for (int i = 0; i != 9; ++i) {
        constexpr int count = Rounds < 64 ? 100'000 : 2'000;
        const auto begin = std::chrono::steady_clock::now();
        for (int k = 0; k != count; ++k) run_task<Rounds>();
        const std::chrono::duration<double, std::nano> took =
            std::chrono::steady_clock::now() - begin;
        times.push_back(took.count() / count);
    }
    return bench::median(times);
}

void print_table(unsigned rounds, double task, const results& measured) {
    std::printf(
        "contest, task of %.1f ns, %zu tasks: million executions per second "
        "(task CV, thread CV)\n  %-26s",
        task, contest_tasks, "threads");
    for (const unsigned threads : thread_counts) std::printf("%10u%14s", threads, "");
    std::printf("\n");
    for (const contest_rival& r : rivals) {
        std::printf("  %-26s", r.name);
        for (const unsigned threads : thread_counts) {
            const figures& f = measured.contest(rounds, threads, r.name);
            std::printf("%10.2f (%5.3f,%5.3f)", f.rate, f.task_cv, f.thread_cv);
        }
        std::printf("\n");
    }
    std::fflush(stdout);
}

bool run_tiny(unsigned rounds, unsigned threads) {
    constexpr std::size_t few = 100;
    bool agree = true;
    for (const contest_rival& r : rivals) {
        crew c(r.make(rounds, few, threads), threads);
        for (int i = 0; i != 2; ++i) c.serve(std::chrono::milliseconds(1));
        const bool whole = all_there(c.served().finish(), c.total());
        agree = agree && whole;
        std::printf("workload contest, %u rounds, %u threads (%s) hash %016llx\n", rounds, threads,
                    r.name,
                    static_cast<unsigned long long>(bench::hash().add(few).add(whole).value()));
    }
    return agree;
}

}  // namespace

const figures& results::contest(unsigned rounds, unsigned threads, const std::string& rival) const {
    static const figures none;
    const auto found = contests.find(key(rounds, threads, rival));
    return found == contests.end() ? none : found->second;
}

bool run_tables(const bench::options& options, bool short_ones_only, results& out) {
    if (options.tiny) return run_tiny(0, 1) && run_tiny(1, 2);
    const std::pair<unsigned, double> tables[] = {
        {256, task_ns<256>()}, {64, task_ns<64>()}, {1, task_ns<1>()}, {0, task_ns<0>()}};
    for (const auto& [rounds, task] : tables) {
        if (short_ones_only && rounds > 1) continue;
        for (const unsigned threads : thread_counts) run_contest(rounds, threads, options, out);
        print_table(rounds, task, out);
    }
    return true;
}

void run_lone(const bench::options& options, results& out) {
    if (options.tiny) return;
    // 64 busy contracts at the beginning of a group of 16,384, and one near its end.
    coppice::internal::atomic<bool> stop{false};
    for (const bool fused : {false, true}) {
        const auto served = fused ? make_lone_fused() : make_lone_next();
        stop.store(false, coppice::internal::relaxed);
        std::vector<std::thread> threads;
        for (unsigned i = 0; i != 2; ++i) threads.emplace_back([&, i] { served->serve(i, stop); });
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        stop.store(true, coppice::internal::relaxed);
        for (std::thread& t : threads) t.join();
        const std::vector<std::uint64_t> counts = served->finish();
        double busy = 0;
        for (std::size_t i = 0; i != 64; ++i) busy += static_cast<double>(counts[i]) / 64;
        const double ratio = static_cast<double>(counts.back()) / busy;
        const char* const name = fused ? "execute_contracts" : "execute_next_contract";
        out.singles[std::string("lone/") + name] = ratio;
        std::printf("a lone contract beside 64 busy ones, 2 threads, %s: runs x %.3f as often\n",
                    name, ratio);
        bench::write(options, {"a lone contract beside 64 busy ones", name, "runs, x a busy one's",
                               ratio, ratio, ratio, true});
    }
}

}  // namespace bench_contracts
