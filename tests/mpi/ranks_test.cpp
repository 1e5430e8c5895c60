// Ranks and roots that no process has, and processes that are in no communicator.
#include <coppice/execution.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/message.hpp>
#include <coppice/mpi/objects.hpp>
#include <coppice/mpi/varying.hpp>
#include <coppice/mpi/window.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include "job.hpp"

#include <mpi.h>
#include <array>
#include <climits>
#include <cstddef>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace {

namespace mpi = coppice::mpi;
using coppice::block;
using mpi_test::job_size;
using mpi_test::wait_for;
using mpi_test::world;

template <class F>
std::error_code error_of(F f) {
    try {
        f();
    } catch (const std::system_error& e) {
        return e.code();
    }
    return {};
}

// The last five mean something to MPI in other places, and differ between implementations.
std::vector<int> ranks_of_no_process() {
    return {world().size(),  INT_MIN,  INT_MAX,       -1,
            mpi::any_source, MPI_ROOT, MPI_UNDEFINED, MPI_PROC_NULL};
}

TEST(mpi_ranks, a_root_that_is_not_there_is_the_same_error_of_every_collective_at_every_rank) {
    std::vector<int> one(1), all(job_size());
    const mpi::partition parts(std::vector<std::size_t>(job_size(), 1));
    for (const int root : ranks_of_no_process()) {
        const std::array<std::error_code, 8> errors{
            error_of([&] { mpi::broadcast(world(), one, root, block); }),
            error_of([&] { mpi::reduce(world(), one, one, mpi::reduction::sum, root, block); }),
            error_of([&] { mpi::gather(world(), one, all, root, block); }),
            error_of([&] { mpi::scatter(world(), all, one, root, block); }),
            error_of([&] { mpi::gather_v(world(), one, all, parts, root, block); }),
            error_of([&] { mpi::scatter_v(world(), all, parts, one, root, block); }),
            error_of([&] {
                mpi::parted<int> into;
                mpi::gather_v(world(), one, into, root, block);
            }),
            error_of([&] {
                mpi::parted<int> into;
                mpi::scatter_v(world(), all, parts, into, root, block);
            }),
        };
        for (const std::error_code& error : errors)
            EXPECT_EQ(error, mpi::errc::invalid_root) << root << " of " << &error - errors.data();
    }
}

TEST(mpi_ranks, a_root_that_is_not_there_is_an_error_of_objects_and_changes_none) {
    for (const int root : ranks_of_no_process()) {
        std::string mine = "mine";
        std::vector<std::string> all{"kept"};
        EXPECT_EQ(error_of([&] { wait_for(mpi::broadcast_object(world(), mine, root)); }),
                  mpi::errc::invalid_root);
        EXPECT_EQ(error_of([&] { wait_for(mpi::gather_objects(world(), mine, all, root)); }),
                  mpi::errc::invalid_root);
        EXPECT_EQ(error_of([&] {
                      wait_for(mpi::reduce_object(
                          world(), mine,
                          [](const std::string& x, const std::string& y) { return x + y; }, root));
                  }),
                  mpi::errc::invalid_root);
        EXPECT_EQ(error_of([&] { wait_for(mpi::scatter_objects(world(), all, mine, root)); }),
                  mpi::errc::invalid_root);
        EXPECT_EQ(mine, "mine");
        EXPECT_EQ(all, std::vector<std::string>{"kept"});
    }
}

TEST(mpi_ranks, a_rank_that_is_not_there_is_an_error_of_messages) {
    std::array<int, 1> data{};
    std::vector<int> grown;
    std::string object;
    const mpi::address none{MPI_PROC_NULL};
    for (const int rank : ranks_of_no_process()) {
        if (rank == MPI_PROC_NULL) continue;
        const mpi::address there{rank};
        std::vector<std::error_code> errors{
            error_of([&] { mpi::send(world(), data, there, block); }),
            error_of([&] { mpi::send_receive(world(), data, there, data, none, block); }),
            error_of([&] { wait_for(mpi::send_object(world(), object, there)); }),
        };
        if (rank != mpi::any_source) {
            errors.push_back(error_of([&] { mpi::receive(world(), data, there, block); }));
            errors.push_back(error_of([&] { mpi::receive_all(world(), grown, there, block); }));
            errors.push_back(error_of([&] { mpi::probe<int>(world(), there, block); }));
            errors.push_back(
                error_of([&] { mpi::send_receive(world(), data, none, data, there, block); }));
            errors.push_back(
                error_of([&] { wait_for(mpi::receive_object(world(), object, there)); }));
        }
        for (const std::error_code& error : errors)
            EXPECT_EQ(error, mpi::errc::invalid_rank) << rank << " of " << &error - errors.data();
    }
}

TEST(mpi_ranks, a_rank_that_is_not_there_is_an_error_of_windows) {
    std::array<int, 1> data{};
    mpi::window<int> w(world(), 1);
    for (const int rank : ranks_of_no_process()) {
        const std::array<std::error_code, 5> errors{
            error_of([&] { mpi::put(w, data, rank, 0, block); }),
            error_of([&] { mpi::get(w, data, rank, 0, block); }),
            error_of([&] { mpi::accumulate(w, data, rank, 0, mpi::reduction::sum, block); }),
            error_of(
                [&] { mpi::fetch_accumulate(w, data, data, rank, 0, mpi::reduction::sum, block); }),
            error_of([&] { mpi::flush(w, rank, block); }),
        };
        for (const std::error_code& error : errors)
            EXPECT_EQ(error, mpi::errc::invalid_rank) << rank << " of " << &error - errors.data();
        EXPECT_EQ(w.count(rank), 0u);
    }
}

TEST(mpi_communicators, a_split_without_a_color_leaves_a_process_in_no_communicator) {
    const bool takes_part = world().rank() != 0;
    mpi::communicator others = world().split(takes_part ? 0 : mpi::no_color);
    EXPECT_EQ(static_cast<bool>(others), takes_part);
    if (takes_part) {
        std::array<int, 1> one{1}, count{};
        mpi::all_reduce(others, one, count, mpi::reduction::sum, block);
        EXPECT_EQ(count[0], world().size() - 1);
        EXPECT_EQ(others.rank(), world().rank() - 1);
    } else {
        EXPECT_EQ(others.native_handle(), MPI_COMM_NULL);
    }
    mpi::communicator moved = std::move(others);
    EXPECT_EQ(static_cast<bool>(moved), takes_part);
    EXPECT_FALSE(static_cast<bool>(others));  // NOLINT(bugprone-use-after-move)
    moved = world().split(mpi::no_color);
    EXPECT_FALSE(static_cast<bool>(moved));
    moved = world().split(0);
    EXPECT_EQ(moved.size(), world().size());
}

TEST(mpi_communicators, a_split_by_another_color_below_0_is_an_error_and_can_be_made_again) {
    for (const int color : {-1, -2, INT_MIN}) {
        if (world().rank() == 1) {
            EXPECT_EQ(error_of([color] { (void)world().split(color); }),
                      mpi::errc::invalid_argument);
        }
        EXPECT_EQ(world().split(INT_MAX, world().rank() == 1 ? INT_MIN : INT_MAX).size(),
                  world().size());
    }
}

}  // namespace
