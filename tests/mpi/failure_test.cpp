// What survivors see when a process of the job dies or stands still. on_survivors.sh runs each case
// as a job of its own, in which the last rank is the victim.
#include <coppice/execution.hpp>
#include <coppice/mpi/bulk.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/environment.hpp>
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/message.hpp>
#include <coppice/mpi/remote.hpp>
#include <coppice/mpi/sort.hpp>
#include <coppice/mpi/stop_source.hpp>
#include <coppice/mpi/varying.hpp>
#include <coppice/mpi/window.hpp>
#include <coppice/mpi/work_sharing.hpp>
#include <coppice/pool/default_pool.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

namespace mpi = coppice::mpi;
using coppice::block;
using std::chrono::milliseconds;

mpi::environment_options watched() {
    mpi::environment_options options;
    options.failure_timeout = milliseconds(400);
    return options;
}

// For jobs in which no process fails silently, however busy the machine is.
mpi::environment_options patient() {
    mpi::environment_options options;
    options.failure_timeout = std::chrono::minutes(1);
    return options;
}

// How the victim dies: before its n-th operation, or by a thread at any moment.
enum class death { before_the_first, before_the_second, before_the_fourth, at_any_moment, by_exit };

[[noreturn]] void die() {
    ::kill(::getpid(), SIGKILL);
    std::abort();
}

// Every rank calls next() before each operation.
class steps {
public:
    steps(const mpi::communicator& world, death how)
        : is_victim_(world.rank() == world.size() - 1), how_(how) {}
    void next() {
        if (!is_victim_) return;
        const int n = count_++;
        if (how_ == death::before_the_first || (how_ == death::before_the_second && n == 1) ||
            (how_ == death::before_the_fourth && n == 3))
            die();
        if (how_ == death::by_exit) ::_exit(0);
        if (how_ == death::at_any_moment && n == 0)
            std::thread([] {
                for (int n = ::getpid() % 1000; n != 0; --n) std::this_thread::yield();
                die();
            }).detach();
    }

private:
    bool is_victim_;
    death how_;
    int count_ = 0;
};

// Each repeats an operation until it fails.
using operation = void (*)(const mpi::communicator& world, steps& s);

void barriers(const mpi::communicator& world, steps& s) {
    while (true) {
        s.next();
        mpi::barrier(world, block);
    }
}

void broadcasts(const mpi::communicator& world, steps& s) {
    std::vector<double> data(1 << 16);
    while (true) {
        s.next();
        mpi::broadcast(world, data, world.size() - 1, block);
    }
}

void all_reduces(const mpi::communicator& world, steps& s) {
    while (true) {
        std::vector<double> data(1 << 16, 1);  // freed after the failure
        s.next();
        mpi::all_reduce(world, data, data, mpi::reduction::sum, block);
        if (data.front() != world.size()) throw std::logic_error("the sum is wrong");
    }
}

void all_to_alls(const mpi::communicator& world, steps& s) {
    const std::size_t size = static_cast<std::size_t>(world.size());
    while (true) {
        const std::vector<int> from(size << 14, world.rank());
        std::vector<int> into(size << 14);
        s.next();
        mpi::all_to_all(world, from, into, block);
        if (into.back() != world.size() - 1) throw std::logic_error("a part is wrong");
    }
}

void parts(const mpi::communicator& world, steps& s) {
    const std::vector<int> mine(static_cast<std::size_t>(world.rank() + 1) << 12, world.rank());
    while (true) {
        mpi::parted<int> all;
        s.next();
        mpi::all_gather_v(world, mine, all, block);
        if (all.part(world.size() - 1).back() != world.size() - 1)
            throw std::logic_error("a part is wrong");
    }
}

// A send of this size waits for its receiver.
void large_messages(const mpi::communicator& world, steps& s) {
    const int next = (world.rank() + 1) % world.size();
    const int previous = (world.rank() + world.size() - 1) % world.size();
    while (true) {
        const std::vector<int> out(1 << 18, world.rank());
        std::vector<int> in(1 << 18);
        s.next();
        mpi::send_receive(world, out, {next}, in, {previous}, block);
        if (in.back() != previous) throw std::logic_error("the message is wrong");
    }
}

// The others send to the victim, which receives nothing.
void sends(const mpi::communicator& world, steps& s) {
    const int victim = world.size() - 1;
    std::vector<int> data(1 << 18);
    for (int n = 0; n != 4; ++n) s.next();
    if (world.rank() != victim) mpi::send(world, data, {victim}, block);
    mpi::receive(world, data, {victim, 1}, block);
}

