// Hand-over from task to task, on pools and in place.
#include "kinds.hpp"

#include <coppice/pool.hpp>

#include "emulated.hpp"
#include "small_stack.hpp"

namespace {

using namespace coppice;
using namespace coppice::test;

// What one waiter at a time may have.
using exclusive_kinds = testing::Types<mutex_kind, semaphore_kind, writer_kind, auto_event_kind>;

template <class Kind>
class hand_over : public testing::Test {};
TYPED_TEST_SUITE(hand_over, exclusive_kinds);

// Tasks on a pool: some give up after a random time, some do not.
TYPED_TEST(hand_over, tasks_on_a_pool_that_give_up_lose_nothing) {
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
TYPED_TEST(hand_over, a_million_hand_overs_use_constant_stack) {
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
