// Boost.Sort: block_indirect_sort and sample_sort, which is stable.
#include "sort_rivals.hpp"

#include <boost/sort/sort.hpp>

namespace bench_parallel {

namespace {

template <class T>
bool run_block(kind k, std::size_t threads, data<T>& d, const T&) {
    const auto n = static_cast<unsigned>(threads);
    if (k == kind::sort) {
        boost::sort::block_indirect_sort(d.v.begin(), d.v.end(), n);
    } else if (k == kind::stable_sort) {
        boost::sort::parallel_stable_sort(d.v.begin(), d.v.end(), n);
    } else {
        return false;
    }
    return true;
}
template <class T>
bool run_sample(kind k, std::size_t threads, data<T>& d, const T&) {
    if (k != kind::sort && k != kind::stable_sort) return false;
    boost::sort::sample_sort(d.v.begin(), d.v.end(), static_cast<unsigned>(threads));
    return true;
}

bool block_integers(kind k, std::size_t n, data<std::uint64_t>& d, std::uint64_t pivot) {
    return run_block(k, n, d, pivot);
}
bool block_doubles(kind k, std::size_t n, data<double>& d, double pivot) {
    return run_block(k, n, d, pivot);
}
bool sample_integers(kind k, std::size_t n, data<std::uint64_t>& d, std::uint64_t pivot) {
    return run_sample(k, n, d, pivot);
}
bool sample_doubles(kind k, std::size_t n, data<double>& d, double pivot) {
    return run_sample(k, n, d, pivot);
}

}  // namespace

const rival boost_block_rival{"Boost, block_indirect or stable", 64, block_integers, block_doubles,
                              run_block<std::string>};
const rival boost_sample_rival{"Boost, sample_sort", 64, sample_integers, sample_doubles,
                               run_sample<std::string>};

}  // namespace bench_parallel
