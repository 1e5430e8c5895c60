// Windows: memory of each process that the others access.
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/message.hpp>
#include <coppice/mpi/window.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include "job.hpp"

#include <mpi.h>
#include <algorithm>
#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <system_error>
#include <tuple>
#include <vector>

namespace {

namespace mpi = coppice::mpi;
using coppice::block;
using coppice::task;
using mpi_test::job_size;
using mpi_test::next_rank;
using mpi_test::previous_rank;
using mpi_test::wait_for;
using mpi_test::world;

struct pixel {
    std::uint8_t red, green, blue;
};

TEST(mpi_window, what_is_put_is_there_after_a_fence_and_can_be_got) {
    mpi::window<pixel> image(world(), 4);
    EXPECT_EQ(image.local()[3].blue, 0);
    mpi::fence(image, block);  // no rank puts before all have looked
    const std::array<pixel, 2> out{pixel{1, 2, 3},
                                   {4, 5, static_cast<std::uint8_t>(world().rank())}};
    mpi::put(image, out, next_rank(), 2, block);
    mpi::fence(image, block);
    EXPECT_EQ(image.local()[2].green, 2);
    EXPECT_EQ(image.local()[3].blue, previous_rank());
    std::array<pixel, 1> in{};
    mpi::get(image, in, next_rank(), 3, block);
    EXPECT_EQ(in[0].blue, world().rank());
    mpi::fence(image, block);
}

TEST(mpi_window, accumulations_of_all_ranks_lose_no_number) {
    mpi::window<std::int64_t> counters(world(), world().rank() == 0 ? 2 : 0);
    EXPECT_EQ(counters.count(0), 2u);
    EXPECT_EQ(counters.count(1), 0u);
    const std::array<std::int64_t, 1> one{1};
    std::array<std::int64_t, 1> before{};
    std::vector<std::int64_t> tickets;
    for (int i = 0; i != 50; ++i) {
        mpi::accumulate(counters, one, 0, 0, mpi::reduction::sum, block);
        mpi::fetch_accumulate(counters, one, before, 0, 1, mpi::reduction::sum, block);
        tickets.push_back(before[0]);
    }
    mpi::flush(counters, 0, block);
    std::vector<std::int64_t> all(50 * job_size()), expected(50 * job_size());
    mpi::all_gather(world(), tickets, all, block);
    std::sort(all.begin(), all.end());
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(all, expected);  // every ticket was drawn once
    mpi::fence(counters, block);
    if (world().rank() == 0) {
        EXPECT_EQ(counters.local()[0], 50 * world().size());
    }
    mpi::fence(counters, block);
}

TEST(mpi_window, an_access_outside_the_ranks_objects_is_an_error_and_touches_nothing) {
    mpi::window<int> w(world(), 2);
    std::array<int, 2> two{7, 7};
    std::error_code error;
    mpi::put(w, two, next_rank(), 1, block[error]);
    EXPECT_EQ(error, mpi::errc::out_of_range) << error.message();
    mpi::get(w, two, next_rank(), SIZE_MAX, block[error]);
    EXPECT_EQ(error, mpi::errc::out_of_range);
    mpi::accumulate(w, two, world().size(), 0, mpi::reduction::sum, block[error]);
    EXPECT_EQ(error, mpi::errc::invalid_rank);
    mpi::flush(w, -1, block[error]);
    EXPECT_EQ(error, mpi::errc::invalid_rank);
    mpi::put(w, std::span<const int>(two.data(), 0), next_rank(), 2, block[error]);
    EXPECT_FALSE(error) << error.message();  // no object, at the end
    mpi::fence(w, block);
    EXPECT_EQ(w.local()[1], 0);
    EXPECT_THROW(mpi::window<int>(world(), SIZE_MAX), std::system_error);
}

struct alignas(64) line {
    int words[16];
    bool operator==(const line&) const = default;
};
struct alignas(8192) wide {
    char bytes[8192];
    bool operator==(const wide&) const = default;
};

// Each rank has one object more than the one before. The next rank puts one at each place.
template <class T>
void expect_aligned_objects(T first, T second) {
    mpi::window<T> w(world(), static_cast<std::size_t>(world().rank()));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(w.local().data()) % alignof(T), 0u);
    const std::vector<T> out{first, second};
    const std::span<const T> objects(out);
    const std::size_t there = w.count(next_rank());
    for (std::size_t at = 0; at != there; ++at)
        mpi::put(w, objects.subspan(at % 2, 1), next_rank(), at, block);
    mpi::fence(w, block);
    for (std::size_t at = 0; at != w.local().size(); ++at)
        EXPECT_TRUE(w.local()[at] == out[at % 2]) << at;
    if (there != 0) {
        std::vector<T> in(1, first);
        mpi::get(w, in, next_rank(), there - 1, block);
        EXPECT_TRUE(in[0] == out[(there - 1) % 2]);
    }
    mpi::fence(w, block);
}

