// How evenly mpi::sort divides objects, and what it gathers for that.
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/sort.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include "job.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

namespace mpi = coppice::mpi;
namespace internal = coppice::mpi::internal;
using mpi_test::job_size;
using mpi_test::wait_for;
using mpi_test::world;

TEST(mpi_sort_balance, the_samples_of_all_stay_within_their_memory_however_many_processes) {
    for (const std::size_t bytes : {1, 8, 100}) {
        for (const int size : {2, 100, 1000, 5000}) {
            const std::size_t each = internal::samples_of_each(bytes, size);
            EXPECT_LE(each * bytes * static_cast<std::size_t>(size), internal::bytes_of_samples);
            EXPECT_LE(each, internal::samples_for_each);
        }
    }
    EXPECT_EQ(internal::samples_of_each(8, 1000), internal::samples_for_each);
    EXPECT_EQ(internal::samples_of_each(1'000'000, 1000), internal::samples_for_each_min);
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
    EXPECT_LE(largest[0], all / job_size() * 5 / 4);
}

}  // namespace
