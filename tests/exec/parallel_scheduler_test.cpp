// Plan: parallel_scheduler [exec.par.scheduler] and replacing its backend.
#include <coppice/exec/bulk.hpp>
#include <coppice/exec/execution_policy.hpp>
#include <coppice/exec/parallel_scheduler.hpp>
#include <coppice/exec/parallel_scheduler_backend.hpp>
#include <coppice/exec/receiver_proxy.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/write_env.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;
using probes::outcome;

TEST(exec_par_scheduler, runs_on_its_threads) {
    const auto sch = ex::get_parallel_scheduler();
    static_assert(ex::scheduler<ex::parallel_scheduler>);
    EXPECT_EQ(ex::get_forward_progress_guarantee(sch), ex::forward_progress_guarantee::parallel);
    EXPECT_TRUE(sch == ex::get_parallel_scheduler());
    const auto here = std::this_thread::get_id();
    auto [there] =
        *sync_wait(ex::schedule(sch) | ex::then([] { return std::this_thread::get_id(); }));
    EXPECT_NE(here, there);
}

TEST(exec_par_scheduler, bulk_in_parallel_calls_every_index_once) {
    std::vector<coppice::internal::atomic<int>> counts(1000);
    auto [value] =
        *sync_wait(ex::schedule(ex::get_parallel_scheduler()) | ex::then([] { return 3; }) |
                   ex::bulk(ex::par, 1000, [&](int i, int& v) {
                       counts[static_cast<std::size_t>(i)].fetch_add(v, coppice::internal::relaxed);
                   }));
    EXPECT_EQ(value, 3);
    for (auto& c : counts) EXPECT_EQ(c.load(coppice::internal::relaxed), 3);
}

TEST(exec_par_scheduler, a_sequenced_policy_is_one_call_and_exceptions_are_errors) {
    int calls = 0;
    sync_wait(ex::schedule(ex::get_parallel_scheduler()) |
              ex::bulk_chunked(ex::seq, 10, [&](int b, int e) { calls += e - b == 10 ? 1 : 100; }));
    EXPECT_EQ(calls, 1);
    EXPECT_THROW(
        sync_wait(ex::schedule(ex::get_parallel_scheduler()) | ex::bulk_unchunked(ex::par, 10,
                                                                                  [](int i) {
                                                                                      if (i == 7)
                                                                                          throw i;
                                                                                  })),
        int);
}

TEST(exec_par_scheduler, a_stop_before_the_start_calls_nothing) {
    coppice::inplace_stop_source source;
    source.request_stop();
    const auto sch = ex::get_parallel_scheduler();
    int calls = 0;
    const auto count = [&calls](auto...) { ++calls; };
    const auto stopped = [&](auto sndr) {
        auto result = sync_wait(ex::write_env(std::move(sndr), probes::stop_env(source)));
        EXPECT_FALSE(result.has_value());
    };
    stopped(ex::schedule(sch) | ex::then(count));
    // Only the bulk sees the stop.
    stopped(ex::unstoppable(ex::schedule(sch)) | ex::bulk_chunked(ex::par, 10, count));
    stopped(ex::unstoppable(ex::schedule(sch)) | ex::bulk_unchunked(ex::seq, 10, count));
    EXPECT_EQ(calls, 0);
}

TEST(exec_par_scheduler, a_stop_skips_calls_that_have_not_begun) {
    coppice::inplace_stop_source source;
    coppice::internal::atomic<int> calls{0};
    auto result = sync_wait(
        ex::write_env(ex::schedule(ex::get_parallel_scheduler()) |
                          ex::bulk_unchunked(ex::par, 1'000'000,
                                             [&](int) {
                                                 calls.fetch_add(1, coppice::internal::relaxed);
                                                 source.request_stop();
                                             }),
                      probes::stop_env(source)));
    EXPECT_FALSE(result.has_value());
    EXPECT_LT(calls.load(coppice::internal::relaxed), 1'000'000);
}

TEST(exec_par_scheduler, a_stop_does_not_hide_the_error_of_a_call) {
    coppice::inplace_stop_source source;
    auto fails_and_stops = ex::schedule(ex::get_parallel_scheduler()) |
                           ex::bulk_unchunked(ex::par, 1'000'000, [&](int i) {
                               source.request_stop();
                               throw i;
                           });
    EXPECT_THROW(sync_wait(ex::write_env(std::move(fails_and_stops), probes::stop_env(source))),
                 int);
}

// The signatures do not name the reference, which is never sent: two value completions would be
// ambiguous.
TEST(exec_par_scheduler, a_bulk_sends_a_reference_as_a_copy_with_one_signature) {
    int value = 1;
    auto sndr = ex::schedule(ex::get_parallel_scheduler()) |
                ex::then([&]() noexcept -> int& { return value; }) |
                ex::bulk(ex::par, 1, [](int, int& copy) { ++copy; });
    EXPECT_EQ(sync_wait(std::move(sndr)), std::tuple(2));
    EXPECT_EQ(value, 1);
}

