// Section 8.4 of the paper: threads register and deregister at once, on one source or on slots of
// their own.
#include "families.hpp"
#include "workloads.hpp"

#include "../harness.hpp"

#include <coppice/base/internal/atomic.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace bench_stop {

namespace {

// Releases all threads at once, without letting any of them sleep.
class spin_barrier {
public:
    explicit spin_barrier(int threads) : missing_(threads) {}
    void arrive() noexcept {
        missing_.fetch_sub(1, coppice::internal::acq_rel);
        while (missing_.load(coppice::internal::acquire) > 0) coppice::internal::spin_hint();
    }

private:
    coppice::internal::atomic<int> missing_;
};

// Returns the ns per registration of one thread.
template <class Family, std::size_t Index>
double churn(const typename Family::source& source, spin_barrier& barrier, std::size_t size) {
    std::uint64_t count = 0;
    bench::pin(Index);
    barrier.arrive();
    const double begin = bench::now(true);
    for (std::size_t i = 0; i != size; ++i) {
        typename Family::template callback<Index, counting> callback(source, counting{&count});
        bench::keep(&callback);
    }
    return (bench::now(true) - begin) / static_cast<double>(size);
}

using samples = std::vector<double>;

template <class Family, std::size_t... Index>
samples run_threads(std::size_t size, std::index_sequence<Index...>) {
    alignas(64) typename Family::source source;  // aligned: slots that should share a line do
    spin_barrier barrier(sizeof...(Index));
    samples took(sizeof...(Index));
    std::array<std::thread, sizeof...(Index)> threads{
        std::thread([&] { took[Index] = churn<Family, Index>(source, barrier, size); })...};
    for (std::thread& t : threads) t.join();
    return took;
}
template <class Family, std::size_t Threads>
samples several(std::size_t size) {
    return run_threads<Family>(size, std::make_index_sequence<Threads>());
}

struct rival {
    const char* name;
    samples (*run)(std::size_t size);
};

// Rivals take turns. Each sample is one thread of one run, as in the paper's table.
void measure(const char* title, const std::vector<rival>& rivals, std::size_t size,
             const bench::options& options, std::vector<bench::figure>& figures) {
    if (options.tiny) {
        for (const rival& r : rivals) {
            figures.push_back({title, r.name, {}});
            const std::uint64_t hash = bench::hash().add(r.run(500).size() != 0).value();
            std::printf("workload %s (%s) hash %016llx\n", title, r.name,
                        static_cast<unsigned long long>(hash));
        }
        return;
    }
    std::vector<samples> all(rivals.size());
    std::vector<samples> means(rivals.size());
    for (int i = 0; i != options.repetitions; ++i) {
        for (std::size_t r = 0; r != rivals.size(); ++r) {
            const samples took = rivals[r].run(size);
            all[r].insert(all[r].end(), took.begin(), took.end());
            means[r].push_back(std::accumulate(took.begin(), took.end(), 0.0) /
                               static_cast<double>(took.size()));
        }
    }
    std::printf("%s, ns per registration of each thread\n", title);
    const double base = bench::median(all[0]);
    for (std::size_t r = 0; r != rivals.size(); ++r) {
        figures.push_back({title, rivals[r].name, means[r]});
        const double sum = std::accumulate(all[r].begin(), all[r].end(), 0.0);
        const auto [low, high] = std::minmax_element(all[r].begin(), all[r].end());
        const double p50 = bench::median(all[r]);
        std::printf("  %-34s p50 %8.2f  min %8.2f  avg %8.2f  max %8.2f  x %.3f\n", rivals[r].name,
                    p50, *low, sum / static_cast<double>(all[r].size()), *high, p50 / base);
        bench::write(options, {title, rivals[r].name, "ns per registration", p50, *low, *high});
    }
    std::fflush(stdout);
}

}  // namespace

void run_threads_at_once(const bench::options& options, std::vector<bench::figure>& figures) {
    measure("8.4 register and unregister, two threads at once",
            {{"finite<2, 64>, one thread", several<ours_finite<2, 64>, 1>},
             {"finite<2, 64>", several<ours_finite<2, 64>, 2>},
             {"2 x single, padded, one thread", several<ours_singles<2, 64>, 1>},
             {"2 x single, padded", several<ours_singles<2, 64>, 2>},
             {"2 x single, the paper's, padded", several<paper_singles<2, 64>, 2>},
             {"asymmetric<2>", several<ours_asymmetric<2>, 2>},
             {"finite<2>", several<ours_finite<2>, 2>},
             {"2 x single", several<ours_singles<2>, 2>},
             {"2 x single, the paper's", several<paper_singles<2>, 2>},
             {"inplace", several<ours_inplace, 2>},
             {"inplace, published design", several<published_inplace, 2>}},
            50'000, options, figures);
    measure("shared source, register and unregister, two threads at once",
            {{"std::stop_source", several<standard, 2>},
             {"shared", several<ours_shared, 2>},
             {"shared, subscription", several<ours_subscribed, 2>},
             {"plain locked list", several<plain_shared, 2>}},
            50'000, options, figures);
    measure("shared source, register and unregister, eight threads at once",
            {{"std::stop_source", several<standard, 8>},
             {"shared", several<ours_shared, 8>},
             {"shared, subscription", several<ours_subscribed, 8>},
             {"plain locked list", several<plain_shared, 8>}},
            20'000, options, figures);
}

}  // namespace bench_stop
