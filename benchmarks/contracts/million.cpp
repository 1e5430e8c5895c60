// A million contracts: their memory, the cost of making them, and that of finding those due.
#include <coppice/contract.hpp>

#include <cstdlib>
#include <new>
#include <random>

#include "workloads.hpp"

namespace {

// Written by the thread that measures. No other thread runs meanwhile.
std::size_t allocated_bytes = 0;

void* allocate(std::size_t size, std::size_t alignment) {
    allocated_bytes += size;
    const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
    if (void* const memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded))
        return memory;
    throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) {
    return allocate(size, alignof(std::max_align_t));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
    return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    std::free(memory);
}

namespace bench_contracts {

namespace {

using clock = std::chrono::steady_clock;

double ns_since(clock::time_point begin) {
    return std::chrono::duration<double, std::nano>(clock::now() - begin).count();
}

// A full group of contracts that add to one count of runs.
struct full_group {
    explicit full_group(std::size_t size) : group(size) {
        contracts.reserve(size);
        const std::size_t part = std::max<std::size_t>(size / 10, 1);
        auto begin = clock::now();
        for (std::size_t i = 0; i != size; ++i) {
            contracts.push_back(group.create_contract([this] { ++runs; }));
            if ((i + 1) % part != 0) continue;
            create_ns.push_back(ns_since(begin) / static_cast<double>(part));
            begin = clock::now();
        }
    }

    // Returns the ns per run of a contract chosen at random, which is the only one due.
    double run_one_at_random(std::size_t times) {
        std::vector<std::size_t> chosen(times);
        for (std::size_t& c : chosen) c = random() % contracts.size();
        const auto begin = clock::now();
        for (const std::size_t c : chosen) {
            contracts[c].schedule();
            group.execute_next_contract();
        }
        return ns_since(begin) / static_cast<double>(times);
    }
    // Returns the ns per contract: first to schedule all, then to run all.
    std::pair<double, double> run_all() {
        auto begin = clock::now();
        for (coppice::work_contract& c : contracts) c.schedule();
        const double scheduling = ns_since(begin) / static_cast<double>(contracts.size());
        begin = clock::now();
        while (group.execute_contracts(1024) != 0) {
        }
        return {scheduling, ns_since(begin) / static_cast<double>(contracts.size())};
    }

    std::uint64_t runs = 0;
    coppice::work_contract_group group;
    std::vector<coppice::work_contract> contracts;
    std::vector<double> create_ns;  // of each tenth
    std::mt19937_64 random{20240915};
};

void say(const bench::options& options, const char* what, const char* which, double value,
         const char* unit) {
    std::printf("  %-34s %-28s %10.2f %s\n", what, which, value, unit);
    bench::write(options,
                 {std::string("a million contracts: ") + what, which, unit, value, value, value});
}

}  // namespace

std::size_t live_bytes() {
    return allocated_bytes;
}

bool run_million(const bench::options& options, results& out) {
    const std::size_t many = options.tiny ? 10'000 : 1'000'000;
    const std::size_t before = live_bytes();
    full_group few(512);
    const std::size_t after_few = live_bytes();
    full_group all(many);
    const double bytes = static_cast<double>(live_bytes() - after_few) / static_cast<double>(many);
    const double times = options.tiny ? 1'000 : 100'000;
    std::vector<double> one_of_few, one_of_all, schedule_all, execute_all;
    for (int i = 0; i != (options.tiny ? 1 : options.repetitions); ++i) {
        one_of_few.push_back(few.run_one_at_random(static_cast<std::size_t>(times)));
        one_of_all.push_back(all.run_one_at_random(static_cast<std::size_t>(times)));
        const auto [scheduling, executing] = all.run_all();
        schedule_all.push_back(scheduling);
        execute_all.push_back(executing);
    }
    const std::size_t rounds = one_of_few.size();
    const bool right = few.runs == rounds * static_cast<std::size_t>(times) &&
                       all.runs == rounds * (static_cast<std::size_t>(times) + many) &&
                       after_few > before;
    if (options.tiny) {
        std::printf("workload a million (coppice) hash %016llx\n",
                    static_cast<unsigned long long>(bench::hash().add(right).value()));
        return right;
    }
    const double few_ns = bench::median(one_of_few);
    const double all_ns = bench::median(one_of_all);
    out.singles["bytes"] = bytes;
    out.singles["one of 512"] = few_ns;
    out.singles["one of a million"] = all_ns;
    out.singles["create, first tenth"] = all.create_ns.front();
    out.singles["create, last tenth"] = all.create_ns.back();
    std::printf("a million contracts, one thread\n");
    say(options, "memory", "group and handles, each", bytes, "bytes");
    say(options, "one active, chosen at random", "of 512", few_ns, "ns");
    say(options, "one active, chosen at random", "of a million", all_ns, "ns");
    say(options, "all active, schedule", "of a million", bench::median(schedule_all), "ns");
    say(options, "all active, execute_contracts", "of a million", bench::median(execute_all), "ns");
    say(options, "create", "of 512, the last tenth", few.create_ns.back(), "ns");
    say(options, "create", "of a million, the first tenth", all.create_ns.front(), "ns");
    say(options, "create", "of a million, the last tenth", all.create_ns.back(), "ns");
    return right;
}

}  // namespace bench_contracts
