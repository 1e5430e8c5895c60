// What the processes of a job see if one of them has no memory.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/execution.hpp>
#include <coppice/mpi/bulk.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/internal/lent_memory.hpp>
#include <coppice/mpi/objects.hpp>
#include <coppice/mpi/remote.hpp>
#include <coppice/mpi/sort.hpp>
#include <coppice/mpi/stop_source.hpp>
#include <coppice/mpi/varying.hpp>
#include <coppice/mpi/window.hpp>
#include <coppice/mpi/work_sharing.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include <allocations.hpp>
#include <sanitizers.hpp>

#include "failing_malloc.hpp"
#include "job.hpp"

#include <mpi.h>
#include <array>
#include <cstddef>
#include <exception>
#include <functional>
#include <new>
#include <numeric>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace {

coppice::internal::atomic<bool> refuses_locks{false};
coppice::internal::atomic<bool> refuses_types{false};
coppice::internal::atomic<int> freed_windows{0};

}  // namespace

extern "C" {

// These stand before MPI's own. The first two fail on demand, and the third counts.
int MPI_Win_lock_all(int assertion, MPI_Win window) {
    if (refuses_locks.load(coppice::internal::relaxed)) return MPI_ERR_NO_MEM;
    return PMPI_Win_lock_all(assertion, window);
}
int MPI_Type_contiguous(int count, MPI_Datatype of, MPI_Datatype* made) {
    if (refuses_types.load(coppice::internal::relaxed)) return MPI_ERR_NO_MEM;
    return PMPI_Type_contiguous(count, of, made);
}
int MPI_Win_free(MPI_Win* window) {
    freed_windows.fetch_add(1, coppice::internal::relaxed);
    return PMPI_Win_free(window);
}

}  // extern "C"

