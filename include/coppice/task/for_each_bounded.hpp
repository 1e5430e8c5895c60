// for_each_bounded: a task calls a function for each of many items, a few of them at a time.
#pragma once
// As many tasks as may be at work take the next item, one after the other, until there is none.
//
// Source: ours; others call it buffer_unordered, or a semaphore around each call.

#include <coppice/base/atomic.hpp>
#include <coppice/base/options.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/when_all_range.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/task/task.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace coppice {

namespace internal {

// One of the tasks.
template <class Items, class F>
task<> call_for_next_items(Items& items, std::size_t count, atomic<std::size_t>& next, F& f) {
    const inplace_stop_token stop = co_await execution::read_env(get_stop_token);
    for (;;) {
        // relaxed: only a number; the items were there before the task
        const std::size_t i = next.fetch_add(1, relaxed);
        if (i >= count) co_return;
        if (stop.stop_requested()) co_await execution::just_stopped();
        static_cast<void>(co_await f(items[i]));
    }
}

}  // namespace internal

// Awaits f(item) for each item, at most `at_once_max` of them at a time, begun in their order. `f`
// gives a task or another sender; its value is dropped. `items` has size() and operator[]: a
// vector, or a std::span of what lives elsewhere.
// Threads: on a pool `f` is called on several at once, if what it gives waits, elsewhere on one;
// for calls that only compute there is parallel_for. Errors: the first that `f` or what it gives
// throws; the others are stopped then, and no further item is begun, as after a stop.
// std::invalid_argument if at_once_max is 0. Cost: allocates a frame for each of at_once_max tasks,
// and twice for all of them; nothing for an item.
template <class Items, class F>
task<> for_each_bounded(Items items, std::size_t at_once_max, F f) {
    internal::check_option("at_once_max of for_each_bounded", at_once_max, 1,
                           std::numeric_limits<std::size_t>::max());
    const std::size_t count = items.size();
    internal::atomic<std::size_t> next{0};
    std::vector<task<>> workers;
    const std::size_t most = std::min(at_once_max, count);
    workers.reserve(most);
    while (workers.size() != most) {
        workers.push_back(internal::call_for_next_items(items, count, next, f));
    }
    co_await execution::when_all_range(std::move(workers));
}

}  // namespace coppice
