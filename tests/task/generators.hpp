// Generators of ints: what the tests of task/generator.hpp share.
#pragma once

#include <coppice/task/generator.hpp>

#include <stdexcept>
#include <vector>

namespace coppice::test {

using ints = std::vector<int>;

template <class G>
ints all_of(G&& each) {
    ints all;
    for (auto&& element : each) all.push_back(element);
    return all;
}

inline generator<int> counting(int from, int to) {
    for (int i = from; i < to; ++i) co_yield i;
}

// Its innermost level throws.
inline generator<int> failing_below(int levels) {
    if (levels == 0) throw std::runtime_error("deep");
    co_yield levels;
    co_yield ranges::elements_of(failing_below(levels - 1));
    co_yield -1000;
}

}  // namespace coppice::test
