// The rivals of the sorts, of merge, partition, and nth_element: the same input for all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench_parallel {

// The elements, and room for the output of merge.
template <class T>
struct data {
    std::vector<T> v;
    std::vector<T> out;
};
enum class kind { sort, stable_sort, merge, partition, nth_element };

// A rival's algorithms on `threads` threads, which are started before the first call and kept.
// merge merges the two sorted halves of v. partition puts the elements less than `pivot` first.
// Returns false if the rival has no such algorithm.
struct rival {
    const char* name;
    std::size_t threads_max;  // 1: only sequential
    bool (*integers)(kind k, std::size_t threads, data<std::uint64_t>& d, std::uint64_t pivot);
    bool (*doubles)(kind k, std::size_t threads, data<double>& d, double pivot);
    bool (*strings)(kind k, std::size_t threads, data<std::string>& d, const std::string& pivot);
};

extern const rival coppice_rival;
extern const rival std_rival;  // sequential
extern const rival tbb_rival;
extern const rival std_par_rival;
extern const rival boost_block_rival;
extern const rival boost_sample_rival;

}  // namespace bench_parallel
