// Every number and every time that a contract group accepts, at the ends of its type.
#include <coppice/contract.hpp>

#include "extremes.hpp"

#include <gtest/gtest.h>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;

// Expects that the group can make and run a contract.
template <class Group>
void expect_works(Group& group) {
    int runs = 0;
    work_contract c = group.create_contract([&] { ++runs; }, initial_state::scheduled);
    ASSERT_TRUE(c.valid());
    EXPECT_TRUE(group.execute_next_contract());
    EXPECT_EQ(runs, 1);
}

TEST(contract_extremes, a_capacity_is_accepted_or_named_in_the_error) {
    for (const std::uint64_t n : every_number) {
        const auto capacity = static_cast<std::size_t>(n);
        const auto served = [&](const char* name, bool good, auto make) {
            const std::string said = refusal_of(make);
            if (good) {
                EXPECT_EQ(said, "") << name;
            } else {
                expect_refusal(said, name, n);
            }
        };
        served("capacity", n == 1, [&] {
            work_contract_group group(capacity);
            expect_works(group);
        });
        served("capacity", n == 1, [&] {
            work_contract_group group(capacity, 5);
            expect_works(group);
        });
        served("capacity_max", n <= 1, [&] {
            work_contract_group group(1, capacity);
            expect_works(group);
            EXPECT_FALSE(group.grow(capacity));
        });
        served("capacity", n == 1, [&] {
            blocking_work_contract_group group(capacity);
            expect_works(group);
        });
        served("sleepers_max", n == 1, [&] {
            blocking_work_contract_group group(1, 0, capacity);
            expect_works(group);
        });
        EXPECT_EQ(refusal_of([&] { signal_tree tree(capacity); }).empty(), n == 1);
    }
}

TEST(contract_extremes, any_number_of_contracts_to_run_is_accepted) {
    work_contract_group group(4);
    for (const std::uint64_t n : every_number) {
        const auto most = static_cast<std::size_t>(n);
        while (group.execute_contracts() != 0) {  // the releases of the previous round
        }
        int runs = 0;
        work_contract a = group.create_contract([&] { ++runs; }, initial_state::scheduled);
        work_contract b = group.create_contract([&] { ++runs; }, initial_state::scheduled);
        EXPECT_EQ(group.execute_contracts(most), std::min<std::size_t>(most, 2));
        for (const duration budget : every_duration) {
            contract_batch batch(budget);
            EXPECT_GE(batch.size(), 1u);
            a.schedule();
            b.schedule();
            EXPECT_LE(group.execute_contracts(batch, most), most);
        }
        while (group.execute_contracts() != 0) {
        }
        EXPECT_GE(runs, 2);
    }
}

TEST(contract_extremes, a_wait_of_any_length_finds_work_and_short_waits_end_without_it) {
    blocking_work_contract_group group(4);
    for (const duration most : every_duration) {
        while (group.execute_next_contract()) {  // the release of the previous round
        }
        int runs = 0;
        work_contract c = group.create_contract([&] { ++runs; }, initial_state::scheduled);
        EXPECT_TRUE(group.execute_next_contract(most));  // available work needs no wait
        EXPECT_EQ(runs, 1);
        if (most <= duration(1)) {
            EXPECT_FALSE(group.execute_next_contract(most));
        }
    }
}

}  // namespace
