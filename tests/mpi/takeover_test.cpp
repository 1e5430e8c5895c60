// What the failure of a process does to the calls of MPI: on_survivors.sh runs each case as a job
// of its own, in which all processes survive. What the watch for failures does if it cannot begin.
// The program's functions stand before those of MPI.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/environment.hpp>
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/message.hpp>
#include <coppice/mpi/remote.hpp>
#include <coppice/mpi/window.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include <allocations.hpp>
#include <sanitizers.hpp>

#include <mpi.h>
#include <signal.h>
#include <unistd.h>
#include <array>
#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

namespace mpi = coppice::mpi;
using coppice::block;
using coppice::internal::acquire;
using coppice::internal::atomic;
using coppice::internal::relaxed;
using coppice::internal::release;

atomic<bool> duplicates_fail{false};
atomic<bool> memory_is_missing_after_duplicating{false};
atomic<bool> calls_are_forbidden{false};
atomic<int> forbidden_calls{0};  // that were made nevertheless

// The test of this receive fails, and does not tell whether the receive has ended.
constexpr int tag_of_broken = 4712;
atomic<MPI_Request> broken{MPI_REQUEST_NULL};

// Where the last call of MPI_Comm_dup is.
constexpr int inside = 1, has_returned = 2, is_over = 3;  // the last: or was never made
atomic<int> duplicating{0};
void say_duplicating(int where) noexcept {
    duplicating.store(where, release);
    duplicating.notify_all();
}
void wait_while_duplicating_is(int where) noexcept {
    duplicating.wait(where, acquire);
}

void see() noexcept {
    if (calls_are_forbidden.load(relaxed)) forbidden_calls.fetch_add(1, relaxed);
}

// The receive for beats is the only one of 8 bytes with any source and tag 0. If it fails, so does
// the next one, as if MPI received nothing any longer. The receive that is posted stays.
atomic<MPI_Request*> of_beats{nullptr};
atomic<bool> beats_fail{false};
bool fails(MPI_Request* request) noexcept {
    if (!beats_fail.load(relaxed) || request != of_beats.load(relaxed)) return false;
    *request = MPI_REQUEST_NULL;
    return true;
}

}  // namespace

extern "C" {

int MPI_Irecv(void* into, int count, MPI_Datatype type, int from, int tag, MPI_Comm over,
              MPI_Request* made) {
    see();
    if (count == 8 && type == MPI_BYTE && from == MPI_ANY_SOURCE && tag == 0)
        of_beats.store(made, relaxed);
    if (fails(made)) return MPI_ERR_OTHER;
    const int returned = PMPI_Irecv(into, count, type, from, tag, over, made);
    if (tag == tag_of_broken) broken.store(*made, relaxed);
    return returned;
}
int MPI_Test(MPI_Request* request, int* done, MPI_Status* status) {
    see();
    if (fails(request)) {
        *done = 1;
        return MPI_ERR_OTHER;
    }
    if (*request != MPI_REQUEST_NULL && *request == broken.load(relaxed)) {
        *done = 0;
        return MPI_ERR_OTHER;
    }
    return PMPI_Test(request, done, status);
}
int MPI_Comm_dup(MPI_Comm from, MPI_Comm* made) {
    see();
    if (duplicates_fail.load(relaxed)) return MPI_ERR_NO_MEM;
    say_duplicating(inside);
    const int returned = PMPI_Comm_dup(from, made);
    say_duplicating(has_returned);
    if (memory_is_missing_after_duplicating.load(relaxed))
        std::thread([] { coppice::test::fail_allocation(1); }).join();
    return returned;
}
int MPI_Isend(const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm over,
              MPI_Request* made) {
    see();
    return PMPI_Isend(from, count, type, to, tag, over, made);
}
int MPI_Testsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
    see();
    return PMPI_Testsome(count, requests, done, indices, statuses);
}
int MPI_Testall(int count, MPI_Request* requests, int* done, MPI_Status* statuses) {
    see();
    return PMPI_Testall(count, requests, done, statuses);
}
int MPI_Wait(MPI_Request* request, MPI_Status* status) {
    see();
    return PMPI_Wait(request, status);
}
int MPI_Cancel(MPI_Request* request) {
    see();
    return PMPI_Cancel(request);
}
int MPI_Iprobe(int from, int tag, MPI_Comm over, int* found, MPI_Status* status) {
    see();
    return PMPI_Iprobe(from, tag, over, found, status);
}
int MPI_Ibarrier(MPI_Comm over, MPI_Request* made) {
    see();
    return PMPI_Ibarrier(over, made);
}
int MPI_Iallreduce(const void* from, void* into, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm over, MPI_Request* made) {
    see();
    return PMPI_Iallreduce(from, into, count, type, op, over, made);
}
int MPI_Comm_free(MPI_Comm* over) {
    see();
    return PMPI_Comm_free(over);
}
int MPI_Comm_rank(MPI_Comm over, int* rank) {
    see();
    return PMPI_Comm_rank(over, rank);
}
int MPI_Win_sync(MPI_Win over) {
    see();
    return PMPI_Win_sync(over);
}
int MPI_Win_flush(int rank, MPI_Win over) {
    see();
    return PMPI_Win_flush(rank, over);
}
int MPI_Win_unlock_all(MPI_Win over) {
    see();
    return PMPI_Win_unlock_all(over);
}
int MPI_Win_free(MPI_Win* over) {
    see();
    return PMPI_Win_free(over);
}
int MPI_Finalize() {
    see();
    return PMPI_Finalize();
}

}  // extern "C"