void probes(const mpi::communicator& world, steps& s) {
    for (int n = 0; n != 4; ++n) s.next();
    mpi::probe<int>(world, {mpi::any_source, mpi::any_tag}, block);
    std::vector<int> data;
    mpi::receive_all(world, data, {mpi::any_source}, block);
}

// A flush holds the environment's thread until the other process answers.
void fences(const mpi::communicator& world, steps& s) {
    mpi::window<int> window(world, 1 << 12);
    const std::vector<int> data(1 << 12, world.rank());
    std::vector<int> before(1 << 12);
    const int next = (world.rank() + 1) % world.size();
    while (true) {
        s.next();
        mpi::put(window, data, next, 0, block);
        mpi::accumulate(window, data, next, 0, mpi::reduction::sum, block);
        mpi::fetch_accumulate(window, data, before, next, 0, mpi::reduction::sum, block);
        mpi::flush(window, next, block);
        mpi::fence(window, block);
    }
}

int add_one(int i) {
    return i + 1;
}

void remote_calls(const mpi::communicator& world, steps& s) {
    mpi::remote_functions<&add_one> calls(world);
    while (true) {
        s.next();
        const auto got = coppice::this_thread::sync_wait(
            mpi::remote<&add_one>(calls, (world.rank() + 1) % world.size(), 1));
        if (std::get<0>(got.value()) != 2) throw std::logic_error("the result is wrong");
    }
}

void shared_work(const mpi::communicator& world, steps& s) {
    mpi::work_sharing<int> work(world);
    while (true) {
        if (world.rank() == 0) work.add(12);
        s.next();
        coppice::this_thread::sync_wait(work.run([&s](int depth, mpi::work_found<int>& found) {
            s.next();
            for (int i = 0; depth != 0 && i != 2; ++i) found.add(depth - 1);
        }));
    }
}

// No process runs out of items, so the worker must look for the failure itself.
void endless_work(const mpi::communicator& world, steps& s) {
    mpi::work_sharing<int> work(world);
    work.add(1);
    coppice::this_thread::sync_wait(work.run([&s](int item, mpi::work_found<int>& found) {
        s.next();
        found.add(item);
    }));
}

void sorts(const mpi::communicator& world, steps& s) {
    while (true) {
        std::vector<int> numbers(1 << 12, -world.rank());
        s.next();
        coppice::this_thread::sync_wait(mpi::sort(world, numbers));
        coppice::this_thread::sync_wait(
            mpi::map_reduce(world, 100, 0, [](std::size_t) { return 1; }, std::plus<>()));
    }
}

// The environment's thread waits in MPI for the victim.
void duplicates(const mpi::communicator& world, steps& s) {
    while (true) {
        s.next();
        const mpi::communicator made = world.duplicate();
    }
}

struct named_operation {
    const char* name;
    operation run;
};
constexpr named_operation operations[] = {{"barriers", &barriers},
                                          {"broadcasts", &broadcasts},
                                          {"all_reduces", &all_reduces},
                                          {"all_to_alls", &all_to_alls},
                                          {"parts", &parts},
                                          {"large_messages", &large_messages},
                                          {"sends", &sends},
                                          {"probes", &probes},
                                          {"fences", &fences},
                                          {"remote_calls", &remote_calls},
                                          {"shared_work", &shared_work},
                                          {"endless_work", &endless_work},
                                          {"sorts", &sorts},
                                          {"duplicates", &duplicates}};
constexpr const char* deaths[] = {"first", "second", "fourth", "any", "exit"};

std::error_code error_of(operation run, const mpi::communicator& world, steps& s) {
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
    mpi::barrier(environment.world(), block);
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
    mpi::barrier(environment.world(), block);
    steps s(environment.world(), death::before_the_first);
    s.next();
}

TEST(mpi_survivors_of_the_end, the_death_of_a_process_stops_the_tokens_of_the_others) {
    mpi::environment environment(watched());
    mpi::stop_source stop(environment.world());
    mpi::barrier(environment.world(), block);
    steps s(environment.world(), death::before_the_first);
    s.next();
    const auto never = coppice::this_thread::sync_wait(
        coppice::default_pool().get_scheduler().schedule_after(std::chrono::hours(1)) |
        coppice::execution::write_env(
            coppice::execution::prop(coppice::get_stop_token, stop.get_token())));
    EXPECT_FALSE(never.has_value());
    while (environment.failed_rank() < 0) std::this_thread::yield();  // MPI may tell it first
    EXPECT_FALSE(stop.request_stop());
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
