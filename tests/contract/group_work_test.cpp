// contract/group.hpp: the callables of a contract, where they are kept, and what they throw.
#include <coppice/contract/batch.hpp>
#include <coppice/contract/group.hpp>
#include <coppice/contract/internal/slot.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "allocations.hpp"

namespace {

using coppice::initial_state;
using coppice::work_contract;
using coppice::work_contract_group;
using coppice::work_contract_token;

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
