// Plan: nothing is allocated between connect and completion; spawn, spawn_future, and split
// allocate once.
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

// Returns how many allocations connecting, starting, and completing make.
template <class MakeSender>
std::size_t allocations_of(MakeSender make) {
    auto sndr = make();
    const allocation_count count;
    sync_wait(std::move(sndr));
    return count.so_far();
}

// Returns the same count for a sender that need not have exactly one value completion.
template <class MakeSender>
std::size_t allocations_of_any(MakeSender make) {
    return allocations_of([&] { return make() | ex::into_variant() | ex::then([](auto&&) {}); });
}

// Returns the least count of many runs: other threads may still be starting, which allocates.
template <class MakeSender>
std::size_t fewest_allocations_of(MakeSender make) {
    std::size_t fewest = allocations_of(make);
    for (int turn = 0; turn != 10'000 && fewest != 0; ++turn) {
        const std::size_t now = allocations_of(make);
        if (now < fewest) fewest = now;
    }
    return fewest;
}

TEST(allocations, factories_allocate_nothing) {
    EXPECT_EQ(allocations_of([] { return ex::just(1, 'c'); }), 0u);
    EXPECT_EQ(allocations_of([] { return ex::just_error(1) | ex::upon_error([](int) {}); }), 0u);
    EXPECT_EQ(allocations_of([] { return ex::just_stopped() | ex::upon_stopped([] {}); }), 0u);
    EXPECT_EQ(allocations_of([] { return ex::read_env(coppice::get_stop_token); }), 0u);
    EXPECT_EQ(allocations_of([] { return ex::schedule(ex::inline_scheduler()); }), 0u);
    EXPECT_EQ(fewest_allocations_of([] { return ex::schedule(ex::get_parallel_scheduler()); }), 0u);
}

TEST(allocations, adaptors_of_one_sender_allocate_nothing) {
    const auto two = [] { return ex::just(1, 2); };
    const auto stopped = [] { return ex::just() | ex::let_value([] { return probes::stops(); }); };
    EXPECT_EQ(allocations_of([&] { return two() | ex::then([](int a, int b) { return a + b; }); }),
              0u);
    EXPECT_EQ(allocations_of([&] {
                  return two() | ex::let_value([](int a, int b) { return ex::just(a - b); });
              }),
              0u);
    EXPECT_EQ(allocations_of([&] {
                  return ex::just_error(1) | ex::let_error([](int) { return ex::just(); });
              }),
              0u);
    EXPECT_EQ(
        allocations_of([&] { return stopped() | ex::let_stopped([] { return ex::just(1); }); }),
        0u);
    EXPECT_EQ(allocations_of_any([&] { return two() | ex::into_variant(); }), 0u);
    EXPECT_EQ(allocations_of([&] { return stopped() | ex::stopped_as_optional(); }), 0u);
    EXPECT_EQ(allocations_of([&] {
                  return stopped() | ex::stopped_as_error(2) |
                         ex::let_error([](auto&) { return ex::just(2); });
              }),
              0u);
    EXPECT_EQ(allocations_of([&] { return two() | ex::write_env(ex::env<>()); }), 0u);
    EXPECT_EQ(allocations_of([&] { return two() | ex::unstoppable(); }), 0u);
    EXPECT_EQ(allocations_of([&] { return ex::schedule_from(two()); }), 0u);
    EXPECT_EQ(allocations_of([&] { return ex::affine(ex::unstoppable(two())); }), 0u);
    coppice::inplace_stop_source source;
    EXPECT_EQ(allocations_of([&] { return ex::stop_when(two(), source.get_token()); }), 0u);
    ex::counting_scope scope;
    EXPECT_EQ(allocations_of([&] { return ex::associate(two(), scope.get_token()); }), 0u);
    EXPECT_EQ(allocations_of([&] { return scope.join(); }), 0u);
}

TEST(allocations, bulk_allocates_nothing_wherever_it_runs) {
    const auto all = [](auto sndr) {
        return std::move(sndr) | ex::bulk(ex::par, 100, [](int, int&) {}) |
               ex::bulk_chunked(ex::par, 100, [](int, int, int&) {}) |
               ex::bulk_unchunked(ex::seq, 100, [](int, int&) {});
    };
    EXPECT_EQ(allocations_of([&] { return all(ex::just(4)); }), 0u);
    const auto sch = ex::get_parallel_scheduler();
    EXPECT_EQ(fewest_allocations_of([&] { return all(ex::just(4) | ex::continues_on(sch)); }), 0u);
}

TEST(allocations, adaptors_of_several_senders_allocate_nothing) {
    const auto two = [] { return ex::just(1, 2); };
    EXPECT_EQ(allocations_of([&] {
                  return ex::when_all(two(), ex::just(3), ex::read_env(coppice::get_stop_token)) |
                         ex::then([](auto...) {});
              }),
              0u);
    EXPECT_EQ(allocations_of([&] { return ex::when_all_with_variant(two(), ex::just()); }), 0u);
    EXPECT_EQ(allocations_of([&] { return ex::when_any(ex::just(1), probes::until_stopped()); }),
              0u);
    EXPECT_EQ(allocations_of([&] {
                  return ex::when_all(ex::just_error(1), probes::until_stopped()) |
                         ex::let_error([](int) { return ex::just(1); });
              }),
              0u);
}

TEST(allocations, sync_wait_allocates_nothing_in_either_form) {
    const allocation_count count;
    sync_wait(ex::just(1));
    coppice::this_thread::sync_wait_with_variant(ex::just(1, 'c'));
    EXPECT_EQ(count.so_far(), 0u);
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
    rounds = 0;
    EXPECT_EQ(allocations_of([&] {
                  return ex::just() |
                         ex::let_value([&] { return probes::error_until(++rounds, 9); }) |
                         ex::retry();
              }),
              0u);
}

TEST(allocations, a_small_any_sender_allocates_nothing_and_a_big_one_once) {
    using any = ex::any_sender<ex::completion_signatures<
        ex::set_value_t(int), ex::set_error_t(std::exception_ptr), ex::set_stopped_t()>>;
    static_assert(any::sender_size == 3 * sizeof(void*) && any::operation_size == 128);
    // `words` fits exactly into both buffers; `more` has one byte too many.
    struct words {
        char bytes[any::sender_size] = {};
    };
    struct more {
        char bytes[any::sender_size + 1] = {};
    };
    const auto of = [](auto data) {
        const allocation_count count;
        sync_wait(any(ex::just() | ex::then([data]() noexcept { return int(data.bytes[0]); })));
        return count.so_far();
    };
    EXPECT_EQ(of(words()), 0u);
    EXPECT_EQ(of(more()), 1u);
    const allocation_count count;
    sync_wait(any(ex::just(1) | ex::then([](int i) { return i; })));
    EXPECT_EQ(count.so_far(), 0u);
}

TEST(allocations, a_small_any_scheduler_allocates_nothing_to_copy_and_to_schedule) {
    ex::run_loop loop;
    const allocation_count count;
    sync_wait(ex::read_env(ex::get_scheduler) | ex::let_value([](auto sch) {
                  const ex::any_scheduler any(sch);
                  const ex::any_scheduler copy = any;
                  return ex::schedule(copy) | ex::continues_on(any);
              }));
    EXPECT_EQ(count.so_far(), 0u);
}

TEST(allocations, awaiting_a_sender_allocates_only_the_coroutine) {
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
