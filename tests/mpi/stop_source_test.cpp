// A stop that one process of the job requests, and that reaches all.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/execution.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/message.hpp>
#include <coppice/mpi/stop_source.hpp>
#include <coppice/mpi/work_sharing.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include <allocations.hpp>

#include "job.hpp"

#include <array>
#include <cstddef>
#include <utility>

namespace {

namespace ex = coppice::execution;
namespace mpi = coppice::mpi;
using coppice::block;
using mpi_test::wait_for;
using mpi_test::world;

template <class Sender>
bool is_stopped_by(const mpi::stop_source& stop, Sender sender) {
    return !wait_for(std::move(sender) |
                     ex::write_env(ex::prop(coppice::get_stop_token, stop.get_token())))
                .has_value();
}

// Waits for a message that no process sends.
auto waits(std::array<int, 1>& in) {
    return mpi::receive(world(), in, {mpi::any_source, 40}) | ex::then([](mpi::envelope) {});
}

TEST(mpi_stop_source, a_request_of_one_rank_stops_what_waits_at_all) {
    mpi::stop_source stop(world());
    EXPECT_TRUE(stop.get_token().stop_possible());
    EXPECT_FALSE(stop.stop_requested());
    mpi::barrier(world(), block);
    if (world().rank() == 1) {
        EXPECT_TRUE(stop.request_stop());
        EXPECT_FALSE(stop.request_stop());
    }
    std::array<int, 1> in{};
    EXPECT_TRUE(is_stopped_by(stop, waits(in)));
    EXPECT_TRUE(stop.stop_requested());
    EXPECT_FALSE(stop.request_stop());
}

TEST(mpi_stop_source, requests_of_all_ranks_at_once_stop_each_once) {
    for (int round = 0; round != 50; ++round) {
        int calls = 0;
        mpi::stop_source stop(world());
        {
            const coppice::inplace_stop_callback count(stop.get_token(), [&calls] { ++calls; });
            mpi::barrier(world(), block);
            if ((world().rank() + round) % 3 != 0) stop.request_stop();  // one rank, or more
            std::array<int, 1> in{};
            EXPECT_TRUE(is_stopped_by(stop, waits(in)));
        }
        EXPECT_EQ(calls, 1);
    }
}

TEST(mpi_stop_source, without_a_request_no_token_is_stopped_and_the_source_ends) {
    coppice::internal::atomic<int> calls{0};
    {
        mpi::stop_source stop(world());
        const coppice::inplace_stop_callback count(
            stop.get_token(), [&calls] { calls.store(1, coppice::internal::relaxed); });
        mpi::barrier(world(), block);
        EXPECT_FALSE(stop.stop_requested());
    }
    EXPECT_EQ(calls.load(coppice::internal::relaxed), 0);
}

TEST(mpi_stop_source, a_source_that_ends_at_once_still_gets_the_requests_of_others) {
    for (int round = 0; round != 50; ++round) {
        mpi::stop_source stop(world());
        if (world().rank() == round % world().size()) stop.request_stop();
    }
    mpi::barrier(world(), block);
}

TEST(mpi_stop_source, stops_only_the_processes_of_its_communicator) {
    const mpi::communicator half = world().split(world().rank() % 2);
    mpi::stop_source of_half(half), of_all(world());
    if (world().rank() == 0) of_half.request_stop();
    std::array<int, 1> in{};
    if (world().rank() % 2 == 0) {
        EXPECT_TRUE(is_stopped_by(of_half, waits(in)));
    }
    mpi::barrier(world(), block);
    EXPECT_EQ(of_half.stop_requested(), world().rank() % 2 == 0);
    EXPECT_FALSE(of_all.stop_requested());
}

TEST(mpi_stop_source, ends_work_that_would_never_end_by_itself) {
    mpi::stop_source stop(world());
    mpi::work_sharing<int> work(world());
    work.add(1);
    const int last = world().size() - 1;
    EXPECT_TRUE(is_stopped_by(
        stop, work.run([&stop, last, n = 0](int item, mpi::work_found<int>& found) mutable {
            found.add(item);
            if (world().rank() == last && ++n == 1000) stop.request_stop();
        })));
    EXPECT_TRUE(stop.stop_requested());
}

TEST(mpi_stop_source, a_request_on_any_thread_allocates_nothing_at_its_rank) {
    mpi::stop_source stop(world());
    mpi::barrier(world(), block);
    std::size_t allocated = 0;
    if (world().rank() == 0) {
        const coppice::test::allocation_count counted;
        stop.request_stop();
        allocated = counted.so_far();
    }
    EXPECT_EQ(allocated, 0u);
    std::array<int, 1> in{};
    EXPECT_TRUE(is_stopped_by(stop, waits(in)));
}

}  // namespace
