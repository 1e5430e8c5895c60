// contract/ on several threads: runs are exclusive, and none is lost, doubled, or misdirected.
#include <coppice/contract.hpp>
#include <coppice/contract/internal/life.hpp>
#include <coppice/execution.hpp>

#include "emulated.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace {

using coppice::initial_state;
using coppice::work_contract;
using coppice::work_contract_group;
using coppice::work_contract_token;

// Executes a group with several threads, in different ways, until it is destroyed.
class workers {
public:
    workers(work_contract_group& group, int count) {
        for (int i = 0; i != count; ++i) {
            threads_.emplace_back([this, &group, i] {
                coppice::selection_bias prefer = coppice::selection_bias::prefer(5);
                coppice::contract_batch batch;
                while (!stop_.load(coppice::internal::acquire)) {
                    switch (i % 4) {
                        case 0:
                            group.execute_next_contract();
                            break;
                        case 1:
                            group.execute_contracts();
                            break;
                        case 2:
                            group.execute_next_contract(prefer);
                            break;
                        default:
                            group.execute_contracts(batch);
                    }
                }
            });
        }
    }
    ~workers() {
        stop_.store(true, coppice::internal::release);
        for (std::thread& t : threads_) t.join();
    }

private:
    coppice::internal::atomic<bool> stop_{false};
    std::vector<std::thread> threads_;
};

TEST(contract_threads, a_contract_runs_on_one_thread_at_a_time_and_sees_its_last_run) {
    constexpr int contracts = 40, runs_each = 5000;
    work_contract_group group(contracts);
    std::vector<long> unguarded(contracts);  // a data race if two threads run one contract at once
    coppice::internal::atomic<int> done{0};
    std::vector<work_contract> handles;
    for (int i = 0; i != contracts; ++i) {
        handles.push_back(group.create_contract(
            [&, i](work_contract_token& token) {
                if (++unguarded[static_cast<unsigned>(i)] < runs_each) {
                    token.schedule();
                } else {
                    done.fetch_add(1, coppice::internal::release);
                }
            },
            initial_state::scheduled));
    }
    {
        const workers threads(group, 4);
        while (done.load(coppice::internal::acquire) != contracts) std::this_thread::yield();
    }
    for (const long runs : unguarded) EXPECT_EQ(runs, runs_each);
}

TEST(contract_threads, each_schedule_is_followed_by_a_run_that_sees_what_came_before_it) {
    constexpr int producers = 3, posts = 20'000, contracts = 5;
    work_contract_group group(contracts);
    struct mailbox {
        coppice::internal::atomic<int> posted[producers]{};
        int seen[producers]{};  // used by the contract only
    };
    std::vector<mailbox> mail(contracts);
    std::vector<work_contract> handles;
    for (int c = 0; c != contracts; ++c) {
        handles.push_back(group.create_contract([&, c] {
            mailbox& m = mail[static_cast<unsigned>(c)];
            for (int p = 0; p != producers; ++p)
                m.seen[p] = m.posted[p].load(coppice::internal::relaxed);
        }));
    }
    {
        const workers threads(group, 3);
        std::vector<std::thread> posting;
        for (int p = 0; p != producers; ++p) {
            posting.emplace_back([&, p] {
                for (int i = 1; i <= posts; ++i) {
                    for (unsigned c = 0; c != contracts; ++c) {
                        mail[c].posted[p].store(i, coppice::internal::relaxed);
                        handles[c].schedule();
                    }
                }
            });
        }
        for (std::thread& t : posting) t.join();
    }
    while (group.execute_next_contract()) {
    }
    for (const mailbox& m : mail) {
        for (const int last : m.seen) EXPECT_EQ(last, posts);
    }
}

