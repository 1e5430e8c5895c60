// parallel/pipeline.hpp: order, bounds, errors at every stage and item, stops, and waiting stages.
#include <coppice/parallel/pipeline.hpp>

#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/stop_when.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/pool/fork_join.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/sync/event.hpp>
#include <coppice/task/task.hpp>

#include "allocations.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace coppice;
namespace ex = coppice::execution;
using parallel::concurrent;
using parallel::on;
using parallel::serial;
using parallel::serial_in_order;
using parallel::stage;

// A source of the numbers from 0 to size - 1.
struct numbers {
    int size = 0;
    int next = 0;
    std::optional<int> operator()() {
        if (next == size) return std::nullopt;
        return next++;
    }
};

// An item that counts how many of its kind are alive.
coppice::internal::atomic<int> alive{0};
struct counted {
    explicit counted(int n) noexcept : number(n) { ++alive; }
    counted(counted&& other) noexcept : number(other.number) { ++alive; }
    ~counted() { --alive; }
    int number;
};

TEST(pipeline, a_serial_stage_in_order_sees_the_order_of_the_source) {
    for (const std::size_t workers : {1, 2, 4}) {
        thread_pool pool(workers);
        for (const std::size_t slots : {1, 2, 3, 8, 100}) {
            std::vector<std::string> got;
            EXPECT_TRUE(parallel::pipeline(
                on(pool), slots, numbers{500},
                stage(concurrent, [](int n) { return std::to_string(n); }),
                stage(serial_in_order, [&](std::string s) { got.push_back(std::move(s)); })));
            ASSERT_EQ(got.size(), 500u);
            for (std::size_t i = 0; i != got.size(); ++i) ASSERT_EQ(got[i], std::to_string(i));
        }
    }
}

TEST(pipeline, a_serial_stage_gets_each_item_once_and_one_at_a_time) {
    thread_pool pool(4);
    std::vector<int> got;
    coppice::internal::atomic<int> inside{0};
    EXPECT_TRUE(parallel::pipeline(
        on(pool), 16, numbers{2000}, stage(concurrent, [](int n) { return n; }),
        stage(serial,
              [&](int n) {
                  EXPECT_EQ(++inside, 1);
                  got.push_back(n);
                  --inside;
                  return n;
              }),
        stage(serial_in_order, [n = 0](int each) mutable { EXPECT_EQ(each, n++); })));
    std::sort(got.begin(), got.end());
    ASSERT_EQ(got.size(), 2000u);
    for (int i = 0; i != 2000; ++i) ASSERT_EQ(got[static_cast<std::size_t>(i)], i);
}

TEST(pipeline, never_has_more_items_in_flight_than_allowed) {
    thread_pool pool(4);
    for (const int most : {1, 2, 5}) {
        coppice::internal::atomic<int> in_flight{0};
        const auto source = [&, next = 0]() mutable -> std::optional<int> {
            if (next == 1000) return std::nullopt;
            EXPECT_LE(++in_flight, most);
            return next++;
        };
        parallel::pipeline(on(pool), static_cast<std::size_t>(most), source,
                           stage(concurrent, [](int n) { return n; }),
                           stage(serial, [](int n) { return n; }),
                           stage(concurrent, [&](int) { --in_flight; }));
        EXPECT_EQ(in_flight, 0);
    }
}

// Throws the number of the item that is to fail in that stage.
struct fault {
    int stage;
    int item;
    counted pass(int at, counted&& c) const {
        if (at == stage && c.number == item) throw c.number;
        return std::move(c);
    }
};
void run_with(thread_pool& pool, const fault& f, std::vector<int>& ended) {
    parallel::pipeline(
        on(pool), 4,
        [&f, next = 0]() mutable -> std::optional<counted> {
            if (f.stage == 0 && f.item == next) throw next;
            if (next == 12) return std::nullopt;
            return counted(next++);
        },
        stage(concurrent, [&f](counted&& c) { return f.pass(1, std::move(c)); }),
        stage(serial, [&f](counted&& c) { return f.pass(2, std::move(c)); }),
        stage(concurrent,
              [&f](counted&& c) -> task<counted> { co_return f.pass(3, std::move(c)); }),
        stage(serial_in_order, [&f, &ended](counted&& c) {
            f.pass(4, std::move(c));
            ended.push_back(c.number);
        }));
}

