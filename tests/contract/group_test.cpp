// contract/group.hpp: a scheduled contract runs once per schedule, and a released one is released
// once.
#include <coppice/contract.hpp>
#include <coppice/contract/group.hpp>
#include <coppice/contract/internal/board.hpp>
#include <coppice/contract/internal/core.hpp>
#include <coppice/contract/internal/slot.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace {

using coppice::initial_state;
using coppice::work_contract;
using coppice::work_contract_group;
using coppice::work_contract_token;

// The examples of the talk, in its order.

TEST(work_contract_group, runs_scheduled_contracts_and_no_others) {
    work_contract_group group(4);
    int runs = 0;
    work_contract contract = group.create_contract([&] { ++runs; });
    EXPECT_FALSE(group.execute_next_contract());
    contract.schedule();
    EXPECT_TRUE(group.execute_next_contract());
    EXPECT_FALSE(group.execute_next_contract());
    EXPECT_EQ(runs, 1);
}

TEST(work_contract_group, a_released_contract_runs_its_release_when_it_is_executed) {
    work_contract_group group(4);
    std::string log;
    work_contract contract =
        group.create_contract([&] { log += "executed "; }, [&] { log += "destroyed "; });
    contract.schedule();
    group.execute_next_contract();
    contract.release();
    EXPECT_EQ(log, "executed ");
    EXPECT_TRUE(contract.valid());
    EXPECT_TRUE(group.execute_next_contract());
    EXPECT_EQ(log, "executed destroyed ");
    EXPECT_FALSE(contract.valid());
    EXPECT_EQ(group.size(), 0u);
}

TEST(work_contract_group, a_contract_runs_as_often_as_it_is_scheduled_after_running) {
    work_contract_group group(4);
    std::vector<int> seen;
    work_contract contract = group.create_contract([&, i = 0]() mutable { seen.push_back(i++); });
    for (int i = 0; i != 3; ++i) {
        contract.schedule();
        while (group.execute_next_contract()) {
        }
    }
    EXPECT_EQ(seen, (std::vector<int>{0, 1, 2}));
}