// The talk's consumer: many threads work a queue for one producer and one consumer.
TEST(contract_threads, many_workers_consume_a_queue_for_one_consumer_in_order) {
    constexpr int items = coppice::test::repeated(50'000), size = 64;
    int queue[size];
    coppice::internal::atomic<int> head{0}, tail{0};
    coppice::internal::atomic<bool> done{false};
    int expected = 0;  // the consumer's own, without a lock
    bool in_order = true;
    work_contract_group group(1);
    work_contract consumer = group.create_contract([&](work_contract_token& token) {
        const int at = head.load(coppice::internal::relaxed);
        if (at == tail.load(coppice::internal::acquire)) return;
        in_order = in_order && queue[at % size] == expected;
        ++expected;
        head.store(at + 1, coppice::internal::release);
        if (expected == items) done.store(true, coppice::internal::release);
        if (at + 1 != tail.load(coppice::internal::acquire)) token.schedule();
    });
    const workers threads(group, 4);
    for (int i = 0; i != items; ++i) {
        while (i - head.load(coppice::internal::acquire) == size) std::this_thread::yield();
        queue[i % size] = i;
        tail.store(i + 1, coppice::internal::release);
        consumer.schedule();
    }
    while (!done.load(coppice::internal::acquire)) std::this_thread::yield();
    EXPECT_TRUE(in_order);
}

TEST(contract_threads, each_contract_is_released_once_while_others_come_and_go) {
    constexpr int creators = 3, each = coppice::test::repeated(10'000);
    work_contract_group group(16, 64);
    coppice::internal::atomic<int> created{0}, released{0}, late{0};
    struct life {
        coppice::internal::atomic<bool> over{false};
    };
    {
        const workers threads(group, 3);
        std::vector<std::thread> creating;
        for (int t = 0; t != creators; ++t) {
            creating.emplace_back([&, t] {
                std::mt19937 random(static_cast<unsigned>(t));
                std::vector<work_contract> stale;
                for (int i = 0; i != each; ++i) {
                    const auto state = std::make_shared<life>();
                    const bool self = random() % 2 == 0;
                    work_contract contract = group.create_contract(
                        [state, &late, self](work_contract_token& token) {
                            if (state->over.load(coppice::internal::relaxed))
                                late.fetch_add(1, coppice::internal::relaxed);
                            if (self) token.release();
                        },
                        [state, &released] {
                            state->over.store(true, coppice::internal::relaxed);
                            released.fetch_add(1, coppice::internal::relaxed);
                        });
                    if (!contract.valid()) {
                        std::this_thread::yield();
                        continue;
                    }
                    created.fetch_add(1, coppice::internal::relaxed);
                    contract.schedule();
                    if (random() % 4 == 0) contract.unschedule();
                    if (random() % 4 == 0) contract.release();
                    contract.schedule();
                    // Keep using old handles while their slots hold other contracts.
                    for (work_contract& old : stale) old.schedule();
                    if (stale.size() < 8) {
                        stale.push_back(std::move(contract));
                    } else {
                        stale[random() % 8] = std::move(contract);
                    }
                }
            });
        }
        for (std::thread& t : creating) t.join();
    }
    while (group.execute_next_contract()) {
    }
    EXPECT_EQ(created.load(coppice::internal::relaxed), released.load(coppice::internal::relaxed));
    EXPECT_EQ(late.load(coppice::internal::relaxed), 0);
    EXPECT_EQ(group.size(), 0u);
}

TEST(contract_threads, scheduling_a_stale_handle_never_runs_another_contract) {
    for (int i = 0; i != coppice::test::repeated(300); ++i) {
        bool ended = false;
        coppice::internal::atomic<bool> stop{false};
        work_contract_group group(1);
        work_contract stale = group.create_contract(
            [](work_contract_token& token) { token.release(); }, initial_state::scheduled);
        std::thread scheduling([&] {
            while (!stop.load(coppice::internal::acquire)) {
                stale.schedule();
                stale.unschedule();
                stale.schedule();
            }
        });
        while (stale.valid()) group.execute_next_contract();
        work_contract stranger;
        while (!stranger.valid()) {  // until the last visit to the slot has ended
            stranger =
                group.create_contract([] { ADD_FAILURE() << "it was never scheduled"; },
                                      [&] { EXPECT_TRUE(ended) << "it was never released"; });
        }
        for (int k = 0; k != 100; ++k) EXPECT_FALSE(group.execute_next_contract());
        stop.store(true, coppice::internal::release);
        scheduling.join();
        stale.release();
        EXPECT_FALSE(group.execute_next_contract());
        ended = true;
    }
}

TEST(contract_threads, handles_may_be_used_while_the_group_is_destroyed) {
    for (int i = 0; i != coppice::test::repeated(200); ++i) {
        auto group = std::make_unique<work_contract_group>(64);
        coppice::internal::atomic<int> releases{0};
        std::vector<work_contract> handles;
        for (int c = 0; c != 8; ++c) {
            handles.push_back(group->create_contract(
                [] {}, [&] { releases.fetch_add(1, coppice::internal::relaxed); }));
        }
        std::barrier start(2);
        std::thread user([&] {
            start.arrive_and_wait();
            for (int k = 0; k != 20; ++k) {
                for (work_contract& h : handles) h.schedule();
            }
            handles[3].release();
            handles.clear();
        });
        start.arrive_and_wait();
        group.reset();
        user.join();
        EXPECT_EQ(releases.load(coppice::internal::relaxed), 8);
    }
}

TEST(contract_threads, drain_waits_for_contracts_that_run_on_other_threads) {
    for (int i = 0; i != 50; ++i) {
        work_contract_group group(64);
        coppice::internal::atomic<int> runs{0};
        std::vector<work_contract> contracts;
        for (int c = 0; c != 64; ++c) {
            contracts.push_back(group.create_contract(
                [&] {
                    std::this_thread::yield();
                    runs.fetch_add(1, coppice::internal::relaxed);
                },
                initial_state::scheduled));
        }
        const workers threads(group, 2);
        group.drain();
        EXPECT_EQ(runs.load(coppice::internal::relaxed), 64);
    }
}

// One thread stops many groups while others begin to drain them, all in the same order. When the
// threads have returned nothing runs, whichever call came first.
template <class Group>
void expect_that_stop_wins(int draining) {
    constexpr std::size_t groups = 200;
    constexpr int rounds = 50;
    for (int round = 0; round != rounds; ++round) {
        std::vector<std::unique_ptr<Group>> all;
        std::vector<work_contract> contracts;
        int runs = 0;
        for (std::size_t i = 0; i != groups; ++i) {
            all.push_back(std::make_unique<Group>(1));
            contracts.push_back(
                all.back()->create_contract([&] { ++runs; }, initial_state::scheduled));
        }
        std::barrier together(1 + draining);
        std::vector<std::thread> threads;
        for (int t = 0; t != draining; ++t) {
            threads.emplace_back([&] {
                together.arrive_and_wait();
                for (auto& group : all) group->begin_drain();
            });
        }
        together.arrive_and_wait();
        for (auto& group : all) group->stop();
        for (std::thread& t : threads) t.join();
        for (auto& group : all) {
            EXPECT_FALSE(group->execute_next_contract());
            EXPECT_EQ(group->drain(), 0u);
        }
        ASSERT_EQ(runs, 0) << "a stopped group drained";
    }
}

TEST(contract_threads, a_stop_is_not_undone_by_threads_that_begin_to_drain) {
    expect_that_stop_wins<work_contract_group>(1);
    expect_that_stop_wins<work_contract_group>(3);
    expect_that_stop_wins<coppice::blocking_work_contract_group>(1);
    expect_that_stop_wins<coppice::blocking_work_contract_group>(3);
}

// Whichever thread returns from whichever of the calls finds the gate closed.
TEST(contract_threads, a_thread_that_ends_a_group_finds_it_ended) {
    using namespace coppice::execution;
    for (int round = 0; round != coppice::test::repeated(500); ++round) {
        work_contract_group group(1);
        std::barrier together(3);
        std::vector<std::thread> threads;
        for (int t = 0; t != 3; ++t) {
            threads.emplace_back([&, t] {
                together.arrive_and_wait();
                if (t == 0) {
                    group.stop();
                } else if (t == 1) {
                    group.drain();
                } else {
                    group.begin_drain();
                }
                // The gate rejected the item, so it has run here: no thread executes the group.
                bool ran = false;
                coppice::this_thread::sync_wait(schedule(group.get_scheduler()) |
                                                then([&] { ran = true; }));
                EXPECT_TRUE(ran);
                EXPECT_FALSE(group.create_contract([] {}).valid());
            });
        }
        for (std::thread& t : threads) t.join();
    }
}

TEST(contract_threads, groups_grow_while_they_are_executed) {
    work_contract_group group(1, 4096);
    coppice::internal::atomic<int> runs{0};
    std::vector<std::vector<work_contract>> contracts(3);
    {
        const workers threads(group, 2);
        std::vector<std::thread> creating;
        for (std::vector<work_contract>& mine : contracts) {
            creating.emplace_back([&] {
                for (int i = 0; i != 1000; ++i) {
                    mine.push_back(group.create_contract(
                        [&] { runs.fetch_add(1, coppice::internal::relaxed); },
                        initial_state::scheduled));
                }
            });
        }
        for (std::thread& t : creating) t.join();
    }
    while (group.execute_next_contract()) {
    }
    EXPECT_EQ(runs.load(coppice::internal::relaxed), 3000);
    EXPECT_EQ(group.size(), 3000u);
}

}  // namespace
