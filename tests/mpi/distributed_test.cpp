// What is more than one call of MPI: algorithms over the processes of the job.
#include <coppice/mpi/bulk.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/sort.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include "job.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <system_error>
#include <tuple>
#include <vector>

namespace {

namespace mpi = coppice::mpi;
using coppice::block;
using mpi_test::job_size;
using mpi_test::wait_for;
using mpi_test::world;

TEST(mpi_bulk, every_index_is_called_once_at_one_of_the_ranks) {
    constexpr std::size_t n = 1003;
    std::vector<int> calls(n), all(n);
    int* const counted = calls.data();
    ASSERT_TRUE(wait_for(mpi::bulk(world(), n, [counted](std::size_t i) { ++counted[i]; })));
    mpi::all_reduce(world(), calls, all, mpi::reduction::sum, block);
    EXPECT_EQ(all, std::vector<int>(n, 1));
    const int here = std::accumulate(calls.begin(), calls.end(), 0);
    EXPECT_NEAR(here, static_cast<int>(n / job_size()), 1);
    EXPECT_TRUE(wait_for(mpi::bulk(world(), 0, [](std::size_t) { ADD_FAILURE(); })));
}

TEST(mpi_bulk, an_exception_at_one_rank_is_an_error_at_every_rank) {
    const auto fails = [](std::size_t i) {
        if (i == 0) throw std::out_of_range("index 0");
    };
    if (world().rank() == 0) {
        EXPECT_THROW(wait_for(mpi::bulk(world(), 100, fails)), std::out_of_range);
        return;
    }
    try {
        wait_for(mpi::bulk(world(), 100, fails));
        ADD_FAILURE() << "no error";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), mpi::errc::failed_elsewhere) << e.what();
    }
}

TEST(mpi_map_reduce, a_combination_that_throws_at_one_rank_only_is_an_error_at_every_rank) {
    const auto fails = [](int a, int b) {
        if (world().rank() == 1) throw std::domain_error("combined");
        return a + b;
    };
    try {  // without an index, only the contributions are combined
        wait_for(mpi::map_reduce(world(), 0, 0, [](std::size_t) { return 0; }, fails));
        ADD_FAILURE() << "no error";
    } catch (const std::domain_error&) {
        EXPECT_EQ(world().rank(), 1);
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), mpi::errc::failed_elsewhere);
    }
}

struct longest_run {  // of odd numbers: associative, but not commutative
    int from_start, longest, to_end, count;
};
longest_run combined(longest_run a, longest_run b) {
    return {a.from_start == a.count ? a.count + b.from_start : a.from_start,
            std::max({a.longest, b.longest, a.to_end + b.from_start}),
            b.to_end == b.count ? b.count + a.to_end : b.to_end, a.count + b.count};
}

TEST(mpi_map_reduce, keeps_the_order_of_operands_over_workers_and_ranks) {
    const auto is_odd = [](std::size_t i) {
        const int odd = i % 7 == 3 || i % 1000 == 0 ? 0 : 1;
        return longest_run{odd, odd, odd, 1};
    };
    longest_run expected{0, 0, 0, 0};
    for (std::size_t i = 0; i != 5000; ++i) expected = combined(expected, is_odd(i));
    const auto got =
        wait_for(mpi::map_reduce(world(), 5000, longest_run{0, 0, 0, 0}, is_odd, combined));
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(std::get<0>(*got).longest, expected.longest);
    EXPECT_EQ(std::get<0>(*got).to_end, expected.to_end);
    EXPECT_EQ(std::get<0>(*got).count, 5000);
    const auto none =
        wait_for(mpi::map_reduce(world(), 0, longest_run{0, 0, 0, 0}, is_odd, combined));
    EXPECT_EQ(std::get<0>(*none).count, 0);
}

