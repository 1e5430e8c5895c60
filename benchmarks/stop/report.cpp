// The report: the paper's tables beside ours, and each budget with its ratio.
#include "workloads.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace bench_stop {

namespace {

const bench::figure* find(const std::vector<bench::figure>& figures, std::string_view workload,
                          std::string_view rival) {
    for (const bench::figure& f : figures) {
        if (f.workload == workload && f.rival == rival) return &f;
    }
    std::printf("no figure of '%s' in '%s'\n", std::string(rival).c_str(),
                std::string(workload).c_str());
    return nullptr;
}

double ns(const bench::figure* f) {
    return f == nullptr ? 0 : bench::median(f->samples);
}

// One line of the paper's Appendix A: its microseconds for 100,000 operations, on its machine.
struct paper_line {
    const char* name;
    const char* workload;
    double paper_us;
    double paper_inplace_us;
    const char* as_published;  // the paper's design, measured here
    const char* ours;
};

constexpr const char* group_1 = "8.1 register and unregister, one thread";
constexpr const char* group_2_1 = "8.2 request_stop, nothing registered, 1 slots";
constexpr const char* group_2_2 = "8.2 request_stop, nothing registered, 2 slots";
constexpr const char* group_2_3 = "8.2 request_stop, nothing registered, 3 slots";
constexpr const char* group_2_10 = "8.2 request_stop, nothing registered, 10 slots";
constexpr const char* group_3_1_1 = "8.3 register 1 of 1, request, remove";
constexpr const char* group_3_1_2 = "8.3 register 1 of 2, request, remove";
constexpr const char* group_3_1_3 = "8.3 register 1 of 3, request, remove";
constexpr const char* group_3_2_2 = "8.3 register 2 of 2, request, remove";
constexpr const char* group_3_3_3 = "8.3 register 3 of 3, request, remove";
constexpr const char* group_3_10_10 = "8.3 register 10 of 10, request, remove";
constexpr const char* group_4 = "8.4 register and unregister, two threads at once";
constexpr const char* published = "inplace, published design";

constexpr paper_line paper_lines[] = {
    {"8.1 inplace", group_1, 788, 788, published, "inplace"},
    {"8.1 single", group_1, 533, 788, "single, the paper's", "single"},
    {"8.2 inplace", group_2_1, 445, 445, published, "inplace"},
    {"8.2 1 x single", group_2_1, 306, 445, "1 x single, the paper's", "1 x single"},
    {"8.2 2 x single", group_2_2, 588, 445, "2 x single, the paper's", "2 x single"},
    {"8.2 finite<2>", group_2_2, 528, 445, "", "finite<2>"},
    {"8.2 3 x single", group_2_3, 974, 445, "3 x single, the paper's", "3 x single"},
    {"8.2 finite<3>", group_2_3, 661, 445, "", "finite<3>"},
    {"8.2 10 x single", group_2_10, 3228, 445, "10 x single, the paper's", "10 x single"},
    {"8.2 finite<10>", group_2_10, 2215, 445, "", "finite<10>"},
    {"8.3 inplace, 1", group_3_1_1, 1353, 1353, published, "inplace"},
    {"8.3 single, 1/1", group_3_1_1, 939, 1353, "1 x single, the paper's", "1 x single"},
    {"8.3 2 x single, 1/2", group_3_1_2, 1211, 1353, "2 x single, the paper's", "2 x single"},
    {"8.3 finite<2>, 1/2", group_3_1_2, 1120, 1353, "", "finite<2>"},
    {"8.3 3 x single, 1/3", group_3_1_3, 1402, 1353, "3 x single, the paper's", "3 x single"},
    {"8.3 finite<3>, 1/3", group_3_1_3, 1325, 1353, "", "finite<3>"},
    {"8.3 inplace, 2", group_3_2_2, 2765, 2765, published, "inplace"},
    {"8.3 2 x single, 2/2", group_3_2_2, 1845, 2765, "2 x single, the paper's", "2 x single"},
    {"8.3 finite<2>, 2/2", group_3_2_2, 1780, 2765, "", "finite<2>"},
    {"8.3 inplace, 3", group_3_3_3, 4044, 4044, published, "inplace"},
    {"8.3 3 x single, 3/3", group_3_3_3, 2697, 4044, "3 x single, the paper's", "3 x single"},
    {"8.3 finite<3>, 3/3", group_3_3_3, 2642, 4044, "", "finite<3>"},
    {"8.3 inplace, 10", group_3_10_10, 12929, 12929, published, "inplace"},
    {"8.3 10 x single, 10/10", group_3_10_10, 9893, 12929, "10 x single, the paper's",
     "10 x single"},
    {"8.3 finite<10>, 10/10", group_3_10_10, 8825, 12929, "", "finite<10>"},
    {"8.4 inplace, p50", group_4, 7430, 7430, published, "inplace"},
    {"8.4 2 x single, p50", group_4, 5705, 7430, "2 x single, the paper's", "2 x single"},
    {"8.4 2 x single, padded, p50", group_4, 556, 7430, "2 x single, the paper's, padded",
     "2 x single, padded"},
    {"8.4 finite<2>, p50", group_4, 5257, 7430, "", "finite<2>"},
};

// A budget: ours takes at most `most` times as long as its base.
struct budget {
    const char* workload;
    const char* ours;
    const char* base;
    double most;
    const char* floor;  // the measured floor of every implementation, or null
};

constexpr budget budgets[] = {
    {group_1, "single", "inplace", 0.85, "floor: two locked instructions"},
    {group_1, "finite<1>", "inplace", 0.85, "floor: two locked instructions"},
    {group_1, "single", "two bare compare-exchanges", 1.3, ""},
    {group_1, "finite<1>", "two bare compare-exchanges", 1.3, ""},
    {group_1, "inplace", published, 1.0, ""},
    {group_1, "asymmetric", "single", 0.15, "floor: stores alone"},
    {group_1, "shared", "std::stop_source", 0.5, ""},
    {group_2_10, "finite<10>", "inplace", 1.5, ""},
    {group_3_10_10, "finite<10>", "inplace", 0.65, ""},
    {group_4, "finite<2, 64>", "finite<2, 64>, one thread", 1.3, ""},
    {group_4, "2 x single, padded", "2 x single, padded, one thread", 1.3, ""},
    {"shared source, 1 callbacks on one thread", "shared", "plain locked list", 1.0, ""},
    {"shared source, 3 callbacks on one thread", "shared", "plain locked list", 1.0, ""},
    {"shared source, 10 callbacks on one thread", "shared", "plain locked list", 1.0, ""},
    {"shared source, 100 callbacks on one thread", "shared", "plain locked list", 1.0, ""},
    {"shared source, 10000 callbacks on one thread", "shared", "plain locked list", 1.0, ""},
};

void print_budget(const budget& b, const bench::figure& ours, const bench::figure& base,
                  const bench::figure* floor, const bench::options& options) {
    const std::vector<double> all = bench::ratios(ours.samples, base.samples);
    const double ratio = bench::median(all);
    const double low = bench::quantile(all, 0.1);
    const double high = bench::quantile(all, 0.9);
    std::printf("  %-6s %.3f (%.3f to %.3f), budget %.2f: %s / %s; %s",
                ratio <= b.most ? "met" : "MISSED", ratio, low, high, b.most, b.ours, b.base,
                b.workload);
    if (floor != nullptr && ratio > b.most) {
        std::printf("\n         %s, by itself: %.3f", b.floor,
                    bench::median(bench::ratios(floor->samples, base.samples)));
    }
    std::printf("\n");
    bench::write_budget(options, std::string(b.workload) + ": " + b.ours + " / " + b.base, ratio,
                        b.most);
}

}  // namespace

