// Stops that race with grants, on many threads: nothing is lost, and nothing is granted twice.
#include "kinds.hpp"

#include <coppice/base/internal/atomic.hpp>
#include <coppice/pool.hpp>

#include "emulated.hpp"
#include "small_stack.hpp"

#include <deque>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;

// What one waiter at a time may have.
using exclusive_kinds = testing::Types<mutex_kind, semaphore_kind, writer_kind, auto_event_kind>;

template <class Kind>
class storm : public testing::Test {
protected:
    static constexpr int rounds = repeated(10'000);

    // Each thread waits again and again, with a stop source per round; what it gets, it holds while
    // it counts. Then it stops the round in which the next thread is.
    void run(int threads) {
        Kind kind(0);
        struct lane {
            std::deque<inplace_stop_source> stops = std::deque<inplace_stop_source>(rounds);
            coppice::internal::atomic<int> round{0};
            long granted = 0;
            long stopped = 0;
        };
        std::vector<lane> lanes(static_cast<std::size_t>(threads));
        long count = 0;  // guarded by what is waited for
        coppice::internal::atomic<bool> go{false};
        const auto work = [&](std::size_t me) {
            lane& mine = lanes[me];
            lane& next = lanes[(me + 1) % lanes.size()];
            while (!go.load(relaxed)) thread_yield();
            for (int i = 0; i != rounds; ++i) {
                mine.round.store(i, relaxed);
                std::error_code ec;
                const ex::prop env(get_stop_token,
                                   mine.stops[static_cast<std::size_t>(i)].get_token());
                const auto hold = [&] {
                    if (ec) return;
                    ++count;
                    pass_on(kind);
                };
                if constexpr (std::is_void_v<decltype(kind.wait(block))>) {
                    kind.wait(bind_env(env, block[ec]));
                    hold();
                } else {
                    [[maybe_unused]] const auto result = kind.wait(bind_env(env, block[ec]));
                    hold();
                }
                ++(ec ? mine.stopped : mine.granted);
                const int other = next.round.load(relaxed);
                next.stops[static_cast<std::size_t>(other)].request_stop();
            }
        };
        std::vector<std::thread> running;
        for (std::size_t i = 0; i != lanes.size(); ++i) running.emplace_back(work, i);
        go.store(true, relaxed);
        kind.grant();
        for (auto& t : running) t.join();
        long granted = 0;
        for (const lane& l : lanes) {
            EXPECT_EQ(l.granted + l.stopped, rounds);
            granted += l.granted;
        }
        EXPECT_EQ(count, granted);
        EXPECT_TRUE(kind.untouched());
    }
};
TYPED_TEST_SUITE(storm, exclusive_kinds);

TYPED_TEST(storm, two_threads_that_stop_each_other_lose_nothing) {
    this->run(2);
}

TYPED_TEST(storm, four_threads_that_stop_each_other_lose_nothing) {
    this->run(4);
}

// Tasks on a pool: some give up after a random time, some do not.
TYPED_TEST(storm, tasks_on_a_pool_that_give_up_lose_nothing) {
    TypeParam kind(0);
    thread_pool pool(2);
    long count = 0;
    const auto hold = [](TypeParam& k, long& c) -> task<> {
        if constexpr (std::is_void_v<decltype(k.wait(block))>) {
            co_await k.wait();
            ++c;
        } else {
            [[maybe_unused]] const auto result = co_await k.wait();
            ++c;
        }
        pass_on(k);
    };
    const auto work = [&](int seed) -> task<long> {
        long granted = 0;
        for (int i = 0; i != repeated(300); ++i) {
            if ((i + seed) % 3 == 0) {
                const bool won = co_await ex::when_any(
                    hold(kind, count) | ex::then([]() noexcept { return true; }),
                    ex::schedule(pool.get_scheduler()) | ex::then([]() noexcept { return false; }));
                granted += won;
            } else {
                co_await hold(kind, count);
                ++granted;
            }
        }
        co_return granted;
    };
    kind.grant();
    const auto on_pool = [&](int seed) { return ex::starts_on(pool.get_scheduler(), work(seed)); };
    const auto [a, b, c, d] =
        this_thread::sync_wait(ex::when_all(on_pool(0), on_pool(1), on_pool(2), on_pool(3)))
            .value();
    // A hold that ended after the other had won has counted too.
    EXPECT_GE(count, a + b + c + d);
    EXPECT_TRUE(kind.untouched());
}

// Ten tasks hand over to each other a million times, on the smallest stack.
TYPED_TEST(storm, a_million_hand_overs_use_constant_stack) {
    constexpr int each = repeated(100'000);
    TypeParam kind(0);
    const auto work = [](TypeParam& k) -> task<> {
        for (int i = 0; i != each; ++i) co_await wait_in_task(k);
    };
    ex::counting_scope scope;
    for (int i = 0; i != 10; ++i) {
        ex::spawn(work(kind) | ex::upon_error([](auto&&) noexcept {}), scope.get_token(),
                  ex::prop(ex::get_scheduler, ex::inline_scheduler()));
    }
    on_a_stack_of(64 * 1024, [&] { kind.grant(); });
    this_thread::sync_wait(scope.join());
    EXPECT_TRUE(kind.untouched());
}

}  // namespace
