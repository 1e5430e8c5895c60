// What survivors see when a process of the job dies or stands still. on_survivors.sh runs each case
// as a job of its own, in which the last rank is the victim.
#include <coppice/execution.hpp>
#include <coppice/mpi/bulk.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/environment.hpp>
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/internal/failure_watch.hpp>
#include <coppice/mpi/message.hpp>
#include <coppice/mpi/objects.hpp>
#include <coppice/mpi/remote.hpp>
#include <coppice/mpi/stop_source.hpp>
#include <coppice/mpi/varying.hpp>
#include <coppice/mpi/window.hpp>
#include <coppice/pool/default_pool.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include <allocations.hpp>
#include <sanitizers.hpp>

#include "doomed_operations.hpp"
#include "failing_malloc.hpp"

#include <mpi.h>
#include <signal.h>
#include <unistd.h>
#include <array>
#include <chrono>
#include <cstdio>
#include <future>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace {

namespace mpi = coppice::mpi;
using coppice::block;
using mpi_test::death;
using mpi_test::deaths;
using mpi_test::named_operation;
using mpi_test::operation;
using mpi_test::operations;
using mpi_test::steps;
using std::chrono::milliseconds;

// Under a sanitizer a process may be busy for longer.
mpi::environment_options watched() {
    mpi::environment_options options;
    options.failure_timeout = milliseconds(coppice::test::sanitized ? 1500 : 400);
    return options;
}

// For jobs in which no process fails silently, however busy the machine is.
mpi::environment_options patient() {
    mpi::environment_options options;
    options.failure_timeout = std::chrono::minutes(1);
    return options;
}

// Waits for all processes. On a busy machine one may be treated as failed before.
void meet(const mpi::communicator& world) {
    std::error_code error;
    mpi::barrier(world, block[error]);
}

template <class Run>
std::error_code error_of(Run run, const mpi::communicator& world, steps& s) {
    try {
        run(world, s);
    } catch (const std::system_error& e) {
        return e.code();
    }
    return {};
}

// Whatever is called next fails. MPI may have given errors of its own first.
void expect_failed(const mpi::environment& environment) {
    const mpi::communicator& world = environment.world();
    std::error_code error;
    while (environment.failed_rank() < 0) mpi::barrier(world, block[error]);
    mpi::barrier(world, block[error]);
    EXPECT_EQ(error, mpi::errc::process_failed) << error.message();
    std::array<int, 1> data{};
    mpi::receive(world, data, {mpi::any_source}, block[error]);
    EXPECT_EQ(error, mpi::errc::process_failed) << error.message();
    EXPECT_THROW((void)world.duplicate(), std::system_error);
    EXPECT_THROW(mpi::window<int>(world, 1), std::system_error);
}

class mpi_survivors : public testing::TestWithParam<std::tuple<named_operation, death>> {};

TEST_P(mpi_survivors, operations_end_with_an_error_if_a_process_dies) {
    const auto& [operation, how] = GetParam();
    mpi::environment environment(watched());
    steps s(environment.world(), how);
    meet(environment.world());
    const std::error_code error = error_of(operation.run, environment.world(), s);
    EXPECT_EQ(error.category(), mpi::mpi_category()) << error.message();
    expect_failed(environment);
}

INSTANTIATE_TEST_SUITE_P(each, mpi_survivors,
                         testing::Combine(testing::ValuesIn(operations),
                                          testing::Values(death::before_the_first,
                                                          death::before_the_second,
                                                          death::before_the_fourth,
                                                          death::at_any_moment, death::by_exit)),
                         [](const auto& info) {
                             return std::string(std::get<0>(info.param).name) + "_" +
                                    deaths[static_cast<int>(std::get<1>(info.param))];
                         });

// The survivors are in ~environment(), or on their way there.
TEST(mpi_survivors_of_the_end, the_environment_ends_if_a_process_dies_before_it_ends_its_own) {
    mpi::environment environment(watched());
    meet(environment.world());
    steps s(environment.world(), death::before_the_first);
    s.next();
}

