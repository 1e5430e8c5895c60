// Plan: a slot is used again and again, in a scope and in none; a busy one is not destroyed.
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/spawn_slot.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>

#include "allocations.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

namespace {

namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;

auto counts(int& n) {
    return ex::just() | ex::then([&n]() noexcept { ++n; });
}
using counting = decltype(counts(std::declval<int&>()));

TEST(spawn_slot, runs_one_operation_after_another_without_allocating) {
    int n = 0;
    ex::spawn_slot<counting> slot;
    const coppice::test::allocation_count count;
    for (int i = 0; i != 3; ++i) {
        EXPECT_FALSE(slot.is_busy());
        ex::spawn(counts(n), slot);
    }
    const auto kept = counts(n);
    ex::spawn(kept, slot);
    EXPECT_EQ(count.so_far(), 0u);
    EXPECT_EQ(n, 4);
}

TEST(spawn_slot, is_busy_until_its_operation_has_ended_and_been_destroyed) {
    ex::run_loop loop;
    auto alive = std::make_shared<int>(0);
    const std::weak_ptr<int> watched = alive;
    auto work = ex::schedule(loop.get_scheduler()) | ex::then([alive]() noexcept {});
    alive.reset();
    ex::spawn_slot<decltype(work)> slot;
    ex::spawn(std::move(work), slot);
    EXPECT_TRUE(slot.is_busy());
    EXPECT_FALSE(watched.expired());
    loop.finish();
    loop.run();
    EXPECT_FALSE(slot.is_busy());
}

TEST(spawn_slot, in_a_scope_is_joined_and_stopped_with_it) {
    ex::run_loop loop;
    ex::counting_scope scope;
    bool stopped = false;
    auto work = ex::schedule(loop.get_scheduler()) |
                ex::upon_stopped([&stopped]() noexcept { stopped = true; });
    using token = ex::counting_scope::token;
    ex::spawn_slot<decltype(work), token> slot;
    ex::spawn(work, scope.get_token(), slot);
    scope.request_stop();
    loop.finish();
    loop.run();
    EXPECT_TRUE(stopped);
    EXPECT_FALSE(slot.is_busy());
    scope.close();
    ex::spawn(work, scope.get_token(), slot);  // refused
    EXPECT_FALSE(slot.is_busy());
    sync_wait(scope.join());
}

struct throwing {
    using sender_concept = ex::sender_tag;
    bool throws = true;
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return ex::completion_signatures<ex::set_value_t()>();
    }
    auto connect(auto rcvr) const {
        if (throws) throw std::runtime_error("connect");
        return ex::connect(ex::just(), std::move(rcvr));
    }
};

TEST(spawn_slot, is_free_after_connecting_threw) {
    ex::spawn_slot<throwing> slot;
    EXPECT_THROW(ex::spawn(throwing{}, slot), std::runtime_error);
    EXPECT_FALSE(slot.is_busy());
    ex::spawn(throwing{false}, slot);
    EXPECT_FALSE(slot.is_busy());
}

// Throws when it is copied, or when it is moved.
struct throwing_when_moved : throwing {
    throwing_when_moved(bool copies, bool moves) : copy_throws(copies), move_throws(moves) {
        throws = false;
    }
    throwing_when_moved(const throwing_when_moved& other)
        : throwing(other), copy_throws(other.copy_throws), move_throws(other.move_throws) {
        if (copy_throws) throw std::runtime_error("copy");
    }
    throwing_when_moved(throwing_when_moved&& other)
        : throwing(other), copy_throws(other.copy_throws), move_throws(other.move_throws) {
        if (move_throws) throw std::runtime_error("move");
    }
    bool copy_throws;
    bool move_throws;
};

TEST(spawn_slot, is_free_and_its_scope_empty_after_copying_or_moving_the_sender_threw) {
    ex::counting_scope scope;
    ex::spawn_slot<throwing_when_moved> slot;
    ex::spawn_slot<throwing_when_moved, ex::counting_scope::token> in_scope;
    for (const bool copies : {false, true}) {
        const throwing_when_moved sender(copies, !copies);
        EXPECT_THROW(ex::spawn(sender, slot), std::runtime_error);
        EXPECT_THROW(ex::spawn(sender, scope.get_token(), in_scope), std::runtime_error);
        EXPECT_FALSE(slot.is_busy());
        EXPECT_FALSE(in_scope.is_busy());
    }
    sync_wait(scope.join());
}

TEST(spawn_slot_death, a_busy_slot_is_not_used_and_not_destroyed) {
    EXPECT_DEATH(
        {
            ex::run_loop loop;
            auto work = ex::schedule(loop.get_scheduler());
            ex::spawn_slot<decltype(work)> slot;
            ex::spawn(work, slot);
            ex::spawn(work, slot);
        },
        "the spawn_slot is busy with its last operation");
    EXPECT_DEATH(
        {
            ex::run_loop loop;
            auto work = ex::schedule(loop.get_scheduler());
            std::optional<ex::spawn_slot<decltype(work)>> slot(std::in_place);
            ex::spawn(work, *slot);
            slot.reset();
        },
        "a spawn_slot was destroyed while its operation was running");
}

}  // namespace
