// base/internal/fork_deque.hpp on one thread: order, refusal, publication. Its model has the
// threads.
#include <coppice/base/internal/fork_deque.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace {

using coppice::internal::fork_deque;
using coppice::internal::fork_slot;
using coppice::internal::fork_steal;
using coppice::internal::taken_call;

struct counting_team final : coppice::internal::fork_team {
    int published_calls = 0;
    void published() noexcept override { ++published_calls; }
    bool help(fork_deque&, const fork_slot&, std::uint32_t, bool) noexcept override {
        return false;
    }
};

struct fork_deque_of_one : testing::Test {
    counting_team team;
    std::unique_ptr<fork_deque> deque = std::make_unique<fork_deque>(team, 0);
    int calls[4] = {};
    static void count(void* frame, fork_slot& slot) noexcept {
        ++*static_cast<int*>(frame);
        slot.finish();
    }
    fork_slot* push(int i) { return deque->push(&count, &calls[i]); }
};

TEST_F(fork_deque_of_one, pops_the_newest_call_and_publishes_nothing_unless_asked) {
    fork_slot* const a = push(0);
    fork_slot* const b = push(1);
    EXPECT_TRUE(deque->looks_empty());
    EXPECT_FALSE(deque->looks_done());
    EXPECT_TRUE(deque->pop(b));
    EXPECT_TRUE(deque->pop(a));
    EXPECT_TRUE(deque->looks_done());
    EXPECT_EQ(team.published_calls, 0);
}

TEST_F(fork_deque_of_one, answers_a_request_with_the_oldest_half) {
    fork_slot* const a = push(0);
    fork_slot* const b = push(1);
    fork_slot* const c = push(2);
    deque->ask();
    EXPECT_TRUE(deque->asked());
    fork_slot* const d = push(3);
    EXPECT_FALSE(deque->asked());
    EXPECT_EQ(team.published_calls, 1);
    taken_call taken;
    for (int i = 0; i != 2; ++i) {
        ASSERT_EQ(deque->steal(taken, 1), fork_steal::taken);
        EXPECT_EQ(taken.frame, &calls[i]);
        taken.run();
    }
    EXPECT_EQ(deque->steal(taken, 1), fork_steal::empty);
    EXPECT_TRUE(deque->pop(d));
    EXPECT_TRUE(deque->pop(c));
    for (fork_slot* const stolen : {b, a}) {
        ASSERT_FALSE(deque->pop(stolen));
        deque->join(stolen);
    }
    EXPECT_EQ(calls[0] + calls[1], 2);
}

TEST_F(fork_deque_of_one, pops_calls_that_were_published_but_not_stolen) {
    deque->ask();
    fork_slot* const a = push(0);
    EXPECT_FALSE(deque->looks_empty());
    EXPECT_TRUE(deque->pop(a));
    EXPECT_TRUE(deque->looks_empty());
}

TEST_F(fork_deque_of_one, a_thief_publishes_calls_while_the_owner_is_busy) {
    fork_slot* const a = push(0);
    taken_call taken;
    EXPECT_EQ(deque->steal(taken, 1), fork_steal::empty);
    deque->grab();
    ASSERT_EQ(deque->steal(taken, 1), fork_steal::taken);
    taken.run();
    ASSERT_FALSE(deque->pop(a));
    deque->join(a);
    EXPECT_EQ(calls[0], 1);
}

TEST_F(fork_deque_of_one, refuses_a_push_when_full_and_then_continues) {
    std::vector<fork_slot*> slots;
    while (fork_slot* const slot = push(0)) slots.push_back(slot);
    EXPECT_EQ(slots.size(), fork_deque::capacity);
    EXPECT_EQ(push(0), nullptr);
    deque->grab();
    taken_call taken;
    ASSERT_EQ(deque->steal(taken, 1), fork_steal::taken);
    taken.run();
    for (std::size_t i = slots.size() - 1; i != 0; --i) ASSERT_TRUE(deque->pop(slots[i]));
    ASSERT_FALSE(deque->pop(slots[0]));
    deque->join(slots[0]);
    EXPECT_TRUE(deque->looks_done());
    EXPECT_TRUE(deque->pop(push(1)));
}

TEST_F(fork_deque_of_one, letting_go_of_a_stolen_call_frees_its_slot) {
    fork_slot* const a = push(0);
    fork_slot* const b = push(1);
    deque->grab();
    taken_call taken;
    ASSERT_EQ(deque->steal(taken, 1), fork_steal::taken);
    EXPECT_TRUE(deque->pop(b));
    ASSERT_FALSE(deque->pop(a));
    deque->let_go(a);
    EXPECT_TRUE(deque->looks_done());
    fork_slot* const again = push(2);
    EXPECT_EQ(again, a);
    EXPECT_TRUE(deque->pop(again));
    taken.run();
    EXPECT_EQ(calls[0], 1);
}

}  // namespace
