// The shared source, clause by clause: [stopsource], [stoptoken], [stopcallback]; then our
// additions.
#include <coppice/stop_token.hpp>

#include "allocations.hpp"
#include "emulated.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using coppice::test::allocation_count;

using any_callback = stop_callback<std::function<void()>>;

TEST(stop_shared, models_the_concepts) {
    static_assert(stoppable_token<stop_token> && !unstoppable_token<stop_token>);
    static_assert(stoppable_source<stop_source>);
    static_assert(stoppable_callback_for<void (*)(), stop_token>);
    static_assert(std::is_nothrow_move_constructible_v<stop_source>);
    static_assert(std::is_nothrow_copy_constructible_v<stop_source>);
    static_assert(std::is_nothrow_move_assignable_v<stop_token>);
    static_assert(!std::is_move_constructible_v<stop_callback<void (*)()>>);
    static_assert(std::is_same_v<stop_callback<int (*)()>::callback_type, int (*)()>);
    static_assert(noexcept(std::declval<stop_source&>().request_stop()));
    static_assert(!std::is_convertible_v<nostopstate_t, stop_source>);
}

// [stopsource.cons]
TEST(stop_shared, a_source_without_a_state_does_nothing) {
    stop_source source(nostopstate);
    EXPECT_FALSE(source.stop_possible());
    EXPECT_FALSE(source.stop_requested());
    EXPECT_FALSE(source.request_stop());
    EXPECT_FALSE(source.request_stop_after(std::chrono::seconds(0)));
    EXPECT_FALSE(source.try_reset());
    EXPECT_EQ(source.get_token(), stop_token());
    EXPECT_FALSE(source.get_token().stop_possible());
}

TEST(stop_shared, handles_copy_move_compare_and_swap) {
    stop_source a;
    stop_source b(a);
    const stop_source other;
    EXPECT_EQ(a, b);
    EXPECT_NE(a, other);
    stop_source moved(std::move(a));
    EXPECT_EQ(moved, b);
    EXPECT_FALSE(a.stop_possible());
    a = b;
    EXPECT_EQ(a, moved);
    swap(a, b);
    a.swap(b);
    stop_token token = moved.get_token();
    stop_token copy(token);
    EXPECT_EQ(token, copy);
    EXPECT_EQ(token, b.get_token());
    EXPECT_NE(token, other.get_token());
    EXPECT_EQ(stop_token(), stop_token());
    stop_token taken(std::move(token));
    EXPECT_FALSE(token.stop_possible());
    EXPECT_TRUE(taken.stop_possible());
    swap(token, taken);
    EXPECT_TRUE(token.stop_possible());
}

TEST(stop_shared, only_the_first_request_returns_true) {
    stop_source source;
    stop_source copy(source);
    const stop_token token = source.get_token();
    EXPECT_FALSE(token.stop_requested());
    EXPECT_TRUE(copy.request_stop());
    EXPECT_FALSE(source.request_stop());
    EXPECT_TRUE(token.stop_requested() && source.stop_requested());
}

// [stoptoken.mem]: a stop is possible while there is a source, or after a request.
TEST(stop_shared, stop_is_possible_until_the_last_source_is_gone) {
    std::optional<stop_source> source(std::in_place);
    std::optional<stop_source> copy(*source);
    const stop_token token = source->get_token();
    source.reset();
    EXPECT_TRUE(token.stop_possible());
    copy.reset();
    EXPECT_FALSE(token.stop_possible());
    EXPECT_FALSE(token.stop_requested());

    stop_source stopped;
    const stop_token after = stopped.get_token();
    stopped.request_stop();
    stopped = stop_source(nostopstate);
    EXPECT_TRUE(after.stop_possible());
    EXPECT_TRUE(after.stop_requested());
}

TEST(stop_shared, callbacks_run_newest_first_on_the_requesters_thread) {
    stop_source source;
    std::vector<int> order;
    std::thread::id where;
    stop_callback a(source.get_token(), [&] { order.push_back(1); });
    stop_callback b(source.get_token(), [&] { order.push_back(2); });
    stop_callback c(source.get_token(), [&] { where = std::this_thread::get_id(); });
    std::thread([&] {
        source.request_stop();
        EXPECT_EQ(where, std::this_thread::get_id());
    }).join();
    EXPECT_EQ(order, (std::vector{2, 1}));
}

TEST(stop_shared, a_late_callback_runs_in_its_constructor) {
    stop_source source;
    source.request_stop();
    bool ran = false;
    stop_callback late(source.get_token(), [&] { ran = true; });
    EXPECT_TRUE(ran);
}

