// bulk on pools, and pool/parallel_backend.hpp: the calls run in parallel on the workers.
#include <coppice/pool/internal/bulk.hpp>
#include <coppice/pool/parallel_backend.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/bulk.hpp>
#include <coppice/exec/continues_on.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/on.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/write_env.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

namespace ex = coppice::execution;
using coppice::thread_pool;
using coppice::this_thread::sync_wait;

TEST(pool_bulk, calls_each_index_once_and_passes_the_values_on) {
    thread_pool pool(3);
    std::vector<int> calls(10'000);
    auto work = ex::schedule(pool.get_scheduler()) | ex::then([] { return 7; }) |
                ex::bulk(ex::par, calls.size(), [&](std::size_t i, int& v) { calls[i] += v; });
    EXPECT_EQ(sync_wait(std::move(work)), std::tuple(7));
    for (const int n : calls) ASSERT_EQ(n, 7);
    auto ranges = ex::schedule(pool.get_scheduler()) |
                  ex::bulk_chunked(ex::par, 1000, [&](int first, int last) {
                      for (; first != last; ++first) calls[static_cast<std::size_t>(first)] = 1;
                  });
    sync_wait(std::move(ranges));
    EXPECT_EQ(std::accumulate(calls.begin(), calls.begin() + 1000, 0), 1000);
}

TEST(pool_bulk, an_idle_worker_takes_part) {
    thread_pool pool(2);
    coppice::internal::atomic<int> there{0};
    const auto meet = [&](int) {
        there.fetch_add(1, coppice::internal::relaxed);
        while (there.load(coppice::internal::relaxed) < 2) std::this_thread::yield();
    };
    sync_wait(ex::schedule(pool.get_scheduler()) | ex::bulk_unchunked(ex::par, 2, meet));
    EXPECT_EQ(there.load(coppice::internal::relaxed), 2);
}

TEST(pool_bulk, a_sequential_policy_calls_in_order) {
    thread_pool pool(2);
    std::vector<int> order;
    sync_wait(ex::schedule(pool.get_scheduler()) |
              ex::bulk(ex::seq, 50, [&](int i) { order.push_back(i); }));
    ASSERT_EQ(order.size(), 50u);
    for (int i = 0; i != 50; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(pool_bulk, counts_with_bool) {
    thread_pool pool(2);
    for (const bool shape : {false, true}) {
        int calls = 0;
        const auto count = [&](auto...) { ++calls; };
        sync_wait(ex::schedule(pool.get_scheduler()) | ex::bulk(ex::par, shape, count));
        sync_wait(ex::schedule(pool.get_scheduler()) | ex::bulk_unchunked(ex::seq, shape, count));
        sync_wait(ex::schedule(pool.get_scheduler()) | ex::bulk_chunked(ex::par, shape, count));
        EXPECT_EQ(calls, shape ? 3 : 0);
    }
}

TEST(pool_bulk, an_exception_is_the_error_and_a_stop_request_ends_it) {
    thread_pool pool(2);
    EXPECT_THROW(sync_wait(ex::schedule(pool.get_scheduler()) |
                           ex::bulk(ex::par, 100,
                                    [](int i) {
                                        if (i == 50) throw std::runtime_error("fifty");
                                    })),
                 std::runtime_error);
    coppice::inplace_stop_source source;
    auto work = ex::schedule(pool.get_scheduler()) |
                ex::bulk(ex::par, 2'000'000'000, [&](int) { source.request_stop(); });
    EXPECT_EQ(sync_wait(ex::write_env(std::move(work),
                                      ex::prop(coppice::get_stop_token, source.get_token()))),
              std::nullopt);
}

// Objects that only move pass through bulk on any scheduler, as values and as children.
template <class Scheduler>
void move_through_bulk(Scheduler scheduler) {
    const auto made = [] { return ex::just(std::make_unique<int>(4)); };
    const auto each = [](int, const std::unique_ptr<int>&) {};
    const auto range = [](int, int, const std::unique_ptr<int>&) {};
    const auto expect_four = [](auto sndr) {
        const auto result = sync_wait(std::move(sndr));
        ASSERT_TRUE(result);
        EXPECT_EQ(*std::get<0>(*result), 4);
    };
    expect_four(ex::starts_on(scheduler, made() | ex::bulk(ex::seq, 10, each)));
    expect_four(ex::starts_on(scheduler, made() | ex::bulk_unchunked(ex::par, 10, each)));
    expect_four(ex::on(scheduler, made() | ex::bulk_chunked(ex::par, 10, range)));
    expect_four(made() | ex::continues_on(scheduler) | ex::bulk(ex::par, 10, each));
}

struct counts_copies {
    explicit counts_copies(int& n) noexcept : copies(&n) {}
    counts_copies(const counts_copies& other) noexcept : copies(other.copies) { ++*copies; }
    counts_copies(counts_copies&&) noexcept = default;
    void operator()(int) const noexcept {}
    int* copies;
};

struct ignores_all {
    using receiver_concept = ex::receiver_tag;
    void set_value(auto&&...) && noexcept {}
    void set_error(auto&&) && noexcept {}
    void set_stopped() && noexcept {}
};

TEST(pool_bulk, moves_its_child_and_its_function) {
    thread_pool pool(2);
    move_through_bulk(pool.get_scheduler());
    move_through_bulk(ex::parallel_scheduler(std::make_shared<coppice::parallel_backend>(pool)));
    int copies = 0;
    sync_wait(ex::schedule(pool.get_scheduler()) | ex::bulk(ex::par, 9, counts_copies(copies)));
    sync_wait(ex::just() | ex::bulk(ex::seq, 9, counts_copies(copies)));
    EXPECT_EQ(copies, 0);
    // A sender that cannot be copied does not connect while it is const; to check that is no error.
    using only_moves =
        decltype(ex::just(std::make_unique<int>(4)) | ex::continues_on(pool.get_scheduler()) |
                 ex::bulk(ex::par, 10, [](int, std::unique_ptr<int>&) {}));
    static_assert(std::invocable<ex::connect_t, only_moves, ignores_all>);
    static_assert(!std::invocable<ex::connect_t, const only_moves&, ignores_all>);
}

TEST(pool_bulk, passes_a_reference_on_as_a_reference) {
    thread_pool pool(2);
    int value = 1;
    auto sndr = ex::schedule(pool.get_scheduler()) | ex::then([&]() -> int& { return value; }) |
                ex::bulk(ex::par, 1, [](int, int& same) { ++same; }) |
                ex::then([&](int& same) { return &same == &value; });
    EXPECT_EQ(sync_wait(std::move(sndr)), std::tuple(true));
    EXPECT_EQ(value, 2);
}

TEST(pool_bulk, a_stop_request_in_the_last_call_does_not_overtake_the_result) {
    thread_pool pool(2);
    coppice::inplace_stop_source source;
    coppice::internal::atomic<int> calls{0};
    auto work = ex::schedule(pool.get_scheduler()) | ex::bulk(ex::par, 50, [&](int) {
                    if (calls.fetch_add(1, coppice::internal::relaxed) == 49) source.request_stop();
                });
    EXPECT_TRUE(sync_wait(
        ex::write_env(std::move(work), ex::prop(coppice::get_stop_token, source.get_token()))));
    EXPECT_EQ(calls.load(coppice::internal::relaxed), 50);
}

TEST(parallel_backend, parallel_scheduler_runs_on_the_pool) {
    thread_pool pool(2);
    const ex::parallel_scheduler scheduler(std::make_shared<coppice::parallel_backend>(pool));
    auto where = ex::schedule(scheduler) | ex::then([&] { return pool.is_current(); });
    EXPECT_EQ(sync_wait(std::move(where)), std::tuple(true));
    std::vector<int> calls(5000);
    coppice::internal::atomic<int> outside{0};
    sync_wait(ex::schedule(scheduler) | ex::bulk(ex::par, calls.size(), [&](std::size_t i) {
                  ++calls[i];
                  if (!pool.is_current()) outside.fetch_add(1, coppice::internal::relaxed);
              }));
    for (const int n : calls) ASSERT_EQ(n, 1);
    EXPECT_EQ(outside.load(coppice::internal::relaxed), 0);
}

}  // namespace
