// What an environment does before and after MPI's own start and end: on_survivors.sh runs each case
// as a job of its own, in which all processes survive.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/mpi/call.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/environment.hpp>
#include <coppice/mpi/message.hpp>
#include <coppice/mpi/remote.hpp>
#include <coppice/mpi/stop_source.hpp>
#include <coppice/mpi/window.hpp>
#include <coppice/mpi/work_sharing.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include <mpi.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

int level_max = MPI_THREAD_MULTIPLE;  // that MPI_Init_thread provides

}  // namespace

// This stands before MPI's own.
extern "C" int MPI_Init_thread(int* count, char*** words, int wanted, int* provided) {
    return PMPI_Init_thread(count, words, std::min(wanted, level_max), provided);
}

namespace {

namespace mpi = coppice::mpi;
using coppice::block;

void start_mpi() {
    int level = 0;
    ASSERT_EQ(::MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), MPI_SUCCESS);
    ASSERT_EQ(level, level_max);
}

void expect_that_mpi_has_ended() {
    try {
        const mpi::environment environment;
        ADD_FAILURE() << "MPI has started again";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::operation_not_permitted);
        EXPECT_NE(std::string(e.what()).find("MPI has ended"), std::string::npos) << e.what();
    }
}

MPI_Errhandler handler_of(MPI_Comm over) {
    MPI_Errhandler found = MPI_ERRHANDLER_NULL;
    ::MPI_Comm_get_errhandler(over, &found);
    return found;
}

TEST(mpi_all_survive, an_environment_after_another_is_an_error) {
    {
        const mpi::environment environment;
        mpi::barrier(environment.world(), block);
    }
    expect_that_mpi_has_ended();
}

TEST(mpi_all_survive, an_environment_after_the_program_has_ended_mpi_is_an_error) {
    start_mpi();
    ::MPI_Finalize();
    expect_that_mpi_has_ended();
}

TEST(mpi_all_survive, environments_over_the_programs_mpi_restore_its_error_handlers) {
    start_mpi();
    ::MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    ::MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int n = 0; n != 3; ++n) {
        {
            const mpi::environment environment;
            mpi::barrier(environment.world(), block);
            EXPECT_EQ(handler_of(MPI_COMM_WORLD), MPI_ERRORS_RETURN);
        }
        EXPECT_EQ(handler_of(MPI_COMM_WORLD), MPI_ERRORS_ARE_FATAL);
        EXPECT_EQ(handler_of(MPI_COMM_SELF), MPI_ERRORS_RETURN);
    }
    ::MPI_Finalize();
}

// Each thread passes on what the same thread of the previous process sends.
void pass_in_a_ring(const mpi::communicator& world, int thread) {
    const int next = (world.rank() + 1) % world.size();
    const int previous = (world.rank() + world.size() - 1) % world.size();
    for (int round = 0; round != 50; ++round) {
        const std::array<int, 1> out{100 * world.rank() + round};
        std::array<int, 1> in{};
        mpi::send_receive(world, out, {next, thread}, in, {previous, thread}, block);
        EXPECT_EQ(in[0], 100 * previous + round);
    }
}

TEST(mpi_all_survive, if_mpi_lets_one_thread_call_it_operations_of_all_threads_complete) {
    level_max = MPI_THREAD_FUNNELED;
    const mpi::environment environment;
    const mpi::communicator& world = environment.world();
    EXPECT_FALSE(environment.allows_calls_of_any_thread());
    std::vector<std::thread> threads;
    for (int n = 0; n != 4; ++n) threads.emplace_back([&world, n] { pass_in_a_ring(world, n); });
    for (std::thread& each : threads) each.join();
    const mpi::communicator other = world.duplicate();
    mpi::window<int> counters(other, 1);
    std::array<int, 1> one{1}, before{-1};
    mpi::fetch_accumulate(counters, one, before, 0, 0, mpi::reduction::sum, block);
    EXPECT_LT(before[0], world.size());
    mpi::fence(counters, block);
    if (world.rank() == 0) EXPECT_EQ(counters.local()[0], world.size());
}

// Starts each step when the one before has completed, on the environment's thread.
struct chain {
    explicit chain(const mpi::communicator& c) : over(&c) {}
    void step() {
        mpi::all_reduce(*over, sum, sum, mpi::reduction::maximum, [this](std::error_code e) {
            if (!error) error = e;
            if (++steps != steps_max && !e) {
                step();
            } else {
                done.set();
            }
        });
    }
    static constexpr int steps_max = 300;
    const mpi::communicator* over;
    std::array<int, 1> sum{1};
    int steps = 0;
    std::error_code error;
    coppice::block_latch done;
};

TEST(mpi_all_survive, a_chain_of_collectives_ends_alike_if_a_process_leaves_early) {
    std::optional<chain> steps;
    {
        const mpi::environment environment;
        steps.emplace(environment.world());
        mpi::barrier(environment.world(), block);
        steps->step();
        if (environment.world().rank() != 0) steps->done.wait();
    }
    EXPECT_FALSE(steps->error) << steps->error.message();
    EXPECT_EQ(steps->steps, chain::steps_max);
}