TEST(mpi_window, objects_of_any_alignment_are_aligned_and_found_by_the_others) {
    expect_aligned_objects<long double>(1, 2);
    expect_aligned_objects(line{{1}}, line{{2}});
    expect_aligned_objects(wide{"one"}, wide{"two"});
    expect_aligned_objects<char>('a', 'b');
    mpi::window<long double> sum(world(), 1);
    const std::array<long double, 1> one{1};
    mpi::accumulate(sum, one, 0, 0, mpi::reduction::sum, block);
    mpi::fence(sum, block);
    if (world().rank() == 0) {
        EXPECT_EQ(sum.local()[0], static_cast<long double>(world().size()));
    }
    mpi::fence(sum, block);
}

task<int> draws_tickets(mpi::window<int>& counter, int rounds) {
    const std::array<int, 1> one{1};
    std::array<int, 1> before{};
    int sum = 0;
    for (int i = 0; i != rounds; ++i) {
        co_await mpi::fetch_accumulate(counter, one, before, next_rank(), 0, mpi::reduction::sum);
        sum += before[0];
    }
    co_await mpi::fence(counter);
    co_return sum;
}

TEST(mpi_window, tasks_await_accesses) {
    mpi::window<int> counter(world(), 1);
    const auto sum = wait_for(draws_tickets(counter, 20));
    ASSERT_TRUE(sum.has_value());
    EXPECT_EQ(std::get<0>(*sum), 190);
}

task<int> add_one(mpi::window<std::uint16_t>& counter, int rank, std::size_t offset) {
    int tries = 1;
    std::uint16_t seen = 0;
    for (;; ++tries) {
        const auto next = static_cast<std::uint16_t>(seen + 1);
        const std::uint16_t before =
            co_await mpi::compare_exchange(counter, seen, next, rank, offset);
        if (before == seen) break;
        seen = before;
    }
    co_return tries;
}

TEST(mpi_window, a_counter_of_compare_exchange_loses_no_number_at_any_rank) {
    mpi::window<std::uint16_t> counters(world(), 3);
    mpi::fence(counters, block);
    for (int round = 0; round != 25; ++round) {
        for (int rank = 0; rank != world().size(); ++rank) wait_for(add_one(counters, rank, 2));
    }
    mpi::fence(counters, block);
    EXPECT_EQ(counters.local()[2], 25 * world().size());
    EXPECT_EQ(counters.local()[1], 0);
    mpi::fence(counters, block);
}

template <class T>
void expect_exchanges(T first, T second) {
    mpi::window<T> w(world(), 2);
    mpi::fence(w, block);
    const int rank = next_rank();
    const auto exchange = [&w, rank](T expected, T desired) {
        return std::get<0>(wait_for(mpi::compare_exchange(w, expected, desired, rank, 1)).value());
    };
    EXPECT_EQ(exchange(0, first), T(0));
    EXPECT_EQ(exchange(second, 0), first);
    EXPECT_EQ(exchange(first, second), first);
    EXPECT_EQ(exchange(second, second), second);
    mpi::fence(w, block);
    EXPECT_EQ(w.local()[1], second);
    EXPECT_EQ(w.local()[0], T(0));
    mpi::fence(w, block);
}
template <class T>
void expect_exchanges_of() {
    expect_exchanges(std::numeric_limits<T>::max(), std::numeric_limits<T>::min());
    expect_exchanges(T(1), T(-1));
}

TEST(mpi_window, compare_exchange_takes_integers_of_every_size) {
    expect_exchanges_of<std::int8_t>();
    expect_exchanges_of<std::uint8_t>();
    expect_exchanges_of<std::int16_t>();
    expect_exchanges_of<std::uint16_t>();
    expect_exchanges_of<std::int32_t>();
    expect_exchanges_of<std::uint32_t>();
    expect_exchanges_of<std::int64_t>();
    expect_exchanges_of<std::uint64_t>();
}

template <class T>
concept has_compare_exchange =
    requires(mpi::window<T>& w) { mpi::compare_exchange(w, T{}, T{}, 0, 0); };
static_assert(has_compare_exchange<int> && has_compare_exchange<unsigned long>);
static_assert(!has_compare_exchange<double> && !has_compare_exchange<bool>);
static_assert(!has_compare_exchange<char> && !has_compare_exchange<pixel>);

