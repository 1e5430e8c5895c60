// Async generators of ints: what the tests of token/async_generator.hpp share.
#pragma once

#include <coppice/exec/just.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/task/task.hpp>
#include <coppice/token/async_generator.hpp>

#include "turnstile.hpp"
#include "witness.hpp"

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace coppice::test {

using ints = std::vector<int>;

template <class T>
T run(task<T> t) {
    auto result = this_thread::sync_wait(std::move(t));
    if constexpr (!std::is_void_v<T>) return std::get<0>(*std::move(result));
}
inline task<ints> all_of(async_generator<int>& g) {
    ints all;
    while (const std::optional<int> item = co_await g.next()) all.push_back(*item);
    co_return all;
}
inline task<ints> all_of_temporary(async_generator<int> g) {
    co_return co_await all_of(g);
}

inline async_generator<int> counting(int from, int to) {
    for (int i = from; i < to; ++i) co_yield i;
}
// Lets other work run before each element.
inline async_generator<int> counting_slowly(int from, int to) {
    for (int i = from; i < to; ++i) {
        co_await execution::just();
        co_yield i;
    }
}
// Gives an element each time that the gate lets it pass.
inline async_generator<int> waiting(turnstile& gate, int& alive) {
    const witness local(alive);
    for (int i = 0;; ++i) {
        co_await gate.wait();
        co_yield i;
    }
}

}  // namespace coppice::test
