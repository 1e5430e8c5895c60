// contract/group.hpp: which contracts a group executes and in which order, until it drains or
// stops.
#include <coppice/contract/batch.hpp>
#include <coppice/contract/group.hpp>
#include <coppice/contract/internal/thread_rounds.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using coppice::initial_state;
using coppice::selection_bias;
using coppice::work_contract;
using coppice::work_contract_group;
using coppice::work_contract_token;

// Makes 64 busy contracts side by side and one far from them; each counts its runs.
std::vector<work_contract> neighbors_and_a_lone_one(work_contract_group& group,
                                                    std::map<std::size_t, int>& runs) {
    std::vector<work_contract> contracts;
    for (std::size_t i = 0; i != 1001; ++i) {
        contracts.push_back(group.create_contract(
            [&runs, i](work_contract_token& token) {
                ++runs[i];
                token.schedule();
            },
            i < 64 || i == 1000 ? initial_state::scheduled : initial_state::unscheduled));
    }
    return contracts;
}

TEST(work_contract_group, every_way_to_execute_is_fair) {
    for (int way = 0; way != 4; ++way) {
        work_contract_group group(4096);
        std::map<std::size_t, int> runs;
        const std::vector<work_contract> contracts = neighbors_and_a_lone_one(group, runs);
        selection_bias bias = selection_bias::fair();
        coppice::contract_batch batch;
        for (std::size_t ran = 0; ran < 65 * 100;) {
            switch (way) {
                case 0:
                    ran += group.execute_next_contract();
                    break;
                case 1:
                    ran += group.execute_next_contract(bias);
                    break;
                case 2:
                    ran += group.execute_contracts(7);
                    break;
                default:
                    ran += group.execute_contracts(batch, 5);
            }
        }
        ASSERT_EQ(runs.size(), 65u);
        for (const auto& [contract, times] : runs) EXPECT_NEAR(times, 100, 1) << contract << way;
    }
}

TEST(work_contract_group, threads_of_any_pace_are_fair_to_a_lone_contract) {
    for (const int faster : {1, 3, 7}) {
        std::map<std::size_t, int> runs;
        work_contract_group group(4096);
        const std::vector<work_contract> contracts = neighbors_and_a_lone_one(group, runs);
        // The biases of two threads take turns; one of them runs more often.
        selection_bias slow = selection_bias::fair();
        selection_bias fast = selection_bias::fair();
        for (int i = 0; i != 65 * 50; ++i) {
            EXPECT_TRUE(group.execute_next_contract(slow));
            for (int k = 0; k != faster; ++k) EXPECT_TRUE(group.execute_next_contract(fast));
        }
        ASSERT_EQ(runs.size(), 65u);
        for (const auto& [contract, times] : runs)
            EXPECT_NEAR(times, 50 * (1 + faster), 2) << contract << " x " << faster;
    }
}

TEST(work_contract_group, a_thread_that_serves_many_groups_starves_no_contract) {
    std::vector<std::unique_ptr<work_contract_group>> groups;
    std::vector<work_contract> contracts;
    std::map<std::pair<int, int>, int> runs;
    for (int g = 0; g != 20; ++g) {
        groups.push_back(std::make_unique<work_contract_group>(64));
        for (int i = 0; i != 64; ++i) {
            contracts.push_back(groups.back()->create_contract(
                [&, g, i](work_contract_token& token) {
                    ++runs[{g, i}];
                    token.schedule();
                },
                initial_state::scheduled));
        }
    }
    for (int round = 0; round != 64 * 40; ++round) {
        for (const auto& group : groups) group->execute_next_contract();
    }
    EXPECT_EQ(runs.size(), 20u * 64u);
}

TEST(work_contract_group, prefer_runs_the_nearest_contract_first_and_falls_through) {
    work_contract_group group(256);
    std::vector<std::size_t> order;
    std::vector<work_contract> contracts;
    for (std::size_t i = 0; i != 256; ++i)
        contracts.push_back(group.create_contract([&, i] { order.push_back(i); }));
    for (const std::size_t i : {200, 1, 3, 64, 0}) contracts[i].schedule();
    selection_bias bias = selection_bias::prefer(0);
    while (group.execute_next_contract(bias)) {
    }
    EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 3, 64, 200}));
}

TEST(work_contract_group, a_contract_can_be_created_near_an_index) {
    work_contract_group group(1024);
    std::vector<work_contract> contracts;
    for (int i = 0; i != 5; ++i) contracts.push_back(group.create_contract_near(512, [] {}));
    const work_contract first = group.create_contract([] {});
    EXPECT_EQ(first.index(), 0u);
    EXPECT_EQ(contracts[0].index(), 512u);
    EXPECT_EQ(contracts[1].index(), 513u);
    EXPECT_LT(contracts[4].index(), 520u);
    const work_contract with_release = group.create_contract_near(7, [] {}, [] {});
    EXPECT_EQ(with_release.index(), 7u);
}

