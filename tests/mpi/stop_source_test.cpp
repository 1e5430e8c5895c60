// A stop that one process of the job requests, and that reaches all.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/execution.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/message.hpp>
#include <coppice/mpi/stop_source.hpp>
#include <coppice/mpi/varying.hpp>
#include <coppice/mpi/work_sharing.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include <allocations.hpp>

#include "job.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

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

// A callback that ends with its call, so that its source may end after that. A call while the
// callback is made leaves its end to the maker.
class last_callback {
public:
    explicit last_callback(coppice::inplace_stop_token token) {
        callback_.emplace(token, call{this});
        end_if_second();
    }
    bool was_called() const noexcept { return was_called_.load(coppice::internal::acquire); }
    // Leaves a callback that was not called in its source, which is gone.
    static void end(std::unique_ptr<last_callback> c) noexcept {
        if (!c->was_called()) static_cast<void>(c.release());
    }

private:
    struct call {
        last_callback* of;
        void operator()() const noexcept {
            last_callback& self = *of;
            self.end_if_second();
            self.was_called_.store(true, coppice::internal::release);
        }
    };
    void end_if_second() noexcept {
        if (is_second_.exchange(true, coppice::internal::acq_rel)) callback_.reset();
    }

    coppice::internal::atomic<bool> is_second_{false};
    coppice::internal::atomic<bool> was_called_{false};
    std::optional<coppice::inplace_stop_callback<call>> callback_;
};

TEST(mpi_stop_source, a_source_that_ends_at_once_still_gets_the_requests_of_others) {
    for (int round = 0; round != 50; ++round) {
        std::unique_ptr<last_callback> heard;
        {
            mpi::stop_source stop(world());
            heard = std::make_unique<last_callback>(stop.get_token());
            if (world().rank() == round % world().size()) stop.request_stop();
        }
        EXPECT_TRUE(heard->was_called()) << round;
        last_callback::end(std::move(heard));
    }
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
    work.add(world().rank());
    const int last = world().size() - 1;
    EXPECT_TRUE(is_stopped_by(
        stop, work.run([&stop, last, n = 0](int item, mpi::work_found<int>& found) mutable {
            found.add(item);
            if (world().rank() == last && ++n == 1000) stop.request_stop();
        })));
    EXPECT_TRUE(stop.stop_requested());
    // Each item is still at one process.
    const std::vector<int> here = work.take_all();
    mpi::parted<int> left;
    mpi::all_gather_v(world(), here, left, block);
    std::vector<int> expected(mpi_test::job_size());
    std::iota(expected.begin(), expected.end(), 0);
    std::sort(left.objects.begin(), left.objects.end());
    EXPECT_EQ(left.objects, expected);
}

// Each kind of operation that a stop ends is pending at each rank, twice.
TEST(mpi_stop_source, operations_that_are_pending_at_all_ranks_end_as_stopped_and_lose_no_message) {
    mpi::stop_source stop(world());
    std::array<int, 1> first{}, second{};
    std::vector<int> third, fourth;
    coppice::internal::atomic<int> stopped{0};
    const mpi::address from{mpi_test::previous_rank(), 41};
    ex::counting_scope pending;
    const auto begin = [&](auto operation) {
        ex::spawn(std::move(operation) | ex::then([](const mpi::envelope&) {
                      ADD_FAILURE() << "not stopped";
                  }) | ex::upon_stopped([&stopped]() noexcept {
                      stopped.fetch_add(1, coppice::internal::relaxed);
                  }) | ex::write_env(ex::prop(coppice::get_stop_token, stop.get_token())),
                  pending.get_token(), [](auto&&) { ADD_FAILURE() << "an error"; });
    };
    begin(mpi::receive(world(), first, from));
    begin(mpi::receive(world(), second, from));
    begin(mpi::receive_all(world(), third, from));
    begin(mpi::receive_all(world(), fourth, from));
    begin(mpi::probe<int>(world(), from));
    begin(mpi::probe<int>(world(), {mpi::any_source, 41}));
    mpi::barrier(world(), block);
    if (world().rank() == world().size() - 1) {
        EXPECT_TRUE(stop.request_stop());
    }
    wait_for(pending.join());
    EXPECT_EQ(stopped.load(coppice::internal::relaxed), 6);
    EXPECT_TRUE(stop.stop_requested());
    mpi::barrier(world(), block);  // no rank sends before all have been stopped
    const std::array<int, 1> out{world().rank()};
    auto sent = mpi::send(world(), out, {mpi_test::next_rank(), 41}, coppice::use_future);
    mpi::receive(world(), first, from, block);
    sent.get();
    EXPECT_EQ(first[0], mpi_test::previous_rank());
    EXPECT_EQ(second[0], 0);
    EXPECT_TRUE(third.empty() && fourth.empty());
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