namespace {

// A process of a busy machine may be silent for long.
mpi::environment_options watched() {
    mpi::environment_options options;
    options.failure_timeout = std::chrono::seconds(2);
    return options;
}

void expect_each_kind_fails(const mpi::environment& environment, const mpi::communicator& over) {
    EXPECT_GE(environment.failed_rank(), 0);
    std::array<int, 1> one{1}, other{};
    std::vector<int> any;
    std::error_code error;
    mpi::send(over, one, {0, 1}, block[error]);
    EXPECT_EQ(error, mpi::errc::process_failed);
    mpi::receive(over, one, {0, 1}, block[error]);
    EXPECT_EQ(error, mpi::errc::process_failed);
    mpi::receive_all(over, any, {mpi::any_source, 1}, block[error]);
    EXPECT_EQ(error, mpi::errc::process_failed);
    mpi::probe<int>(over, {mpi::any_source, 1}, block[error]);
    EXPECT_EQ(error, mpi::errc::process_failed);
    mpi::all_reduce(over, one, other, mpi::reduction::sum, block[error]);
    EXPECT_EQ(error, mpi::errc::process_failed);
    EXPECT_THROW((void)over.duplicate(), std::system_error);
    EXPECT_THROW(mpi::window<int>(over, 1), std::system_error);
}

int add_one(int i) {
    return i + 1;
}

// Tells the victim that this process is in MPI_Comm_dup, and duplicates. Then tells it that the
// watch has taken over.
void is_held(const mpi::communicator& world) {
    const auto tell = [over = world.native_handle(), victim = world.size() - 1](int tag) {
        const int yes = 1;
        ::PMPI_Send(&yes, 1, MPI_INT, victim, tag, over);
    };
    const std::jthread teller([tell] {
        wait_while_duplicating_is(0);
        tell(2);
    });
    EXPECT_THROW((void)world.duplicate(), std::system_error);
    tell(4);
    if (duplicating.load(relaxed) == 0) say_duplicating(is_over);  // a false alarm came first
}

// Stands still until rank 0 lets it go on. Then it makes the call that holds the others, after the
// watches of all have taken over: otherwise the call would return to the environment's thread.
void stands_still(const mpi::communicator& world) {
    std::error_code error;
    std::array<int, 1> yes{};
    for (int n = 1; n != world.size(); ++n) mpi::receive(world, yes, {mpi::any_source, 2}, block);
    ::kill(::getpid(), SIGSTOP);
    mpi::receive(world, yes, {mpi::any_source, 3}, block[error]);
    EXPECT_EQ(error, mpi::errc::process_failed) << error.message();
    say_duplicating(inside);  // this process stays, too, until the call has returned
    std::thread([over = world.native_handle(), others = world.size() - 1] {
        int taken_over = 0;
        for (int n = 0; n != others; ++n)
            ::PMPI_Recv(&taken_over, 1, MPI_INT, MPI_ANY_SOURCE, 4, over, MPI_STATUS_IGNORE);
        MPI_Comm made = MPI_COMM_NULL;
        ::PMPI_Comm_dup(over, &made);
        say_duplicating(has_returned);
    }).detach();
}

// The watch of each survivor takes the place of the environment's thread, which is in MPI_Comm_dup
// and returns from there later.
TEST(mpi_all_survive, nothing_calls_mpi_after_a_takeover_also_if_the_held_call_returns) {
    {
        mpi::environment environment(watched());
        const mpi::communicator& world = environment.world();
        const mpi::communicator same = world.duplicate();
        mpi::window<int> window(world, 1);
        mpi::remote_functions<&add_one> functions(world);
        duplicating.store(0, relaxed);  // no thread makes the call now
        const int victim = world.size() - 1;
        std::array<int, 1> process{::getpid()};
        mpi::broadcast(world, process, victim, block);
        if (world.rank() == victim) {
            stands_still(world);
        } else {
            is_held(world);
        }
        calls_are_forbidden.store(true, relaxed);
        if (world.rank() == 0) ::kill(process[0], SIGCONT);
        wait_while_duplicating_is(inside);
        expect_each_kind_fails(environment, world);
        expect_each_kind_fails(environment, same);
        std::array<int, 1> one{1};
        std::error_code error;
        mpi::put(window, one, 0, 0, block[error]);
        EXPECT_EQ(error, mpi::errc::process_failed);
        for (int n = 0; n != 1000; ++n) std::this_thread::yield();  // the thread that has returned
    }
    EXPECT_EQ(forbidden_calls.load(relaxed), 0);
}

TEST(mpi_all_survive, a_beat_that_cannot_be_received_is_a_failure_of_its_sender) {
    mpi::environment environment(watched());
    const mpi::communicator& world = environment.world();
    std::error_code error;
    mpi::barrier(world, block[error]);  // rank 0 may fail before the others have returned
    if (world.rank() == 0) beats_fail.store(true, relaxed);
    // The first error may be one of MPI's own, if another rank has ended before.
    while (error != mpi::errc::process_failed) mpi::barrier(world, block[error]);
    expect_each_kind_fails(environment, world);
    if (world.rank() == 0) {
        EXPECT_EQ(environment.failed_rank(), world.size() - 1);
    }
}

// MPI may still write to the receive's memory, so it ends when the environment has failed.
TEST(mpi_all_survive, a_receive_whose_test_fails_without_an_end_fails_the_environments) {
    mpi::environment environment(watched());
    const mpi::communicator& world = environment.world();
    mpi::barrier(world, block);
    std::array<int, 1> in{};
    std::error_code error;
    if (world.rank() == 0) {
        mpi::receive(world, in, {0, tag_of_broken}, block[error]);
        EXPECT_EQ(error, mpi::errc::process_failed) << error.message();
    }
    while (error != mpi::errc::process_failed) mpi::barrier(world, block[error]);
    expect_each_kind_fails(environment, world);
}

void expect_that_no_watch_begins() {
    try {
        const mpi::environment environment(watched());
        ADD_FAILURE() << "no error";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), mpi::errc::no_resources);
        EXPECT_NE(std::string(e.what()).find("the watch for failures"), std::string::npos)
            << e.what();
    }
}

