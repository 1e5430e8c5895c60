// How evenly mpi::sort divides objects: its bound, for many processes, and for a real job.
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/sort.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include "job.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace {

namespace mpi = coppice::mpi;
namespace internal = coppice::mpi::internal;
using mpi_test::job_size;
using mpi_test::wait_for;
using mpi_test::world;

using ranks = std::vector<std::vector<int>>;  // the objects of each

// Returns the largest part that the algorithm gives to one of the processes, and sets `bound`.
std::size_t largest_part(ranks all, std::size_t& bound, std::size_t distance) {
    const int size = static_cast<int>(all.size());
    std::size_t objects = 0;
    std::vector<internal::sample_of_sort<int>> samples;
    for (std::size_t r = 0; r != all.size(); ++r) {
        std::sort(all[r].begin(), all[r].end());
        objects += all[r].size();
        for (const auto& s : internal::samples_of<int>(all[r], static_cast<int>(r), distance))
            samples.push_back(s);
    }
    bound = objects / all.size() + (all.size() + 1) * distance;
    std::vector<std::size_t> parts(all.size());
    std::less<int> less;
    for (int r = 0; r != size; ++r) {
        const mpi::partition p = internal::split_by_samples<int>(all[static_cast<std::size_t>(r)],
                                                                 r, size, samples, less);
        for (int n = 0; n != size; ++n) parts[static_cast<std::size_t>(n)] += p.count(n);
    }
    return *std::max_element(parts.begin(), parts.end());
}

std::vector<int> from(std::mt19937& random, std::size_t count, int least, int most) {
    std::vector<int> v(count);
    for (int& each : v) each = std::uniform_int_distribution(least, most)(random);
    return v;
}

TEST(mpi_sort_balance, no_process_gets_more_than_the_bound_whatever_the_objects_are) {
    std::mt19937 random(7);
    const std::size_t size = 12;
    ranks even(size), equal(size), uneven(size), apart(size), few(size);
    for (std::size_t r = 0; r != size; ++r) {
        const int place = static_cast<int>(r) * 300;
        even[r] = from(random, 300, 0, 1 << 30);
        equal[r] = std::vector<int>(300, 5);
        uneven[r] = from(random, r == 0 ? 3000 : r * 10, r == 0 ? 9000 : 0, 10'000);
        apart[r] = from(random, 300, place, place + 450);
        few[r] = from(random, r % 2, 0, 100);
    }
    for (const ranks& each : {even, equal, uneven, apart, few}) {
        for (const std::size_t distance : {1, 7, 40}) {
            std::size_t bound = 0;
            EXPECT_LE(largest_part(each, bound, distance), bound) << distance;
        }
    }
}

TEST(mpi_sort_balance, the_samples_of_all_stay_within_their_memory_however_many_processes) {
    using sample = internal::sample_of_sort<std::uint64_t>;
    for (const int size : {2, 100, 1000, 10'000}) {
        const std::uint64_t objects = std::uint64_t{1'000'000} * static_cast<std::uint64_t>(size);
        const std::size_t d = internal::distance_of_samples<std::uint64_t>(objects, size);
        EXPECT_LE(objects / d * sizeof(sample), internal::bytes_of_samples) << size;
        EXPECT_GE(objects / d, static_cast<std::uint64_t>(size) * 15) << size;
    }
    EXPECT_EQ(internal::distance_of_samples<std::uint64_t>(1'600'000, 10), 1000u);
    EXPECT_EQ(internal::distance_of_samples<std::uint64_t>(0, 4), 1u);
}

// With as many samples from each rank, those of the few objects would outweigh these of the many.
TEST(mpi_sort_balance, a_rank_with_most_of_the_objects_gives_them_to_all_ranks) {
    std::vector<int> mine(500);
    if (world().rank() == 0) mine.assign(40'000, 0);
    for (std::size_t i = 0; i != mine.size(); ++i)
        mine[i] = static_cast<int>(i) + (world().rank() == 0 ? 1000 : 0);
    ASSERT_TRUE(wait_for(mpi::sort(world(), mine)));
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
    std::array<std::uint64_t, 1> largest{mine.size()};
    mpi::all_reduce(world(), largest, largest, mpi::reduction::maximum, coppice::block);
    const std::size_t all = 40'000 + 500 * (job_size() - 1);
    EXPECT_LE(largest[0], all / job_size() * 17 / 16 + all / job_size() / job_size() + 100);
}

}  // namespace