// A program may catch the error, and begin again. MPI would wait for the dead process.
TEST(mpi_survivors_of_the_end, an_environment_after_a_failure_is_an_error) {
    {
        mpi::environment environment(watched());
        mpi::barrier(environment.world(), block);
        steps s(environment.world(), death::before_the_first);
        s.next();
        while (environment.failed_rank() < 0) std::this_thread::yield();
    }
    for (const mpi::environment_options& options : {watched(), mpi::environment_options{}}) {
        try {
            const mpi::environment another(options);
            ADD_FAILURE() << "MPI is used after a failure";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), mpi::errc::process_failed) << e.what();
        }
    }
}

TEST(mpi_survivors_of_the_end, the_death_of_a_process_stops_the_tokens_of_the_others) {
    mpi::environment environment(watched());
    steps s(environment.world(), death::before_the_first);
    const auto wait_for_stop = [&environment](const mpi::communicator& world, steps& own) {
        mpi::stop_source stop(world);
        meet(world);
        own.next();
        const auto never = coppice::this_thread::sync_wait(
            coppice::default_pool().get_scheduler().schedule_after(std::chrono::hours(1)) |
            coppice::execution::write_env(
                coppice::execution::prop(coppice::get_stop_token, stop.get_token())));
        EXPECT_FALSE(never.has_value());
        while (environment.failed_rank() < 0) std::this_thread::yield();  // MPI may tell it first
        EXPECT_FALSE(stop.request_stop());
    };
    // On a busy machine a process may be treated as failed before there is a stop source.
    (void)error_of(wait_for_stop, environment.world(), s);
}

void never_returns() {
    while (true) ::pause();
}

// The call has been stopped. The victim dies before or after the others wait for its reply.
TEST(mpi_survivors_of_the_end, remote_functions_end_if_a_process_dies_that_owes_a_reply) {
    mpi::environment environment(watched());
    steps s(environment.world(), death::at_any_moment);
    const auto leave_a_call = [](const mpi::communicator& world, steps& own) {
        mpi::remote_functions<&never_returns> calls(world);
        // On a busy machine a process may be treated as failed before, here or in the constructor.
        // The victim dies nevertheless: its function never returns.
        try {
            coppice::this_thread::sync_wait(coppice::execution::when_any(
                mpi::remote<&never_returns>(calls, world.size() - 1), mpi::barrier(world)));
        } catch (const std::system_error&) {
        }
        own.next();
    };
    (void)error_of(leave_a_call, environment.world(), s);
}

// MPI may tell of the death first. MPI itself would wait for the dead process in ~environment().
TEST(mpi_survivors_without_a_watch, a_timeout_ends_what_waits_for_a_message_of_a_dead_process) {
    mpi::environment environment;
    const mpi::communicator& world = environment.world();
    const int victim = world.size() - 1;
    mpi::barrier(world, block);
    steps s(world, death::before_the_first);
    s.next();
    std::array<int, 1> in{};
    std::vector<int> any;
    const auto ends = [](auto operation) {
        try {
            coppice::this_thread::sync_wait(
                std::move(operation) |
                coppice::execution::then([](mpi::envelope) { ADD_FAILURE() << "a message"; }) |
                coppice::execution::timeout(milliseconds(20)));
        } catch (const std::system_error&) {
        }
    };
    ends(mpi::receive(world, in, {victim}));
    ends(mpi::receive_all(world, any, {victim}));
    ends(mpi::probe<int>(world, {mpi::any_source}));
    if (!HasFailure()) std::puts("survived");
    std::fflush(stdout);
    ::_exit(0);
}

// A block that all contribute and one process cannot copy.
struct large {
    std::array<int, 4096> numbers;
};

// Rank 0 cannot copy its part of a step, for which the others wait.
template <class Algorithm>
void expect_failed_without_memory(const mpi::environment& environment, Algorithm algorithm) {
    const mpi::communicator& world = environment.world();
    meet(world);  // rank 0 may fail before the others have returned
    if (world.rank() == 0) mpi_test::fail_large_block(1);
    EXPECT_THROW(coppice::this_thread::sync_wait(std::move(algorithm)), std::system_error);
    mpi_test::large_block_has_failed();
    while (environment.failed_rank() < 0) std::this_thread::yield();
    expect_failed(environment);
}

TEST(mpi_all_survive, a_process_without_memory_for_a_step_of_an_algorithm_fails_at_all) {
    const mpi::environment environment(watched());
    expect_failed_without_memory(
        environment, mpi::map_reduce(
                         environment.world(), 100, large{}, [](std::size_t) { return large{}; },
                         [](const large& a, const large&) { return a; }));
}