TEST(pipeline, throws_the_error_of_any_stage_and_item_after_all_items_are_destroyed) {
    for (const std::size_t workers : {1, 3}) {
        thread_pool pool(workers);
        for (int at = 0; at != 5; ++at) {
            for (int item = 0; item != 12; ++item) {
                std::vector<int> ended;
                int thrown = -1;
                try {
                    run_with(pool, {at, item}, ended);
                } catch (int number) {
                    thrown = number;
                }
                EXPECT_EQ(thrown, item);
                EXPECT_EQ(alive, 0);
                // Those before it were taken to the end, in order.
                ASSERT_GE(ended.size(), static_cast<std::size_t>(item));
                for (int i = 0; i != item; ++i) EXPECT_EQ(ended[static_cast<std::size_t>(i)], i);
            }
        }
    }
}

TEST(pipeline, throws_the_error_of_the_first_item_if_several_fail) {
    thread_pool pool(3);
    for (int round = 0; round != 50; ++round) {
        async_event late;
        int thrown = -1;
        try {
            parallel::pipeline(on(pool), 8, numbers{100},
                               stage(concurrent,
                                     [&late](int n) -> task<int> {
                                         if (n == 3) co_await late.wait();
                                         if (n == 5) late.set();
                                         if (n == 3 || n == 5) throw n;
                                         co_return n;
                                     }),
                               stage(serial_in_order, [](int) {}));
        } catch (int number) {
            thrown = number;
        }
        EXPECT_EQ(thrown, 3);
    }
}

TEST(pipeline, a_stop_ends_the_source_and_loses_no_item) {
    thread_pool pool(2);
    inplace_stop_source stop;
    int given = 0;
    coppice::internal::atomic<int> ended{0};
    const auto [whole] = fork_join(stop.get_token(), [&] {
        return parallel::pipeline(
            on(pool), 4, [&]() -> std::optional<int> { return given++; },
            stage(concurrent,
                  [&](int n) {
                      if (n == 50) stop.request_stop();
                      return n;
                  }),
            stage(serial, [&](int) { ++ended; }));
    });
    EXPECT_FALSE(whole);
    EXPECT_EQ(ended, given);
    EXPECT_GE(given, 51);
}

TEST(pipeline, a_task_that_is_stopped_makes_the_result_false) {
    thread_pool pool(2);
    std::vector<int> got;
    EXPECT_FALSE(parallel::pipeline(on(pool), 4, numbers{100},
                                    stage(concurrent,
                                          [](int n) -> task<int> {
                                              if (n == 7) co_await ex::just_stopped();
                                              co_return n;
                                          }),
                                    stage(serial_in_order, [&](int n) { got.push_back(n); })));
    ASSERT_GE(got.size(), 7u);
    for (int i = 0; i != 7; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i);
    EXPECT_EQ(std::count(got.begin(), got.end(), 7), 0);
}

TEST(pipeline, items_that_wait_hold_no_worker) {
    thread_pool pool(1);
    constexpr int size = 64;
    async_event all_wait;
    coppice::internal::atomic<int> waiting{0};
    int sum = 0;
    EXPECT_TRUE(parallel::pipeline(on(pool), size, numbers{3 * size},
                                   stage(concurrent,
                                         [&](int n) -> task<int> {
                                             if (++waiting == size) all_wait.set();
                                             co_await all_wait.wait();
                                             co_return n;
                                         }),
                                   stage(serial_in_order, [&](int n) -> task<int> { co_return n; }),
                                   stage(serial, [&](int n) { sum += n; })));
    EXPECT_EQ(sum, 3 * size * (3 * size - 1) / 2);
}

