// Plan: from connect to completion nothing is allocated; spawn, spawn_future and split allocate
// once.
#include <coppice/execution.hpp>

#include "coroutine.hpp"
#include "probes.hpp"

#include <gtest/gtest.h>
#include <allocations.hpp>

#include <chrono>

namespace {

namespace ex = coppice::execution;
using coppice::test::allocation_count;
using coppice::this_thread::sync_wait;
using namespace std::chrono_literals;

// Counts what connecting, starting and completing allocate.
template <class MakeSender>
std::size_t allocations_of(MakeSender make) {
    auto sndr = make();
    const allocation_count count;
    sync_wait(std::move(sndr));
    return count.so_far();
}

TEST(allocations, no_composition_of_algorithms_allocates) {
    const auto two = [] { return ex::just(1, 2); };
    EXPECT_EQ(allocations_of([&] { return two() | ex::then([](int a, int b) { return a + b; }); }),
              0u);
    EXPECT_EQ(allocations_of([&] {
                  return two() | ex::let_value([](int a, int b) { return ex::just(a - b); }) |
                         ex::upon_error([](auto&&) { return 0; }) |
                         ex::upon_stopped([] { return 0; });
              }),
              0u);
    EXPECT_EQ(allocations_of([&] {
                  return ex::when_all(two(), ex::just(3), ex::read_env(coppice::get_stop_token)) |
                         ex::then([](auto...) {});
              }),
              0u);
    EXPECT_EQ(allocations_of([&] { return ex::when_all_with_variant(two(), ex::just()); }), 0u);
    EXPECT_EQ(allocations_of([&] { return ex::when_any(ex::just(1), probes::until_stopped()); }),
              0u);
    EXPECT_EQ(allocations_of([&] { return ex::just(1) | ex::stopped_as_optional(); }), 0u);
    EXPECT_EQ(allocations_of([&] { return ex::just(4) | ex::bulk(ex::par, 3, [](int, int&) {}); }),
              0u);
    EXPECT_EQ(allocations_of([&] { return ex::affine(ex::unstoppable(two())); }), 0u);
}

TEST(allocations, scheduling_and_timers_allocate_nothing) {
    EXPECT_EQ(allocations_of([] {
                  return ex::read_env(ex::get_scheduler) | ex::let_value([](auto sch) {
                             return ex::when_all(
                                 ex::starts_on(sch, ex::just(1)) | ex::continues_on(sch),
                                 ex::on(sch, ex::just(2)), ex::schedule_after(sch, 1us),
                                 ex::schedule(sch) | ex::on(sch, ex::then([] { return 3; })));
                         });
              }),
              0u);
    EXPECT_EQ(allocations_of([] { return ex::timeout(ex::just(1), 1h); }), 0u);
    EXPECT_EQ(allocations_of([] {
                  return ex::timeout(ex::read_env(ex::get_scheduler) |
                                         ex::let_value([](auto s) { return ex::schedule(s); }),
                                     1h);
              }),
              0u);
}

TEST(allocations, loops_allocate_nothing) {
    int rounds = 0;
    EXPECT_EQ(allocations_of([&] {
                  return ex::just() | ex::then([&] { return ++rounds == 1000; }) |
                         ex::repeat_until();
              }),
              0u);
}

TEST(allocations, a_small_any_sender_allocates_nothing) {
    using any = ex::any_sender<ex::completion_signatures<
        ex::set_value_t(int), ex::set_error_t(std::exception_ptr), ex::set_stopped_t()>>;
    const allocation_count count;
    sync_wait(any(ex::just(1) | ex::then([](int i) { return i; })));
    EXPECT_EQ(count.so_far(), 0u);
}

TEST(allocations, awaiting_a_sender_allocates_nothing_but_the_coroutine) {
    auto awaits = [](int n) -> probes::coroutine<int> {
        int sum = 0;
        for (int i = 0; i != n; ++i)
            sum += co_await (ex::just(i) | ex::then([](int j) { return j; }));
        co_return sum;
    };
    const auto of = [&](int n) {
        const allocation_count count;
        sync_wait(awaits(n));
        return count.so_far();
    };
    const std::size_t none = of(0);
    EXPECT_EQ(of(100), none);
}

TEST(allocations, spawn_spawn_future_and_split_allocate_once) {
    ex::counting_scope scope;
    {
        const allocation_count count;
        ex::spawn(ex::just() | ex::then([]() noexcept {}), scope.get_token());
        EXPECT_EQ(count.so_far(), 1u);
    }
    {
        const allocation_count count;
        sync_wait(ex::spawn_future(ex::just(1), scope.get_token()));
        EXPECT_EQ(count.so_far(), 1u);
    }
    {
        const allocation_count count;
        auto shared = ex::split(ex::just(1));
        sync_wait(ex::when_all(shared, shared));
        EXPECT_EQ(count.so_far(), 1u);
    }
    const allocation_count count;
    sync_wait(scope.join());
    EXPECT_EQ(count.so_far(), 0u);
}

TEST(allocations, when_all_range_allocates_its_operations_and_its_result) {
    std::vector<decltype(ex::just(1))> sndrs(10, ex::just(1));
    auto all = ex::when_all_range(std::move(sndrs));
    const allocation_count count;
    sync_wait(std::move(all));
    EXPECT_EQ(count.so_far(), 2u);
}

}  // namespace
