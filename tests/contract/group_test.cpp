// contract/group.hpp: a scheduled contract runs once per schedule, and a released one is released
// once.
#include <coppice/contract.hpp>
#include <coppice/contract/batch.hpp>
#include <coppice/contract/group.hpp>
#include <coppice/contract/internal/board.hpp>
#include <coppice/contract/internal/core.hpp>
#include <coppice/contract/internal/slot.hpp>
#include <coppice/contract/internal/thread_rounds.hpp>

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "allocations.hpp"

namespace {

using coppice::initial_state;
using coppice::selection_bias;
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

TEST(work_contract_group, an_exception_without_a_handler_leaves_the_execute_function) {
    work_contract_group group(64);
    int runs = 0;
    work_contract contract = group.create_contract([&](work_contract_token& token) {
        token.schedule();
        if (++runs % 2 == 1) throw std::runtime_error("odd");
    });
    contract.schedule();
    EXPECT_THROW(group.execute_next_contract(), std::runtime_error);
    EXPECT_TRUE(contract.valid());
    EXPECT_TRUE(group.execute_next_contract()) << "what it asked for before it threw still counts";
    EXPECT_THROW(group.execute_contracts(10), std::runtime_error);
    coppice::contract_batch batch;
    EXPECT_EQ(group.execute_contracts(batch), 1u);
    EXPECT_THROW(group.execute_contracts(batch), std::runtime_error);
    EXPECT_EQ(runs, 5);
}

TEST(work_contract_group, an_exception_is_passed_to_the_handler_if_there_is_one) {
    work_contract_group group(2);
    std::vector<std::string> caught;
    work_contract contract = group.create_contract(
        [](work_contract_token& token) {
            token.release();
            throw std::runtime_error("run");
        },
        [] { throw std::runtime_error("release"); },
        [&](std::exception_ptr e) {
            try {
                std::rethrow_exception(e);
            } catch (const std::runtime_error& error) {
                caught.push_back(error.what());
            }
        });
    contract.schedule();
    while (group.execute_next_contract()) {
    }
    EXPECT_EQ(caught, (std::vector<std::string>{"run", "release"}));
    EXPECT_FALSE(contract.valid());
}

TEST(work_contract_group, a_release_that_throws_still_ends_the_contract) {
    work_contract_group group(1);
    work_contract contract =
        group.create_contract([] {}, [] { throw std::runtime_error("release"); });
    contract.release();
    EXPECT_THROW(group.execute_next_contract(), std::runtime_error);
    EXPECT_FALSE(contract.valid());
    EXPECT_EQ(group.size(), 0u);
    EXPECT_TRUE(group.create_contract([] {}).valid());
}

TEST(work_contract_group, an_exception_in_a_batch_leaves_the_rest_pending) {
    work_contract_group group(32);
    int runs = 0;
    std::vector<work_contract> contracts;
    for (int i = 0; i != 10; ++i) {
        contracts.push_back(group.create_contract(
            [&, i] {
                ++runs;
                if (i == 4) throw std::runtime_error("fourth");
            },
            initial_state::scheduled));
    }
    coppice::contract_batch batch(std::chrono::hours(1));
    int thrown = 0;
    for (std::size_t ran = 1; ran != 0;) {
        try {
            ran = group.execute_contracts(batch);
        } catch (const std::runtime_error&) {
            ++thrown;
        }
    }
    EXPECT_EQ(thrown, 1);
    EXPECT_EQ(runs, 10);
}

struct throws_when_copied {
    throws_when_copied() = default;
    throws_when_copied(const throws_when_copied&) { throw std::runtime_error("copy"); }
    void operator()() const {}
};

TEST(work_contract_group, a_callable_whose_copy_throws_leaves_the_group_unchanged) {
    work_contract_group group(1);
    const throws_when_copied work;
    EXPECT_THROW(group.create_contract(work), std::runtime_error);
    EXPECT_EQ(group.size(), 0u);
    EXPECT_TRUE(group.create_contract([] {}).valid());
}

TEST(work_contract_group, move_only_callables_of_up_to_40_bytes_do_not_allocate) {
    work_contract_group group(8);
    int runs = 0;
    std::array<std::byte, 32> filling{};
    auto small = [&runs, filling] { runs += static_cast<int>(filling.size()) / 32; };
    static_assert(sizeof(small) == 40);
    auto large = [&runs, filling, more = filling] {
        runs += more.empty() || filling.empty() ? 0 : 1;
    };
    auto owner = [&runs, p = std::make_unique<int>(1)] { runs += *p; };
    std::vector<work_contract> contracts;
    contracts.reserve(8);
    {
        const coppice::test::allocation_count count;
        contracts.push_back(group.create_contract(std::move(small), initial_state::scheduled));
        contracts.push_back(group.create_contract(
            std::move(owner), [] {}, [](std::exception_ptr) {}, initial_state::scheduled));
        while (group.execute_next_contract()) {
        }
        EXPECT_EQ(count.so_far(), 0u);
    }
    EXPECT_EQ(runs, 2);
    {
        const coppice::test::allocation_count count;
        contracts.push_back(group.create_contract(std::move(large), initial_state::scheduled));
        EXPECT_EQ(count.so_far(), 1u);
        group.execute_next_contract();
    }
    EXPECT_EQ(runs, 3);
}

TEST(work_contract_group, creating_running_and_releasing_allocate_nothing) {
    work_contract_group group(100);
    int runs = 0;
    for (int round = 0; round != 2; ++round) {
        const coppice::test::allocation_count count;
        for (int i = 0; i != 1000; ++i) {
            work_contract contract = group.create_contract([&] { ++runs; }, [&] { ++runs; });
            contract.schedule();
            group.execute_next_contract();
            contract.release();
            group.execute_contracts();
        }
        if (round == 1) {
            EXPECT_EQ(count.so_far(), 0u);
        }
    }
    EXPECT_EQ(runs, 4000);
}

TEST(work_contract_group, the_callables_are_destroyed_when_the_release_has_run) {
    work_contract_group group(4);
    const auto token = std::make_shared<int>(0);
    for (const bool large : {false, true}) {
        std::array<std::byte, 64> filling{};
        work_contract contract =
            large ? group.create_contract([token, filling] { (void)filling; }, [token] {})
                  : group.create_contract([token] {}, [token] {});
        EXPECT_EQ(token.use_count(), 3);
        contract.release();
        EXPECT_EQ(token.use_count(), 3);
        group.execute_next_contract();
        EXPECT_EQ(token.use_count(), 1);
    }
}

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

TEST(work_contract_group, a_million_contracts_take_at_most_96_bytes_each_with_their_handles) {
    // The sum of the parts: a slot, its share of a leaf's line and of the line in the tree of
    // vacant slots, the nodes above both, and the handle.
    constexpr double slot = sizeof(coppice::internal::contract_slot);
    constexpr double leaf = 64.0 / 32;
    constexpr double vacancy = 64.0 / 64;
    constexpr double nodes = (leaf + vacancy) / 31;
    EXPECT_LE(slot + leaf + vacancy + nodes + sizeof(work_contract), 96.0);
}

}  // namespace
