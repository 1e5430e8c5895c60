// sort: orders the objects of all processes, so that each has a part of the whole order.
#pragma once
// A sample sort. Each process sorts its objects on its default pool. All see the same samples of
// all objects, and choose the same splitters. Each sends what lies between two splitters to one
// process, which merges what it gets. Equal objects are told apart by where they are from, so many
// equal objects are spread over the processes too. Source: Shi and Schaeffer 1992.

#include <coppice/exec/write_env.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/internal/share.hpp>
#include <coppice/mpi/varying.hpp>
#include <coppice/parallel/merge.hpp>
#include <coppice/parallel/sort.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace coppice::mpi {

namespace internal {

// An object, and where it was: in the order of these, no two are equal.
template <class T>
struct sample_of_sort {
    T object;
    std::int32_t rank;
    std::uint64_t at;
};

// Every d-th object of a process is a sample. All processes have the same d, so that a sample
// stands for as many objects wherever it is from.
//
// With n processes and N objects, no process gets more than N / n + (n + 1) * d objects. Proof:
// objects of a process that follow each other, and m samples among them, are less than (m + 1) * d.
// Between two splitters lie at most S / n + 1 of all S samples, so the objects of all processes
// there are less than (S / n + 1 + n) * d, and S * d <= N.
//
// With 16 n samples for each process, that is 1 + 1/16 of its share, and some objects more. But
// these are 16 n^2 samples, which every process gets and sorts: 400 MB for a thousand processes. So
// there is a bound on all samples, unless it is less than 16 for each process. With S of them no
// process gets more than 1 + n (n + 1) / S of its share. That is the worst case; docs/many-nodes.md
// tells what to expect.
inline constexpr std::size_t samples_for_each = 16;
inline constexpr std::size_t bytes_of_samples = std::size_t{32} * 1024 * 1024;

// Returns d for so many objects of all processes.
template <class T>
std::size_t distance_of_samples(std::uint64_t objects, int size) {
    const std::size_t least = samples_for_each * static_cast<std::size_t>(size);
    const std::size_t most =
        std::max(least, std::min(least * static_cast<std::size_t>(size),
                                 bytes_of_samples / sizeof(sample_of_sort<T>)));
    return std::max<std::size_t>(1, static_cast<std::size_t>((objects + most - 1) / most));
}

template <class T>
std::vector<sample_of_sort<T>> samples_of(std::span<const T> sorted, int rank,
                                          std::size_t distance) {
    std::vector<sample_of_sort<T>> samples;
    samples.reserve(sorted.size() / distance);
    for (std::size_t at = distance - 1; at < sorted.size(); at += distance)
        samples.push_back({sorted[at], rank, at});
    return samples;
}

// Returns how many of the sorted objects of `rank` come before the splitter.
template <class T, class Less>
std::size_t count_before(std::span<const T> sorted, int rank, const sample_of_sort<T>& splitter,
                         Less& less) {
    if (rank == splitter.rank) return static_cast<std::size_t>(splitter.at);
    const auto found =
        rank < splitter.rank
            ? std::upper_bound(sorted.begin(), sorted.end(), splitter.object, std::ref(less))
            : std::lower_bound(sorted.begin(), sorted.end(), splitter.object, std::ref(less));
    return static_cast<std::size_t>(found - sorted.begin());
}

// Returns how the sorted objects are divided by splitters that all processes choose alike.
template <class T, class Less>
partition split_by_samples(std::span<const T> sorted, int rank, int size,
                           std::vector<sample_of_sort<T>>& samples, Less& less) {
    parallel::sort(samples.begin(), samples.end(),
                   [&less](const sample_of_sort<T>& a, const sample_of_sort<T>& b) {
                       if (less(a.object, b.object)) return true;
                       if (less(b.object, a.object)) return false;
                       return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
                   });
    std::vector<std::size_t> counts;
    std::size_t taken = 0;
    for (int n = 1; n != size && !samples.empty(); ++n) {
        const std::size_t at =
            samples.size() * static_cast<std::size_t>(n) / static_cast<std::size_t>(size);
        // a comparator that contradicts itself may say less than before
        const std::size_t upto = std::max(taken, count_before<T>(sorted, rank, samples[at], less));
        counts.push_back(upto - taken);
        taken = upto;
    }
    counts.push_back(sorted.size() - taken);
    counts.resize(static_cast<std::size_t>(size));
    return partition(counts);
}

// Merges sorted runs, which lie one after the other, until there is one. `ends` says where each
// ends. Writes to `spare` in turn. If this throws, `objects` still has all objects.
template <class T, class Less>
void merge_runs(std::vector<T>& objects, std::vector<T>& spare, std::vector<std::size_t> ends,
                Less& less) {
    spare.resize(objects.size());
    while (ends.size() > 1) {
        std::size_t begin = 0, runs = 0;
        for (std::size_t n = 0; n < ends.size(); n += 2) {
            const std::size_t end = ends[std::min(n + 1, ends.size() - 1)];
            const std::span<const T> first = std::span(objects).subspan(begin, ends[n] - begin);
            const std::span<const T> second = std::span(objects).subspan(ends[n], end - ends[n]);
            parallel::merge(first.begin(), first.end(), second.begin(), second.end(),
                            spare.data() + begin, std::ref(less));
            begin = end;
            ends[runs++] = end;
        }
        ends.resize(runs);
        objects.swap(spare);
    }
}

template <class T, class Less>
task<> run_sort(const communicator& over, std::vector<T>& objects, Less less) {
    const int rank = over.rank(), size = over.size();
    std::vector<T>* const mine = &objects;
    Less* const comparing = &less;
    std::vector<sample_of_sort<T>> samples;
    auto* const chosen = &samples;
    parted<sample_of_sort<T>> all;
    partition* const of_samples = &all.parts;
    std::array<std::uint64_t, 1> objects_of_all{objects.size()};
    co_await all_reduce(over, objects_of_all, objects_of_all, reduction::sum);
    const std::size_t d = distance_of_samples<T>(objects_of_all[0], size);
    agreement sorted(co_await on_default_pool([mine, comparing, chosen, of_samples, rank, size, d] {
        parallel::sort(mine->begin(), mine->end(), std::ref(*comparing));
        *chosen = samples_of<T>(*mine, rank, d);
        partition_access::resize(*of_samples, static_cast<std::size_t>(size));
    }));
    co_await sorted.reach(over);
    sorted.check();
    if (size == 1) co_return;
    co_await all_gather_v(over, samples, all);  // `all.parts` has its size
    partition to;
    partition* const divided = &to;
    parted<T> got;
    parted<T>* const runs = &got;
    samples.swap(all.objects);
    agreement split(co_await on_default_pool([mine, comparing, chosen, divided, runs, rank, size] {
        *divided = split_by_samples<T>(*mine, rank, size, *chosen, *comparing);
        partition_access::resize(runs->parts, static_cast<std::size_t>(size));
    }));
    co_await split.reach(over);
    split.check();
    co_await all_to_all_v(over, objects, to, got);  // `got.parts` has its size
    objects.swap(got.objects);
    agreement merged(co_await on_default_pool([mine, comparing, runs, size] {
        std::vector<std::size_t> ends;
        for (int n = 0; n != size; ++n)
            ends.push_back(runs->parts.offset(n) + runs->parts.count(n));
        merge_runs<T>(*mine, runs->objects, std::move(ends), *comparing);
    }));
    co_await merged.reach(over);
    merged.check();
}

}  // namespace internal

