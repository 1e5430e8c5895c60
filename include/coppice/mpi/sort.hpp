// sort: orders the objects of all processes, so that each has a part of the whole order.
#pragma once
// A sample sort. All processes see the same samples of all objects, and choose the same splitters.
// Each divides its objects at the splitters, and sends what lies between two to one process, which
// sorts what it gets. Objects are sorted after the exchange and not before: to divide takes less
// time and memory than to merge. Source: Frazer and McKellar 1970, "Samplesort".

#include <coppice/exec/write_env.hpp>
#include <coppice/mpi/internal/share.hpp>
#include <coppice/mpi/varying.hpp>
#include <coppice/parallel/partition.hpp>
#include <coppice/parallel/sort.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace coppice::mpi {

namespace internal {

// With s samples for each process, a process gets about 1/sqrt(s) of its share more or less. Each
// process gets the samples of all, so they have a bound too.
inline constexpr std::size_t samples_for_each = 2048;
inline constexpr std::size_t samples_for_each_min = 64;
inline constexpr std::size_t bytes_of_samples = std::size_t{32} * 1024 * 1024;

// Returns s for objects of so many bytes.
inline std::size_t samples_of_each(std::size_t bytes_of_object, int processes) {
    return std::clamp(bytes_of_samples / bytes_of_object / static_cast<std::size_t>(processes),
                      samples_for_each_min, samples_for_each);
}

// Returns as many samples as the share of the objects in the `total` of all processes is worth.
// Each is drawn from a stretch of its own, so that no period of the input matters.
template <class T>
std::vector<T> samples_of(std::span<const T> objects, const communicator& over,
                          std::uint64_t total) {
    const std::size_t size = objects.size();
    const double share = static_cast<double>(size) / static_cast<double>(total);
    const double of_all =
        static_cast<double>(samples_of_each(sizeof(T), over.size())) * over.size();
    const std::size_t wanted =
        size == 0 ? 0 : std::min(size, static_cast<std::size_t>(of_all * share) + 1);
    std::minstd_rand random(static_cast<std::uint32_t>(over.rank()) + 1);
    std::vector<T> samples;
    samples.reserve(wanted);
    for (std::size_t n = 0, begin = 0; n != wanted; ++n) {
        const std::size_t end = size / wanted * (n + 1) + size % wanted * (n + 1) / wanted;
        samples.push_back(objects[begin + random() % (end - begin)]);
        begin = end;
    }
    return samples;
}

// Where the order of all objects is divided.
template <class T>
struct splitter {
    T object;
    double before;  // the share of the objects equal to it that come before the place
};

// Sorts the samples, and returns the splitters between `parts` parts.
template <class T, class Less>
std::vector<splitter<T>> splitters_of(std::vector<T>& samples, std::size_t parts, Less& less) {
    parallel::sort(samples.begin(), samples.end(), std::ref(less));
    std::vector<splitter<T>> splitters;
    for (std::size_t n = 1; n != parts && !samples.empty(); ++n) {
        const auto at = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() * n / parts);
        // a comparator that contradicts itself may put the end before `at`
        const auto first = std::lower_bound(samples.begin(), at, *at, std::ref(less));
        const auto last = std::upper_bound(at + 1, samples.end(), *at, std::ref(less));
        splitters.push_back(
            {*at, static_cast<double>(at - first) / static_cast<double>(last - first)});
    }
    return splitters;
}