bool print_paper(const std::vector<bench::figure>& figures) {
    const bool tiny = figures.empty() || figures.front().samples.empty();
    if (!tiny) {
        std::printf(
            "P3409R1, Appendix A (Ryzen 5950X, clang 19), beside its designs and ours here;"
            " ns per operation, and x to the inplace source of the same column\n"
            "  %-29s %17s %19s %19s\n",
            "", "the paper", "its design, here", "ours, here");
    }
    bool known = true;
    for (const paper_line& line : paper_lines) {
        const std::string_view as_published = line.as_published;
        const bench::figure* const ours = find(figures, line.workload, line.ours);
        const bench::figure* const its =
            as_published.empty() ? nullptr : find(figures, line.workload, as_published);
        known = known && ours != nullptr && (as_published.empty() || its != nullptr);
        if (tiny || !known) continue;
        std::printf("  %-29s %8.2f x %6.2f", line.name, line.paper_us / 100,
                    line.paper_us / line.paper_inplace_us);
        if (its != nullptr) {
            std::printf(" %10.2f x %6.2f", ns(its),
                        ns(its) / ns(find(figures, line.workload, published)));
        } else {
            std::printf(" %19s", "-");
        }
        std::printf(" %10.2f x %6.2f\n", ns(ours),
                    ns(ours) / ns(find(figures, line.workload, "inplace")));
    }
    if (tiny) return known;
    const char* const eight = "shared source, register and unregister, eight threads at once";
    std::printf("the pull request's speed: register and unregister, new / old\n");
    std::printf("  %-29s %17s %19s %19s\n", "", "CoreCLR", "callback / std", "subscription / std");
    for (const char* const workload : {group_1, eight}) {
        const double standard = ns(find(figures, workload, "std::stop_source"));
        std::printf("  %-29s %17s %19.2f %19.2f\n",
                    workload == group_1 ? "one thread" : "eight threads", "about 0.5",
                    ns(find(figures, workload, "shared")) / standard,
                    ns(find(figures, workload, "shared, subscription")) / standard);
    }
    return known;
}

bool print_budgets(const std::vector<bench::figure>& figures, const bench::options& options) {
    if (!options.tiny) {
        std::printf(
            "budgets: the median of the ratios of neighbouring repetitions, and where four fifths "
            "of them are\n");
    }
    bool known = true;
    for (const budget& b : budgets) {
        const std::string_view floor_name = b.floor;
        const bench::figure* const ours = find(figures, b.workload, b.ours);
        const bench::figure* const base = find(figures, b.workload, b.base);
        const bench::figure* const floor =
            floor_name.empty() ? nullptr : find(figures, b.workload, floor_name);
        known =
            known && ours != nullptr && base != nullptr && (floor_name.empty() || floor != nullptr);
        if (!known || options.tiny) continue;
        print_budget(b, *ours, *base, floor, options);
    }
    return known;
}

}  // namespace bench_stop
