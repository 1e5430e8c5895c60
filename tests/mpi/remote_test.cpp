// Calls of functions in other processes of the job.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/execution.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/message.hpp>
#include <coppice/mpi/remote.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include "job.hpp"

#include <mpi.h>
#include <array>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace {

coppice::internal::atomic<bool> refuses_large_sends{false};
coppice::internal::atomic<int> error_of_large_sends{MPI_ERR_NO_MEM};
coppice::internal::atomic<int> refused_sends{0};
coppice::internal::atomic<int> barriers{0};          // that this process has entered
coppice::internal::atomic<int> failing_receives{0};  // of one byte or more, with an odd tag
coppice::internal::atomic<int> probes{0};
coppice::internal::atomic<int> tests{0};  // one in a turn of the environment that waits

}  // namespace

extern "C" {

// These stand before MPI's own. The first two fail on demand as if MPI had no memory for a large
// message or for the receive of a reply, and the others count.
int MPI_Isend(const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm over,
              MPI_Request* made) {
    if (count > 100'000 && refuses_large_sends.load(coppice::internal::relaxed)) {
        refused_sends.fetch_add(1, coppice::internal::relaxed);
        return error_of_large_sends.load(coppice::internal::relaxed);
    }
    return PMPI_Isend(from, count, type, to, tag, over, made);
}
int MPI_Irecv(void* into, int count, MPI_Datatype type, int from, int tag, MPI_Comm over,
              MPI_Request* made) {
    if (tag % 2 == 1 && failing_receives.load(coppice::internal::relaxed) > 0) {
        failing_receives.fetch_sub(1, coppice::internal::relaxed);
        return MPI_ERR_NO_MEM;
    }
    return PMPI_Irecv(into, count, type, from, tag, over, made);
}
int MPI_Ibarrier(MPI_Comm over, MPI_Request* made) {
    barriers.fetch_add(1, coppice::internal::relaxed);
    return PMPI_Ibarrier(over, made);
}
int MPI_Iprobe(int from, int tag, MPI_Comm over, int* found, MPI_Status* status) {
    probes.fetch_add(1, coppice::internal::relaxed);
    const int returned = PMPI_Iprobe(from, tag, over, found, status);
    if (tag != mpi_test::tag_of_large) return returned;
    *found = 1;
    status->MPI_SOURCE = from;
    status->MPI_TAG = tag;
    return PMPI_Status_set_elements_x(status, MPI_BYTE, MPI_Count{3} << 30);
}
int MPI_Test(MPI_Request* request, int* done, MPI_Status* status) {
    tests.fetch_add(1, coppice::internal::relaxed);
    return PMPI_Test(request, done, status);
}
int MPI_Testsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
    tests.fetch_add(1, coppice::internal::relaxed);
    return PMPI_Testsome(count, requests, done, indices, statuses);
}

}  // extern "C"

