// The other queues of pools, pool/queue_pool.hpp and pool/contract_pool.hpp: each item runs once.
#include <coppice/pool/basic_pool.hpp>
#include <coppice/pool/contract_pool.hpp>
#include <coppice/pool/fork_join.hpp>
#include <coppice/pool/internal/blocking_call.hpp>
#include <coppice/pool/internal/growing_deque.hpp>
#include <coppice/pool/internal/mutex_deque.hpp>
#include <coppice/pool/internal/work_queues.hpp>
#include <coppice/pool/lockfree_queue.hpp>
#include <coppice/pool/mutex_queue.hpp>
#include <coppice/pool/queue_pool.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/scheduler.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

namespace ex = coppice::execution;
using namespace coppice;
using namespace coppice::internal;

struct counting_item : work_item {
    explicit counting_item(atomic<int>& c) : work_item(&count), counter(c) {}
    static void count(work_item* item) noexcept {
        static_cast<counting_item*>(item)->counter.fetch_add(1, relaxed);
    }
    atomic<int>& counter;
};

template <class Pool>
struct splitting_item : work_item {
    splitting_item(Pool& p, atomic<int>& l, int n)
        : work_item(&split), pool(p), leaves(l), depth(n) {}
    static void split(work_item* item) noexcept {
        splitting_item* const self = static_cast<splitting_item*>(item);
        if (self->depth == 0) self->leaves.fetch_add(1, relaxed);
        for (int i = 0; i != 2 && self->depth != 0; ++i) {
            self->pool.submit(*new splitting_item(self->pool, self->leaves, self->depth - 1));
        }
        delete self;
    }
    Pool& pool;
    atomic<int>& leaves;
    int depth;
};

template <class Pool>
struct every_pool : testing::Test {};
using pools = testing::Types<thread_pool, queue_pool<mutex_queue>, queue_pool<lockfree_queue>,
                             stealing_pool<mutex_deques>, stealing_pool<kept_deques>,
                             stealing_pool<counted_deques>>;
TYPED_TEST_SUITE(every_pool, pools);

TYPED_TEST(every_pool, runs_each_item_that_many_threads_submit_once) {
    constexpr int each = 3000;
    atomic<int> ran{0};
    std::vector<std::unique_ptr<counting_item>> items;
    for (int i = 0; i != 3 * each; ++i) items.push_back(std::make_unique<counting_item>(ran));
    {
        TypeParam pool(3);
        std::vector<std::thread> submitters;
        for (int t = 0; t != 3; ++t) {
            submitters.emplace_back([&, t] {
                for (int i = 0; i != each; ++i)
                    pool.submit(*items[static_cast<std::size_t>(t * each + i)]);
            });
        }
        for (auto& s : submitters) s.join();
    }
    EXPECT_EQ(ran.load(relaxed), 3 * each);
}

TYPED_TEST(every_pool, runs_the_items_of_its_workers_while_deques_grow) {
    atomic<int> leaves{0};
    {
        TypeParam pool(3);
        pool.submit(*new splitting_item<TypeParam>(pool, leaves, 13));
    }
    EXPECT_EQ(leaves.load(relaxed), 1 << 13);
}

TYPED_TEST(every_pool, is_a_scheduler_runs_functions_and_forks) {
    TypeParam pool(2);
    static_assert(ex::scheduler<decltype(pool.get_scheduler())>);
    auto work = ex::schedule(pool.get_scheduler()) | ex::then([&] { return pool.is_current(); });
    EXPECT_EQ(this_thread::sync_wait(std::move(work)), std::tuple(true));
    EXPECT_THROW(pool.run([] { throw std::runtime_error("lost"); }), std::runtime_error);
    atomic<int> there{0};
    const auto come = [&] {
        there.fetch_add(1, relaxed);
        while (there.load(relaxed) < 2) std::this_thread::yield();
    };
    pool.run([&] { fork_join(come, come); });
    EXPECT_EQ(there.load(relaxed), 2);
    EXPECT_THROW(TypeParam none(0), std::invalid_argument);
}

TEST(thread_pool_load, a_million_items_from_outside_run_once) {
    constexpr std::size_t count = 1'000'000;
    atomic<int> ran{0};
    std::vector<counting_item*> items;
    std::allocator<counting_item> memory;
    counting_item* const first = memory.allocate(count);
    for (std::size_t i = 0; i != count; ++i) ::new (first + i) counting_item(ran);
    {
        thread_pool pool(2);
        for (std::size_t i = 0; i != count; ++i) pool.submit(first[i]);
    }
    EXPECT_EQ(ran.load(relaxed), static_cast<int>(count));
    memory.deallocate(first, count);
}

TEST(lockfree_ring, rejects_when_full_and_is_first_in_first_out_over_many_laps) {
    lockfree_ring<work_item, 4> ring;
    atomic<int> none{0};
    std::vector<std::unique_ptr<counting_item>> items;
    for (int i = 0; i != 5; ++i) items.push_back(std::make_unique<counting_item>(none));
    EXPECT_TRUE(ring.looks_empty());
    for (int lap = 0; lap != 70'000; ++lap) {  // more than the 2^16 laps that the ring counts
        for (std::size_t i = 0; i != 4; ++i) ASSERT_TRUE(ring.push(items[i].get()));
        ASSERT_FALSE(ring.push(items[4].get()));
        for (std::size_t i = 0; i != 4; ++i) ASSERT_EQ(ring.pop(), items[i].get());
        ASSERT_EQ(ring.pop(), nullptr);
    }
    EXPECT_TRUE(ring.looks_empty());
}

TEST(growing_deque, keeps_order_while_it_grows_and_reports_when_it_cannot) {
    const auto check = [](auto& deque) {
        atomic<int> none{0};
        std::vector<std::unique_ptr<counting_item>> items;
        for (int i = 0; i != 9; ++i) items.push_back(std::make_unique<counting_item>(none));
        for (std::size_t i = 0; i != 8; ++i) ASSERT_TRUE(deque.push(items[i].get()));
        EXPECT_FALSE(deque.push(items[8].get()));
        EXPECT_EQ(deque.steal().item, items[0].get());
        for (std::size_t i = 8; i-- != 1;) EXPECT_EQ(deque.pop(), items[i].get());
        EXPECT_EQ(deque.pop(), nullptr);
        EXPECT_EQ(deque.steal().outcome, steal_outcome::empty);
    };
    growing_deque<work_item, kept_buffers, 2, 8> kept;
    check(kept);
    growing_deque<work_item, counted_buffers, 2, 8> counted;
    check(counted);
}

TEST(contract_pool, runs_functions_senders_and_contracts_on_its_workers) {
    EXPECT_THROW(contract_pool none(0), std::invalid_argument);
    atomic<int> ran{0};
    {
        contract_pool pool(2);
        static_assert(ex::scheduler<decltype(pool.get_scheduler())>);
        EXPECT_EQ(pool.run([&] { return pool.is_current(); }), true);
        EXPECT_THROW(pool.run([] { throw std::runtime_error("lost"); }), std::runtime_error);
        auto work =
            ex::schedule(pool.get_scheduler()) | ex::then([&] { return pool.is_current(); });
        EXPECT_EQ(this_thread::sync_wait(std::move(work)), std::tuple(true));
        EXPECT_EQ(pool.size(), 2u);
        work_contract contract = pool.group().create_contract(
            [&] {
                if (pool.is_current()) ran.fetch_add(1, relaxed);
            },
            initial_state::scheduled);
        while (ran.load(relaxed) == 0) std::this_thread::yield();
    }
    EXPECT_EQ(ran.load(relaxed), 1);
}

}  // namespace
