// What all types of room sync promise to a waiter: its turn, its end by a stop, and every token.
#include <coppice/io.hpp>
#include <coppice/pool.hpp>

#include "allocations.hpp"
#include "kinds.hpp"

#include <array>
#include <chrono>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
using namespace std::chrono_literals;

template <class Kind>
class waiting : public testing::Test {};
TYPED_TEST_SUITE(waiting, all_kinds);

TYPED_TEST(waiting, waiters_are_granted_in_the_order_in_which_they_came) {
    TypeParam kind(4);
    std::array<probe<TypeParam>, 4> probes;
    std::vector<int> order;
    for (int i = 0; i != 4; ++i) probes[i].wait(kind, [&order, i] { order.push_back(i); });
    EXPECT_TRUE(order.empty());
    kind.grant();
    EXPECT_EQ(order, (std::vector{0, 1, 2, 3}));
}

TYPED_TEST(waiting, canceling_one_waiter_leaves_the_others_in_fifo_order) {
    for (int victim = 0; victim != 4; ++victim) {
        TypeParam kind(4);
        std::array<probe<TypeParam>, 4> probes;
        std::vector<int> order;
        for (int i = 0; i != 4; ++i) probes[i].wait(kind, [&order, i] { order.push_back(i); });
        probes[victim].stop.request_stop();
        EXPECT_TRUE(probes[victim].was_stopped());
        EXPECT_EQ(order, std::vector{victim});
        kind.grant();
        std::vector expected{victim};
        for (int i = 0; i != 4; ++i) {
            if (i != victim) expected.push_back(i);
        }
        EXPECT_EQ(order, expected);
    }
}

TYPED_TEST(waiting, stopping_all_waiters_leaves_nothing_taken) {
    TypeParam kind(3);
    std::array<probe<TypeParam>, 3> probes;
    for (auto& p : probes) p.wait(kind);
    for (auto& p : probes) {
        p.stop.request_stop();
        EXPECT_TRUE(p.was_stopped());
    }
    kind.grant();
    EXPECT_TRUE(kind.untouched());
}

TYPED_TEST(waiting, a_wait_that_was_stopped_before_it_began_takes_nothing) {
    TypeParam kind(1);
    kind.grant();
    probe<TypeParam> p;
    p.stop.request_stop();
    p.wait(kind);
    EXPECT_TRUE(p.was_stopped());
    EXPECT_TRUE(kind.untouched());
}

TYPED_TEST(waiting, a_stop_after_the_end_has_no_effect) {
    TypeParam kind(2);
    probe<TypeParam> waiter;
    waiter.wait(kind);
    probe<TypeParam> next;
    next.wait(kind);
    kind.grant();
    waiter.stop.request_stop();
    EXPECT_TRUE(waiter.was_granted());
    EXPECT_TRUE(next.was_granted());
}

TYPED_TEST(waiting, a_deadline_ends_a_wait) {
    TypeParam kind(2);
    std::error_code ec;
    const ex::instant soon(std::chrono::steady_clock::now() + 2ms);
    kind.wait(bind_env(ex::prop(ex::get_deadline, soon), block[ec]));
    EXPECT_EQ(ec, std::errc::operation_canceled);
    probe<TypeParam> next;
    next.wait(kind);
    EXPECT_EQ(next.ended, 0);
    kind.grant();
    EXPECT_TRUE(next.was_granted());
}

TYPED_TEST(waiting, a_wait_ends_before_a_deadline_that_is_far) {
    TypeParam kind(1);
    bool granted = false;
    const ex::instant far(std::chrono::steady_clock::now() + 1h);
    kind.wait(bind_env(ex::prop(ex::get_deadline, far),
                       [&](std::error_code ec, auto&&...) { granted = !ec; }));
    kind.grant();
    EXPECT_TRUE(granted);
}

