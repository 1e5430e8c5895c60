// Collectives whose processes give or get parts of any size.
#include <coppice/execution.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/partition.hpp>
#include <coppice/mpi/varying.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include <sanitizers.hpp>

#include "job.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <vector>

namespace {

namespace mpi = coppice::mpi;
using coppice::block;
using mpi_test::job_size;
using mpi_test::wait_for;
using mpi_test::world;

struct particle {
    double position[3];
    std::int32_t id;
};

// Rank r gives r + 1 particles, apart from rank 1, which gives none.
std::size_t share_of(int rank) {
    return rank == 1 ? 0 : static_cast<std::size_t>(rank + 1);
}
std::vector<particle> particles_of(int rank) {
    return std::vector<particle>(share_of(rank), particle{{1, 2, 3}, rank});
}
mpi::partition shares() {
    std::vector<std::size_t> counts(job_size());
    for (int n = 0; n != world().size(); ++n) counts[static_cast<std::size_t>(n)] = share_of(n);
    return mpi::partition(counts);
}
void expect_particles_of_all(std::span<const particle> all, const mpi::partition& parts) {
    ASSERT_EQ(parts.parts(), world().size());
    ASSERT_EQ(all.size(), shares().total());
    for (int n = 0; n != world().size(); ++n) {
        EXPECT_EQ(parts.count(n), share_of(n));
        for (const particle& p : all.subspan(parts.offset(n), parts.count(n))) EXPECT_EQ(p.id, n);
    }
}

TEST(mpi_varying, gathers_and_scatters_structs_in_parts_that_the_receivers_know) {
    const mpi::partition parts = shares();
    const std::vector<particle> mine = particles_of(world().rank());
    std::vector<particle> all(parts.total()), back(mine.size());
    mpi::all_gather_v(world(), mine, all, parts, block);
    expect_particles_of_all(all, parts);
    mpi::scatter_v(world(), all, parts, back, 0, block);
    for (const particle& p : back) EXPECT_EQ(p.id, world().rank());
    std::vector<particle> at_root(world().rank() == 1 ? parts.total() : 0);
    mpi::gather_v(world(), back, at_root, world().rank() == 1 ? parts : mpi::partition(), 1, block);
    if (world().rank() == 1) expect_particles_of_all(at_root, parts);
}

TEST(mpi_varying, a_receiver_that_does_not_know_the_sizes_is_told_and_makes_room) {
    const std::vector<particle> mine = particles_of(world().rank());
    mpi::parted<particle> all, own;
    mpi::all_gather_v(world(), mine, all, block);
    expect_particles_of_all(all.objects, all.parts);
    mpi::scatter_v(world(), all.objects, all.parts, own, 1, block);
    ASSERT_EQ(own.objects.size(), mine.size());
    for (const particle& p : own.part(0)) EXPECT_EQ(p.id, world().rank());
    mpi::parted<particle> at_root;
    const auto gathered = wait_for(mpi::gather_v(world(), own.objects, at_root, 0));
    ASSERT_TRUE(gathered.has_value());
    EXPECT_EQ(at_root.parts.total(), all.parts.total());
    if (world().rank() == 0) {
        expect_particles_of_all(at_root.objects, at_root.parts);
    } else {
        EXPECT_TRUE(at_root.objects.empty());
    }
}

TEST(mpi_varying, all_to_all_v_moves_a_part_of_any_size_between_every_two_ranks) {
    // rank r sends r + n numbers to rank n, each of which is r
    std::vector<std::size_t> out_counts, in_counts;
    for (int n = 0; n != world().size(); ++n) {
        out_counts.push_back(static_cast<std::size_t>(world().rank() + n));
        in_counts.push_back(static_cast<std::size_t>(world().rank() + n));
    }
    const mpi::partition to(out_counts), of(in_counts);
    const std::vector<std::int16_t> out(to.total(), static_cast<std::int16_t>(world().rank()));
    std::vector<std::int16_t> in(of.total());
    mpi::all_to_all_v(world(), out, to, in, of, block);
    mpi::parted<std::int16_t> learned;
    mpi::all_to_all_v(world(), out, to, learned, block);
    EXPECT_EQ(learned.objects, in);
    for (int n = 0; n != world().size(); ++n) {
        EXPECT_EQ(learned.parts.count(n), of.count(n));
        for (const std::int16_t number : learned.part(n)) EXPECT_EQ(number, n);
    }
}

TEST(mpi_varying, a_receiver_without_memory_is_an_error_of_every_rank) {
    // Rank 0 would receive all parts: more than a vector can have, which therefore does not ask for
    // memory, which a sanitizer would report. The memory is not touched.
    struct block_of_bytes {
        char bytes[std::size_t{1} << 34];
    };
    static constexpr std::size_t claimed = 1 << 29;
    alignas(block_of_bytes) static char place[1];
    const std::span<const block_of_bytes> out(reinterpret_cast<block_of_bytes*>(place), claimed);
    mpi::parted<block_of_bytes> in;
    std::error_code error;
    mpi::gather_v(world(), out, in, 0, block[error]);
    // 2^29 blocks of 2 ranks are one number too few for value_too_large
    EXPECT_TRUE(error == std::errc::not_enough_memory || error == std::errc::value_too_large)
        << error.message();
    mpi::barrier(world(), block);  // the communicator is as before
}

TEST(mpi_varying, a_partition_of_more_than_mpi_counts_throws_and_says_so) {
    const std::array<std::size_t, 2> counts{std::size_t{1} << 31, 0};
    const std::array<std::size_t, 2> sum{(std::size_t{1} << 31) - 1, 1};
    EXPECT_THROW(mpi::partition{counts}, std::system_error);
    EXPECT_THROW(mpi::partition{sum}, std::system_error);
    const mpi::partition even = mpi::partition::even(11, 4);
    EXPECT_EQ(even.count(0), 3u);
    EXPECT_EQ(even.count(3), 2u);
    EXPECT_EQ(even.offset(3), 9u);
    EXPECT_EQ(even.total(), 11u);
}

}  // namespace