TEST(stop_shared, a_callback_outlives_every_handle) {
    std::optional<stop_source> source(std::in_place);
    bool ran = false;
    {
        stop_callback callback(source->get_token(), [&] { ran = true; });
        source.reset();
    }
    EXPECT_FALSE(ran);
}

TEST(stop_shared, a_callback_may_destroy_itself_and_others) {
    stop_source source;
    int runs = 0;
    std::optional<any_callback> a, b, self;
    a.emplace(source.get_token(), [&] { ++runs, b.reset(); });
    b.emplace(source.get_token(), [&] { ++runs, a.reset(); });
    self.emplace(source.get_token(), [&] { ++runs, self.reset(); });
    EXPECT_TRUE(source.request_stop());
    EXPECT_EQ(runs, 2);
}

// Ours: the last owner may be destroyed inside its own callback, before or after the callback.
TEST(stop_shared, the_last_source_may_be_destroyed_inside_its_callback) {
    for (const bool callback_too : {false, true}) {
        auto source = std::make_unique<stop_source>();
        std::optional<any_callback> callback, second;
        bool second_ran = false;
        second.emplace(source->get_token(), [&] { second_ran = true; });
        callback.emplace(source->get_token(), [&] {
            source.reset();
            if (callback_too) callback.reset();
        });
        EXPECT_TRUE(source->request_stop());
        EXPECT_EQ(source, nullptr);
        EXPECT_TRUE(second_ran);
    }
}

TEST(stop_shared, destruction_waits_for_the_callback_on_another_thread) {
    for (int round = 0; round != test::repeated(200); ++round) {
        stop_source source;
        atomic<bool> entered{false};
        bool returned = false;
        std::optional<any_callback> callback;
        callback.emplace(source.get_token(), [&] {
            entered.store(true, release);
            std::this_thread::yield();
            returned = true;
        });
        std::thread requester([source]() mutable { source.request_stop(); });
        while (!entered.load(acquire)) std::this_thread::yield();
        callback.reset();
        EXPECT_TRUE(returned);
        requester.join();
    }
}

TEST(stop_shared, destruction_does_not_wait_for_another_callback) {
    stop_source source;
    std::optional<any_callback> waiting, removed;
    waiting.emplace(source.get_token(), [] {});
    removed.emplace(source.get_token(), [&] { std::thread([&] { waiting.reset(); }).join(); });
    EXPECT_TRUE(source.request_stop());
}

TEST(stop_shared, a_throwing_callback_terminates) {
    stop_source source;
    stop_callback callback(source.get_token(), [] { throw std::runtime_error("no"); });
    EXPECT_DEATH(source.request_stop(), "");
}

TEST(stop_shared, callbacks_allocate_nothing) {
    stop_source source;
    const stop_token token = source.get_token();
    allocation_count allocations;
    for (int i = 0; i != 100; ++i) {
        stop_callback a(token, [] {});
        stop_callback b(source.get_token(), [] {});
    }
    EXPECT_EQ(allocations.so_far(), 0u);
    stop_source again;
    EXPECT_EQ(allocations.so_far(), 1u);
}

// Many threads contend for the lock, so the state grows its stripes; then one requests.
TEST(stop_shared, many_threads_register_and_remove_while_one_requests) {
    for (int round = 0; round != 20; ++round) {
        stop_source source;
        atomic<int> lost{0};
        std::vector<std::thread> threads;
        for (int t = 0; t != 4; ++t) {
            threads.emplace_back([&, token = source.get_token()] {
                for (bool stopped = false; !stopped;) {
                    int runs_a = 0;
                    int runs_b = 0;
                    {
                        const bool late = token.stop_requested();
                        stop_callback a(token, [&] { ++runs_a; });
                        stop_callback b(token, [&] { ++runs_b; });
                        stopped = token.stop_requested();
                        if (late && runs_a + runs_b != 2) lost.fetch_add(1, relaxed);
                    }
                    if (runs_a > 1 || runs_b > 1) lost.fetch_add(1, relaxed);
                }
            });
        }
        for (int i = 0; i != 3; ++i) std::this_thread::yield();
        EXPECT_TRUE(source.request_stop());
        for (std::thread& t : threads) t.join();
        EXPECT_EQ(lost.load(relaxed), 0);
    }
}

TEST(stop_shared, exactly_one_of_racing_requests_wins_and_gives_the_cause) {
    for (int round = 0; round != test::repeated(300); ++round) {
        stop_source source;
        std::array<bool, 3> won{};
        std::array<std::thread, 3> threads;
        for (std::size_t i = 0; i != 3; ++i) {
            threads[i] = std::thread([&, i] {
                won[i] = source.request_stop(stop_cause{static_cast<int>(i) + 1, "race"});
                EXPECT_TRUE(source.stop_requested());
                EXPECT_NE(source.cause().code, 0);
            });
        }
        for (std::thread& t : threads) t.join();
        EXPECT_EQ(won[0] + won[1] + won[2], 1);
        EXPECT_TRUE(won[static_cast<std::size_t>(source.cause().code) - 1]);
    }
}

