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
#include <coppice/pool/internal/worker.hpp>
#include <coppice/pool/queue_pool.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/token/block_latch.hpp>

#include <gtest/gtest.h>

#include <mutex>
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

struct ignorant {
    using receiver_concept = ex::receiver_tag;
    void set_value() && noexcept {}
    void set_stopped() && noexcept {}
};

// Sends 1 if it was scheduled, 0 if it would have blocked.
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

// Gives access to a private member, which an explicit instantiation may name.
template <class Tag, auto member>
struct opened {
    friend constexpr auto member_of(Tag) noexcept { return member; }
};
using one_queue = internal::basic_pool<internal::shared_queue<mutex_queue>>;
using own_deques = internal::basic_pool<internal::stealing_queues<kept_deques>>;
struct lock_of_queue {
    friend constexpr auto member_of(lock_of_queue) noexcept;
};
template struct opened<lock_of_queue, &mutex_queue::mutex_>;
struct state_of_one_queue {
    friend constexpr auto member_of(state_of_one_queue) noexcept;
};
template struct opened<state_of_one_queue, &one_queue::shared_>;
struct queue_of_one_queue {
    friend constexpr auto member_of(queue_of_one_queue) noexcept;
};
template struct opened<queue_of_one_queue, &internal::shared_queue<mutex_queue>::queue_>;
struct state_of_own_deques {
    friend constexpr auto member_of(state_of_own_deques) noexcept;
};
template struct opened<state_of_own_deques, &own_deques::shared_>;
struct outside_of_own_deques {
    friend constexpr auto member_of(outside_of_own_deques) noexcept;
};
template struct opened<outside_of_own_deques, &internal::stealing_queues<kept_deques>::outside_>;

// Another thread is inside the queue while this lives.
class occupied {
public:
    explicit occupied(mutex_queue& queue)
        : thread_([this, &lock = queue.*member_of(lock_of_queue())] {
              const std::lock_guard inside(lock);
              entered_.set();
              leave_.wait();
          }) {
        entered_.wait();
    }
    ~occupied() {
        leave_.set();
        thread_.join();
    }

private:
    block_latch entered_;
    block_latch leave_;
    std::thread thread_;
};

// Expects that try_schedule sends the error inside its start while the queue is occupied, queues
// nothing, and runs when the queue is free.
template <class Sch>
void expect_would_block(Sch sch, mutex_queue& queue) {
    {
        const occupied held(queue);
        bool sent = false;
        auto operation = ex::connect(
            ex::try_schedule(sch) | ex::then([]() noexcept { ADD_FAILURE() << "it ran"; }) |
                ex::upon_error([&sent](ex::would_block_t) noexcept { sent = true; }),
            ignorant());
        ex::start(operation);
        EXPECT_TRUE(sent);
    }
    int ran = 0;
    while (ran == 0) ran = std::get<0>(*sync_wait(tried(sch)));  // a worker may hold the lock
}

TEST(try_schedule, on_a_queue_that_another_thread_holds_sends_would_block) {
    queue_pool<mutex_queue> pool(1);
    auto& state = *(pool.*member_of(state_of_one_queue()));
    expect_would_block(pool.get_scheduler(), state.queues.*member_of(queue_of_one_queue()));
}

TEST(try_schedule, to_workers_whose_outside_queue_is_held_sends_would_block) {
    stealing_pool<kept_deques> pool(1);
    auto& state = *(pool.*member_of(state_of_own_deques()));
    expect_would_block(pool.get_scheduler(), state.queues.*member_of(outside_of_own_deques()));
}

TEST(try_schedule, to_a_node_whose_inbox_is_held_sends_would_block) {
    stealing_pool<kept_deques> pool(1);
    auto& state = *(pool.*member_of(state_of_own_deques()));
    expect_would_block(pool.get_scheduler(0), state.nodes[0]->inbox);
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
