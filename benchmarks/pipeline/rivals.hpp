// The rivals of the pipeline benchmark: numbers go through a concurrent and a serial stage.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bench_pipeline {

struct work {
    std::size_t threads;
    std::size_t slots;  // items in flight
    unsigned steps;     // of the concurrent stage, for each item
    bool in_order;      // the last stage
};

// Takes the numbers below `size` through the pipeline. Returns the sum of its output.
std::uint64_t run_coppice(const work& w, std::size_t size);
std::uint64_t run_tbb(const work& w, std::size_t size);

// The concurrent stage. A generator of random numbers, whose steps depend on each other.
inline std::uint64_t compute(std::uint64_t x, unsigned steps) {
    for (unsigned i = 0; i != steps; ++i) x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

}  // namespace bench_pipeline