namespace {

namespace mpi = coppice::mpi;
using coppice::block;
using mpi_test::job_size;
using mpi_test::wait_for;
using mpi_test::world;

// Starts make() on another thread, again if the call throws, and waits for it. Returns true if the
// operation has failed. Allocations of the thread that asks for failures do not fail.
template <class Make>
bool fails_after_its_start(Make& make) {
    bool has_failed = false;
    std::thread([&make, &has_failed] {
        for (bool has_started = false; !has_started;) {
            try {
                auto sender = make();
                has_started = true;
                wait_for(std::move(sender));
            } catch (const std::exception&) {
                has_failed = has_started;
            }
        }
    }).join();
    return has_failed;
}

// Runs make() at all ranks, again and again: each time the next allocation at rank 1 fails. A call
// that throws has started nothing, and is made again.
template <class Make>
void fails_alike_without_memory(Make make) {
    std::array<int, 3> sums{0, 1, 0};  // failed, an allocation has failed, cannot be tested
    for (std::size_t n = 1; sums[1] != 0 && sums[2] == 0; ++n) {
        std::array<int, 3> mine{};
        if (world().rank() == 1) mine[2] = coppice::test::fail_allocation(n) ? 0 : 1;
        mine[0] = fails_after_its_start(make) ? 1 : 0;
        if (world().rank() == 1) mine[1] = coppice::test::allocation_has_failed() ? 1 : 0;
        mpi::all_reduce(world(), mine, sums, mpi::reduction::sum, block);
        EXPECT_TRUE(sums[0] == 0 || sums[0] == world().size()) << n << ": " << sums[0];
    }
    if (sums[2] != 0) GTEST_SKIP() << "a sanitizer owns operator new";
}

TEST(mpi_memory, a_rank_without_memory_is_an_error_of_bulk_at_every_rank) {
    fails_alike_without_memory([] { return mpi::bulk(world(), 1000, [](std::size_t) {}); });
}

TEST(mpi_memory, a_rank_without_memory_is_an_error_of_map_reduce_at_every_rank) {
    fails_alike_without_memory([] {
        return mpi::map_reduce(
            world(), 1000, 0, [](std::size_t i) { return static_cast<int>(i); }, std::plus<int>());
    });
}

TEST(mpi_memory, a_rank_without_memory_is_an_error_of_sort_at_every_rank) {
    std::vector<int> numbers(300);
    std::iota(numbers.rbegin(), numbers.rend(), world().rank());
    fails_alike_without_memory([&numbers] { return mpi::sort(world(), numbers); });
}

TEST(mpi_memory, a_rank_without_memory_is_an_error_of_collectives_of_objects_at_every_rank) {
    const std::string long_text(1000, 'a');
    std::string mine = long_text;
    std::vector<std::string> all(job_size(), long_text);
    fails_alike_without_memory([&] { return mpi::broadcast_object(world(), mine, 0); });
    fails_alike_without_memory([&] { return mpi::broadcast_object(world(), mine, 1); });
    fails_alike_without_memory([&] { return mpi::gather_objects(world(), mine, all, 1); });
    fails_alike_without_memory([&] { return mpi::all_gather_objects(world(), mine, all); });
    fails_alike_without_memory([&] { return mpi::scatter_objects(world(), all, mine, 1); });
    const auto first = [](std::string a, const std::string&) { return a; };
    for (int root = 0; root != 2; ++root)
        fails_alike_without_memory([&] { return mpi::reduce_object(world(), mine, first, root); });
    fails_alike_without_memory([&] { return mpi::all_reduce_object(world(), mine, first); });
    EXPECT_EQ(mine, long_text);
    EXPECT_EQ(all, std::vector<std::string>(job_size(), long_text));
}

TEST(mpi_memory, a_rank_without_memory_ends_a_run_of_work_sharing_at_every_rank) {
    mpi::work_sharing<int> work(world());
    mpi::barrier(world(), block);  // the environment has memory for requests after its first one
    for (int round = 0; round != 2; ++round) {
        if (world().rank() == 0) work.add(3);
        fails_alike_without_memory([&work] {
            return work.run([](int depth, mpi::work_found<int>& found) {
                for (int i = 0; depth != 0 && i != 3; ++i) found.add(depth - 1);
            });
        });
    }
}

// Runs make(size) at all ranks: each time the next large block of memory is missing at rank 1. The
// sizes grow, since the environment keeps the blocks that it has had.
template <class Make>
void fails_alike_without_large_blocks(Make make) {
    std::array<int, 2> sums{0, 1};  // failed, a block was missing
    std::size_t size = 4096;
    for (std::size_t n = 1; sums[1] != 0; ++n, size *= 2) {
        ASSERT_LT(n, 20u);
        auto make_of_size = [&make, size] { return make(size); };
        std::array<int, 2> mine{};
        if (world().rank() == 1) mpi_test::fail_large_block(n);
        mine[0] = fails_after_its_start(make_of_size) ? 1 : 0;
        if (world().rank() == 1) mine[1] = mpi_test::large_block_has_failed() ? 1 : 0;
        mpi::all_reduce(world(), mine, sums, mpi::reduction::sum, block);
        EXPECT_TRUE(sums[0] == 0 || sums[0] == world().size()) << n << ": " << sums[0];
    }
}

// With --watched, MPI gets copies, which need memory too.
TEST(mpi_memory, a_rank_without_memory_for_parts_or_their_copies_is_an_error_at_every_rank) {
    std::vector<char> mine;
    mpi::parted<char> all;
    mpi::partition to;
    const auto prepare = [&mine, &all, &to](std::size_t size) {
        mine.assign(size * job_size(), 'x');
        all = {};
        to = mpi::partition::even(mine.size(), world().size());
    };
    fails_alike_without_large_blocks([&](std::size_t size) {
        prepare(size);
        return mpi::all_gather_v(world(), mine, all);
    });
    fails_alike_without_large_blocks([&](std::size_t size) {
        prepare(size);
        return mpi::all_to_all_v(world(), mine, to, all);
    });
    for (int root = 0; root != 2; ++root) {
        fails_alike_without_large_blocks([&](std::size_t size) {
            prepare(size);
            return mpi::gather_v(world(), mine, all, root);
        });
        fails_alike_without_large_blocks([&](std::size_t size) {
            prepare(size);
            return mpi::scatter_v(world(), mine, to, all, root);
        });
    }
}

TEST(mpi_memory, a_rank_whose_mpi_has_no_memory_for_a_type_is_an_error_at_every_rank) {
    const std::vector<std::array<int, 3>> mine(2);
    mpi::parted<std::array<int, 3>> all;
    std::error_code error;
    refuses_types.store(world().rank() == 1, coppice::internal::relaxed);
    mpi::all_gather_v(world(), mine, all, block[error]);
    EXPECT_EQ(error, std::errc::not_enough_memory) << error.message();
    refuses_types.store(false, coppice::internal::relaxed);
    mpi::all_gather_v(world(), mine, all, block);
    EXPECT_EQ(all.objects.size(), 2 * job_size());
}

TEST(mpi_memory, a_rank_without_large_blocks_is_an_error_of_sort_at_every_rank) {
    std::vector<int> numbers;
    fails_alike_without_large_blocks([&numbers](std::size_t size) {
        numbers.resize(size);
        std::iota(numbers.rbegin(), numbers.rend(), world().rank());
        return mpi::sort(world(), numbers);
    });
}

TEST(mpi_memory, spares_are_left_to_requests_that_hold_others) {
    mpi::internal::lent_memory memory;
    std::vector<void*> taken;
    taken.reserve(100);
    for (int n = 0; n != 40; ++n) taken.push_back(memory.take(8));
    for (void* const each : taken) memory.give_back(each);
    const auto count = [&memory, &taken](bool takes_spares) {
        taken.clear();
        mpi_test::fail_blocks_here(true);
        while (void* const each = memory.take(8, takes_spares)) taken.push_back(each);
        mpi_test::fail_blocks_here(false);
        for (void* const each : taken) memory.give_back(each);
        return taken.size();
    };
    for (int round = 0; round != 2; ++round) {
        EXPECT_EQ(count(false), 40u);
        EXPECT_EQ(count(true), 56u);
    }
}

// Makes a Made at all ranks, again and again: each time the next allocation at rank 1 fails.
template <class Made>
void is_made_or_throws_without_memory() {
    std::array<int, 2> sums{1, 0};  // an allocation has failed, cannot be tested
    for (std::size_t n = 1; sums[0] != 0 && sums[1] == 0; ++n) {
        std::array<int, 2> mine{};
        if (world().rank() == 1) mine[1] = coppice::test::fail_allocation(n) ? 0 : 1;
        std::thread([] {
            for (bool is_made = false; !is_made;) {
                try {
                    const Made made(world());
                    is_made = true;
                } catch (const std::bad_alloc&) {
                    EXPECT_EQ(world().rank(), 1);
                }
            }
        }).join();
        if (world().rank() == 1) mine[0] = coppice::test::allocation_has_failed() ? 1 : 0;
        mpi::all_reduce(world(), mine, sums, mpi::reduction::sum, block);
    }
    if (sums[1] != 0) GTEST_SKIP() << "a sanitizer owns operator new";
}

TEST(mpi_memory, a_stop_source_throws_bad_alloc_and_can_be_made_again_while_the_others_wait) {
    is_made_or_throws_without_memory<mpi::stop_source>();
}

std::string doubled(const std::string& text) {
    return text + text;
}
using functions = mpi::remote_functions<&doubled>;

TEST(mpi_memory, remote_functions_throw_bad_alloc_and_can_be_made_again_while_the_others_wait) {
    is_made_or_throws_without_memory<functions>();
}

TEST(mpi_memory, a_work_sharing_throws_bad_alloc_and_can_be_made_again_while_the_others_wait) {
    is_made_or_throws_without_memory<mpi::work_sharing<int>>();
}

struct window_of_three : mpi::window<int> {
    explicit window_of_three(const mpi::communicator& over) : window(over, 3) {}
};

TEST(mpi_memory, a_window_throws_bad_alloc_and_can_be_made_again_while_the_others_wait) {
    is_made_or_throws_without_memory<window_of_three>();
}

TEST(mpi_memory, a_window_that_one_rank_cannot_lock_is_an_error_at_every_rank_and_is_freed) {
    for (int rank = 0; rank != 2; ++rank) {
        const int freed = freed_windows.load(coppice::internal::relaxed);
        mpi::barrier(world(), block);
        refuses_locks.store(world().rank() == rank, coppice::internal::relaxed);
        try {
            const mpi::window<int> made(world(), 3);
            ADD_FAILURE() << "no error";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), mpi::errc::no_resources) << e.code().message();
        }
        refuses_locks.store(false, coppice::internal::relaxed);
        EXPECT_EQ(freed_windows.load(coppice::internal::relaxed), freed + 1);
        mpi::window<int> made(world(), 3);
        EXPECT_EQ(made.local().size(), 3u);
    }
}

