// The operations of mpi, between the processes of one job; on_ranks.sh runs it on 2 and on 4. Every
// process runs the same cases in the same order.
#include <coppice/execution.hpp>
#include <coppice/mpi/call.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/environment.hpp>
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/message.hpp>
#include <coppice/mpi/partition.hpp>
#include <coppice/mpi/varying.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include <allocations.hpp>
#include <sanitizers.hpp>

#include "job.hpp"

#include <sys/mman.h>
#include <array>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <string_view>
#include <system_error>
#include <tuple>
#include <vector>

namespace {

namespace ex = coppice::execution;
namespace mpi = coppice::mpi;
using coppice::block;
using coppice::task;
using mpi_test::job_size;
using mpi_test::next_rank;
using mpi_test::previous_rank;
using mpi_test::wait_for;
using mpi_test::world;

template <class Sender, class Env = ex::env<>>
constexpr bool can_be_stopped = ex::sends_stopped<Sender, Env>;

// Stops the first receive or probe while it is pending: the second child of the race ends first.
template <class Sender>
bool is_stopped_by_a_barrier(Sender pending) {
    bool was_stopped = false;
    auto watched = std::move(pending) | ex::then([](mpi::envelope) { return 1; }) |
                   ex::let_stopped([&was_stopped] {
                       was_stopped = true;
                       return ex::just(2);
                   });
    wait_for(ex::when_any(std::move(watched), mpi::barrier(world()) | ex::then([] { return 3; })));
    mpi::barrier(world(), block);  // no process sends before all have been stopped
    return was_stopped;
}

TEST(mpi_stop, ends_a_pending_receive_and_loses_no_message) {
    std::array<int, 1> out{world().rank()}, in{-1};
    EXPECT_TRUE(is_stopped_by_a_barrier(mpi::receive(world(), in, {previous_rank(), 11})));
    EXPECT_EQ(in[0], -1);
    auto sent = mpi::send(world(), out, {next_rank(), 11}, coppice::use_future);
    mpi::receive(world(), in, {previous_rank(), 11}, block);
    sent.get();
    EXPECT_EQ(in[0], previous_rank());
}

TEST(mpi_stop, ends_pending_looks_for_messages) {
    std::vector<int> in;
    EXPECT_TRUE(is_stopped_by_a_barrier(mpi::receive_all(world(), in, {previous_rank(), 12})));
    EXPECT_TRUE(is_stopped_by_a_barrier(mpi::probe<int>(world(), {previous_rank(), 12})));
}

// Each round, the message and the stop or the deadline race; what all rounds receive must be whole.
TEST(mpi_stop, a_receive_that_races_with_its_message_ends_with_one_of_both) {
    for (int round = 0; round != 200; ++round) {
        std::array<int, 1> out{round}, in{-1};
        auto sent = mpi::send(world(), out, {next_rank(), 13}, coppice::use_future);
        coppice::inplace_stop_source source;
        const bool stops = round % 2 == 0;
        const ex::instant soon =
            ex::monotonic_now() + ex::time_span(std::chrono::microseconds(round));
        auto got = mpi::receive(
            world(), in, {previous_rank(), 13},
            coppice::bind_env(
                ex::env(ex::prop(coppice::get_stop_token, source.get_token()),
                        ex::prop(ex::get_deadline, stops ? ex::instant::never() : soon)),
                coppice::use_future));
        if (stops) source.request_stop();
        try {
            got.get();
        } catch (const std::system_error& e) {
            ASSERT_EQ(e.code(), std::errc::operation_canceled);
            ASSERT_EQ(in[0], -1);
            mpi::receive(world(), in, {previous_rank(), 13}, block);
        }
        sent.get();
        ASSERT_EQ(in[0], round);
    }
}

TEST(mpi_stop, what_mpi_cannot_cancel_has_no_set_stopped) {
    std::array<int, 1> a{};
    auto stopping = ex::prop(coppice::get_stop_token, coppice::inplace_stop_token());
    using env = decltype(stopping);
    EXPECT_TRUE((can_be_stopped<decltype(mpi::receive(world(), a, {0})), env>));
    EXPECT_TRUE((can_be_stopped<decltype(mpi::probe<int>(world(), {0})), env>));
    EXPECT_FALSE((can_be_stopped<decltype(mpi::send(world(), a, {0})), env>));
    EXPECT_FALSE((can_be_stopped<decltype(mpi::barrier(world())), env>));
}

TEST(mpi_collectives, reductions_combine_each_index_over_all_ranks) {
    const int n = world().size();
    std::array<int, 2> mine{world().rank(), 1}, all{};
    mpi::all_reduce(world(), mine, all, mpi::reduction::sum, block);
    EXPECT_EQ(all, (std::array<int, 2>{n * (n - 1) / 2, n}));
    mpi::reduce(world(), mine, all, mpi::reduction::maximum, 1, block);
    if (world().rank() == 1) {
        EXPECT_EQ(all, (std::array<int, 2>{n - 1, 1}));
    }
    std::array<double, 1> same{2};
    mpi::all_reduce(world(), same, same, mpi::reduction::product, block);
    EXPECT_EQ(same[0], 1 << n);
}

TEST(mpi_collectives, all_gather_gives_the_objects_of_all_ranks_to_each) {
    const std::array<bool, 1> odd{world().rank() % 2 == 1};
    std::vector<char> mine(2, static_cast<char>('a' + world().rank())), all(2 * job_size());
    mpi::all_gather(world(), mine, all, block);
    EXPECT_EQ(all[2], 'b');
    const std::unique_ptr<bool[]> odds(new bool[job_size()]);
    mpi::all_gather(world(), odd, std::span<bool>(odds.get(), job_size()), block);
    EXPECT_TRUE(odds[1]);
    EXPECT_FALSE(odds[0]);
}

TEST(mpi_collectives, broadcast_scatter_gather_and_all_to_all_move_each_part_to_its_rank) {
    std::vector<long> parts(2 * job_size()), mine(2), back(2 * job_size());
    if (world().rank() == 0) std::iota(parts.begin(), parts.end(), 10);
    mpi::scatter(world(), parts, mine, 0, block);
    EXPECT_EQ(mine[1], 11 + 2 * world().rank());
    mpi::gather(world(), mine, back, 0, block);
    if (world().rank() == 0) {
        EXPECT_EQ(back, parts);
    }
    mpi::broadcast(world(), parts, 0, block);
    EXPECT_EQ(parts.back(), static_cast<long>(9 + parts.size()));
    std::vector<int> to(job_size(), world().rank()), from(job_size());
    mpi::all_to_all(world(), to, from, block);
    for (std::size_t i = 0; i != from.size(); ++i) EXPECT_EQ(from[i], static_cast<int>(i));
}

// Starts the operation at rank 0 after all others have started it and have written to `into`.
template <class Start>
void leaves_alone(std::vector<int>& into, Start start) {
    std::array<int, 1> started{}, written{};
    for (int n = 1; n != world().size() && world().rank() == 0; ++n) {
        mpi::receive(world(), started, {n, 14}, block);
        mpi::receive(world(), written, {n, 15}, block);
    }
    auto done = start();
    if (world().rank() != 0) {
        mpi::send(world(), started, {0, 14}, block);  // starts after the operation
        into.assign(into.size(), 7);
        mpi::send(world(), written, {0, 15}, block);
    }
    done.get();
    EXPECT_EQ(into.front() == 7, world().rank() != 0);
    EXPECT_EQ(into.back() == 7, world().rank() != 0);
}

// What MPI does not use the program may use meanwhile, also if MPI gets copies. The operations are
// large, so they are pending until rank 0 has started them.
TEST(mpi_collectives, leave_the_memory_for_results_alone_at_ranks_that_get_none) {
    constexpr std::size_t count = 1 << 16;
    std::vector<int> mine(count, 1), reduced(count), gathered(count * job_size());
    leaves_alone(reduced, [&mine, &reduced] {
        return mpi::reduce(world(), mine, reduced, mpi::reduction::sum, 0, coppice::use_future);
    });
    leaves_alone(gathered, [&mine, &gathered] {
        return mpi::gather(world(), mine, gathered, 0, coppice::use_future);
    });
    gathered.assign(gathered.size(), 0);
    const mpi::partition parts(std::vector<std::size_t>(job_size(), count));
    leaves_alone(gathered, [&mine, &gathered, &parts] {
        return mpi::gather_v(world(), mine, gathered, parts, 0, coppice::use_future);
    });
}

// Only the root knows the memory of all parts, but the others would wait for it. Nothing accesses
// the memory, which may not be accessed.
TEST(mpi_collectives, more_than_mpi_counts_is_an_error_at_every_rank) {
    const std::size_t part = std::size_t{INT_MAX} / job_size() + 1;
    const std::size_t all = part * job_size();
    void* const memory = ::mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    const std::span<char> whole(static_cast<char*>(memory), all);
    std::error_code error;
    mpi::gather(world(), whole.first(part), whole, 0, block[error]);
    EXPECT_EQ(error, std::errc::value_too_large);
    mpi::scatter(world(), whole, whole.first(part), 1, block[error]);
    EXPECT_EQ(error, std::errc::value_too_large);
    mpi::all_gather(world(), whole.first(part), whole, block[error]);
    EXPECT_EQ(error, std::errc::value_too_large);
    mpi::all_to_all(world(), whole, whole, block[error]);
    EXPECT_EQ(error, std::errc::value_too_large);
    const std::span<std::int8_t> numbers(static_cast<std::int8_t*>(memory), all);
    mpi::reduce_scatter(world(), numbers, numbers.first(part), mpi::reduction::sum, block[error]);
    EXPECT_EQ(error, std::errc::value_too_large);
    ::munmap(memory, all);
}

TEST(mpi_collectives, memory_that_only_the_root_uses_may_be_of_any_size_elsewhere) {
    const std::size_t size = std::size_t{INT_MAX} + 1;
    void* const memory = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    const bool is_root = world().rank() == 0;
    const mpi::partition parts(std::vector<std::size_t>(job_size(), 1));
    std::vector<char> all(job_size(), 'x'), mine(1);
    const std::span<char> large(static_cast<char*>(memory), size);
    const std::span<char> whole = is_root ? std::span<char>(all) : large;
    std::error_code error;
    mpi::scatter_v(world(), whole, parts, mine, 0, block[error]);
    EXPECT_FALSE(error) << error.message();
    EXPECT_EQ(mine[0], 'x');
    mine[0] = 'y';
    mpi::gather_v(world(), mine, whole, parts, 0, block[error]);
    EXPECT_FALSE(error) << error.message();
    if (is_root) EXPECT_EQ(all, std::vector<char>(job_size(), 'y'));
    mpi::parted<char> learned;
    mpi::scatter_v(world(), whole, parts, learned, 0, block[error]);
    EXPECT_FALSE(error) << error.message();
    EXPECT_EQ(learned.objects, mine);
    ::munmap(memory, size);
}

TEST(mpi_collectives, scans_combine_ranks_up_to_this_one_and_rank_0_starts_with_the_identity) {
    const int rank = world().rank();
    std::array<int, 2> mine{1, rank}, upto{}, before{-1, -1};
    mpi::scan(world(), mine, upto, mpi::reduction::sum, block);
    EXPECT_EQ(upto, (std::array<int, 2>{rank + 1, rank * (rank + 1) / 2}));
    mpi::exclusive_scan(world(), mine, before, mpi::reduction::sum, block);
    EXPECT_EQ(before, (std::array<int, 2>{rank, rank * (rank - 1) / 2}));
    std::array<double, 1> low{static_cast<double>(rank)};
    mpi::exclusive_scan(world(), low, low, mpi::reduction::minimum, block);
    EXPECT_EQ(low[0], rank == 0 ? std::numeric_limits<double>::infinity() : 0);
    std::span<const int> no_numbers;
    mpi::scan(world(), no_numbers, std::span<int>(), mpi::reduction::maximum, block);
}

TEST(mpi_collectives, all_to_all_exchanges_the_parts_of_one_memory) {
    std::vector<int> parts(3 * job_size());
    for (std::size_t n = 0; n != parts.size(); ++n)
        parts[n] = 1000 * world().rank() + static_cast<int>(n);
    mpi::all_to_all(world(), parts, parts, block);
    for (std::size_t n = 0; n != parts.size(); ++n)
        EXPECT_EQ(parts[n],
                  1000 * static_cast<int>(n / 3) + 3 * world().rank() + static_cast<int>(n % 3));
}

TEST(mpi_collectives, an_agreement_gives_all_ranks_the_bits_that_all_have_given) {
    EXPECT_EQ(mpi::agree(world(), world().rank() == 0 ? 5 : 7, block), 5);
    EXPECT_EQ(mpi::agree(world(), world().rank() == 0, block), 0);
    const auto [bits] =
        wait_for(mpi::agree(world(), ~(1 << world().rank())) | ex::then([](int b) { return b; }))
            .value();
    EXPECT_EQ(bits, -(1 << world().size()));
    static_assert(!can_be_stopped<decltype(mpi::agree(world(), 1))>);
}

TEST(mpi_communicators, without_fault_tolerance_nothing_is_revoked) {
    if (mpi_test::shared_environment->can_recover()) GTEST_SKIP() << "tested by recovery_test.cpp";
    for (const auto f : {+[] { world().revoke(); }, +[] { (void)world().shrink(); }}) {
        try {
            f();
            ADD_FAILURE() << "no exception";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::operation_not_supported);
        }
    }
    mpi::barrier(world(), block);
}