namespace {

namespace ex = coppice::execution;
namespace mpi = coppice::mpi;
using coppice::block;
using coppice::task;
using mpi_test::next_rank;
using mpi_test::previous_rank;
using mpi_test::wait_for;
using mpi_test::world;

struct pixel {
    std::uint8_t red, green, blue;
};

coppice::internal::atomic<int> released{0};
coppice::internal::atomic<int> pings{0};

pixel brightened(pixel p, int by) {
    return {static_cast<std::uint8_t>(p.red + by), p.green, p.blue};
}
std::vector<int> repeated(const std::string& text, int times) noexcept {
    return std::vector<int>(static_cast<std::size_t>(times), static_cast<int>(text.size()));
}
void throws_a_code() {
    throw std::system_error(std::make_error_code(std::errc::no_space_on_device), "disk");
}
void throws_no_code() {
    throw std::system_error(std::error_code(), "nothing");
}
void throws_no_memory() {
    throw std::bad_alloc();
}
void throws_a_long_text(std::size_t size) {
    throw std::runtime_error(std::string(size, 'x'));
}
std::vector<int> waits_and_repeats(int times) {
    released.wait(0, coppice::internal::relaxed);
    return std::vector<int>(static_cast<std::size_t>(times), 1);
}
int throws_a_text(int i) {
    throw std::out_of_range("index " + std::to_string(i));
}
int waits() {
    released.wait(0, coppice::internal::relaxed);
    return 1;
}
std::string& remembered(const std::string& text) {
    static thread_local std::string last;
    last = text;
    return last;
}
const std::string& itself(const std::string& text) {
    return text;
}
std::string&& forwarded(std::string&& text) {
    return std::move(text);
}
void ping() {
    pings.fetch_add(1, coppice::internal::relaxed);  // a reply comes after it
}
using functions =
    mpi::remote_functions<&brightened, &repeated, &throws_a_code, &throws_no_code,
                          &throws_no_memory, &throws_a_long_text, &throws_a_text, &waits,
                          &waits_and_repeats, &ping, &remembered, &itself, &forwarded>;

TEST(mpi_remote, calls_pass_structs_strings_and_vectors_and_return_results) {
    functions calls(world());
    const auto p = wait_for(mpi::remote<&brightened>(calls, next_rank(), pixel{1, 2, 3}, 10));
    ASSERT_TRUE(p.has_value());
    EXPECT_EQ(std::get<0>(*p).red, 11);
    const std::string long_text(100'000, 'x');
    const auto v = wait_for(mpi::remote<&repeated>(calls, previous_rank(), long_text, 70'000));
    EXPECT_EQ(std::get<0>(*v), std::vector<int>(70'000, 100'000));
    EXPECT_TRUE(std::get<0>(*wait_for(mpi::remote<&repeated>(calls, 0, "", 0))).empty());
}

TEST(mpi_remote, a_result_that_is_a_reference_is_copied_from_the_object_of_the_function) {
    functions calls(world());
    const std::string text(1000, 'y');
    EXPECT_EQ(std::get<0>(*wait_for(mpi::remote<&remembered>(calls, next_rank(), text))), text);
    EXPECT_EQ(std::get<0>(*wait_for(mpi::remote<&itself>(calls, next_rank(), text))), text);
    EXPECT_EQ(std::get<0>(*wait_for(mpi::remote<&forwarded>(calls, next_rank(), text))), text);
}

TEST(mpi_remote, errors_of_the_function_and_of_the_rank_come_back) {
    functions calls(world());
    try {
        wait_for(mpi::remote<&throws_a_code>(calls, next_rank()));
        ADD_FAILURE() << "no error";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::no_space_on_device);
    }
    try {
        wait_for(mpi::remote<&throws_a_text>(calls, next_rank(), 17));
        ADD_FAILURE() << "no error";
    } catch (const mpi::remote_error& e) {
        EXPECT_STREQ(e.what(), "index 17");
        EXPECT_EQ(e.rank(), next_rank());
    }
}

template <class Sender>
std::error_code error_of(Sender&& call) {
    try {
        wait_for(std::forward<Sender>(call));
    } catch (const std::system_error& e) {
        return e.code();
    }
    return {};
}

TEST(mpi_remote, a_rank_that_no_process_has_is_an_error_also_if_mpi_has_a_meaning_for_it) {
    functions calls(world());
    for (const int rank : {world().size(), -1, MPI_PROC_NULL, mpi::any_source})
        EXPECT_EQ(error_of(mpi::remote<&ping>(calls, rank)), mpi::errc::invalid_rank) << rank;
}

TEST(mpi_remote, a_system_error_without_a_code_comes_back_as_its_text) {
    functions calls(world());
    EXPECT_THROW(wait_for(mpi::remote<&throws_no_code>(calls, next_rank())), mpi::remote_error);
}

TEST(mpi_remote, a_reply_that_has_no_memory_is_an_error_of_the_caller_and_not_of_the_next_call) {
    functions calls(world());
    EXPECT_EQ(error_of(mpi::remote<&throws_no_memory>(calls, next_rank())),
              std::errc::not_enough_memory);
    mpi::barrier(world(), block);
    refuses_large_sends.store(true, coppice::internal::relaxed);
    mpi::barrier(world(), block);
    EXPECT_EQ(error_of(mpi::remote<&repeated>(calls, next_rank(), "text", 70'000)),
              mpi::errc::no_resources);
    EXPECT_EQ(error_of(mpi::remote<&throws_a_long_text>(calls, previous_rank(), 200'000u)),
              mpi::errc::no_resources);
    mpi::barrier(world(), block);
    refuses_large_sends.store(false, coppice::internal::relaxed);
    mpi::barrier(world(), block);
    const auto v = wait_for(mpi::remote<&repeated>(calls, next_rank(), "text", 70'000));
    EXPECT_EQ(std::get<0>(*v).size(), 70'000u);
}

TEST(mpi_messages, an_exchange_without_memory_for_its_send_ends_and_takes_no_later_message) {
    const std::vector<char> large(200'000);
    std::array<int, 1> out{1}, in{};
    std::error_code error;
    refuses_large_sends.store(true, coppice::internal::relaxed);
    mpi::send_receive(world(), large, {next_rank(), 8}, in, {previous_rank(), 8}, block[error]);
    EXPECT_EQ(error, mpi::errc::no_resources) << error.message();
    refuses_large_sends.store(false, coppice::internal::relaxed);
    mpi::barrier(world(), block);
    mpi::send_receive(world(), out, {next_rank(), 8}, in, {previous_rank(), 8}, block);
    EXPECT_EQ(in[0], 1);
}

TEST(mpi_remote, a_reply_that_mpi_cannot_send_for_another_reason_is_that_error_of_the_caller) {
    functions calls(world());
    error_of_large_sends.store(MPI_ERR_INTERN, coppice::internal::relaxed);
    refuses_large_sends.store(true, coppice::internal::relaxed);
    mpi::barrier(world(), block);
    EXPECT_EQ(error_of(mpi::remote<&repeated>(calls, next_rank(), "text", 70'000)),
              mpi::errc::internal);
    mpi::barrier(world(), block);
    refuses_large_sends.store(false, coppice::internal::relaxed);
    error_of_large_sends.store(MPI_ERR_NO_MEM, coppice::internal::relaxed);
}

void calls_in_vain();
using vain_functions = mpi::remote_functions<&repeated, &calls_in_vain>;
vain_functions* functions_of_test = nullptr;
coppice::internal::atomic<int> barriers_of_test{-1};  // that were entered before the test ends

// Makes a call whose request cannot be sent. The call keeps its number while its scheduler does not
// run: until this process has entered the barrier of ~remote_functions, and many turns more.
void calls_in_vain() {
    const auto relaxed = coppice::internal::relaxed;
    ex::run_loop loop;
    ex::counting_scope scope;
    const int refused = refused_sends.load(relaxed);
    ex::spawn(mpi::remote<&repeated>(*functions_of_test, 0, std::string(200'000, 'x'), 1) |
                  ex::write_env(ex::prop(ex::get_scheduler, loop.get_scheduler())) |
                  ex::then([](const std::vector<int>&) { ADD_FAILURE() << "no error"; }) |
                  ex::upon_error([&loop](const std::exception_ptr&) noexcept { loop.finish(); }) |
                  ex::upon_stopped([]() noexcept {}),
              scope.get_token());
    while (refused_sends.load(relaxed) == refused) std::this_thread::yield();
    released.store(1, relaxed);
    while (barriers_of_test.load(relaxed) < 0 ||
           barriers.load(relaxed) == barriers_of_test.load(relaxed))
        std::this_thread::yield();
    const int turns = probes.load(relaxed);  // the listener makes one in each
    while (probes.load(relaxed) < turns + 200) std::this_thread::yield();
    loop.run();
    wait_for(scope.join());
}

TEST(mpi_remote, the_end_does_not_wait_for_the_reply_to_a_call_that_fails_meanwhile) {
    const auto relaxed = coppice::internal::relaxed;
    released.store(0, relaxed);
    refuses_large_sends.store(world().rank() == 1, relaxed);
    {
        vain_functions calls(world());
        functions_of_test = &calls;
        std::array<int, 1> word{};
        mpi::barrier(world(), block);
        if (world().rank() == 0) {
            wait_for(ex::when_any(
                mpi::remote<&calls_in_vain>(calls, 1) | ex::then([] {}),
                mpi::receive(world(), word, {1, 31}) | ex::then([](const mpi::envelope&) {})));
        } else if (world().rank() == 1) {
            while (released.load(relaxed) == 0) std::this_thread::yield();
            mpi::send(world(), word, {0, 31}, block);
            barriers_of_test.store(barriers.load(relaxed), relaxed);
        }
    }
    refuses_large_sends.store(false, relaxed);
}

TEST(mpi_remote, many_calls_at_once_all_arrive_and_each_gets_its_own_reply) {
    pings.store(0, coppice::internal::relaxed);
    {
        functions calls(world());
        const auto one = [&calls](int i) {
            return mpi::remote<&brightened>(calls, (world().rank() + i) % world().size(),
                                            pixel{static_cast<std::uint8_t>(i), 0, 0}, 1);
        };
        for (int i = 0; i != 10; ++i) {
            const auto got = wait_for(ex::when_all(one(i), one(50 + i), one(100 + i),
                                                   mpi::remote<&ping>(calls, next_rank())));
            ASSERT_TRUE(got.has_value());
            EXPECT_EQ(std::get<0>(*got).red, i + 1);
            EXPECT_EQ(std::get<1>(*got).red, i + 51);
            EXPECT_EQ(std::get<2>(*got).red, i + 101);
        }
    }  // no process leaves before all have called
    EXPECT_EQ(pings.load(coppice::internal::relaxed), 10);
}

TEST(mpi_remote, a_stopped_call_ends_while_the_function_runs_and_others_still_work) {
    released.store(0, coppice::internal::relaxed);
    functions calls(world());
    auto pending = mpi::remote<&waits>(calls, next_rank()) | ex::then([](int) { return 1; });
    const auto first = wait_for(
        ex::when_any(std::move(pending), mpi::barrier(world()) | ex::then([] { return 2; })));
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(std::get<0>(*first), 2);
    mpi::barrier(world(), block);                   // no rank releases before all have been stopped
    released.store(1, coppice::internal::relaxed);  // nothing else is passed
    released.notify_all();
    const auto later = wait_for(mpi::remote<&waits>(calls, next_rank()));
    EXPECT_EQ(std::get<0>(*later), 1);
}

// The sender of a large message waits for its receive, so no reply may be left.
TEST(mpi_remote, a_late_reply_of_any_size_is_thrown_away_and_the_next_calls_get_their_own) {
    released.store(0, coppice::internal::relaxed);
    functions calls(world());
    auto pending = mpi::remote<&waits_and_repeats>(calls, next_rank(), 1 << 20) |
                   ex::then([](const std::vector<int>&) { return 1; });
    const auto first = wait_for(
        ex::when_any(std::move(pending), mpi::barrier(world()) | ex::then([] { return 2; })));
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(std::get<0>(*first), 2);
    mpi::barrier(world(), block);                   // no rank releases before all have been stopped
    released.store(1, coppice::internal::relaxed);  // nothing else is passed
    released.notify_all();
    for (int round = 1; round != 20; ++round) {
        const auto later = wait_for(mpi::remote<&waits_and_repeats>(calls, next_rank(), round));
        EXPECT_EQ(std::get<0>(*later).size(), static_cast<std::size_t>(round));
    }
}

TEST(mpi_remote, the_late_reply_of_a_service_that_ends_does_not_reach_the_next_one) {
    for (int round = 0; round != 50; ++round) {
        released.store(1, coppice::internal::relaxed);
        functions calls(world());
        const auto got = wait_for(mpi::remote<&waits_and_repeats>(calls, next_rank(), 3));
        EXPECT_EQ(std::get<0>(*got).size(), 3u);
        mpi::barrier(world(), block);
        released.store(0, coppice::internal::relaxed);
        auto pending = mpi::remote<&waits>(calls, next_rank()) | ex::then([](int) { return 1; });
        wait_for(
            ex::when_any(std::move(pending), mpi::barrier(world()) | ex::then([] { return 2; })));
        released.store(1, coppice::internal::relaxed);  // nothing else is passed
        released.notify_all();
    }
}

task<> calls_once(functions& calls, int i, int& right) {
    const pixel out{static_cast<std::uint8_t>(i), 0, 0};
    const pixel got = co_await mpi::remote<&brightened>(calls, next_rank(), out, 1);
    if (got.red == static_cast<std::uint8_t>(i + 1)) ++right;
}

TEST(mpi_remote, thousands_of_calls_at_once_in_all_directions_get_their_replies) {
    functions calls(world());
    int right = 0;
    wait_for(ex::scoped([&calls, &right](auto scope) -> task<> {
        for (int i = 0; i != 2000; ++i) ex::spawn(calls_once(calls, i, right), scope);
        co_return;
    }));
    EXPECT_EQ(right, 2000);
}

// While a receive waits, each turn of the environment tests it, so that tests count turns.
task<> counts_probes_of_turns(int& probed, int& turns) {
    constexpr int rounds = 100;
    const auto relaxed = coppice::internal::relaxed;
    const int before = tests.load(relaxed);
    probed = probes.load(relaxed);
    while (tests.load(relaxed) < before + rounds && probes.load(relaxed) < probed + 100'000)
        std::this_thread::yield();
    probed = probes.load(relaxed) - probed;
    turns = tests.load(relaxed) - before;
    co_return;
}

TEST(mpi_remote, calls_that_wait_do_not_make_a_turn_of_the_environment_longer) {
    released.store(1, coppice::internal::relaxed);
    functions calls(world());
    released.store(0, coppice::internal::relaxed);
    mpi::barrier(world(), block);
    int probed = 0, turns = 0;
    std::array<int, 1> in{}, out{1};
    wait_for(ex::scoped([&](auto scope) -> task<> {
        for (int i = 0; i != 300; ++i)
            ex::spawn(mpi::remote<&waits>(calls, next_rank()) | ex::then([](int) {}), scope);
        ex::spawn(mpi::receive(world(), in, {previous_rank(), 30}) | ex::then([](auto) {}), scope);
        mpi::barrier(world(), block);
        co_await counts_probes_of_turns(probed, turns);
        mpi::barrier(world(), block);
        released.store(1, coppice::internal::relaxed);  // nothing else is passed
        released.notify_all();
        co_await mpi::send(world(), out, {next_rank(), 30});
    }));
    EXPECT_LT(probed, 30 * turns);
}

// The reply stays until another receive takes it. Its number must be free once then: two calls with
// one number would get one reply.
TEST(mpi_remote, a_reply_that_mpi_cannot_receive_is_an_error_and_frees_its_number_once) {
    functions calls(world());
    for (int fails = 1; fails != 4; ++fails) {
        mpi::barrier(world(), block);
        if (world().rank() == 0) {
            failing_receives.store(fails, coppice::internal::relaxed);
            EXPECT_EQ(error_of(mpi::remote<&ping>(calls, 1)), mpi::errc::no_resources);
            const auto one = [&calls](int i) {
                return mpi::remote<&brightened>(calls, 1, pixel{static_cast<std::uint8_t>(i), 0, 0},
                                                0);
            };
            while (failing_receives.load(coppice::internal::relaxed) != 0)
                std::this_thread::yield();
            for (int round = 0; round != 3; ++round) {
                const auto got = wait_for(ex::when_all(one(1), one(2), one(3), one(4)));
                ASSERT_TRUE(got.has_value());
                EXPECT_EQ(std::get<0>(*got).red, 1);
                EXPECT_EQ(std::get<1>(*got).red, 2);
                EXPECT_EQ(std::get<2>(*got).red, 3);
                EXPECT_EQ(std::get<3>(*got).red, 4);
            }
        }
    }
    mpi::barrier(world(), block);
}

}  // namespace
