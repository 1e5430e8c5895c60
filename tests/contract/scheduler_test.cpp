// contract/internal/scheduler.hpp and completion.hpp: senders and tasks run on a group, and wait
// for the end of contracts.
#include <coppice/contract.hpp>
#include <coppice/contract/internal/completion.hpp>
#include <coppice/contract/internal/scheduler.hpp>
#include <coppice/contract/work_contract.hpp>
#include <coppice/execution.hpp>
#include <coppice/task.hpp>

#include <gtest/gtest.h>

#include <latch>
#include <thread>
#include <vector>

#include "allocations.hpp"
#include "emulated.hpp"

namespace {

namespace ex = coppice::execution;
using coppice::initial_state;
using coppice::work_contract;
using coppice::work_contract_group;
using coppice::this_thread::sync_wait;

static_assert(ex::scheduler<decltype(std::declval<work_contract_group&>().get_scheduler())>);
static_assert(ex::scheduler<
              decltype(std::declval<coppice::blocking_work_contract_group&>().get_scheduler())>);
static_assert(ex::sender<coppice::internal::contract_completion>);

// A blocking group together with its workers.
class served_group {
public:
    explicit served_group(std::size_t capacity, int workers = 2)
        : group(capacity), started_(workers + 1) {
        for (int i = 0; i != workers; ++i) {
            workers_.emplace_back([this] {
                started_.arrive_and_wait();
                while (group.execute_next_contract(source_.get_token())) {
                }
            });
        }
        started_.arrive_and_wait();
    }
    ~served_group() {
        source_.request_stop();
        for (std::thread& t : workers_) t.join();
    }
    coppice::blocking_work_contract_group group;

private:
    coppice::inplace_stop_source source_;
    std::latch started_;
    std::vector<std::thread> workers_;
};

TEST(contract_scheduler, runs_senders_on_the_groups_workers) {
    served_group served(4);
    const auto here = std::this_thread::get_id();
    auto [there] = sync_wait(ex::schedule(served.group.get_scheduler()) |
                             ex::then([] { return std::this_thread::get_id(); }))
                       .value();
    EXPECT_NE(there, here);
}

TEST(contract_scheduler, equals_schedulers_of_the_same_group_only) {
    work_contract_group a(1), b(1);
    EXPECT_EQ(a.get_scheduler(), a.get_scheduler());
    EXPECT_NE(a.get_scheduler(), b.get_scheduler());
    EXPECT_EQ(ex::get_forward_progress_guarantee(a.get_scheduler()),
              ex::forward_progress_guarantee::parallel);
    EXPECT_EQ(
        ex::get_completion_scheduler<ex::set_value_t>(ex::get_env(ex::schedule(a.get_scheduler()))),
        a.get_scheduler());
}

TEST(contract_scheduler, a_full_group_still_runs_senders) {
    served_group served(1);
    const work_contract only = served.group.create_contract([] {});
    ASSERT_TRUE(only.valid());
    EXPECT_TRUE(sync_wait(ex::starts_on(served.group.get_scheduler(), ex::just(1))).has_value());
    EXPECT_EQ(served.group.size(), 1u);
}

coppice::task<int> count_down(auto scheduler, int n) {
    for (int i = 0; i != 10; ++i) co_await ex::schedule(scheduler);
    if (n == 0) co_return 0;
    co_return 1 + co_await count_down(scheduler, n - 1);
}

TEST(contract_scheduler, runs_tasks) {
    served_group served(4);
    auto [n] = sync_wait(ex::starts_on(served.group.get_scheduler(),
                                       count_down(served.group.get_scheduler(), 20)))
                   .value();
    EXPECT_EQ(n, 20);
}

// A receiver that counts how it was completed.
struct counting {
    using receiver_concept = ex::receiver_tag;
    explicit counting(coppice::internal::atomic<int>& v, coppice::internal::atomic<int>& s,
                      coppice::inplace_stop_token t = {}) noexcept
        : values(&v), stops(&s), token(t) {}
    void set_value() noexcept { values->fetch_add(1, coppice::internal::release); }
    void set_stopped() noexcept { stops->fetch_add(1, coppice::internal::release); }
    auto get_env() const noexcept { return ex::prop(coppice::get_stop_token, token); }
    coppice::internal::atomic<int>* values;
    coppice::internal::atomic<int>* stops;
    coppice::inplace_stop_token token;
};

TEST(contract_scheduler, more_operations_than_slots_each_complete_once) {
    constexpr int operations = 500;
    coppice::internal::atomic<int> values{0}, stops{0};
    using operation =
        ex::connect_result_t<ex::schedule_result_t<coppice::internal::contract_scheduler>,
                             counting>;
    for (const int workers : {1, 3}) {
        values.store(0, coppice::internal::relaxed);
        served_group served(1, workers);
        const auto scheduler = served.group.get_scheduler();
        std::vector<std::unique_ptr<operation>> ops;
        for (int i = 0; i != operations; ++i) {
            ops.push_back(std::unique_ptr<operation>(
                new operation(ex::connect(ex::schedule(scheduler), counting(values, stops)))));
        }
        const coppice::test::allocation_count count;
        for (const auto& op : ops) ex::start(*op);
        while (values.load(coppice::internal::acquire) != operations) std::this_thread::yield();
        EXPECT_EQ(count.so_far(), 0u);
    }
    EXPECT_EQ(stops.load(coppice::internal::relaxed), 0);
}

// A thread inside start() may still be about to wake a worker when the operation has completed and
// the thread that saw the completion destroys the group.
TEST(contract_scheduler, the_group_may_end_as_soon_as_its_operations_have_completed) {
    coppice::internal::atomic<int> stops{0};
    for (int i = 0; i != 200; ++i) {
        coppice::internal::atomic<int> values{0};
        auto group = std::make_unique<coppice::blocking_work_contract_group>(1);
        auto op = ex::connect(ex::schedule(group->get_scheduler()), counting(values, stops));
        std::thread starting([&] { ex::start(op); });
        while (values.load(coppice::internal::acquire) == 0) {
            if (!group->execute_next_contract()) std::this_thread::yield();
        }
        group.reset();
        starting.join();
    }
    EXPECT_EQ(stops.load(coppice::internal::relaxed), 0);
}

TEST(contract_scheduler, destroying_the_group_runs_operations_that_have_not_run) {
    coppice::internal::atomic<int> values{0}, stops{0};
    coppice::inplace_stop_source source;
    using operation =
        ex::connect_result_t<ex::schedule_result_t<coppice::internal::contract_scheduler>,
                             counting>;
    std::vector<std::unique_ptr<operation>> ops;
    {
        work_contract_group group(1);
        for (int i = 0; i != 100; ++i) {
            ops.push_back(std::unique_ptr<operation>(new operation(ex::connect(
                ex::schedule(group.get_scheduler()),
                counting(values, stops,
                         i < 10 ? source.get_token() : coppice::inplace_stop_token())))));
            ex::start(*ops.back());
        }
        source.request_stop();
        EXPECT_TRUE(group.execute_next_contract());
    }
    EXPECT_EQ(values.load(coppice::internal::relaxed), 90);
    EXPECT_EQ(stops.load(coppice::internal::relaxed), 10);
}

TEST(contract_completion, completes_when_the_release_has_run) {
    served_group served(4);
    int released = 0;  // written by the worker; read after the completion
    work_contract contract = served.group.create_contract([] {}, [&] { released = 1; });
    contract.release();
    sync_wait(contract.completion());
    EXPECT_EQ(released, 1);
    EXPECT_FALSE(contract.valid());
    EXPECT_TRUE(sync_wait(contract.completion()).has_value()) << "gone already";
    EXPECT_TRUE(sync_wait(work_contract().completion()).has_value())
        << "there never was a contract";
}

// Only the completion orders what the release wrote before what the waiter reads and frees. This
// must hold for a contract that is gone before the wait begins, and for one whose slot has a new
// contract.
TEST(contract_completion, after_the_end_of_a_contract_the_effects_of_its_release_are_visible) {
    for (int round = 0; round != coppice::test::repeated(300); ++round) {
        work_contract_group group(1);
        auto released = std::make_unique<int>(0);
        work_contract contract = group.create_contract([] {}, [to = released.get()] { *to = 1; });
        contract.release();
        coppice::internal::atomic<int> gone{0};  // relaxed: says when, and orders nothing
        std::thread worker([&] {
            group.execute_next_contract();
            gone.store(1, coppice::internal::relaxed);
        });
        std::thread maker([&] {
            while (gone.load(coppice::internal::relaxed) == 0) std::this_thread::yield();
            const work_contract next = group.create_contract([] {});
            gone.store(2, coppice::internal::relaxed);
        });
        while (gone.load(coppice::internal::relaxed) < round % 3) std::this_thread::yield();
        if (round % 2 == 0) {
            sync_wait(contract.completion());
        } else {
            while (contract.valid()) std::this_thread::yield();
        }
        EXPECT_EQ(*released, 1);
        released.reset();
        worker.join();
        maker.join();
    }
}

coppice::task<void> wait_for(work_contract& contract, coppice::internal::atomic<int>& ended) {
    co_await contract.completion();
    ended.fetch_add(1, coppice::internal::release);
}

TEST(contract_completion, completes_for_every_waiting_task) {
    work_contract_group group(4);
    coppice::internal::atomic<int> ended{0};
    work_contract contract = group.create_contract(
        [](coppice::work_contract_token& token) { token.release(); }, initial_state::scheduled);
    std::thread worker([&] {
        while (ended.load(coppice::internal::acquire) != 3) group.execute_next_contract();
    });
    sync_wait(ex::when_all(wait_for(contract, ended), wait_for(contract, ended),
                           wait_for(contract, ended)));
    worker.join();
    EXPECT_EQ(ended.load(coppice::internal::relaxed), 3);
}

TEST(contract_completion, a_stop_request_ends_the_wait_but_not_the_contract) {
    work_contract_group group(4);
    work_contract contract = group.create_contract([] {});
    coppice::internal::atomic<int> values{0}, stops{0};
    coppice::inplace_stop_source source;
    {
        auto op = ex::connect(contract.completion(), counting(values, stops, source.get_token()));
        auto other = ex::connect(contract.completion(), counting(values, stops));
        ex::start(op);
        ex::start(other);
        EXPECT_EQ(values.load(coppice::internal::relaxed) + stops.load(coppice::internal::relaxed),
                  0);
        source.request_stop();
        EXPECT_EQ(stops.load(coppice::internal::relaxed), 1);
        EXPECT_TRUE(contract.valid());
        auto late = ex::connect(contract.completion(), counting(values, stops, source.get_token()));
        ex::start(late);
        EXPECT_EQ(stops.load(coppice::internal::relaxed), 2);
        contract.release();
        group.execute_next_contract();
        EXPECT_EQ(values.load(coppice::internal::relaxed), 1);
    }
}

TEST(contract_completion, the_end_of_the_group_completes_the_wait) {
    coppice::internal::atomic<int> values{0}, stops{0};
    auto group = std::make_unique<work_contract_group>(1);
    work_contract contract = group->create_contract([] {});
    auto op = ex::connect(contract.completion(), counting(values, stops));
    ex::start(op);
    group.reset();
    EXPECT_EQ(values.load(coppice::internal::relaxed), 1);
}

TEST(contract_completion, a_racing_stop_and_release_complete_the_wait_once) {
    for (int i = 0; i != coppice::test::repeated(500); ++i) {
        work_contract_group group(4);
        work_contract contract = group.create_contract([] {});
        coppice::internal::atomic<int> values{0}, stops{0};
        coppice::inplace_stop_source source;
        auto op = ex::connect(contract.completion(), counting(values, stops, source.get_token()));
        contract.release();
        std::thread starting([&] { ex::start(op); });
        std::thread stopping([&] { source.request_stop(); });
        group.execute_next_contract();
        starting.join();
        stopping.join();
        while (group.execute_next_contract()) {
        }
        EXPECT_EQ(values.load(coppice::internal::acquire) + stops.load(coppice::internal::acquire),
                  1);
    }
}

// Makes a contract in the group when the watched one is gone, on the thread that completes the
// wait.
struct makes_the_next {
    using receiver_concept = ex::receiver_tag;
    work_contract_group* group;
    work_contract* next;
    int* made;
    void set_value() && noexcept {
        work_contract fresh = group->create_contract([] {});
        if (!fresh.valid()) return;
        ++*made;
        *next = std::move(fresh);
    }
    void set_stopped() && noexcept {}
};

TEST(contract_completion, the_slot_is_free_when_the_wait_completes) {
    for (const bool by_batch : {false, true}) {
        work_contract_group group(1);
        work_contract first = group.create_contract([] {});
        work_contract second;
        work_contract third;
        int made = 0;
        auto one = ex::connect(first.completion(), makes_the_next{&group, &second, &made});
        auto other = ex::connect(first.completion(), makes_the_next{&group, &third, &made});
        ex::start(one);
        ex::start(other);
        EXPECT_FALSE(group.create_contract([] {}).valid()) << "the group is full";
        first.release();
        EXPECT_EQ(by_batch ? group.execute_contracts() : group.execute_next_contract(), 1u);
        EXPECT_EQ(made, 1) << "one slot, whichever waiter is told first";
        EXPECT_NE(second.valid(), third.valid());
        EXPECT_EQ(group.size(), 1u);
    }
}

// A call on the handle may be inside the contract while it ends; then that call frees the slot.
TEST(contract_completion, the_slot_is_free_for_another_thread_when_the_wait_completes) {
    served_group served(1, 1);
    for (int round = 0; round != coppice::test::repeated(300); ++round) {
        work_contract contract = served.group.create_contract([] {});
        ASSERT_TRUE(contract.valid()) << round;
        std::thread visitor([&] {
            while (contract.valid()) contract.schedule();
        });
        contract.release();
        sync_wait(contract.completion());
        EXPECT_EQ(served.group.size(), 0u);
        EXPECT_TRUE(served.group.create_contract([] {}).valid()) << round;
        visitor.join();
        // The contract that was just made ends with its handle. Wait until it is gone.
        while (served.group.size() != 0) std::this_thread::yield();
    }
}

TEST(contract_completion, a_contract_whose_creation_fails_leaves_its_slot_free) {
    struct throws_when_copied {
        throws_when_copied() = default;
        throws_when_copied(const throws_when_copied&) { throw 7; }
        void operator()() const {}
    };
    work_contract_group group(1);
    const throws_when_copied work;
    for (int i = 0; i != 3; ++i) EXPECT_THROW((void)group.create_contract(work), int);
    EXPECT_EQ(group.size(), 0u);
    EXPECT_TRUE(group.create_contract([] {}).valid());
}

}  // namespace