TEST(work_contract_group, a_running_contract_reschedules_and_releases_itself) {
    work_contract_group group(4);
    bool done = false;
    std::vector<int> seen;
    work_contract contract = group.create_contract(
        [&, i = 0](work_contract_token& token) mutable {
            seen.push_back(i++);
            if (i < 3) {
                token.schedule();
            } else {
                token.release();
            }
        },
        [&] { done = true; });
    contract.schedule();
    int executed = 0;
    while (!done) executed += group.execute_next_contract();
    EXPECT_EQ(seen, (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(executed, 4);
    EXPECT_FALSE(contract.valid());
}

TEST(work_contract_group, leaving_the_scope_of_a_handle_releases_its_contract) {
    work_contract_group group(4);
    int releases = 0;
    {
        const work_contract contract = group.create_contract([] {}, [&] { ++releases; });
    }
    EXPECT_EQ(releases, 0);
    EXPECT_EQ(group.size(), 1u);
    EXPECT_TRUE(group.execute_next_contract());
    EXPECT_EQ(releases, 1);
    EXPECT_EQ(group.size(), 0u);
}

// Promises of the interface beyond the talk.

TEST(work_contract_group, scheduling_twice_before_a_run_causes_one_run) {
    work_contract_group group(1);
    int runs = 0;
    work_contract contract = group.create_contract([&] { ++runs; });
    contract.schedule();
    contract.schedule();
    while (group.execute_next_contract()) {
    }
    EXPECT_EQ(runs, 1);
}

TEST(work_contract_group, scheduling_during_a_run_causes_one_more_run) {
    work_contract_group group(1);
    int runs = 0;
    work_contract contract;
    contract = group.create_contract([&] {
        if (++runs == 1) {
            contract.schedule();
            contract.schedule();
            EXPECT_FALSE(group.execute_next_contract()) << "it is running";
        }
    });
    contract.schedule();
    int executed = 0;
    while (group.execute_next_contract()) ++executed;
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(executed, 2);
}

TEST(work_contract_group, a_contract_may_be_created_scheduled) {
    int runs = 0;
    int releases = 0;
    int exceptions = 0;
    work_contract_group group(8);
    auto run = [&] { ++runs; };
    auto release = [&] { ++releases; };
    auto handler = [&](std::exception_ptr) { ++exceptions; };
    const work_contract a = group.create_contract(run, initial_state::scheduled);
    const work_contract b = group.create_contract(run, release, initial_state::scheduled);
    const work_contract c = group.create_contract(run, release, handler, initial_state::scheduled);
    const work_contract d = group.create_contract(run, initial_state::unscheduled);
    while (group.execute_next_contract()) {
    }
    EXPECT_EQ(runs, 3);
    EXPECT_EQ(releases + exceptions, 0);
}

TEST(work_contract_group, a_release_drops_a_pending_run) {
    work_contract_group group(1);
    int runs = 0;
    int releases = 0;
    work_contract contract = group.create_contract([&] { ++runs; }, [&] { ++releases; });
    contract.schedule();
    contract.release();
    contract.release();
    contract.schedule();
    EXPECT_FALSE(contract.unschedule()) << "a release is not withdrawn";
    int executed = 0;
    while (group.execute_next_contract()) ++executed;
    EXPECT_EQ(runs, 0);
    EXPECT_EQ(releases, 1);
    EXPECT_EQ(executed, 1);
}

TEST(work_contract_group, a_release_during_a_run_runs_once_after_it) {
    work_contract_group group(1);
    std::string log;
    work_contract contract;
    contract = group.create_contract(
        [&](work_contract_token& token) {
            log += "run ";
            token.schedule();
            token.release();
            contract.release();
            log += "ran ";
        },
        [&] { log += "release "; });
    contract.schedule();
    while (group.execute_next_contract()) {
    }
    EXPECT_EQ(log, "run ran release ");
}

TEST(work_contract_group, unschedule_withdraws_a_pending_run) {
    work_contract_group group(1);
    int runs = 0;
    work_contract contract = group.create_contract([&] { ++runs; });
    EXPECT_FALSE(contract.unschedule());
    contract.schedule();
    EXPECT_TRUE(contract.unschedule());
    EXPECT_FALSE(group.execute_next_contract());
    contract.schedule();
    EXPECT_TRUE(group.execute_next_contract());
    EXPECT_EQ(runs, 1);
}

TEST(work_contract_group, unschedule_withdraws_the_second_run_of_a_running_contract) {
    work_contract_group group(1);
    int runs = 0;
    work_contract contract;
    contract = group.create_contract([&] {
        ++runs;
        contract.schedule();
        EXPECT_TRUE(contract.unschedule());
    });
    contract.schedule();
    while (group.execute_next_contract()) {
    }
    EXPECT_EQ(runs, 1);
}

TEST(work_contract_group, rejects_a_capacity_of_zero) {
    EXPECT_THROW(work_contract_group(0), std::invalid_argument);
    EXPECT_THROW(coppice::blocking_work_contract_group(0), std::invalid_argument);
}

TEST(work_contract_group, a_full_group_returns_an_invalid_contract) {
    for (const std::size_t capacity : {1, 31, 32, 33, 100}) {
        work_contract_group group(capacity);
        EXPECT_EQ(group.capacity(), capacity);
        std::vector<work_contract> contracts;
        for (std::size_t i = 0; i != capacity; ++i) {
            contracts.push_back(group.create_contract([] {}));
            EXPECT_TRUE(contracts.back().valid());
            EXPECT_EQ(contracts.back().index(), i);
        }
        EXPECT_EQ(group.size(), capacity);
        work_contract one_more = group.create_contract([] {}, initial_state::scheduled);
        EXPECT_FALSE(one_more.valid());
        EXPECT_FALSE(static_cast<bool>(one_more));
        one_more.schedule();
        one_more.release();
        EXPECT_FALSE(group.execute_next_contract());
        contracts.front().release();
        EXPECT_TRUE(group.execute_next_contract());
        EXPECT_TRUE(group.create_contract([] {}).valid());
    }
}

TEST(work_contract_group, doubles_up_to_its_greatest_capacity_and_keeps_its_contracts) {
    work_contract_group group(2, 70);
    std::vector<work_contract> contracts;
    std::vector<int> runs(71);
    std::vector<std::size_t> capacities;
    for (int i = 0; i != 70; ++i) {
        contracts.push_back(
            group.create_contract([&runs, i] { ++runs[static_cast<unsigned>(i)]; }));
        contracts.back().schedule();
        if (capacities.empty() || capacities.back() != group.capacity())
            capacities.push_back(group.capacity());
    }
    EXPECT_EQ(capacities, (std::vector<std::size_t>{2, 4, 8, 16, 32, 64, 70}));
    EXPECT_FALSE(group.create_contract([] {}).valid());
    while (group.execute_next_contract()) {
    }
    for (int i = 0; i != 70; ++i) EXPECT_EQ(runs[static_cast<unsigned>(i)], 1);
    EXPECT_FALSE(group.grow(70));
    work_contract_group other(2, 70);
    EXPECT_TRUE(other.grow(33));
    EXPECT_FALSE(other.grow(10));
    EXPECT_TRUE(other.grow(1000));
    EXPECT_EQ(other.capacity(), 70u);
}

TEST(work_contract_group, destroying_it_runs_each_release_that_has_not_run) {
    std::vector<int> releases(4);
    int runs = 0;
    work_contract kept;
    {
        work_contract_group group(4);
        const auto make = [&](unsigned i) {
            return group.create_contract([&] { ++runs; }, [&, i] { ++releases[i]; });
        };
        kept = make(0);
        work_contract released = make(1);
        released.release();
        work_contract scheduled = make(2);
        scheduled.schedule();
        work_contract gone = make(3);
        gone.release();
        group.execute_contracts(1);
        EXPECT_TRUE(kept.valid());
    }
    EXPECT_EQ(releases, (std::vector<int>{1, 1, 1, 1}));
    EXPECT_LE(runs, 1);
    EXPECT_FALSE(kept.valid());
    kept.schedule();
    kept.release();
    EXPECT_FALSE(kept.unschedule());
}

TEST(work_contract_group, a_release_in_the_destructor_may_use_handles_and_the_group) {
    work_contract other;
    bool made = true;
    {
        work_contract_group group(4);
        work_contract first = group.create_contract([] {},
                                                    [&] {
                                                        other.schedule();
                                                        other.release();
                                                        made = group.create_contract([] {}).valid();
                                                    });
        other = group.create_contract([] { ADD_FAILURE() << "ran when the group was ending"; });
        work_contract moved = std::move(first);
    }
    EXPECT_FALSE(made);
    EXPECT_FALSE(other.valid());
}

TEST(work_contract, a_stale_handle_does_not_affect_the_next_contract_in_its_slot) {
    int strangers = 0;
    int releases = 0;
    work_contract_group group(32);
    std::vector<work_contract> stale;
    for (int i = 0; i != 32; ++i) {
        stale.push_back(group.create_contract([](work_contract_token& token) { token.release(); },
                                              initial_state::scheduled));
    }
    while (group.execute_next_contract()) {
    }
    EXPECT_EQ(group.size(), 0u);
    std::vector<work_contract> next;
    for (int i = 0; i != 32; ++i) {
        next.push_back(group.create_contract([&] { ++strangers; }, [&] { ++releases; }));
        ASSERT_TRUE(next.back().valid());
    }
    for (work_contract& handle : stale) {
        EXPECT_FALSE(handle.valid());
        handle.schedule();
        handle.release();
        EXPECT_FALSE(handle.unschedule());
    }
    stale.clear();
    EXPECT_FALSE(group.execute_next_contract());
    EXPECT_EQ(strangers + releases, 0);
    EXPECT_EQ(group.size(), 32u);
}

TEST(work_contract, moving_transfers_the_contract_and_assigning_releases_the_old_one) {
    work_contract_group group(4);
    int releases = 0;
    const auto make = [&] { return group.create_contract([] {}, [&] { ++releases; }); };
    work_contract a = make();
    work_contract b = std::move(a);
    EXPECT_FALSE(a.valid());
    EXPECT_TRUE(b.valid());
    b = make();
    EXPECT_TRUE(b.valid());
    group.execute_next_contract();
    EXPECT_EQ(releases, 1);
    work_contract& same = b;
    b = std::move(same);
    EXPECT_TRUE(b.valid()) << "assigning to itself";
    work_contract empty;
    EXPECT_FALSE(empty.valid());
    empty.schedule();
    b = std::move(empty);
    while (group.execute_next_contract()) {
    }
    EXPECT_EQ(releases, 2);
}

}  // namespace
