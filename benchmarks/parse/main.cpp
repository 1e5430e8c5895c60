// bench_parse: nanoseconds to parse one request head, beside the parsers that Debian packages.
// Rounds of all rivals are interleaved; a ratio is the median of the rounds' ratios to coppice.
#include "workload.hpp"

#include "../harness.hpp"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <iterator>
#include <vector>

namespace {

using namespace bench_parse;
using bench::median;

const rival* const rivals[] = {
    &coppice,     &coppice_scalar, &coppice_sse, &coppice_avx2, &coppice_avx512,
#ifdef BENCH_WITH_HTTP_PARSER
    &http_parser,
#endif
#ifdef BENCH_WITH_BEAST
    &beast,
#endif
};
constexpr std::size_t rival_count = std::size(rivals);

// Written so that no run can be optimized away.
volatile std::size_t sink;

double nanoseconds_each(const rival& r, std::string_view bytes, std::size_t times) {
    const auto start = std::chrono::steady_clock::now();
    sink = r.run(bytes, times);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    return took.count() / static_cast<double>(times);
}

void measure(const workload& w, const bench::options& options) {
    const int rounds = options.quick ? 25 : 101;
    constexpr std::size_t times = 20'000;
    std::vector<double> took[rival_count];
    std::vector<double> ratios[rival_count];
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t i = 0; i < rival_count; ++i) {
            took[i].push_back(nanoseconds_each(*rivals[i], w.bytes, times));
            ratios[i].push_back(took[i].back() / took[0].back());
        }
    }
    std::printf("%s, %zu bytes\n", w.name, w.bytes.size());
    for (std::size_t i = 0; i < rival_count; ++i) {
        const auto [low, high] = std::minmax_element(took[i].begin(), took[i].end());
        std::printf("  %-14s %8.1f ns  (%.1f to %.1f)  x %.2f\n", rivals[i]->name, median(took[i]),
                    *low, *high, median(ratios[i]));
        bench::write(options,
                     {w.name, rivals[i]->name, "ns per head", median(took[i]), *low, *high});
    }
}

// Runs every rival once. Returns false if one reads a head differently or refuses it.
bool agree(const workload& w) {
    bool same = true;
    const std::uint64_t expected = rivals[0]->read(w.bytes);
    for (const rival* const r : rivals) {
        const std::uint64_t hash = r->read(w.bytes);
        std::printf("workload %s (%s) hash %016" PRIx64 "\n", w.name, r->name, hash);
        same = same && hash == expected && hash != 0;
        sink = r->run(w.bytes, 100);
    }
    return same;
}

int tiny() {
    bool same = true;
    for (const workload& w : workloads) same = agree(w) && same;
    if (!same) std::printf("the rivals disagree\n");
    return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    const bench::options options = bench::parse(argc, argv);
    if (options.tiny) return tiny();
    for (const workload& w : workloads) measure(w, options);
}
