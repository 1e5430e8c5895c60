// What survivors do after a process has died, if MPI has fault tolerance. on_survivors.sh runs each
// case as a job of its own, in which the last rank is the victim.
#include <coppice/execution.hpp>
#include <coppice/mpi.hpp>
#include <coppice/pool/default_pool.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include "doomed_operations.hpp"

#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

namespace {

namespace ex = coppice::execution;
namespace mpi = coppice::mpi;
using coppice::block;
using coppice::this_thread::sync_wait;
using mpi_test::death;
using mpi_test::deaths;
using mpi_test::die;
using mpi_test::named_operation;
using mpi_test::operations;
using mpi_test::steps;

template <class F>
std::error_code error_of(F run) {
    try {
        run();
    } catch (const std::system_error& e) {
        return e.code();
    }
    return {};
}

// The library calls these in place of MPI's. In process 1 a call fails, as if a process had died
// and only this one had found that. The others have made the communicator.
int left_to_succeed = -1;  // no call fails
int end_of(int returned, MPI_Comm* made) {
    int rank = 0;
    ::PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != 1 || left_to_succeed-- != 0) return returned;
    *made = MPI_COMM_NULL;
    return MPIX_ERR_PROC_FAILED;
}

}  // namespace

extern "C" int MPI_Comm_dup(MPI_Comm from, MPI_Comm* made) {
    return end_of(::PMPI_Comm_dup(from, made), made);
}

extern "C" int MPI_Comm_split(MPI_Comm from, int color, int key, MPI_Comm* made) {
    return end_of(::PMPI_Comm_split(from, color, key, made), made);
}

namespace {

// Runs some of all kinds of operations.
void expect_works(const mpi::communicator& world, int size) {
    ASSERT_EQ(world.size(), size);
    std::array<int, 1> one{1};
    mpi::all_reduce(world, one, one, mpi::reduction::sum, block);
    EXPECT_EQ(one[0], size);
    const mpi::communicator other = world.duplicate();
    std::array<int, 1> out{other.rank()}, in{};
    const int next = (other.rank() + 1) % size, previous = (other.rank() + size - 1) % size;
    mpi::send_receive(other, out, {next}, in, {previous}, block);
    EXPECT_EQ(in[0], previous);
    const auto sum = sync_wait(mpi::map_reduce(
        world, 100, 0, [](std::size_t) { return 1; }, [](int a, int b) { return a + b; }));
    EXPECT_EQ(std::get<0>(sum.value()), 100);
    mpi::remote_functions<&mpi_test::add_one> calls(world);
    EXPECT_EQ(std::get<0>(sync_wait(mpi::remote<&mpi_test::add_one>(calls, next, 1)).value()), 2);
}

// A process that was not told otherwise is in an operation of the world, which must end.
void expect_recovers(const mpi::communicator& world, int dead = 1) {
    std::error_code error;
    mpi::barrier(world, block[error]);
    EXPECT_EQ(error, mpi::errc::process_failed) << error.message();
    EXPECT_THROW((void)world.duplicate(), std::system_error);
    expect_works(world.shrink(), world.size() - dead);
}

// Waits for all processes. It may fail already: the victim dies as soon as it has left.
void meet(const mpi::communicator& world) {
    std::error_code error;
    mpi::barrier(world, block[error]);
}

class mpi_recovery : public testing::TestWithParam<std::tuple<named_operation, death>> {};

TEST_P(mpi_recovery, survivors_go_on_after_an_operation_in_which_a_process_has_died) {
    const auto& [operation, how] = GetParam();
    mpi::environment environment;
    ASSERT_TRUE(environment.can_recover());
    const mpi::communicator& world = environment.world();
    steps s(world, how);
    meet(world);
    const std::error_code error = error_of([&] { operation.run(world, s); });
    EXPECT_EQ(error, mpi::errc::process_failed) << error.message();
    world.revoke();  // an operation on another communicator has found the failure
    expect_recovers(world);
}

std::vector<named_operation> without_windows() {
    std::vector<named_operation> some;
    for (const named_operation& each : operations)
        if (each.run != &mpi_test::fences) some.push_back(each);
    return some;
}

INSTANTIATE_TEST_SUITE_P(each, mpi_recovery,
                         testing::Combine(testing::ValuesIn(without_windows()),
                                          testing::Values(death::before_the_first,
                                                          death::before_the_second,
                                                          death::before_the_fourth,
                                                          death::at_any_moment, death::by_exit)),
                         [](const auto& info) {
                             return std::string(std::get<0>(info.param).name) + "_" +
                                    deaths[static_cast<int>(std::get<1>(info.param))];
                         });

// Only the process before the victim waits for it. The others wait for each other.
TEST(mpi_recovery_of_chains, a_death_ends_also_what_waits_for_a_survivor) {
    mpi::environment environment;
    const mpi::communicator& world = environment.world();
    meet(world);
    if (world.rank() == world.size() - 1) die();
    std::array<int, 1> in{};
    std::error_code error;
    mpi::receive(world, in, {world.rank() + 1}, block[error]);
    EXPECT_EQ(error, mpi::errc::process_failed) << error.message();
    expect_recovers(world);
}

TEST(mpi_recovery_of_chains, a_death_ends_receives_and_probes_of_any_source) {
    mpi::environment environment;
    const mpi::communicator& world = environment.world();
    const mpi::communicator other = world.duplicate();
    meet(world);
    if (world.rank() == world.size() - 1) die();
    std::array<int, 1> in{};
    std::vector<int> any;
    const std::error_code errors[] = {
        error_of([&] { mpi::receive(world, in, {mpi::any_source}, block); }),
        error_of([&] { mpi::receive_all(other, any, {mpi::any_source}, block); }),
        error_of([&] { mpi::probe<int>(other, {mpi::any_source}, block); })};
    for (const std::error_code error : errors)
        EXPECT_EQ(error, mpi::errc::process_failed) << error.message();
    expect_recovers(world);
}

// The function's communicator is not known, so nothing is revoked.
TEST(mpi_recovery_of_chains, a_death_ends_a_call_that_receives_from_any_source) {
    mpi::environment environment;
    const mpi::communicator& world = environment.world();
    meet(world);
    if (world.rank() == world.size() - 1) die();
    static int in = 0;
    const MPI_Comm over = world.native_handle();
    const std::error_code error = error_of([&] {
        mpi::call(
            world,
            [over](MPI_Request* r) noexcept {
                return MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 0, over, r);
            },
            block);
    });
    EXPECT_EQ(error, mpi::errc::process_failed) << error.message();
    world.revoke();
    expect_recovers(world);
}

