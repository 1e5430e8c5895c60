// contract.hpp as users write it: every spelling of the interface, in one place.
#include <coppice/contract.hpp>

#include <coppice/contract/work_contract_token.hpp>

#include <gtest/gtest.h>

#include <concepts>
#include <memory>
#include <optional>
#include <type_traits>

namespace {

using namespace coppice;

// signal_tree and selection_bias.
static_assert(noexcept(selection_bias::fair()) && noexcept(selection_bias::prefer(1)));
static_assert(std::same_as<decltype(selection_bias::fair()), selection_bias>);
static_assert(!std::is_convertible_v<std::size_t, signal_tree>, "explicit");
static_assert(std::is_constructible_v<signal_tree, std::size_t>);
template <class Tree>
concept tree_interface =
    requires(Tree& tree, const Tree& read, selection_bias& bias, std::size_t index) {
        { read.capacity() } noexcept -> std::same_as<std::size_t>;
        { tree.set(index) } noexcept -> std::same_as<bool>;
        { tree.select(bias) } noexcept -> std::same_as<std::optional<std::size_t>>;
        { read.empty() } noexcept -> std::same_as<bool>;
    };
static_assert(tree_interface<signal_tree>);

// Handles and tokens.
static_assert(std::is_nothrow_move_constructible_v<work_contract>);
static_assert(std::is_nothrow_move_assignable_v<work_contract>);
static_assert(!std::is_copy_constructible_v<work_contract>);
static_assert(!std::is_convertible_v<work_contract, bool>, "explicit");
template <class Handle>
concept schedules = requires(Handle& h) {
    { h.schedule() } noexcept;
    { h.release() } noexcept;
};
static_assert(schedules<work_contract> && schedules<work_contract_token>);
static_assert(requires(const work_contract& c) {
    { c.valid() } noexcept -> std::same_as<bool>;
    { static_cast<bool>(c) } noexcept;
});

// Both groups.
struct move_only_work {
    std::unique_ptr<int> data;
    void operator()() const {}
};
template <class Group>
concept group_interface =
    std::is_constructible_v<Group, std::size_t> && !std::is_convertible_v<std::size_t, Group> &&
    requires(Group& group, const Group& read, selection_bias& bias, void (*work)(),
             void (*with_token)(work_contract_token&), void (*handler)(std::exception_ptr)) {
        { group.create_contract(work) } -> std::same_as<work_contract>;
        { group.create_contract(with_token) } -> std::same_as<work_contract>;
        { group.create_contract(work, initial_state::scheduled) } -> std::same_as<work_contract>;
        { group.create_contract(with_token, work) } -> std::same_as<work_contract>;
        {
            group.create_contract(work, work, initial_state::unscheduled)
        } -> std::same_as<work_contract>;
        { group.create_contract(work, work, handler) } -> std::same_as<work_contract>;
        {
            group.create_contract(work, work, handler, initial_state::scheduled)
        } -> std::same_as<work_contract>;
        { group.create_contract(move_only_work()) } -> std::same_as<work_contract>;
        { group.execute_next_contract() } -> std::same_as<bool>;
        { group.execute_next_contract(bias) } -> std::same_as<bool>;
        { group.execute_contracts() } -> std::same_as<std::size_t>;
        { group.execute_contracts(std::size_t{7}) } -> std::same_as<std::size_t>;
        { read.capacity() } noexcept -> std::same_as<std::size_t>;
        { read.size() } noexcept -> std::same_as<std::size_t>;
        { group.get_scheduler() } noexcept -> execution::scheduler;
    };
static_assert(group_interface<work_contract_group>);
static_assert(group_interface<blocking_work_contract_group>);
template <class Group>
concept waits = requires(Group& group, inplace_stop_token token, std::chrono::milliseconds time) {
    { group.execute_next_contract(token) } -> std::same_as<bool>;
    { group.execute_next_contract(time) } -> std::same_as<bool>;
};
static_assert(waits<blocking_work_contract_group> && !waits<work_contract_group>);

TEST(contract_api, generic_work_as_in_the_talk_receives_the_token) {
    work_contract_group group(4);
    int runs = 0;
    auto contract = group.create_contract([&](auto& token) mutable {
        if (++runs < 3) token.schedule();
    });
    contract.schedule();
    while (group.execute_next_contract()) {
    }
    EXPECT_EQ(runs, 3);
}

}  // namespace
