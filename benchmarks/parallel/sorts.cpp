// Sorts, merge, partition, and nth_element of 10 million elements, rivals in turn: time, and the
// memory that a call adds at its peak.
#include "sort_rivals.hpp"

#include "../harness.hpp"
#include "../memory.hpp"
#include "contests.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <type_traits>

#include <malloc.h>

namespace {

using namespace bench_parallel;

const rival* const rivals[] = {
    &coppice_rival,     &std_rival,
#if defined(BENCH_WITH_TBB)
    &tbb_rival,         &std_par_rival,
#endif
#if defined(BENCH_WITH_BOOST)
    &boost_block_rival, &boost_sample_rival,
#endif
};
struct algorithm {
    kind k;
    const char* name;
};
constexpr algorithm algorithms[] = {
    {kind::sort, "sort"},           {kind::stable_sort, "stable_sort"}, {kind::merge, "merge"},
    {kind::partition, "partition"}, {kind::nth_element, "nth_element"},
};

template <class T>
bool call(const rival& r, kind k, std::size_t threads, data<T>& d, const T& pivot) {
    if constexpr (std::is_same_v<T, double>) {
        return r.doubles(k, threads, d, pivot);
    } else if constexpr (std::is_same_v<T, std::string>) {
        return r.strings(k, threads, d, pivot);
    } else {
        return r.integers(k, threads, d, pivot);
    }
}

template <class T>
T element(std::mt19937_64& random) {
    if constexpr (std::is_same_v<T, std::string>) {  // 4 to 27 letters
        std::string s(4 + random() % 24, ' ');
        for (char& c : s) c = static_cast<char>('a' + random() % 26);
        return s;
    } else {
        return static_cast<T>(random());
    }
}
std::uint64_t bits(const std::string& s) {
    return std::hash<std::string>()(s);
}
template <class T>
std::uint64_t bits(const T& x) {
    return static_cast<std::uint64_t>(x);
}

// The result of an algorithm, which must be the same for all rivals.
template <class T>
std::uint64_t result_of(kind k, const data<T>& d, const T& pivot) {
    bench::hash h;
    if (k == kind::partition) {
        const auto is_less = [&pivot](const T& x) { return x < pivot; };
        h.add(std::is_partitioned(d.v.begin(), d.v.end(), is_less));
        return h.add(static_cast<std::uint64_t>(std::count_if(d.v.begin(), d.v.end(), is_less)))
            .value();
    }
    if (k == kind::nth_element) return h.add(bits(d.v[d.v.size() / 2])).value();
    for (const T& x : k == kind::merge ? d.out : d.v) h.add(bits(x));
    return h.value();
}

template <class T>
class contest {
public:
    contest(const algorithm& a, std::size_t size, std::size_t threads)
        : algorithm_(a), threads_(threads), in_(size), d_{in_, std::vector<T>(size)} {
        std::mt19937_64 random(26);  // NOLINT: the same input each time
        for (T& x : in_) x = element<T>(random);
        const auto middle = in_.begin() + std::ssize(in_) / 2;
        std::vector<T> sorted = in_;
        std::nth_element(sorted.begin(), sorted.begin() + std::ssize(sorted) / 2, sorted.end());
        pivot_ = sorted[sorted.size() / 2];
        if (a.k != kind::merge) return;
        std::sort(in_.begin(), middle);
        std::sort(middle, in_.end());
    }
    // Returns milliseconds, or less than 0 if the rival has no such algorithm.
    double time(const rival& r) {
        if (r.threads_max < threads_) return -1;
        lay_out_again();
        const double begin = bench::now(false);
        const bool done = call(r, algorithm_.k, threads_, d_, pivot_);
        const double took = (bench::now(false) - begin) / 1e6;
        return done ? took : -1;
    }
    // Returns the memory that a call needs beyond its input and output at its peak, in MB, or less
    // than 0 if it is not known.
    double memory(const rival& r) {
        if (r.threads_max < threads_) return -1;
        lay_out_again();
        bool done = false;
        const double peak =
            bench::peak_megabytes([&] { done = call(r, algorithm_.k, threads_, d_, pivot_); });
        return done ? peak : -1;
    }
    std::uint64_t result() const { return result_of(algorithm_.k, d_, pivot_); }

private:
    // Copies the input. The letters of long strings lie in the order of the strings again, which
    // the rival before has changed: free memory is merged first.
    void lay_out_again() {
        d_.v = {};
        if constexpr (std::is_same_v<T, std::string>) malloc_trim(0);
        d_.v = std::vector<T>(in_);
    }

