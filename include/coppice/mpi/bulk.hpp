// bulk, map_reduce: loops over indices, shared by the processes and by the workers of each.
#pragma once
// Every process calls the function with the same `n`. Each process takes an equal share of [0, n),
// in order of the ranks, and its default pool does it (pool/default_pool.hpp). Both return a
// sender, which is started on every process. No stop ends it, because the other processes would
// wait. It consists of collective calls, so no other collective operation of the communicator may
// start before it has completed.
//
// Errors: if the function throws at a process, the sender's error is that exception there, and
// errc::failed_elsewhere at the others, after all have done what they did. The same holds for a
// process that runs out of memory. std::bad_alloc from the call itself: nothing has started, and
// the process may call again, for which the others wait. Cost: frames of tasks. Lifetime: the
// communicator outlives the operation; functions are kept until its end.

#include <coppice/exec/write_env.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/internal/share.hpp>
#include <coppice/pool/parallel.hpp>

#include <concepts>
#include <span>
#include <vector>

namespace coppice::mpi {

namespace internal {

template <class F>
task<> run_bulk(const communicator& over, std::size_t n, F f) {
    const index_range mine = share_of(over, n);
    F* const function = &f;
    agreement done(co_await on_default_pool(
        [mine, function] { parallel_for(mine.first, mine.last, *function); }));
    co_await done.reach(over);
    done.check();
}

// What a process contributes, as the bytes of one message.
template <class T>
struct contribution {
    T value;
    bool is_bad;
};

// `all` has a place for each process.
template <class T, class Map, class Combine>
task<T> run_map_reduce(const communicator& over, std::size_t n, T identity, Map map,
                       Combine combine, std::vector<contribution<T>> all) {
    const index_range mine = share_of(over, n);
    contribution<T> own{identity, false};
    T* const result = &own.value;
    Map* const mapping = &map;
    Combine* const combining = &combine;
    std::exception_ptr failure = co_await on_default_pool([mine, result, mapping, combining] {
        *result = parallel_reduce(mine.first, mine.last, *result, *mapping, *combining);
    });
    own.is_bad = failure != nullptr;
    co_await take_part<kind::all_gather>(over, std::span<const contribution<T>>(&own, 1), all);
    bool is_bad = false;
    for (const contribution<T>& each : all) is_bad = is_bad || each.is_bad;
    throw_if_failed(failure, is_bad);
    T combined = identity;
    try {
        for (const contribution<T>& each : all) combined = combine(combined, each.value);
    } catch (...) {
        failure = std::current_exception();
    }
    agreement done(std::move(failure));
    co_await done.reach(over);
    done.check();
    co_return combined;
}

}  // namespace internal

// Returns a sender that calls f(i) for each i of [0, n), at one of the processes. It completes when
// all processes have called all. Workers call a const `f` at the same time.
template <std::copy_constructible F>
    requires std::invocable<F&, std::size_t>
auto bulk(const communicator& over, std::size_t n, F f) {
    return execution::unstoppable(internal::run_bulk<F>(over, n, static_cast<F&&>(f)));
}

// Returns a sender of combine(... combine(identity, map(0)) ..., map(n - 1)), which every process
// gets. `combine` must be associative, and `identity` its neutral element, because it is used more
// than once in each process; the order of operands is kept. Floating-point results may depend on
// the number of processes and on timing.
template <transferable T, std::copy_constructible Map, std::copy_constructible Combine>
    requires std::invocable<Map&, std::size_t> &&
             std::is_invocable_r_v<T, Combine&, T, std::invoke_result_t<Map&, std::size_t>> &&
             std::is_invocable_r_v<T, Combine&, T, T>
auto map_reduce(const communicator& over, std::size_t n, T identity, Map map, Combine combine) {
    std::vector<internal::contribution<T>> all(static_cast<std::size_t>(over.size()),
                                               {identity, false});
    return execution::unstoppable(
        internal::run_map_reduce<T, Map, Combine>(over, n, identity, static_cast<Map&&>(map),
                                                  static_cast<Combine&&>(combine), std::move(all)));
}

}  // namespace coppice::mpi