TYPED_TEST(waiting, every_token_gets_the_end) {
    {
        TypeParam kind(1);
        auto future = kind.wait(use_future);
        kind.grant();
        future.get();
    }
    {
        TypeParam kind(1);
        std::thread granter([&] { kind.grant(); });
        kind.wait(block);
        granter.join();
    }
    {
        TypeParam kind(1);
        std::thread granter([&] { kind.grant(); });
        EXPECT_TRUE(this_thread::sync_wait(kind.wait() | ex::then([](auto&&...) noexcept {})));
        granter.join();
    }
    {
        TypeParam kind(1);
        std::error_code ec = std::make_error_code(std::errc::io_error);
        std::thread granter([&] { kind.grant(); });
        const auto work = [](TypeParam& k, std::error_code& e) -> task<> {
            static_cast<void>(
                co_await (k.wait(use_await[e]) | ex::then([](auto&&...) noexcept { return 0; })));
        };
        EXPECT_TRUE(this_thread::sync_wait(work(kind, ec)));
        EXPECT_FALSE(ec);
        granter.join();
    }
}

TYPED_TEST(waiting, a_task_continues_on_its_pool) {
    thread_pool pool(2);
    TypeParam kind(3);
    std::thread granter([&] { kind.grant(); });
    const auto one = [&] { return ex::starts_on(pool.get_scheduler(), wait_in_task(kind)); };
    EXPECT_TRUE(this_thread::sync_wait(ex::when_all(one(), one(), one())));
    granter.join();
}

TYPED_TEST(waiting, a_task_continues_on_its_loop) {
    io::context loop;
    TypeParam kind(1);
    const auto work = [](TypeParam& k, std::thread::id& where) -> task<> {
        co_await wait_in_task(k);
        where = std::this_thread::get_id();
    };
    std::thread::id where;
    ex::counting_scope scope;
    ex::spawn(ex::starts_on(loop.get_scheduler(), work(kind, where)) |
                  ex::upon_error([](auto&&) noexcept {}),
              scope.get_token());
    std::thread granter([&] { kind.grant(); });
    while (where == std::thread::id()) loop.run_for(1ms);
    EXPECT_EQ(where, std::this_thread::get_id());
    granter.join();
    this_thread::sync_wait(scope.join());
}

TYPED_TEST(waiting, a_stopped_task_ends_without_a_result) {
    TypeParam kind(1);
    inplace_stop_source stop;
    std::thread stopper([&] { stop.request_stop(); });
    EXPECT_FALSE(this_thread::sync_wait(
        ex::write_env(wait_in_task(kind), ex::prop(get_stop_token, stop.get_token()))));
    stopper.join();
    kind.grant();
    EXPECT_TRUE(kind.untouched());
}

TYPED_TEST(waiting, the_loser_of_when_any_takes_nothing) {
    TypeParam kind(1);
    const auto race = [](TypeParam& k) {
        return ex::when_any(k.wait() | ex::then([](auto&&...) noexcept { return 1; }), ex::just(2));
    };
    EXPECT_EQ(std::get<0>(this_thread::sync_wait(race(kind)).value()), 2);
    kind.grant();
    EXPECT_TRUE(kind.untouched());
}

TYPED_TEST(waiting, waiting_and_granting_allocate_nothing) {
    std::size_t allocated = 0;
    for (int round = 0; round != 3; ++round) {  // the first rounds fill the caches
        const allocation_count count;
        TypeParam kind(2);
        probe<TypeParam> granted;
        probe<TypeParam> stopped;
        granted.wait(kind);
        stopped.wait(kind);
        stopped.stop.request_stop();
        kind.grant();
        EXPECT_TRUE(granted.was_granted());
        EXPECT_TRUE(stopped.was_stopped());
        allocated = count.so_far();
    }
    EXPECT_EQ(allocated, 0u);
}

// The object is gone when the granting function returns.
TYPED_TEST(waiting, a_waiter_destroys_the_object_that_granted_it) {
    for (int round = 0; round != 200; ++round) {
        std::optional<TypeParam> kind(std::in_place, 1);
        const auto work = [](std::optional<TypeParam>& k) -> task<> {
            co_await wait_in_task(*k);
            k.reset();
        };
        std::thread granter([&] { kind->grant(); });
        this_thread::sync_wait(work(kind));
        granter.join();
    }
}

}  // namespace