TEST(mpi_collectives, call_runs_any_other_non_blocking_call) {
    const int mine = 1;
    int upto = 0;
    mpi::call(
        world(),
        [&mine, &upto, over = world().native_handle()](MPI_Request* r) noexcept {
            return MPI_Iscan(&mine, &upto, 1, MPI_INT, MPI_SUM, over, r);
        },
        block);
    EXPECT_EQ(upto, world().rank() + 1);
}

TEST(mpi_collectives, a_call_that_starts_no_request_is_an_error_and_one_without_objects_is_none) {
    std::error_code error;
    mpi::call(world(), [](MPI_Request*) noexcept { return MPI_SUCCESS; }, block[error]);
    EXPECT_EQ(error, mpi::errc::invalid_request) << error.message();
    mpi::call(
        world(),
        [over = world().native_handle()](MPI_Request* r) noexcept {
            return MPI_Ibcast(nullptr, 0, MPI_INT, 0, over, r);
        },
        block[error]);
    EXPECT_FALSE(error) << error.message();
}

TEST(mpi_communicators, a_split_numbers_its_ranks_and_keeps_its_messages_apart) {
    const mpi::communicator own = world().duplicate();
    EXPECT_EQ(own.size(), world().size());
    const mpi::communicator half = own.split(own.rank() % 2, -own.rank());
    EXPECT_EQ(half.size(), (world().size() + 1 - world().rank() % 2) / 2);
    std::array<int, 1> one{1}, count{};
    mpi::all_reduce(half, one, count, mpi::reduction::sum, block);
    EXPECT_EQ(count[0], half.size());
}

