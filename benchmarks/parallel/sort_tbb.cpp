// oneTBB's parallel_sort, and libstdc++'s parallel algorithms, which run on oneTBB.
#include "sort_rivals.hpp"
#include "tbb_arena.hpp"

#include <tbb/parallel_sort.h>

#include <algorithm>
#include <execution>

namespace bench_parallel {

namespace {

template <class T>
bool run_tbb(kind k, std::size_t threads, data<T>& d, const T&) {
    if (k != kind::sort) return false;
    arena(threads).execute([&d] { tbb::parallel_sort(d.v.begin(), d.v.end()); });
    return true;
}

template <class T>
void run_par_here(kind k, data<T>& d, const T& pivot) {
    constexpr auto par = std::execution::par;
    const auto middle = d.v.begin() + std::ssize(d.v) / 2;
    switch (k) {
        case kind::sort:
            std::sort(par, d.v.begin(), d.v.end());
            break;
        case kind::stable_sort:
            std::stable_sort(par, d.v.begin(), d.v.end());
            break;
        case kind::merge:
            std::merge(par, d.v.begin(), middle, middle, d.v.end(), d.out.begin());
            break;
        case kind::partition:
            std::partition(par, d.v.begin(), d.v.end(), [&pivot](const T& x) { return x < pivot; });
            break;
        case kind::nth_element:
            std::nth_element(par, d.v.begin(), middle, d.v.end());
            break;
    }
}
template <class T>
bool run_par(kind k, std::size_t threads, data<T>& d, const T& pivot) {
    arena(threads).execute([k, &d, &pivot] { run_par_here(k, d, pivot); });
    return true;
}

bool tbb_integers(kind k, std::size_t n, data<std::uint64_t>& d, std::uint64_t pivot) {
    return run_tbb(k, n, d, pivot);
}
bool tbb_doubles(kind k, std::size_t n, data<double>& d, double pivot) {
    return run_tbb(k, n, d, pivot);
}
bool par_integers(kind k, std::size_t n, data<std::uint64_t>& d, std::uint64_t pivot) {
    return run_par(k, n, d, pivot);
}
bool par_doubles(kind k, std::size_t n, data<double>& d, double pivot) {
    return run_par(k, n, d, pivot);
}

}  // namespace

const rival tbb_rival{"oneTBB", 64, tbb_integers, tbb_doubles, run_tbb<std::string>};
const rival std_par_rival{"std::execution::par", 64, par_integers, par_doubles,
                          run_par<std::string>};

}  // namespace bench_parallel