TEST(mpi_all_survive, a_watch_that_cannot_begin_is_an_error_and_leaves_no_mpi) {
    duplicates_fail.store(true, relaxed);
    expect_that_no_watch_begins();
    int has_ended = 0;
    ::MPI_Finalized(&has_ended);
    EXPECT_EQ(has_ended, 1);
    EXPECT_THROW(const mpi::environment again, std::system_error);
}

MPI_Errhandler handler_of_world() {
    MPI_Errhandler found = MPI_ERRHANDLER_NULL;
    ::MPI_Comm_get_errhandler(MPI_COMM_WORLD, &found);
    return found;
}
void start_mpi() {
    int level = 0;
    ASSERT_EQ(::MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), MPI_SUCCESS);
}

TEST(mpi_all_survive, a_watch_that_cannot_begin_leaves_the_programs_mpi_as_it_was) {
    start_mpi();
    duplicates_fail.store(true, relaxed);
    expect_that_no_watch_begins();
    duplicates_fail.store(false, relaxed);
    EXPECT_EQ(handler_of_world(), MPI_ERRORS_ARE_FATAL);
    {
        const mpi::environment environment;
        mpi::barrier(environment.world(), block);
    }
    EXPECT_EQ(handler_of_world(), MPI_ERRORS_ARE_FATAL);
    ::MPI_Finalize();
}

TEST(mpi_all_survive, watches_of_different_timeouts_begin_at_no_process) {
    start_mpi();
    int rank = 0;
    ::MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    mpi::environment_options options;
    options.failure_timeout = std::chrono::minutes(rank == 0 ? 2 : 1);
    try {
        const mpi::environment environment(options);
        ADD_FAILURE() << "no exception";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), mpi::errc::invalid_argument) << e.what();
    }
    ::MPI_Finalize();
}

TEST(mpi_all_survive, a_watch_that_has_no_memory_at_one_process_begins_at_none) {
    if (coppice::test::sanitized) GTEST_SKIP() << "a sanitizer owns operator new";
    start_mpi();
    int rank = 0;
    ::MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    memory_is_missing_after_duplicating.store(rank == 0, relaxed);
    expect_that_no_watch_begins();
    memory_is_missing_after_duplicating.store(false, relaxed);
    EXPECT_TRUE(rank != 0 || coppice::test::allocation_has_failed());
    ::MPI_Finalize();
}

}  // namespace
