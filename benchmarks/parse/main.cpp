// bench_parse: nanoseconds to parse one request head, beside the parsers that Debian packages.
// Rounds of all rivals are interleaved; a ratio is the median of the rounds' ratios to coppice.
#include "workload.hpp"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <vector>

namespace {

using namespace bench_parse;

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

// Written so that no run can be optimised away.
volatile std::size_t sink;

double nanoseconds_each(const rival& r, std::string_view bytes, std::size_t times) {
    const auto start = std::chrono::steady_clock::now();
    sink = r.run(bytes, times);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    return took.count() / static_cast<double>(times);
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

void measure(const workload& w, std::FILE* json) {
    constexpr int rounds = 101;
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
        if (json == nullptr) continue;
        std::fprintf(json,
                     "{\"workload\":\"%s\",\"rival\":\"%s\",\"ns\":%.2f,\"ns_min\":%.2f,"
                     "\"ns_max\":%.2f,\"ratio\":%.3f}\n",
                     w.name, rivals[i]->name, median(took[i]), *low, *high, median(ratios[i]));
    }
}

// Runs every rival once; false if one reads a head differently or refuses it.
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
    std::FILE* json = nullptr;
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--tiny") == 0) return tiny();
        if (std::strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
            json = std::fopen(argv[++i], "a");
            if (json == nullptr) {
                std::perror(argv[i]);
                return 2;
            }
        } else {
            std::fprintf(stderr, "usage: bench_parse [--tiny] [--json FILE]\n");
            return 2;
        }
    }
    for (const workload& w : workloads) measure(w, json);
    if (json != nullptr) std::fclose(json);
}