TEST(work_contract_group, execute_contracts_runs_up_to_the_given_number_across_leaves) {
    work_contract_group group(200);
    int runs = 0;
    std::vector<work_contract> contracts;
    for (int i = 0; i != 200; ++i)
        contracts.push_back(group.create_contract([&] { ++runs; }, initial_state::scheduled));
    EXPECT_EQ(group.execute_contracts(0), 0u);
    EXPECT_EQ(group.execute_contracts(), 32u);
    EXPECT_EQ(group.execute_contracts(100), 100u);
    EXPECT_EQ(group.execute_contracts(100), 68u);
    EXPECT_EQ(group.execute_contracts(100), 0u);
    EXPECT_EQ(runs, 200);
}

TEST(work_contract_group, execute_contracts_does_not_spin_on_a_rescheduling_contract) {
    work_contract_group group(64);
    int runs = 0;
    const work_contract contract = group.create_contract(
        [&](work_contract_token& token) {
            ++runs;
            token.schedule();
        },
        initial_state::scheduled);
    EXPECT_EQ(group.execute_contracts(10), 10u);
    EXPECT_EQ(runs, 10);
}

TEST(work_contract_group, a_batch_claims_one_at_a_time_when_contracts_are_long) {
    work_contract_group group(64);
    std::vector<work_contract> contracts;
    for (int i = 0; i != 64; ++i) {
        contracts.push_back(group.create_contract(
            [](work_contract_token& token) { token.schedule(); }, initial_state::scheduled));
    }
    // On a machine of any speed, all runs fit into an hour and none fits into a nanosecond.
    coppice::contract_batch patient{std::chrono::hours(1)};
    coppice::contract_batch hasty{std::chrono::nanoseconds(1)};
    EXPECT_EQ(patient.size(), 1u);
    EXPECT_EQ(hasty.size(), 1u);
    for (int i = 0; i != 1'000; ++i) {
        group.execute_contracts(patient);
        group.execute_contracts(hasty);
    }
    EXPECT_EQ(patient.size(), 32u);
    EXPECT_EQ(hasty.size(), 1u);
}

TEST(work_contract_group, drain_runs_pending_contracts_and_none_afterwards) {
    int runs = 0;
    int releases = 0;
    work_contract_group group(64);
    std::vector<work_contract> contracts;
    for (int i = 0; i != 40; ++i) {
        contracts.push_back(group.create_contract(
            [&](work_contract_token& token) {
                ++runs;
                token.schedule();  // refused: the group is draining
                contracts[0].schedule();
            },
            [&] { ++releases; }, initial_state::scheduled));
    }
    contracts[7].release();
    EXPECT_EQ(group.drain(), 40u);
    EXPECT_EQ(runs, 39);
    EXPECT_EQ(releases, 1);
    contracts[1].schedule();
    EXPECT_FALSE(group.execute_next_contract());
    EXPECT_FALSE(group.create_contract([] {}).valid());
    contracts[1].release();
    EXPECT_TRUE(group.execute_next_contract());
    EXPECT_EQ(releases, 2);
}

TEST(work_contract_group, stop_drops_pending_runs_but_no_release) {
    work_contract_group group(64);
    int runs = 0;
    int releases = 0;
    std::vector<work_contract> contracts;
    for (int i = 0; i != 40; ++i) {
        contracts.push_back(
            group.create_contract([&] { ++runs; }, [&] { ++releases; }, initial_state::scheduled));
    }
    contracts[20].release();
    group.stop();
    EXPECT_TRUE(group.execute_next_contract());
    EXPECT_FALSE(group.execute_next_contract());
    EXPECT_EQ(group.execute_contracts(), 0u);
    EXPECT_EQ(runs, 0);
    EXPECT_EQ(releases, 1);
    contracts.clear();
    EXPECT_EQ(group.execute_contracts(64), 39u);
    EXPECT_EQ(releases, 40);
}

TEST(work_contract_group, a_contract_may_execute_the_group_it_is_in) {
    work_contract_group group(8);
    std::string log;
    work_contract inner = group.create_contract([&] { log += "inner "; });
    const work_contract outer = group.create_contract(
        [&] {
            log += "outer ";
            inner.schedule();
            EXPECT_TRUE(group.execute_next_contract());
            log += "outer ";
        },
        initial_state::scheduled);
    while (group.execute_next_contract()) {
    }
    EXPECT_EQ(log, "outer inner outer ");
}

}  // namespace