TEST(mpi_all_survive, a_process_without_memory_for_the_object_of_another_fails_at_all) {
    const mpi::environment environment(watched());
    const mpi::communicator& world = environment.world();
    std::string text(mpi_test::large_block - 16,
                     'x');  // the message is no large block, its copy is
    expect_failed_without_memory(environment, mpi::broadcast_object(world, text, world.size() - 1));
}

TEST(mpi_all_survive, a_process_without_memory_for_an_object_to_combine_fails_at_all) {
    const mpi::environment environment(watched());
    std::string text(mpi_test::large_block - 16, 'x');  // as above
    expect_failed_without_memory(
        environment, mpi::all_reduce_object(environment.world(), text,
                                            [](std::string a, std::string) { return a; }));
}

// The arrays of an environment have room for 64 handles, and an operation may need two of them.
TEST(mpi_all_survive, a_process_without_room_for_a_collective_of_unknown_sizes_fails_at_all) {
    if (coppice::test::sanitized) GTEST_SKIP() << "a sanitizer owns operator new";
    const mpi::environment environment(watched());
    const mpi::communicator& world = environment.world();
    mpi::barrier(world, block);
    std::array<int, 63> numbers{};
    std::vector<std::future<mpi::envelope>> pending;
    for (int& each : numbers)
        pending.push_back(
            mpi::receive(world, std::span<int>(&each, 1), {0, 7}, coppice::use_future));
    mpi::parted<int> all;
    const std::vector<int> mine(2);
    auto gathering = mpi::all_gather_v(world, mine, all);  // makes room for the sizes
    if (world.rank() == 0) coppice::test::fail_allocation(1);
    EXPECT_THROW(coppice::this_thread::sync_wait(std::move(gathering)), std::system_error);
    if (world.rank() == 0) EXPECT_TRUE(coppice::test::allocation_has_failed());
    while (environment.failed_rank() < 0) std::this_thread::yield();
    expect_failed(environment);
    for (auto& each : pending) EXPECT_THROW(each.get(), std::system_error);
}

// All ranks survive: the victim gets the error when it goes on.
TEST(mpi_all_survive, a_process_that_stood_still_gets_the_error_too) {
    mpi::environment environment(watched());
    const mpi::communicator& world = environment.world();
    const int victim = world.size() - 1;
    std::array<int, 1> process{::getpid()};
    mpi::broadcast(world, process, victim, block);
    if (world.rank() == victim) ::kill(::getpid(), SIGSTOP);
    // The first error may be one of MPI's own, if another rank has ended before.
    std::error_code error;
    while (error != mpi::errc::process_failed) mpi::barrier(world, block[error]);
    expect_failed(environment);
    if (world.rank() == 0) ::kill(process[0], SIGCONT);
}

TEST(mpi_all_survive, the_environment_ends_as_usual_if_no_process_fails) {
    mpi::environment environment(patient());
    mpi::barrier(environment.world(), block);
    EXPECT_EQ(environment.failed_rank(), -1);
}

// The thread of a watch that ends at once begins later. That of rank 0 has time to begin.
TEST(mpi_all_survive, a_watch_that_ends_before_its_thread_begins_says_farewell) {
    mpi::environment environment(patient());
    const mpi::communicator& world = environment.world();
    mpi::internal::failure_watch watch(mpi::internal::communicator_access::owner(world),
                                       patient().failure_timeout);
    ASSERT_EQ(watch.begin(), MPI_SUCCESS);
    std::array<int, 1> out{}, in{};
    for (int n = world.rank() == 0 ? 20 : 0; n != 0; --n)
        mpi::send_receive(world, out, {0}, in, {0}, block);
    EXPECT_TRUE(watch.end());
}

// Without a failure timeout mpiexec ends the job, unless it was told not to.
TEST(mpi_none_survives, abort_ends_the_others_while_they_wait) {
    mpi::environment environment(watched());
    const mpi::communicator& world = environment.world();
    mpi::barrier(world, block);
    if (world.rank() == world.size() - 1) environment.abort(3);
    mpi::barrier(world, block);
    std::array<int, 1> never{};
    mpi::receive(world, never, {mpi::any_source}, block);
}

}  // namespace

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    const int status = RUN_ALL_TESTS();
    if (status == 0) std::puts("survived");
    std::fflush(stdout);
    return status;
}