// Divides the objects at the splitters: `ends` gets where, counted from `offset`.
template <class T, class Less>
void divide(std::span<T> objects, std::span<const splitter<T>> at, std::size_t offset,
            std::size_t* ends, Less& less) {
    if (at.empty()) return;
    std::size_t first = at.size() / 2, last = first + 1;
    const T& object = at[first].object;
    while (first != 0 && !less(at[first - 1].object, object)) --first;
    while (last != at.size() && !less(object, at[last].object)) ++last;
    const auto equal = parallel::partition(
        objects.begin(), objects.end(), [&less, &object](const T& o) { return less(o, object); });
    auto greater = equal;
    if (at[last - 1].before != 0)
        greater = parallel::partition(equal, objects.end(),
                                      [&less, &object](const T& o) { return !less(object, o); });
    const auto less_count = static_cast<std::size_t>(equal - objects.begin());
    const auto equal_count = static_cast<std::size_t>(greater - equal);
    for (std::size_t n = first; n != last; ++n)
        ends[n] = offset + less_count +
                  static_cast<std::size_t>(static_cast<double>(equal_count) * at[n].before);
    divide(objects.first(less_count), at.first(first), offset, ends, less);
    divide(objects.subspan(less_count + equal_count), at.subspan(last),
           offset + less_count + equal_count, ends + last, less);
}

// Divides the objects between `parts` processes, by splitters that all choose alike.
template <class T, class Less>
partition divide_by_samples(std::vector<T>& objects, std::vector<T>& samples, std::size_t parts,
                            Less& less) {
    const std::vector<splitter<T>> splitters = splitters_of(samples, parts, less);
    std::vector<std::size_t> ends(splitters.size());
    divide<T>(objects, splitters, 0, ends.data(), less);
    // a comparator that contradicts itself may have put an end before the one of a lower part
    std::partial_sum(ends.begin(), ends.end(), ends.begin(),
                     [](std::size_t a, std::size_t b) { return std::max(a, b); });
    ends.resize(parts, objects.size());
    std::adjacent_difference(ends.begin(), ends.end(), ends.begin());
    return partition(ends);
}

template <class T, class Less>
task<> run_sort(const communicator& over, std::vector<T>& objects, Less less) {
    const auto size = static_cast<std::size_t>(over.size());
    const auto sort_own = [&objects, &less] {
        parallel::sort(objects.begin(), objects.end(), std::ref(less));
    };
    if (size == 1) {
        throw_if_failed(co_await on_default_pool(sort_own), false);
        co_return;
    }
    std::array<std::uint64_t, 1> total{objects.size()};
    co_await take_part<kind::all_reduce>(over, total, total, reduction::sum);
    parted<T> samples;
    parted<T> got;
    std::vector<T> own_samples;
    agreement sampled(
        co_await on_default_pool([&over, &objects, &total, &samples, &own_samples, &got, size] {
            own_samples = samples_of<T>(objects, over, total[0]);
            partition_access::resize(samples.parts, size);
            partition_access::resize(got.parts, size);
        }));
    co_await sampled.reach(over);
    sampled.check();
    co_await all_gather_v(over, own_samples, samples);  // `samples.parts` has its size
    partition to;
    agreement divided(co_await on_default_pool([&objects, &samples, &less, &to, size] {
        to = divide_by_samples(objects, samples.objects, size, less);
    }));
    co_await divided.reach(over);
    divided.check();
    co_await all_to_all_v(over, objects, to, got);  // `got.parts` has its size
    objects.swap(got.objects);
    agreement sorted(co_await on_default_pool(sort_own));
    co_await sorted.reach(over);
    sorted.check();
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
// value_too_large at all, if a process would get more than 2^31 - 1 objects. If one of several
// processes has more, value_too_large there, and errc::failed_elsewhere at the others. The objects
// of all processes together are then what they were, in any order, at any process. std::bad_alloc
// from the call itself: nothing has started, and the process may call again, for which the others
// wait. Cost: O(n log n) for n objects of a process, and memory for n more. Between p processes
// also a pass over the objects for each doubling of p, 2048 samples of each process at all, but at
// most 32 MiB if that is at least 64 of each, nine small collective calls, and a large one.
template <transferable T, std::copy_constructible Less = std::less<T>>
    requires std::predicate<Less&, const T&, const T&>
auto sort(const communicator& over, std::vector<T>& objects, Less less = Less()) {
    return execution::unstoppable(
        internal::run_sort<T, Less>(over, objects, static_cast<Less&&>(less)));
}

}  // namespace coppice::mpi