// Returns a sender that sorts the objects of all processes: afterwards `objects` is sorted at each,
// and no object of a process is less than one of a lower rank. The number of objects of a process
// changes; each gets about an equal share. The order of equal objects is unspecified.
//
// Every process calls it. Workers of the default pool call `less` at the same time. No stop ends
// it, and no other collective operation of the communicator may start before it has completed.
// Errors: if `less` throws at a process, that exception there, and errc::failed_elsewhere at the
// others, also for std::bad_alloc; not_enough_memory at all, if one has no memory for what it gets;
// value_too_large, if a process would get more than 2^31 - 1 objects. The objects of all processes
// together are then what they were, in any order, at any process. std::bad_alloc from the call
// itself: nothing has started, and the process may call again, for which the others wait. Cost: O(n
// log n) for n objects of a process, five small collective calls and a large one, and memory for n
// objects and for 32 MiB of samples, or 16 samples for each process if these are more; less for few
// processes or objects.
template <transferable T, std::copy_constructible Less = std::less<T>>
    requires std::predicate<Less&, const T&, const T&>
auto sort(const communicator& over, std::vector<T>& objects, Less less = Less()) {
    return execution::unstoppable(
        internal::run_sort<T, Less>(over, objects, static_cast<Less&&>(less)));
}

}  // namespace coppice::mpi