TEST(mpi_recovery_of_chains, the_death_of_a_process_outside_disturbs_no_communicator) {
    mpi::environment environment;
    const mpi::communicator& world = environment.world();
    const int victim = world.size() - 1;
    const mpi::communicator part = world.split(world.rank() == victim ? 1 : 0);
    meet(world);
    if (world.rank() == victim) die();
    std::error_code error;
    while (!error) mpi::barrier(world, block[error]);
    EXPECT_EQ(error, mpi::errc::process_failed) << error.message();
    expect_works(part, world.size() - 1);
    expect_works(world.shrink(), world.size() - 1);
}

TEST(mpi_recovery_of_chains, the_death_of_a_process_stops_the_tokens_of_the_others) {
    mpi::environment environment;
    const mpi::communicator& world = environment.world();
    {
        mpi::stop_source stop(world);
        meet(world);
        if (world.rank() == world.size() - 1) die();
        const auto never = sync_wait(
            coppice::default_pool().get_scheduler().schedule_after(std::chrono::hours(1)) |
            ex::write_env(ex::prop(coppice::get_stop_token, stop.get_token())));
        EXPECT_FALSE(never.has_value());
    }
    expect_recovers(world);
}

// The victim dies when the others have left their run, or before.
TEST(mpi_recovery_of_chains, a_communicator_that_is_made_while_a_process_dies_is_an_error_at_all) {
    mpi::environment environment;
    const mpi::communicator& world = environment.world();
    meet(world);
    if (world.rank() == world.size() - 1) die();
    EXPECT_EQ(error_of([&] { (void)world.duplicate(); }), mpi::errc::process_failed);
    EXPECT_EQ(error_of([&] { (void)world.split(0); }), mpi::errc::process_failed);
    expect_recovers(world);
}

// Each round the last process of those that live dies, some while the others shrink.
TEST(mpi_last_survives, processes_die_one_after_the_other) {
    mpi::environment environment;
    const mpi::communicator& world = environment.world();
    mpi::communicator living = world.duplicate();
    for (int size = living.size(); size != 1; --size) {
        meet(living);
        if (living.rank() == size - 1) die();
        std::error_code error;
        mpi::barrier(living, block[error]);
        EXPECT_EQ(error, mpi::errc::process_failed) << error.message();
        living = living.shrink();
        ASSERT_EQ(living.size(), size - 1);
    }
    expect_works(living, 1);
}