// The last rank cannot end the job on the environment's thread, which waits for the others.
TEST(mpi_ends_alone, abort_ends_the_process_if_the_environments_thread_is_held) {
    level_max = MPI_THREAD_FUNNELED;
    mpi::environment environment;
    const mpi::communicator& world = environment.world();
    if (world.rank() == world.size() - 1) {
        coppice::internal::atomic<int> is_inside{0};
        const MPI_Comm over = world.native_handle();
        mpi::call(
            world,
            [&is_inside, over](MPI_Request*) noexcept {
                is_inside.store(1, coppice::internal::release);
                is_inside.notify_all();
                MPI_Comm made = MPI_COMM_NULL;
                return ::MPI_Comm_dup(over, &made);
            },
            [](std::error_code) {});
        is_inside.wait(0, coppice::internal::acquire);
        environment.abort(3);
    }
    std::puts("survived");
    std::fflush(stdout);
    ::_exit(0);
}

void expect_that_mpi_must_be_multiple(const mpi::environment_options& options) {
    try {
        const mpi::environment environment(options);
        ADD_FAILURE() << "MPI provides MPI_THREAD_MULTIPLE";
    } catch (const std::system_error& e) {
        const std::string text = e.what();
        EXPECT_NE(text.find("has provided MPI_THREAD_FUNNELED"), std::string::npos) << text;
    }
}

TEST(mpi_all_survive, a_watch_for_failures_is_an_error_if_mpi_lets_one_thread_call_it) {
    level_max = MPI_THREAD_FUNNELED;
    expect_that_mpi_must_be_multiple({.failure_timeout = std::chrono::seconds(10)});
    expect_that_mpi_has_ended();
}

TEST(mpi_all_survive, an_environment_over_the_programs_mpi_of_one_thread_is_an_error) {
    level_max = MPI_THREAD_FUNNELED;
    start_mpi();
    expect_that_mpi_must_be_multiple({});
    EXPECT_EQ(handler_of(MPI_COMM_WORLD), MPI_ERRORS_ARE_FATAL);
    ::MPI_Finalize();
}

// Returns what a child of this process writes to stderr when it calls f(), which should abort. If
// it waits instead, SIGALRM ends it, and the message is missing.
template <class F>
std::string message_of_child(F f) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    const ::pid_t child = ::fork();
    if (child == 0) {
        ::dup2(ends[1], STDERR_FILENO);
        ::close(ends[0]);
        ::close(ends[1]);
        ::signal(SIGABRT, SIG_DFL);
        ::alarm(20);
        f();
        ::_exit(0);
    }
    ::close(ends[1]);
    std::string message;
    std::array<char, 256> part{};
    for (::ssize_t n = 0; (n = ::read(ends[0], part.data(), part.size())) > 0;)
        message.append(part.data(), static_cast<std::size_t>(n));
    ::close(ends[0]);
    EXPECT_EQ(::waitpid(child, nullptr, 0), child);
    return message;
}

void expect_to_contain(const std::string& message, const char* words) {
    EXPECT_NE(message.find(words), std::string::npos) << message;
}

// Makes a user of the environment. A child ends the environment before it.
template <class User, class... Args>
void expect_that_the_environment_ends_last(std::unique_ptr<mpi::environment>& environment,
                                           Args... args) {
    const User user(environment->world(), args...);
    expect_to_contain(message_of_child([&environment] { environment.reset(); }), "end those first");
}

TEST(mpi_all_survive, an_environment_that_ends_before_what_uses_it_says_so) {
    auto environment = std::make_unique<mpi::environment>();
    {
        const mpi::communicator copy = environment->world().duplicate();
        expect_to_contain(message_of_child([&environment] { environment.reset(); }),
                          "end those first");
    }
    expect_that_the_environment_ends_last<mpi::window<int>>(environment, 1U);
    expect_that_the_environment_ends_last<mpi::stop_source>(environment);
    expect_that_the_environment_ends_last<mpi::remote_functions<&start_mpi>>(environment);
    expect_that_the_environment_ends_last<mpi::work_sharing<int>>(environment);
    const mpi::communicator moved = environment->world().duplicate();
    mpi::communicator last = environment->world().split(0);
    last = environment->world().duplicate();
    mpi::barrier(last, block);
}

TEST(mpi_all_survive, a_child_of_fork_that_ends_the_environment_or_blocks_in_it_says_so) {
    auto environment = std::make_unique<mpi::environment>();
    const char* const words = "leave the child by exec or _exit";
    expect_to_contain(message_of_child([&environment] { environment.reset(); }), words);
    expect_to_contain(message_of_child([&environment] { (void)environment->world().duplicate(); }),
                      words);
    mpi::barrier(environment->world(), block);
}

TEST(mpi_all_survive, a_stop_source_that_ends_on_the_environments_thread_says_so) {
    const mpi::environment environment;
    auto stop = std::make_unique<mpi::stop_source>(environment.world());
    std::string message;
    coppice::block_latch done;
    mpi::barrier(environment.world(), [&](std::error_code) {
        message = message_of_child([&stop] { stop.reset(); });
        done.set();
    });
    done.wait();
    expect_to_contain(message, "mpi::stop_source ends on the environment's thread");
}

}  // namespace