TEST(mpi_window, a_compare_exchange_outside_the_ranks_objects_is_an_error_and_touches_nothing) {
    // Rank r has r + 1 numbers.
    mpi::window<int> w(world(), static_cast<std::size_t>(world().rank()) + 1);
    const auto error_at = [&w](int rank, std::size_t offset) {
        std::error_code error;
        EXPECT_EQ(mpi::compare_exchange(w, 0, 7, rank, offset, block[error]), 0);
        return error;
    };
    for (const std::size_t offset : {std::size_t{1}, std::size_t{2}, SIZE_MAX / 4, SIZE_MAX}) {
        EXPECT_EQ(error_at(0, offset), mpi::errc::out_of_range) << offset;
        EXPECT_EQ(error_at(world().size() - 1,
                           offset + job_size() - 1 > offset ? offset + job_size() - 1 : offset),
                  mpi::errc::out_of_range)
            << offset;
    }
    for (const int rank : {world().size(), -1, INT_MAX, INT_MIN, MPI_PROC_NULL})
        EXPECT_EQ(error_at(rank, 0), mpi::errc::invalid_rank) << rank;
    mpi::fence(w, block);
    for (const int number : w.local()) EXPECT_EQ(number, 0);
    mpi::fence(w, block);
    if (world().rank() == 1) {
        EXPECT_FALSE(error_at(0, 0));
        EXPECT_FALSE(error_at(world().size() - 1, job_size() - 1));
    }
    mpi::fence(w, block);
    EXPECT_EQ(w.local().front(), world().rank() == 0 ? 7 : 0);
    EXPECT_EQ(w.local().back(),
              world().rank() == 0 || world().rank() == world().size() - 1 ? 7 : 0);
    mpi::fence(w, block);
}

// A queue lock: `last` has the rank after which a process waits, plus 1. A process that waits does
// not look at memory: it receives a message.
class queue_lock {
public:
    explicit queue_lock(mpi::window<int>& last) : last_(last) {}
    void lock() {
        int before = 0;
        for (int seen = -1; seen != before;) {
            seen = before;
            before = mpi::compare_exchange(last_, seen, own_, 0, 0, block);
        }
        if (before == 0) return;
        std::array<int, 1> empty{};
        mpi::send(world(), empty, {before - 1, waits}, block);
        mpi::receive(world(), empty, {before - 1, goes_on}, block);
    }
    void unlock() {
        if (mpi::compare_exchange(last_, own_, 0, 0, 0, block) == own_) return;
        std::array<int, 1> empty{};
        const mpi::envelope next = mpi::receive(world(), empty, {mpi::any_source, waits}, block);
        mpi::send(world(), empty, {next.source, goes_on}, block);
    }

private:
    static constexpr int waits = 31, goes_on = 32;
    mpi::window<int>& last_;
    int own_ = world().rank() + 1;
};

TEST(mpi_window, a_lock_of_compare_exchange_lets_one_process_in_at_a_time) {
    constexpr int rounds = 50;
    mpi::window<int> last(world(), world().rank() == 0 ? 1 : 0);
    mpi::window<std::int64_t> guarded(world(), world().rank() == 0 ? 2 : 0);
    queue_lock lock(last);
    mpi::fence(last, block);
    mpi::fence(guarded, block);
    for (int round = 0; round != rounds; ++round) {
        lock.lock();
        std::array<std::int64_t, 2> numbers{};
        mpi::get(guarded, numbers, 0, 0, block);
        EXPECT_EQ(numbers[1], -numbers[0]);
        numbers = {numbers[0] + 1, -numbers[0] - 1};
        mpi::put(guarded, numbers, 0, 0, block);
        mpi::flush(guarded, 0, block);
        lock.unlock();
    }
    mpi::fence(guarded, block);
    if (world().rank() == 0) {
        EXPECT_EQ(guarded.local()[0], rounds * world().size());
    }
    mpi::fence(last, block);
}

TEST(mpi_window, accumulates_bits_and_truth) {
    mpi::window<std::uint32_t> flags(world(), world().rank() == 0 ? 2 : 0);
    mpi::fence(flags, block);
    const std::array<std::uint32_t, 1> own{1u << world().rank()};
    std::array<std::uint32_t, 1> before{};
    mpi::accumulate(flags, own, 0, 0, mpi::reduction::bit_or, block);
    mpi::fetch_accumulate(flags, own, before, 0, 1, mpi::reduction::bit_xor, block);
    EXPECT_EQ(before[0] & own[0], 0u);
    mpi::fence(flags, block);
    const std::uint32_t all = (1u << world().size()) - 1;
    if (world().rank() == 0) {
        EXPECT_EQ(flags.local()[0], all);
        EXPECT_EQ(flags.local()[1], all);
    }
    mpi::fence(flags, block);
}

}  // namespace
