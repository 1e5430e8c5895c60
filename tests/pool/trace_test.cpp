// A pool's counters and trace: exact counts, and a trace file that says the same.
#include <coppice/pool/fork_join.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <coppice/base/internal/atomic.hpp>

#include "allocations.hpp"
#include "trace_file.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <unistd.h>

namespace {

using namespace coppice;
using namespace coppice::internal;
using coppice::test::read_trace;
using coppice::test::trace_file;

worker_counts sum_of(const thread_pool& pool) {
    worker_counts all;
    for (std::size_t i = 0; i != pool.size(); ++i) {
        const worker_counts each = pool.counts(i);
        all.runs += each.runs;
        all.steals += each.steals;
        all.far_steals += each.far_steals;
        all.failed_steals += each.failed_steals;
        all.parks += each.parks;
        all.wakes += each.wakes;
    }
    return all;
}

trace_file trace_of(const thread_pool& pool) {
    const std::string path =
        ::testing::TempDir() + "coppice_pool_" + std::to_string(::getpid()) + ".json";
    pool.write_trace(path);
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    std::remove(path.c_str());
    return read_trace(text);
}

long fib(long n) {
    if (n < 2) return n;
    const auto [a, b] = fork_join([n] { return fib(n - 1); }, [n] { return fib(n - 2); });
    return a + b;
}

struct counting_item : work_item {
    explicit counting_item(atomic<int>& c) : work_item(&count), counter(c) {}
    static void count(work_item* item) noexcept {
        static_cast<counting_item*>(item)->counter.fetch_add(1, relaxed);
    }
    atomic<int>& counter;
};

TEST(pool_counts, each_item_is_one_run_and_each_sleep_one_park) {
    thread_pool pool(1);
    for (std::uint64_t i = 0; i != 200; ++i) {
        while (pool.counts(0).parks != i + 1) std::this_thread::yield();
        EXPECT_EQ(pool.counts(0).runs, i);
        pool.run([] {});
    }
    EXPECT_EQ(sum_of(pool).steals + sum_of(pool).failed_steals + sum_of(pool).wakes, 0u);
}

TEST(pool_counts, runs_count_items_and_stolen_calls) {
    constexpr int count = 20'000;
    atomic<int> ran{0};
    thread_pool pool(3);
    std::vector<std::unique_ptr<counting_item>> items;
    for (int i = 0; i != count; ++i) {
        items.push_back(std::make_unique<counting_item>(ran));
        pool.submit(*items.back());
    }
    while (ran.load(relaxed) != count) std::this_thread::yield();
    EXPECT_EQ(sum_of(pool).runs, std::uint64_t{count});
    // Of three calls that meet, two are stolen, in addition to the stolen items.
    const std::uint64_t stolen_items = sum_of(pool).steals;
    ran.store(0, relaxed);
    const auto meet = [&] {
        ran.fetch_add(1, relaxed);
        while (ran.load(relaxed) != 3) std::this_thread::yield();
    };
    pool.run([&] { fork_join(meet, meet, meet); });
    EXPECT_EQ(sum_of(pool).runs, std::uint64_t{count} + 3);
    EXPECT_EQ(sum_of(pool).steals, stolen_items + 2);
}

TEST(pool_trace, agrees_with_the_counters) {
    thread_pool pool({.threads = 3, .trace_events = 100'000});
    for (int i = 0; i != 100; ++i) {
        EXPECT_EQ(pool.run([] { return fib(12); }), 144);
    }
    // Once all workers sleep, the counts no longer change.
    worker_counts counts;
    trace_file file;
    do {
        while (sum_of(pool).parks == 0) std::this_thread::yield();
        counts = sum_of(pool);
        file = trace_of(pool);
    } while (sum_of(pool).parks != counts.parks || sum_of(pool).runs != counts.runs ||
             file.count('B', "sleep") != counts.parks);
    EXPECT_EQ(file.error, "");
    EXPECT_EQ(file.dropped, 0u);
    EXPECT_EQ(file.tracks.size(), 3u);
    EXPECT_EQ(file.tracks["1"], "worker 1");
    EXPECT_EQ(file.count('B', "run"), counts.runs);
    EXPECT_EQ(file.count('i', "steal"), counts.steals);
    EXPECT_EQ(file.count('i', "failed steal"), counts.failed_steals);
    EXPECT_EQ(file.count('i', "wake"), counts.wakes);
}

TEST(pool_trace, is_valid_while_the_pool_runs_and_when_it_overflows) {
    thread_pool pool({.threads = 2, .trace_events = 64});
    atomic<bool> over{false};
    std::thread reader([&] {
        while (!over.load(relaxed)) EXPECT_EQ(trace_of(pool).error, "");
    });
    for (int i = 0; i != 500; ++i) pool.run([] {});
    over.store(true, relaxed);
    reader.join();
    const trace_file file = trace_of(pool);
    EXPECT_EQ(file.error, "");
    EXPECT_GT(file.dropped, 0u);
    EXPECT_GE(file.count('i', "events were dropped"), 1u);
}

TEST(pool_trace, recording_allocates_nothing) {
    thread_pool pool({.threads = 2, .trace_events = 1000});
    while (pool.counts(0).parks == 0 || pool.counts(1).parks == 0) pool.run([] {});
    const test::allocation_count count;
    for (int i = 0; i != 1000; ++i) pool.run([] {});
    EXPECT_EQ(count.so_far(), 0u);
}

TEST(pool_trace, a_pool_without_trace_events_writes_an_empty_trace) {
    thread_pool pool(2);
    pool.run([] {});
    const trace_file file = trace_of(pool);
    EXPECT_EQ(file.error, "");
    EXPECT_EQ(file.tracks.size(), 2u);
    EXPECT_TRUE(file.counts.empty());
    EXPECT_THROW(pool.write_trace("/no/such/folder/file"), std::system_error);
}

}  // namespace
