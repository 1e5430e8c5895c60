// Locks and channels: the cost of waiting for each other, compared with other libraries.
#include "rivals.hpp"

#include <algorithm>

namespace {

using namespace bench_sync;

// The workloads that need no other library; not every machine has those.
std::vector<bench::workload> own_workloads() {
    return {
        {"lock and unlock, uncontended",
         "lock",
         4'000'000,
         1000,
         {{"floor: two compare-and-swaps", uncontended_pair},
          {"coppice async_mutex, in a task", uncontended_coppice},
          {"std::mutex", uncontended_std}},
         true},
        {"hand-over between two tasks of a loop",
         "turn",
         400'000,
         1000,
         {{"a resumption through the loop", hand_over_resume},
          {"coppice async_mutex", hand_over_coppice}},
         true},
        {"channel, one thread, 1024 slots",
         "item",
         400'000,
         3000,
         {{"coppice", one_thread_coppice}},
         true},
        {"rendezvous, one thread", "item", 400'000, 1000, {{"coppice", rendezvous_coppice}}, true},
        {"channel, two threads, 1024 slots",
         "item",
         400'000,
         3000,
         {{"coppice, tasks on loops", two_threads_coppice},
          {"coppice, threads that block", two_threads_blocking},
          {"mutex and condition variables", two_threads_condition}},
         false},
        {"channel, 4 to 4, 1024 slots",
         "item",
         400'000,
         4000,
         {{"coppice, tasks on a pool of 2", four_coppice},
          {"mutex and condition variables", four_condition}},
         false},
        {"one sender, one receiver, two threads, 1024 slots",
         "item",
         1'000'000,
         3000,
         {{"floor: a ring that spins", spsc_plain},
          {"coppice spsc_channel, tasks on loops", spsc_tasks},
          {"coppice spsc_channel, threads that block", spsc_blocking}},
         false},
        {"an item that is there, one thread",
         "item",
         400'000,
         2048,
         {{"coppice channel, receive", one_receive},
          {"coppice channel, select of two", select_of_two},
          {"coppice unbounded_channel, receive", unbounded_receive}},
         true},
        {"broadcast, one thread, 2 receivers",
         "item",
         400'000,
         1000,
         {{"coppice broadcast_channel", broadcast_to_two},
          {"coppice, a channel for each", channels_to_two}},
         true},
        {"broadcast, one thread, 4 receivers",
         "item",
         400'000,
         1000,
         {{"coppice broadcast_channel", broadcast_to_four},
          {"coppice, a channel for each", channels_to_four}},
         true},
    };
}
std::vector<bench::workload> workloads() {
    std::vector<bench::workload> all = own_workloads();
    [[maybe_unused]] const auto add = [&](std::size_t to, const char* name,
                                          std::uint64_t (*run)(std::size_t)) {
        all[to].rivals.push_back({name, run});
    };
#if defined(BENCH_WITH_ASIO)
    add(2, "asio experimental::channel", one_thread_asio);
    add(3, "asio experimental::channel", rendezvous_asio);
    add(4, "asio concurrent_channel", two_threads_asio);
#endif
#if defined(BENCH_WITH_FIBER)
    add(2, "Boost.Fiber buffered_channel", one_thread_fiber);
    add(3, "Boost.Fiber unbuffered_channel", rendezvous_fiber);
    add(4, "Boost.Fiber buffered_channel", two_threads_fiber);
#endif
#if defined(BENCH_WITH_TBB)
    add(4, "oneTBB concurrent_bounded_queue", two_threads_tbb);
    add(5, "oneTBB concurrent_bounded_queue", four_tbb);
#endif
#if defined(BENCH_WITH_MOODYCAMEL)
    add(4, "moodycamel, blocking, unbounded", two_threads_moodycamel);
    add(5, "moodycamel, blocking, unbounded", four_moodycamel);
#endif
    return all;
}

// Returns the samples of a rival, or none if it was left out.
std::vector<double> of(const std::vector<bench::figure>& figures, const std::string& workload,
                       const std::string& rival) {
    const auto found = std::find_if(figures.begin(), figures.end(), [&](const bench::figure& f) {
        return f.workload == workload && f.rival == rival;
    });
    return found == figures.end() ? std::vector<double>() : found->samples;
}

}  // namespace

int main(int argc, char** argv) {
    const bench::options o = bench::parse(argc, argv);
    std::vector<bench::figure> figures;
    const int status = bench::run(workloads(), o, figures);
    if (o.tiny) return status;
    const auto judge = [&](const char* what, const char* workload, const char* ours,
                           const char* rival, double most) {
        const std::vector<double> base = of(figures, workload, rival);
        if (!base.empty())
            bench::judge(o, what, bench::ratios(of(figures, workload, ours), base), most);
    };
    judge("an uncontended lock and unlock / two compare-and-swaps", "lock and unlock, uncontended",
          "coppice async_mutex, in a task", "floor: two compare-and-swaps", 1.3);
    judge("a hand-over on a loop / a resumption through the loop",
          "hand-over between two tasks of a loop", "coppice async_mutex",
          "a resumption through the loop", 1.5);
    judge("a channel on one thread / Asio's", "channel, one thread, 1024 slots", "coppice",
          "asio experimental::channel", 0.2);
    judge("a channel between two threads / oneTBB's bounded queue",
          "channel, two threads, 1024 slots", "coppice, tasks on loops",
          "oneTBB concurrent_bounded_queue", 1.0);
    const char* const spsc = "one sender, one receiver, two threads, 1024 slots";
    judge("an spsc_channel between tasks / a ring that spins", spsc,
          "coppice spsc_channel, tasks on loops", "floor: a ring that spins", 1.25);
    judge("a select of two ready channels / one receive", "an item that is there, one thread",
          "coppice channel, select of two", "coppice channel, receive", 2.0);
    std::vector<double> stops;
    for (int i = 0; i != o.repetitions; ++i) stops.push_back(stop_ns(100'000));
    bench::write(o, bench::of_samples("one of 100,000 waits for a lock is stopped",
                                      "coppice async_mutex", "ns per wait", stops));
    bench::judge(o, "to stop one of 100,000 waits, ns", bench::median(stops), 200, "");
    return status;
}