// Sorts `mine` of all ranks, and compares with the sorted whole. Returns the largest part.
std::size_t sorts(std::vector<int> mine, bool descending = false) {
    mpi::parted<int> before, after;
    mpi::all_gather_v(world(), mine, before, block);
    const auto less = [descending](int a, int b) { return descending ? b < a : a < b; };
    EXPECT_TRUE(wait_for(mpi::sort(world(), mine, less)));
    mpi::all_gather_v(world(), mine, after, block);
    std::sort(before.objects.begin(), before.objects.end(), less);
    EXPECT_EQ(after.objects, before.objects);
    std::size_t largest = 0;
    for (int n = 0; n != world().size(); ++n) largest = std::max(largest, after.parts.count(n));
    return largest;
}

TEST(mpi_sort, puts_the_whole_in_order_and_spreads_it_also_if_all_keys_are_equal) {
    std::vector<int> random(4000), equal(4000, 5);
    std::uint32_t state = static_cast<std::uint32_t>(world().rank()) + 1;
    for (int& r : random) r = static_cast<int>((state = state * 1664525 + 1013904223) >> 8);
    EXPECT_LT(sorts(random), 4600u);
    EXPECT_LT(sorts(random, true), 4600u);
    EXPECT_LT(sorts(equal), 4600u);
    std::vector<int> sorted(4000);
    std::iota(sorted.begin(), sorted.end(), 4000 * world().rank());
    EXPECT_LT(sorts(sorted), 4600u);
}

TEST(mpi_sort, takes_no_object_one_object_and_all_objects_at_one_rank) {
    EXPECT_EQ(sorts({}), 0u);
    EXPECT_EQ(sorts(world().rank() == 1 ? std::vector<int>{3} : std::vector<int>{}), 1u);
    std::vector<int> many(world().rank() == 1 ? 5000 : 0);
    std::iota(many.rbegin(), many.rend(), 0);
    EXPECT_LT(sorts(many), 5000 / job_size() + 600);
}

TEST(mpi_sort, spreads_few_different_keys_and_the_keys_of_processes_that_have_few) {
    std::vector<int> few(4000);
    for (std::size_t i = 0; i != few.size(); ++i) few[i] = static_cast<int>(i % 3);
    EXPECT_LT(sorts(few), 4600u);
    const bool has_many = world().rank() == 0;
    std::vector<int> uneven(has_many ? 8000 : 16);
    std::iota(uneven.begin(), uneven.end(), has_many ? 0 : 1'000'000);
    EXPECT_LT(sorts(uneven), 8000 / job_size() + 600);
}

TEST(mpi_sort, a_comparator_that_throws_at_one_rank_ends_the_sort_at_all) {
    std::vector<int> mine(100, world().rank());
    const auto fails = [](int a, int b) {
        if (a == 0 && b == 0) throw std::domain_error("compared");  // only at rank 0, at first
        return a < b;
    };
    EXPECT_ANY_THROW(wait_for(mpi::sort(world(), mine, fails)));
    mpi::barrier(world(), block);
    EXPECT_EQ(mine.size(), 100u);
}

// The ends of the parts of a rank may then be out of order.
TEST(mpi_sort, a_comparator_that_contradicts_itself_loses_and_doubles_no_object) {
    for (std::uint32_t round = 1; round != 20; ++round) {
        std::vector<std::uint32_t> mine(100);
        std::iota(mine.begin(), mine.end(), static_cast<std::uint32_t>(100 * world().rank()));
        const auto contradicts = [round](std::uint32_t a, std::uint32_t b) {
            return ((a * 2654435761U + b * 2246822519U + round * 3266489917U) >> 16) % 2 != 0;
        };
        EXPECT_TRUE(wait_for(mpi::sort(world(), mine, contradicts)));
        mpi::parted<std::uint32_t> all;
        mpi::all_gather_v(world(), mine, all, block);
        std::sort(all.objects.begin(), all.objects.end());
        std::vector<std::uint32_t> expected(100 * job_size());
        std::iota(expected.begin(), expected.end(), 0U);
        EXPECT_EQ(all.objects, expected);
    }
}

}  // namespace
