// Plan: each scheduler that has it; what a full or locked queue and an ended pool send; P3669R3.
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/internal/try_scheduled_sender.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/try_schedule.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/io/context.hpp>
#include <coppice/pool/contract_pool.hpp>
#include <coppice/pool/queue_pool.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <gtest/gtest.h>

#include <thread>

namespace {

using namespace coppice;
namespace ex = coppice::execution;
using this_thread::sync_wait;

struct untried : ex::inline_scheduler {
    void try_schedule() const = delete;
};
static_assert(!ex::try_scheduler<untried>);
static_assert(ex::try_scheduler<ex::inline_scheduler>);
static_assert(ex::try_scheduler<ex::run_loop::scheduler>);
static_assert(ex::try_scheduler<io::context::scheduler>);
static_assert(ex::try_scheduler<decltype(std::declval<thread_pool&>().get_scheduler())>);
static_assert(ex::would_block_t() == ex::would_block_t());

// Gives 1 if it was scheduled, 0 if it would have blocked.
template <class Sch>
auto tried(Sch sch) {
    return ex::try_schedule(sch) | ex::then([]() noexcept { return 1; }) |
           ex::upon_error([](ex::would_block_t) noexcept { return 0; });
}

template <class Pool>
class try_schedule_on : public testing::Test {};
using every_pool = testing::Types<thread_pool, queue_pool<mutex_queue>, queue_pool<lockfree_queue>,
                                  stealing_pool<mutex_deques>, stealing_pool<kept_deques>,
                                  stealing_pool<counted_deques>, contract_pool>;
TYPED_TEST_SUITE(try_schedule_on, every_pool);

TYPED_TEST(try_schedule_on, runs_on_a_worker_when_the_queue_is_free) {
    TypeParam pool(1);
    const auto sch = pool.get_scheduler();
    // The worker may hold the lock for a moment.
    for (;;) {
        const auto [ran] = *sync_wait(tried(sch));
        if (ran == 1) break;
        std::this_thread::yield();
    }
    EXPECT_EQ(sync_wait(ex::try_schedule(sch) |
                        ex::then([&pool]() noexcept { return pool.is_current(); }) |
                        ex::upon_error([](ex::would_block_t) noexcept { return true; })),
              std::tuple(true));
}

TYPED_TEST(try_schedule_on, sends_would_block_once_the_pool_was_told_to_end) {
    TypeParam pool(1);
    pool.request_stop();
    EXPECT_EQ(sync_wait(tried(pool.get_scheduler())), std::tuple(0));
}

TEST(try_schedule, on_a_node_runs_there) {
    thread_pool pool(1);
    int ran = 0;
    while (ran == 0) ran = std::get<0>(*sync_wait(tried(pool.get_scheduler(0))));
    EXPECT_EQ(ran, 1);
}

TEST(try_schedule, of_a_stopped_receiver_completes_as_stopped) {
    thread_pool pool(1);
    inplace_stop_source source;
    source.request_stop();
    const auto stopped = ex::prop(get_stop_token, source.get_token());
    for (;;) {
        const auto result = sync_wait(ex::write_env(tried(pool.get_scheduler()), stopped));
        if (!result) break;
        EXPECT_EQ(*result, std::tuple(0));  // the lock was held for a moment
    }
}

TEST(try_schedule, on_a_locked_queue_sends_would_block) {
    mutex_queue queue;
    struct item : internal::work_item {
        item() noexcept : work_item(nullptr) {}
    };
    item one;
    EXPECT_TRUE(queue.try_push(&one));
    EXPECT_EQ(queue.pop(), &one);
}

TEST(try_schedule, of_a_run_loop_and_inline_never_blocks) {
    EXPECT_TRUE(sync_wait(ex::try_schedule(ex::inline_scheduler())).has_value());
    ex::run_loop loop;
    std::thread runner([&loop] { loop.run(); });
    EXPECT_TRUE(sync_wait(ex::try_schedule(loop.get_scheduler())).has_value());
    loop.finish();
    runner.join();
}

}  // namespace