TEST(pipeline, continues_on_its_pool_after_a_sender_that_ends_elsewhere) {
    thread_pool pool(1), other(1);
    bool here = true;
    EXPECT_TRUE(parallel::pipeline(on(pool), 4, numbers{100},
                                   stage(concurrent,
                                         [&](int n) {
                                             here = here && pool.is_current();
                                             return ex::schedule(other.get_scheduler()) |
                                                    ex::then([n] { return n; });
                                         }),
                                   stage(serial, [&](int) { here = here && pool.is_current(); })));
    EXPECT_TRUE(here);
}

TEST(pipeline, runs_without_a_place_in_a_worker_and_on_other_schedulers) {
    const auto check = [](auto... where) {
        int sum = 0;
        EXPECT_TRUE(parallel::pipeline(where..., 4, numbers{100},
                                       stage(concurrent, [](int n) { return n + 1L; }),
                                       stage(serial, [&](long n) { sum += static_cast<int>(n); })));
        EXPECT_EQ(sum, 5050);
    };
    check();
    thread_pool pool(2);
    pool.run([&check] { check(); });
    pool.run([&] { check(on(pool)); });
    check(on(pool.get_scheduler()));
    check(on(ex::inline_scheduler()));
}

TEST(pipeline, as_a_sender_completes_in_each_of_the_three_ways) {
    thread_pool pool(2);
    coppice::internal::atomic<int> ended{0};
    const auto count = stage(concurrent, [&](int) { ++ended; });
    EXPECT_TRUE(
        this_thread::sync_wait(parallel::async::pipeline(on(pool), 4, numbers{100}, count)));
    EXPECT_EQ(ended, 100);
    EXPECT_THROW(this_thread::sync_wait(
                     parallel::async::pipeline(on(pool), 4, numbers{100},
                                               stage(serial,
                                                     [](int n) {
                                                         if (n == 9) throw std::runtime_error("9");
                                                     }))),
                 std::runtime_error);
    inplace_stop_source stop;
    EXPECT_FALSE(
        this_thread::sync_wait(ex::stop_when(parallel::async::pipeline(
                                                 on(pool), 4,
                                                 [&stop, n = 0]() mutable -> std::optional<int> {
                                                     if (++n == 50) stop.request_stop();
                                                     return n;
                                                 },
                                                 count),
                                             stop.get_token())));
}

TEST(pipeline, a_sender_that_is_never_started_destroys_its_functions) {
    const auto owner = std::make_shared<int>(0);
    thread_pool pool(1);
    {
        auto sender = parallel::async::pipeline(
            on(pool), 4, [owner]() -> std::optional<int> { return *owner; },
            stage(serial, [owner](int) {}));
        EXPECT_GT(owner.use_count(), 1);
    }
    EXPECT_EQ(owner.use_count(), 1);
}

TEST(pipeline, with_room_for_more_items_than_memory_can_hold_throws_before_it_calls_anything) {
    thread_pool pool(1);
    int calls = 0;
    const auto source = [&calls]() -> std::optional<int> {
        ++calls;
        return std::nullopt;
    };
    const std::size_t half = std::size_t{1} << 63;
    for (const std::size_t slots : {~std::size_t{0}, half, half - 1, half / 32, half / 32 + 1}) {
        EXPECT_THROW(parallel::pipeline(on(pool), slots, source, stage(serial, [](int) {})),
                     std::bad_alloc);
        EXPECT_THROW(parallel::pipeline(slots, source, stage(serial_in_order, [](int) {})),
                     std::bad_alloc);
        EXPECT_THROW(coppice::this_thread::sync_wait(parallel::async::pipeline(
                         on(pool), slots, source, stage(concurrent, [](int) {}))),
                     std::bad_alloc);
    }
    EXPECT_EQ(calls, 0);
}

TEST(pipeline, allocates_nothing_per_item) {
    thread_pool pool(1);
    const auto of = [&pool](int size) {
        const std::size_t before = test::allocations();
        pool.run([size] {
            parallel::pipeline(8, numbers{size}, stage(concurrent, [](int n) { return n; }),
                               stage(serial, [](int n) { return n; }),
                               stage(serial_in_order, [](int) {}));
        });
        return test::allocations() - before;
    };
    of(1);
    EXPECT_EQ(of(10), of(10'000));
}

}  // namespace
