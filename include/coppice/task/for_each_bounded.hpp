// for_each_bounded: a task calls a function for each of many items, for a few of them at a time.
#pragma once
// It makes at_once_max tasks. Each takes the next item, again and again, until no item is left.
//
// Source: ours; others call it buffer_unordered, or a semaphore around each call.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/options.hpp>
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

// The body of each of the tasks.
template <class Items, class F>
task<> call_for_next_items(Items& items, std::size_t count, atomic<std::size_t>& next, F& f) {
    const inplace_stop_token stop = co_await execution::read_env(get_stop_token);
    for (;;) {
        // relaxed: only the number matters; the items exist since before the task was made
        const std::size_t i = next.fetch_add(1, relaxed);
        if (i >= count) co_return;
        if (stop.stop_requested()) co_await execution::just_stopped();
        static_cast<void>(co_await f(items[i]));
    }
}

}  // namespace internal

// Awaits f(item) for each item. Begins the items in order, and has at most `at_once_max` of them in
// flight. `f` returns a task or another sender, whose value is discarded. `items` has size() and
// operator[]: a vector, or a std::span if the items live elsewhere. Threads: on a pool, several
// threads call `f` at the same time if what it returns suspends; elsewhere one thread does. For
// calls that only compute, use parallel_for. Errors: the first error of `f` or of what it returns;
// the other calls are then stopped. No further item is begun after an error or a stop.
// std::invalid_argument if at_once_max is 0. Cost: allocates a frame for each of at_once_max tasks,
// and twice for all of them together; nothing for an item.
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