task<int> passes_round(int rounds) {
    std::array<int, 1> token{0};
    for (int i = 0; i != rounds; ++i) {
        if (world().rank() != 0) co_await mpi::receive(world(), token, {previous_rank(), 20});
        ++token[0];
        co_await mpi::send(world(), token, {next_rank(), 20});
        if (world().rank() == 0) co_await mpi::receive(world(), token, {previous_rank(), 20});
    }
    co_return token[0];
}

TEST(mpi_tasks, await_operations_on_the_environments_thread) {
    const auto sum = wait_for(passes_round(50));
    ASSERT_TRUE(sum.has_value());
    if (world().rank() == 0) {
        EXPECT_EQ(std::get<0>(*sum), 50 * world().size());
    }
}

TEST(mpi_tasks, a_barrier_after_the_first_allocates_nothing_here) {
    if (coppice::test::sanitized) GTEST_SKIP() << "a sanitizer counts what MPI allocates too";
    mpi::barrier(world(), block);
    const coppice::test::allocation_count counted;
    mpi::barrier(world(), block);
    EXPECT_EQ(counted.so_far(), 0u);
}

class failures_of_rank : public testing::EmptyTestEventListener {
    void OnTestPartResult(const testing::TestPartResult& part) override {
        if (part.failed())
            std::fprintf(stderr, "rank %d: %s:%d: %s\n", mpi_test::world().rank(),
                         part.file_name() == nullptr ? "" : part.file_name(), part.line_number(),
                         part.message());
    }
};

}  // namespace

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    mpi::environment_options options;  // --watched: as with a failure timeout, but none fails
    if (argc > 1 && std::string_view(argv[1]) == "--watched")
        options.failure_timeout = std::chrono::minutes(1);
    mpi::environment environment(options);
    mpi_test::shared_environment = &environment;
    if (environment.world().rank() != 0) {  // one process reports; the others report failures
        auto& listeners = testing::UnitTest::GetInstance()->listeners();
        delete listeners.Release(listeners.default_result_printer());
        listeners.Append(new failures_of_rank);
    }
    const int status = RUN_ALL_TESTS();
    if (status != 0) environment.abort(status);  // the others may be waiting
    return 0;
}
