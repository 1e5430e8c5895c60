// Reductions of numbers: every operator, of integers and others, and the parts of a result.
#include <coppice/mpi/collective.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include "job.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace {

namespace mpi = coppice::mpi;
using coppice::block;
using mpi_test::job_size;
using mpi_test::world;

// Each process has the bit of its rank, those of all processes but its own, and whether it is 0.
TEST(mpi_reductions, reductions_of_integers_combine_bits_and_truth) {
    const int rank = world().rank();
    const auto all = static_cast<std::uint8_t>((1 << world().size()) - 1);
    const auto bit = static_cast<std::uint8_t>(1 << rank);
    const std::array<std::uint8_t, 4> mine{bit, static_cast<std::uint8_t>(all ^ bit), 6,
                                           static_cast<std::uint8_t>(rank == 0 ? 0 : 8 + rank)};
    std::array<std::uint8_t, 4> got{};
    using numbers = std::array<std::uint8_t, 4>;
    mpi::all_reduce(world(), mine, got, mpi::reduction::bit_or, block);
    EXPECT_EQ(got[0], all);
    EXPECT_EQ(got[2], 6);
    mpi::all_reduce(world(), mine, got, mpi::reduction::bit_and, block);
    EXPECT_EQ(got, (numbers{0, 0, 6, 0}));
    mpi::all_reduce(world(), mine, got, mpi::reduction::bit_xor, block);
    EXPECT_EQ(got[0], all);
    EXPECT_EQ(got[2], world().size() % 2 * 6);
    mpi::all_reduce(world(), mine, got, mpi::reduction::logical_and, block);
    EXPECT_EQ(got, (numbers{1, 1, 1, 0}));
    mpi::all_reduce(world(), mine, got, mpi::reduction::logical_or, block);
    EXPECT_EQ(got, (numbers{1, 1, 1, 1}));
    mpi::reduce(world(), mine, got, mpi::reduction::bit_or, 1, block);
    EXPECT_EQ(got[0], rank == 1 ? all : 1);
    mpi::integer_reduction chosen = mpi::reduction::minimum;
    chosen = mpi::reduction::bit_or;
    mpi::scan(world(), mine, got, chosen, block);
    EXPECT_EQ(got[0], bit | (bit - 1));
}

TEST(mpi_reductions, an_exclusive_scan_of_integers_starts_with_the_identity) {
    const std::array<std::int16_t, 1> mine{12};
    const auto first_of = [&mine](mpi::integer_reduction op) {
        std::array<std::int16_t, 1> before{-7};
        mpi::exclusive_scan(world(), mine, before, op, block);
        if (world().rank() == 1) {
            EXPECT_EQ(before[0], 12);
        }
        mpi::broadcast(world(), before, 0, block);
        return before[0];
    };
    using of = mpi::reduction;
    EXPECT_EQ(first_of(of::sum), 0);
    EXPECT_EQ(first_of(of::product), 1);
    EXPECT_EQ(first_of(of::minimum), INT16_MAX);
    EXPECT_EQ(first_of(of::maximum), INT16_MIN);
    EXPECT_EQ(first_of(of::bit_and), -1);
    EXPECT_EQ(first_of(of::bit_or), 0);
    EXPECT_EQ(first_of(of::bit_xor), 0);
    EXPECT_EQ(first_of(of::logical_and), 1);
    EXPECT_EQ(first_of(of::logical_or), 0);
}

template <class T, class Op>
concept combines_by = requires(const mpi::communicator& c, std::vector<T>& v, Op op) {
    mpi::all_reduce(c, v, v, op);
    mpi::reduce(c, v, v, op, 0);
    mpi::reduce_scatter(c, v, v, op);
    mpi::scan(c, v, v, op);
    mpi::exclusive_scan(c, v, v, op);
};
using of_numbers = mpi::reduction::of_numbers;
using only_of_integers = mpi::reduction::only_of_integers;
static_assert(combines_by<double, of_numbers> && combines_by<double, mpi::reduction>);
static_assert(combines_by<int, of_numbers> && combines_by<int, mpi::reduction>);
static_assert(combines_by<int, only_of_integers> && combines_by<int, mpi::integer_reduction>);
static_assert(!combines_by<double, only_of_integers> && !combines_by<float, only_of_integers>);
static_assert(!combines_by<double, mpi::integer_reduction> && !combines_by<double, int>);
static_assert(!combines_by<bool, only_of_integers> && !combines_by<char, only_of_integers>);
static_assert(!combines_by<int, int>);

TEST(mpi_reductions, reduce_scatter_gives_each_process_its_part_of_the_result) {
    // Rank r has r + i at index i.
    std::vector<long> mine(3 * job_size());
    std::iota(mine.begin(), mine.end(), world().rank());
    std::array<long, 3> part{};
    mpi::reduce_scatter(world(), mine, part, mpi::reduction::sum, block);
    const long n = world().size();
    for (long i = 0; i != 3; ++i)
        EXPECT_EQ(part[static_cast<std::size_t>(i)],
                  n * (n - 1) / 2 + n * (3 * world().rank() + i));
    std::vector<double> numbers(job_size(), world().rank());
    std::array<double, 1> highest{};
    mpi::reduce_scatter(world(), numbers, highest, mpi::reduction::maximum, block);
    EXPECT_EQ(highest[0], world().size() - 1);
    EXPECT_EQ(numbers.back(), world().rank());
    std::array<long, 0> none{};
    mpi::reduce_scatter(world(), std::span<const long>(), none, mpi::reduction::sum, block);
}

}  // namespace