// Returns the ranges of a bulk_chunked over `shape`, in order.
template <class Shape>
std::vector<std::pair<Shape, Shape>> ranges_of(Shape shape) {
    std::mutex mutex;
    std::vector<std::pair<Shape, Shape>> ranges;
    sync_wait(ex::schedule(ex::get_parallel_scheduler()) |
              ex::bulk_chunked(ex::par, shape, [&](Shape begin, Shape end) {
                  const std::lock_guard lock(mutex);
                  if (ranges.size() > 100'000) throw std::length_error("ranges without end");
                  ranges.emplace_back(begin, end);
              }));
    std::sort(ranges.begin(), ranges.end());
    return ranges;
}
template <class Shape>
void ranges_are_disjoint_and_complete(Shape shape) {
    Shape from = 0;
    for (const auto& [begin, end] : ranges_of(shape)) {
        EXPECT_EQ(begin, from) << shape;
        EXPECT_LT(begin, end) << shape;
        from = end;
    }
    EXPECT_EQ(from, std::max(shape, Shape(0))) << shape;
}

TEST(exec_par_scheduler, bulk_ranges_are_disjoint_and_complete_for_any_shape) {
    const auto check = []<class Shape>(Shape) {
        constexpr Shape most = std::numeric_limits<Shape>::max();
        for (Shape below = 0; below != 40; ++below) {
            ranges_are_disjoint_and_complete(below);
            ranges_are_disjoint_and_complete(static_cast<Shape>(most - below));
            ranges_are_disjoint_and_complete(static_cast<Shape>(most / 2 + below));
        }
    };
    check(std::uint64_t{});
    check(std::int64_t{});
    check(std::uint32_t{});
    check(int{});
    ranges_are_disjoint_and_complete(std::numeric_limits<std::int64_t>::min());
    ranges_are_disjoint_and_complete(-1);
}

// Completes everything at once on the caller's thread.
class inline_backend final : public ex::parallel_scheduler_replacement::parallel_scheduler_backend {
public:
    using proxy = ex::parallel_scheduler_replacement::receiver_proxy;
    using bulk_proxy = ex::parallel_scheduler_replacement::bulk_item_receiver_proxy;
    void schedule(proxy& r, std::span<std::byte> storage) noexcept override {
        EXPECT_GE(storage.size(), 64u);
        const auto token = r.try_query<coppice::inplace_stop_token>(coppice::get_stop_token);
        EXPECT_TRUE(token.has_value());
        EXPECT_FALSE(r.try_query<int>(coppice::get_stop_token).has_value());
        if (token->stop_requested()) {
            r.set_stopped();
        } else {
            r.set_value();
        }
    }
    void schedule_bulk_chunked(std::size_t n, bulk_proxy& r,
                               std::span<std::byte>) noexcept override {
        r.execute(0, n / 2);
        r.execute(n / 2, n);
        r.set_value();
    }
    void schedule_bulk_unchunked(std::size_t n, bulk_proxy& r,
                                 std::span<std::byte>) noexcept override {
        for (std::size_t i = 0; i != n; ++i) r.execute(i, i + 1);
        r.set_value();
    }
};

// Returns the indices, in order, that a bulk of five under `policy` calls on inline_backend.
template <class Policy>
std::string calls_under(const Policy& policy) {
    const ex::parallel_scheduler sch(std::make_shared<inline_backend>());
    std::string said;
    sync_wait(ex::schedule(sch) |
              ex::bulk_unchunked(policy, 5, [&](int i) { said += std::to_string(i); }));
    sync_wait(ex::schedule(sch) | ex::bulk(policy, 3, [&](int i) { said += std::to_string(i); }));
    return said;
}

// inline_backend cuts the one item of a sequenced bulk into an empty range and the item itself.
TEST(exec_parschedrepl, a_sequenced_bulk_runs_once_however_the_backend_cuts_it) {
    EXPECT_EQ(calls_under(ex::par), "01234012");
    EXPECT_EQ(calls_under(ex::par_unseq), "01234012");
    EXPECT_EQ(calls_under(ex::seq), "01234012");
    EXPECT_EQ(calls_under(ex::unseq), "01234012");
}

TEST(exec_par_scheduler, a_bulk_counts_with_bool) {
    for (const bool shape : {false, true}) {
        coppice::internal::atomic<int> calls{0};
        const auto count = [&](auto...) { calls.fetch_add(1, coppice::internal::relaxed); };
        const auto sch = ex::get_parallel_scheduler();
        sync_wait(ex::schedule(sch) | ex::bulk(ex::par, shape, count));
        sync_wait(ex::schedule(sch) | ex::bulk_unchunked(ex::seq, shape, count));
        sync_wait(ex::schedule(sch) | ex::bulk_chunked(ex::par, shape, count));
        EXPECT_EQ(calls.load(coppice::internal::relaxed), shape ? 3 : 0);
    }
}

TEST(exec_parschedrepl, a_users_backend_takes_over) {
    namespace replacement = ex::parallel_scheduler_replacement;
    const auto before = replacement::query_parallel_scheduler_backend();
    replacement::set_parallel_scheduler_backend(std::make_shared<inline_backend>());
    const auto sch = ex::get_parallel_scheduler();
    EXPECT_EQ(outcome(ex::schedule(sch)), "value()");
    coppice::inplace_stop_source source;
    source.request_stop();
    EXPECT_EQ(outcome(ex::schedule(sch), probes::stop_env(source)), "stopped");
    std::string ranges;
    EXPECT_EQ(outcome(ex::schedule(sch) | ex::bulk_chunked(ex::par, 5,
                                                           [&](int b, int e) {
                                                               ranges += std::to_string(b) + "-" +
                                                                         std::to_string(e) + " ";
                                                           })),
              "value()");
    EXPECT_EQ(ranges, "0-2 2-5 ");
    replacement::set_parallel_scheduler_backend(before);
    EXPECT_FALSE(sch == ex::get_parallel_scheduler());
}

}  // namespace
