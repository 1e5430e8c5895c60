// coppice, and std's sequential algorithms.
#include "coppice_pool.hpp"
#include "sort_rivals.hpp"

#include <coppice/parallel/merge.hpp>
#include <coppice/parallel/partition.hpp>
#include <coppice/parallel/sort.hpp>

#include <algorithm>

namespace bench_parallel {

namespace {

template <class T>
bool run_coppice(kind k, std::size_t threads, data<T>& d, const T& pivot) {
    namespace parallel = coppice::parallel;
    const auto where = parallel::on(pool(threads));
    const auto middle = d.v.begin() + std::ssize(d.v) / 2;
    switch (k) {
        case kind::sort:
            return parallel::sort(where, d.v);
        case kind::stable_sort:
            return parallel::stable_sort(where, d.v);
        case kind::merge:
            parallel::merge(where, d.v.begin(), middle, middle, d.v.end(), d.out.begin());
            return true;
        case kind::partition:
            parallel::partition(where, d.v, [&pivot](const T& x) { return x < pivot; });
            return true;
        case kind::nth_element:
            return parallel::nth_element(where, d.v, middle);
    }
    return false;
}

template <class T>
bool run_std(kind k, std::size_t, data<T>& d, const T& pivot) {
    const auto middle = d.v.begin() + std::ssize(d.v) / 2;
    switch (k) {
        case kind::sort:
            std::sort(d.v.begin(), d.v.end());
            return true;
        case kind::stable_sort:
            std::stable_sort(d.v.begin(), d.v.end());
            return true;
        case kind::merge:
            std::merge(d.v.begin(), middle, middle, d.v.end(), d.out.begin());
            return true;
        case kind::partition:
            std::partition(d.v.begin(), d.v.end(), [&pivot](const T& x) { return x < pivot; });
            return true;
        case kind::nth_element:
            std::nth_element(d.v.begin(), middle, d.v.end());
            return true;
    }
    return false;
}

bool coppice_integers(kind k, std::size_t n, data<std::uint64_t>& d, std::uint64_t pivot) {
    return run_coppice(k, n, d, pivot);
}
bool coppice_doubles(kind k, std::size_t n, data<double>& d, double pivot) {
    return run_coppice(k, n, d, pivot);
}
bool std_integers(kind k, std::size_t n, data<std::uint64_t>& d, std::uint64_t pivot) {
    return run_std(k, n, d, pivot);
}
bool std_doubles(kind k, std::size_t n, data<double>& d, double pivot) {
    return run_std(k, n, d, pivot);
}

}  // namespace

const rival coppice_rival{"coppice", 64, coppice_integers, coppice_doubles,
                          run_coppice<std::string>};
const rival std_rival{"std, sequential", 1, std_integers, std_doubles, run_std<std::string>};

}  // namespace bench_parallel
