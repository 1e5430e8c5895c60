// What the processes see if the default pool of one of them has ended: on_survivors.sh runs each
// case as a job of its own, in which all processes survive.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/execution.hpp>
#include <coppice/mpi/bulk.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/environment.hpp>
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/remote.hpp>
#include <coppice/mpi/work_sharing.hpp>
#include <coppice/pool/default_pool.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <exception>
#include <system_error>

namespace {

namespace ex = coppice::execution;
namespace mpi = coppice::mpi;
using coppice::block;

coppice::internal::atomic<int> calls_here{0};

int counts_a_call() {
    return calls_here.fetch_add(1, coppice::internal::relaxed);
}

// Ends the default pool of rank 1.
void end_a_pool(const mpi::communicator& world) {
    if (world.rank() == 1) coppice::default_pool().request_stop();
    mpi::barrier(world, block);
}

// Starts the operation. Nothing brings it back from the environment's thread. Returns its error.
template <class Sender>
std::error_code error_of(Sender sender) {
    std::error_code error;
    ex::counting_scope scope;
    ex::spawn(std::move(sender), scope.get_token(), [&error](const std::exception_ptr& e) noexcept {
        try {
            std::rethrow_exception(e);
        } catch (const std::system_error& known) {
            error = known.code();
        } catch (...) {
            ADD_FAILURE() << "another exception";
        }
    });
    coppice::this_thread::sync_wait(scope.join());
    return error;
}

void expect_failure_of_rank_1(const mpi::communicator& world, std::error_code error) {
    if (world.rank() == 1) {
        EXPECT_EQ(error, std::errc::operation_canceled) << error.message();
    } else {
        EXPECT_EQ(error, mpi::errc::failed_elsewhere) << error.message();
    }
}

TEST(mpi_all_survive, a_call_of_a_process_whose_pool_has_ended_is_an_error_and_calls_nothing) {
    const mpi::environment environment;
    const mpi::communicator& world = environment.world();
    end_a_pool(world);
    {
        mpi::remote_functions<&counts_a_call> calls(world);
        const auto error = error_of(mpi::remote<&counts_a_call>(calls, 1) | ex::then([](int) {}));
        EXPECT_EQ(error, std::errc::operation_canceled) << error.message();
        EXPECT_EQ(error_of(mpi::remote<&counts_a_call>(calls, 0) | ex::then([](int) {})),
                  std::error_code());
    }
    EXPECT_EQ(calls_here.load(coppice::internal::relaxed), world.rank() == 0 ? world.size() : 0);
}

TEST(mpi_all_survive, a_run_of_a_process_whose_pool_has_ended_ends_at_all_and_leaves_the_items) {
    const mpi::environment environment;
    const mpi::communicator& world = environment.world();
    end_a_pool(world);
    mpi::work_sharing<int> work(world);
    work.add(1);
    work.add(2);
    for (int round = 0; round != 3; ++round)
        expect_failure_of_rank_1(world, error_of(work.run([](int, mpi::work_found<int>& found) {
                                     found.add(1);  // so that no process ends the run otherwise
                                 })));
    if (world.rank() == 1) EXPECT_EQ(work.counts().worked, 0u);
}

TEST(mpi_all_survive, an_algorithm_of_a_process_whose_pool_has_ended_fails_at_all) {
    const mpi::environment environment;
    const mpi::communicator& world = environment.world();
    end_a_pool(world);
    expect_failure_of_rank_1(world, error_of(mpi::bulk(world, 1000, [](std::size_t) {})));
}

}  // namespace