// Calls until there is a result. Only the first call may fail, because memory is missing.
void expect_a_result_after_one_failure(functions& calls, const std::string& text) {
    for (bool is_first = true;; is_first = false) {
        try {
            const auto got = wait_for(mpi::remote<&doubled>(calls, 1, text));
            EXPECT_EQ(std::get<0>(*got).size(), 2 * text.size());
            return;
        } catch (const std::system_error& e) {
            ASSERT_EQ(e.code(), std::errc::not_enough_memory);
            ASSERT_TRUE(is_first) << text.size();
        }
    }
}

// Calls rank 1 from rank 0, again and again: each time arm(n) makes an allocation at rank 1 fail.
// Returns when none has failed.
template <class Arm, class Disarm>
void calls_a_rank_without_memory(Arm arm, Disarm has_failed) {
    functions calls(world());
    std::array<int, 1> failed{1};
    std::string text(3000, 'x');
    for (std::size_t n = 1; failed[0] != 0; ++n) {
        if (world().rank() == 1) arm(n);
        mpi::barrier(world(), block);
        if (world().rank() == 0) expect_a_result_after_one_failure(calls, text);
        mpi::barrier(world(), block);
        failed[0] = world().rank() == 1 && has_failed() ? 1 : 0;
        mpi::all_reduce(world(), failed, failed, mpi::reduction::sum, block);
        // The environment keeps the blocks that it has had.
        if (text.size() < 1'000'000) text += text;
    }
}

TEST(mpi_memory, a_call_of_a_process_without_memory_gets_that_error_and_the_next_call_its_result) {
    calls_a_rank_without_memory(mpi_test::fail_large_block, mpi_test::large_block_has_failed);
    if (coppice::test::sanitized) GTEST_SKIP() << "a sanitizer owns operator new";
    calls_a_rank_without_memory(coppice::test::fail_allocation,
                                coppice::test::allocation_has_failed);
}

}  // namespace