    const algorithm algorithm_;
    const std::size_t threads_;
    std::vector<T> in_;
    data<T> d_;
    T pivot_{};
};

// Returns true if all rivals give the same result.
template <class T>
bool try_all(const char* type) {
    bool agree = true;
    for (const algorithm& a : algorithms) {
        contest<T> c(a, 3'000, 2);
        c.time(coppice_rival);
        const std::uint64_t expected = c.result();
        for (const rival* r : rivals) {
            if (c.time(*r) < 0) continue;
            agree = agree && c.result() == expected;
            std::printf("workload %s of %s (%s) hash %016llx\n", a.name, type, r->name,
                        static_cast<unsigned long long>(c.result()));
        }
    }
    return agree;
}

using samples = std::map<std::string, std::vector<double>>;

template <class T>
samples measure(const bench::options& o, const algorithm& a, const char* type, std::size_t size,
                std::size_t threads) {
    contest<T> c(a, size, threads);
    samples times;
    std::map<std::string, double> memory;  // from a call of its own, before those that are timed
    for (const rival* r : rivals) {
        const double peak = c.memory(*r);
        if (peak >= 0) memory[r->name] = peak;
    }
    for (int i = 0; i != std::max(3, o.repetitions / 2); ++i) {
        for (const rival* r : rivals) {
            const double took = c.time(*r);
            if (took >= 0) times[r->name].push_back(took);
        }
    }
    const std::string name = std::string(a.name) + " of " + std::to_string(size) + " " + type +
                             ", threads: " + std::to_string(threads);
    std::printf("%s, ms\n", name.c_str());
    const double base = bench::median(times[coppice_rival.name]);
    for (const rival* r : rivals) {
        if (!times.contains(r->name)) continue;
        const std::vector<double>& each = times[r->name];
        std::printf("  %-34s %10.2f  (%.2f to %.2f)  x %.3f", r->name, bench::median(each),
                    bench::quantile(each, 0), bench::quantile(each, 1), bench::median(each) / base);
        bench::write(o, bench::of_samples(name, r->name, "ms", each));
        if (memory.contains(r->name)) {
            std::printf("  peak memory %.1f MB", memory[r->name]);
            bench::write(o, bench::of_samples(name, r->name, "MB", {memory[r->name]}));
        }
        std::printf("\n");
    }
    std::fflush(stdout);
    return times;
}

// Checks the promises: no algorithm is slower than a rival's, and for numbers a rival on oneTBB
// takes at least 1.3 times as long.
template <class T>
void measure_all(const bench::options& o, const char* type, std::size_t size) {
    for (const algorithm& a : algorithms) {
        for (const std::size_t threads : {1, 2}) {
            samples times = measure<T>(o, a, type, size, threads);
            const std::string what = std::string(a.name) + " of " + type +
                                     ", threads: " + std::to_string(threads) + ", coppice / ";
            const std::vector<double>& ours = times[coppice_rival.name];
            const bool is_number = !std::is_same_v<T, std::string>;
            for (const auto& [name, theirs] : times) {
                if (name == coppice_rival.name) continue;
                const bool is_tbb = name == "oneTBB";
                const std::vector<double> ratios = bench::ratios(ours, theirs);
                bench::judge(o, what + name, ratios, is_tbb && is_number ? 1 / 1.3 : 1.0);
            }
        }
    }
}

}  // namespace

namespace bench_parallel {

bool try_sorts() {
    return try_all<std::uint64_t>("uint64") && try_all<double>("doubles") &&
           try_all<std::string>("strings");
}

void measure_sorts(const bench::options& o) {
    const std::size_t size = o.quick ? 3'000'000 : 10'000'000;
    measure_all<std::uint64_t>(o, "uint64", size);
    measure_all<double>(o, "doubles", size);
    measure_all<std::string>(o, "strings", size / 10);
}

}  // namespace bench_parallel