TEST(stop_cause, is_that_of_the_first_request) {
    stop_source source;
    const stop_token token = source.get_token();
    EXPECT_EQ(token.cause().code, 0);
    EXPECT_EQ(std::string_view(token.cause().text), "");
    EXPECT_TRUE(source.request_stop({7, "the disk is full"}));
    EXPECT_FALSE(source.request_stop({8, "too late"}));
    EXPECT_EQ(token.cause().code, 7);
    EXPECT_EQ(std::string_view(token.cause().text), "the disk is full");
    EXPECT_EQ(stop_token().cause().code, 0);
}

TEST(stop_linked, stops_with_any_parent_and_passes_its_cause_on) {
    stop_source first;
    inplace_stop_source second;
    stop_source linked = stop_source::linked_to(first.get_token(), second.get_token());
    bool ran = false;
    stop_callback callback(linked.get_token(), [&] { ran = true; });
    EXPECT_FALSE(linked.stop_requested());
    first.request_stop({3, "parent"});
    EXPECT_TRUE(ran);
    EXPECT_TRUE(linked.stop_requested());
    EXPECT_EQ(linked.cause().code, 3);
    EXPECT_FALSE(linked.request_stop());

    stop_source other = stop_source::linked_to(second.get_token(), never_stop_token());
    second.request_stop();
    EXPECT_TRUE(other.stop_requested());
    EXPECT_EQ(other.cause().code, 0);
}

TEST(stop_linked, to_a_stopped_parent_is_stopped_immediately) {
    stop_source parent;
    parent.request_stop({4, "before"});
    stop_source linked = stop_source::linked_to(parent.get_token());
    EXPECT_TRUE(linked.stop_requested());
    EXPECT_EQ(linked.cause().code, 4);
}

TEST(stop_linked, does_not_stop_its_parents) {
    stop_source parent;
    stop_source linked = stop_source::linked_to(parent.get_token());
    EXPECT_TRUE(linked.request_stop());
    EXPECT_FALSE(parent.stop_requested());
}

TEST(stop_linked, can_be_stopped_as_long_as_a_parent_can) {
    std::optional<stop_source> parent(std::in_place);
    std::optional<stop_source> linked(stop_source::linked_to(parent->get_token()));
    const stop_token token = linked->get_token();
    linked.reset();
    EXPECT_TRUE(token.stop_possible());
    bool ran = false;
    stop_callback callback(token, [&] { ran = true; });
    parent->request_stop();
    EXPECT_TRUE(ran);

    parent.emplace();
    const stop_token orphan = stop_source::linked_to(parent->get_token()).get_token();
    parent.reset();
    EXPECT_FALSE(orphan.stop_possible());
    std::optional<stop_source> without_parents(stop_source::linked_to());
    const stop_token never = without_parents->get_token();
    without_parents.reset();
    EXPECT_FALSE(never.stop_possible());
}

TEST(stop_linked, deregisters_from_its_parents_when_it_dies) {
    stop_source parent;
    for (int i = 0; i != 100; ++i) {
        stop_source linked = stop_source::linked_to(parent.get_token());
    }
    EXPECT_TRUE(parent.try_reset());
    stop_source kept = stop_source::linked_to(parent.get_token());
    EXPECT_FALSE(parent.try_reset());
}

TEST(stop_linked, may_die_inside_a_callback_of_its_parent) {
    stop_source parent;
    auto linked = std::make_unique<stop_source>(stop_source::linked_to(parent.get_token()));
    std::optional<any_callback> callback;
    callback.emplace(linked->get_token(), [&] {
        linked.reset();
        callback.reset();
    });
    EXPECT_TRUE(parent.request_stop());
    EXPECT_EQ(linked, nullptr);
}

TEST(stop_linked, may_die_while_its_parent_is_being_stopped) {
    for (int round = 0; round != test::repeated(500); ++round) {
        stop_source parent;
        std::optional<stop_source> linked(stop_source::linked_to(parent.get_token()));
        std::thread requester([&] { parent.request_stop(); });
        linked.reset();
        requester.join();
    }
}

TEST(stop_reset, succeeds_until_a_stop_is_requested) {
    stop_source source;
    EXPECT_TRUE(source.try_reset());
    {
        stop_callback callback(source.get_token(), [] {});
        EXPECT_FALSE(source.try_reset());
    }
    EXPECT_TRUE(source.try_reset());
    source.request_stop();
    EXPECT_FALSE(source.try_reset());
    EXPECT_TRUE(source.stop_requested());
}

}  // namespace