TEST(mpi_last_survives, all_others_die_while_they_shrink) {
    mpi::environment environment;
    const mpi::communicator& world = environment.world();
    meet(world);
    if (world.rank() != 0) {
        steps s(world, death::at_any_moment);
        std::thread([rank = world.rank()] {
            for (int n = 100 * rank; n != 0; --n) std::this_thread::yield();
            die();
        }).detach();
    }
    std::error_code error;
    while (!error) mpi::barrier(world, block[error]);
    // Those that live longer are members at first.
    mpi::communicator living = world.shrink();
    while (living.size() != 1) {
        error = {};
        while (!error) mpi::barrier(living, block[error]);
        EXPECT_EQ(error, mpi::errc::process_failed) << error.message();
        living = living.shrink();
    }
    expect_works(living, 1);
}

TEST(mpi_recovery_of_agreements, survivors_agree_after_a_death_and_on_a_revoked_communicator) {
    mpi::environment environment;
    const mpi::communicator& world = environment.world();
    EXPECT_EQ(mpi::agree(world, 6 | 1 << 8, block), 6 | 1 << 8);
    EXPECT_EQ(mpi::agree(world, world.rank() == 0 ? 5 : 7, block), 5);
    if (world.rank() == world.size() - 1) die();
    EXPECT_EQ(mpi::agree(world, world.rank() == 0 ? 5 : 7, block), 5);
    world.revoke();
    EXPECT_EQ(mpi::agree(world, world.rank() == 0 ? 3 : 7, block), 3);
    const bool all = mpi::agree(world, true, block) != 0;
    EXPECT_TRUE(all);
    expect_recovers(world);
}

// Every process is in an operation that nothing else ends.
TEST(mpi_all_survive, revoke_ends_what_is_pending_at_all) {
    mpi::environment environment;
    const mpi::communicator& world = environment.world();
    const int next = (world.rank() + 1) % world.size();
    std::vector<int> large(1 << 20), in(1);
    meet(world);
    std::array<std::error_code, 4> errors;
    std::error_code of_send;  // there may be none: MPI throws away what is not received
    using coppice::use_await;
    sync_wait(ex::when_all(mpi::send(world, large, {next, 1}, use_await[of_send]),
                           mpi::receive(world, in, {next, 2}, use_await[errors[0]]),
                           mpi::receive(world, in, {mpi::any_source, 3}, use_await[errors[1]]),
                           mpi::probe<int>(world, {next, 4}, use_await[errors[2]]),
                           ex::just() | ex::then([&world] {
                               if (world.rank() == 0) world.revoke();
                           })));
    mpi::barrier(world, block[errors[3]]);
    for (const std::error_code error : errors)
        EXPECT_EQ(error, mpi::errc::process_failed) << error.message();
    EXPECT_TRUE(!of_send || of_send == mpi::errc::process_failed) << of_send.message();
    expect_recovers(world, 0);
}

// Otherwise a process would wait in the new communicator for process 1, which does not have it.
TEST(mpi_all_survive, a_communicator_that_one_process_has_not_made_is_an_error_at_all) {
    mpi::environment environment;
    const mpi::communicator& world = environment.world();
    mpi::communicator living = world.duplicate();
    const auto make = [&living](bool splits) {
        return splits ? living.split(0) : living.duplicate();
    };
    for (const bool splits : {false, true}) {
        const mpi::communicator made = make(splits);
        mpi::barrier(made, block);
        left_to_succeed = 0;
        EXPECT_EQ(error_of([&] { (void)make(splits); }), mpi::errc::process_failed);
        std::error_code error;
        mpi::barrier(living, block[error]);
        EXPECT_EQ(error, mpi::errc::process_failed) << error.message();
        mpi::barrier(made, block);
        left_to_succeed = -1;
        living = living.shrink();
    }
    expect_works(living, world.size());
    expect_works(world, world.size());
}

// Open MPI crashes if a communicator is revoked that another process has not made yet.
TEST(mpi_all_survive, a_communicator_may_be_revoked_as_soon_as_it_is_made) {
    mpi::environment environment;
    const mpi::communicator& world = environment.world();
    for (int n = 0; n != 20; ++n) {
        mpi::communicator living = world.duplicate();
        for (int step = 0; step != 3; ++step) {
            if (world.rank() == n % world.size()) living.revoke();
            living = living.shrink();
            ASSERT_EQ(living.size(), world.size());
        }
        mpi::barrier(living, block);
    }
}

TEST(mpi_all_survive, an_exception_of_one_is_known_to_all_by_an_agreement) {
    mpi::environment environment;
    const mpi::communicator& world = environment.world();
    std::error_code error;
    if (world.rank() == 0) {
        world.revoke();  // it leaves the step
    } else {
        while (!error) mpi::barrier(world, block[error]);
    }
    EXPECT_EQ(mpi::agree(world, !error && world.rank() != 0, block), 0);
    expect_recovers(world, 0);
}

}  // namespace

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    const int status = RUN_ALL_TESTS();
    if (status == 0) std::puts("survived");
    std::fflush(stdout);
    return status;
}
