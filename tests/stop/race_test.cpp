// Races of the stop sources on real threads, and what must hold for every outcome: the shapes of
// the models (tests/model/stop_model.hpp), in numbers that a sanitizer can handle.
#include "emulated.hpp"
#include "families.hpp"

#include "allocations.hpp"
#include "sanitizers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;

constexpr int many = repeated(sanitized ? 5'000 : 100'000);

// Lets all threads of a round start at once, as far as there are processors for them.
class start_line {
public:
    explicit start_line(int threads) : missing_(threads) {}
    void arrive() noexcept {
        missing_.fetch_sub(1, acq_rel);
        while (missing_.load(acquire) > 0) std::this_thread::yield();
    }

private:
    atomic<int> missing_;
};

template <class Family>
class stop_race : public testing::Test {};
using families = testing::Types<inplace_family, single_family, finite_family<2, 1>,
                                finite_family<2, 0, 64>, asymmetric_family<2, 1>>;
TYPED_TEST_SUITE(stop_race, families);

// The shape of when_all. The parent's stop is forwarded to the child source, whose callback
// completes the child. Another thread completes the child too, and a second child. The last
// completion frees everything, in whichever callback or thread it happens.
TYPED_TEST(stop_race, the_last_completion_frees_everything) {
    struct operation {
        struct forward {
            operation* self;
            void operator()() const noexcept { self->child.request_stop(); }
        };
        struct complete_child {
            operation* self;
            void operator()() const noexcept { self->complete(); }
        };
        typename TypeParam::source child;
        std::optional<stop_callback_for_t<inplace_stop_token, forward>> from_parent;
        std::optional<stop_callback_for_t<typename TypeParam::token, complete_child>> on_stop;
        atomic<int> completed{0};
        atomic<int> pending{2};
        int* freed;
        explicit operation(int* count) : freed(count) {}
        void complete() noexcept {
            if (completed.exchange(1, acq_rel) != 0) return;
            on_stop.reset();
            arrive();
        }
        void arrive() noexcept {
            if (pending.fetch_sub(1, acq_rel) != 1) return;
            from_parent.reset();
            ++*freed;
            delete this;
        }
    };
    for (int round = 0; round != repeated(1'000); ++round) {
        inplace_stop_source parent;
        int freed = 0;
        auto* const op = new operation(&freed);
        op->from_parent.emplace(parent.get_token(), typename operation::forward{op});
        op->on_stop.emplace(TypeParam::token_of(op->child), typename operation::complete_child{op});
        start_line start(2);
        std::thread stopping([&] {
            start.arrive();
            parent.request_stop();
        });
        start.arrive();
        if (round % 2 == 0) op->complete();
        op->arrive();
        stopping.join();
        EXPECT_EQ(freed, 1);
    }
}

// Threads register, remove, and request at once. A callback that stays runs exactly once. One that
// is removed runs at most once, and never after its end.
TYPED_TEST(stop_race, a_callback_that_stays_registered_runs_exactly_once) {
    for (int round = 0; round != repeated(1'000); ++round) {
        typename TypeParam::source source;
        int runs = 0;
        auto count = [&] { ++runs; };
        using callback = stop_callback_for_t<typename TypeParam::token, decltype(count)>;
        start_line start(2);
        std::thread requester([&] {
            start.arrive();
            EXPECT_TRUE(source.request_stop());
        });
        start.arrive();
        for (int i = 0; i != round % 5; ++i) {
            runs = 0;
            callback removed(TypeParam::token_of(source), count);
        }
        EXPECT_LE(runs, 1);
        runs = 0;
        std::optional<callback> kept;
        kept.emplace(TypeParam::token_of(source), count);
        requester.join();
        kept.reset();
        EXPECT_EQ(runs, 1);
    }
}

// Callbacks of all slots run once, on the thread of the request that wins.
TEST(stop_race_finite, the_winner_runs_every_slot_on_its_own_thread) {
    for (int round = 0; round != repeated(300); ++round) {
        finite_inplace_stop_source<3> source;
        std::array<std::thread::id, 3> ran_on;
        std::array<int, 3> runs{};
        auto note = [&](std::size_t slot) {
            ran_on[slot] = std::this_thread::get_id();
            ++runs[slot];
        };
        atomic<int> winners{0};
        std::thread::id winner;
        {
            finite_inplace_stop_callback a(source.get_token<0>(), [&] { note(0); });
            finite_inplace_stop_callback b(source.get_token<1>(), [&] { note(1); });
            finite_inplace_stop_callback c(source.get_token<2>(), [&] { note(2); });
            start_line start(3);
            std::array<std::thread, 3> requesters;
            for (std::thread& requester : requesters) {
                requester = std::thread([&] {
                    start.arrive();
                    if (source.request_stop()) {
                        winners.fetch_add(1, relaxed);
                        winner = std::this_thread::get_id();
                    }
                    EXPECT_TRUE(source.stop_requested());
                });
            }
            for (std::thread& requester : requesters) requester.join();
        }
        EXPECT_EQ(winners.load(relaxed), 1);
        EXPECT_EQ(runs, (std::array{1, 1, 1}));
        for (const std::thread::id id : ran_on) EXPECT_EQ(id, winner);
    }
}

// [stoptoken.concepts]: immediately after a request, on every slot: slots whose callback the
// request ran, slots that it found empty, and slots that were never used.
template <class Source, std::size_t... Index>
void every_slot_runs_late(std::index_sequence<Index...>) {
    Source source;
    std::array<int, sizeof...(Index)> runs{};
    auto on_even_slot = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
        auto f = [&] { ++runs[I]; };
        auto token = source.template get_token<I>();
        return std::make_unique<stop_callback_for_t<decltype(token), decltype(f)>>(token, f);
    };
    auto even = on_even_slot(std::integral_constant<std::size_t, 0>());
    auto last = on_even_slot(std::integral_constant<std::size_t, sizeof...(Index) - 1>());
    EXPECT_TRUE(source.request_stop());
    even.reset();
    last.reset();
    for (int round = 1; round != 3; ++round) {
        runs = {};
        int before = 0;
        auto late = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
            auto f = [&] { ++runs[I]; };
            auto token = source.template get_token<I>();
            stop_callback_for_t<decltype(token), decltype(f)> callback(token, f);
            EXPECT_EQ(runs[I], 1) << "slot " << I;
            ++before;
        };
        (late(std::integral_constant<std::size_t, Index>()), ...);
        EXPECT_EQ(before, static_cast<int>(sizeof...(Index)));
    }
}
TEST(stop_race_finite, a_late_callback_runs_in_its_constructor_on_every_slot) {
    every_slot_runs_late<finite_inplace_stop_source<10>>(std::make_index_sequence<10>());
    every_slot_runs_late<finite_inplace_stop_source<4, 64>>(std::make_index_sequence<4>());
    every_slot_runs_late<asymmetric_inplace_stop_source<5>>(std::make_index_sequence<5>());
}

// [stoptoken.concepts]: deregistration never waits for another callback.
TEST(stop_race_asymmetric, destruction_does_not_wait_for_another_callback) {
    asymmetric_inplace_stop_source<2> source;
    std::optional<asymmetric_inplace_stop_callback<2, 0, std::function<void()>>> waiting;
    std::optional<asymmetric_inplace_stop_callback<2, 1, std::function<void()>>> running;
    waiting.emplace(source.get_token<0>(), [] {});
    running.emplace(source.get_token<1>(), [&] { std::thread([&] { waiting.reset(); }).join(); });
    EXPECT_TRUE(source.request_stop());
}

// Four threads register and remove. When they have contended often enough, the state grows its
// stripes, once; from then on nothing is allocated.
TEST(stop_race_shared, callbacks_of_many_threads_allocate_only_the_stripes) {
    constexpr int threads = 4;
    stop_source source;
    atomic<bool> all_there{false};
    start_line start(threads + 1);
    start_line end(threads + 1);
    std::vector<std::thread> running;
    for (int t = 0; t != threads; ++t) {
        running.emplace_back([&, token = source.get_token()] {
            start.arrive();
            while (!all_there.load(acquire)) std::this_thread::yield();
            for (int i = 0; i != many; ++i) {
                stop_callback a(token, [] {});
                stop_callback b(token, [] {});
            }
            end.arrive();
        });
    }
    start.arrive();
    const allocation_count allocations;
    all_there.store(true, release);
    end.arrive();
    EXPECT_LE(allocations.so_far(), 2u) << "more than one table and its stripes";
    for (std::thread& t : running) t.join();
}

// With subscriptions too, each stripe has as many nodes as were in use at once.
TEST(stop_race_shared, subscriptions_of_many_threads_reuse_their_nodes) {
    constexpr std::size_t threads = 4;
    constexpr std::size_t at_once = 3;
    constexpr std::size_t stripes_most = 65;
    stop_source source;
    start_line start(threads + 1);
    start_line end(threads + 1);
    std::vector<std::thread> running;
    atomic<bool> all_there{false};
    for (std::size_t t = 0; t != threads; ++t) {
        running.emplace_back([&, token = source.get_token()] {
            start.arrive();
            while (!all_there.load(acquire)) std::this_thread::yield();
            for (int i = 0; i != many; ++i) {
                std::array<stop_subscription, at_once> subscriptions;
                for (stop_subscription& s : subscriptions) s = token.subscribe([] {});
                for (stop_subscription& s : subscriptions) s.unsubscribe();
            }
            end.arrive();
        });
    }
    start.arrive();
    const allocation_count allocations;
    all_there.store(true, release);
    end.arrive();
    EXPECT_LE(allocations.so_far(), 2 + threads * at_once * stripes_most);
    for (std::thread& t : running) t.join();
}

// Stripes grow only under contention: one thread, ten thousand callbacks, one allocation.
TEST(stop_race_shared, one_thread_grows_no_stripes) {
    auto f = [] {};
    std::vector<std::optional<stop_callback<decltype(f)>>> callbacks(10'000);
    const allocation_count allocations;
    stop_source source;
    const stop_token token = source.get_token();
    for (auto& callback : callbacks) callback.emplace(token, f);
    for (auto& callback : callbacks) callback.reset();
    EXPECT_EQ(allocations.so_far(), 1u);
}

// Removal is O(1). With a search this would take ten billion steps.
TEST(stop_race_shared, a_callback_is_removed_without_a_search) {
    stop_source source;
    inplace_stop_source inplace;
    const stop_token token = source.get_token();
    auto f = [] {};
    std::vector<std::optional<stop_callback<decltype(f)>>> oldest_first(100'000);
    std::vector<std::optional<inplace_stop_callback<decltype(f)>>> in_place(100'000);
    std::vector<stop_subscription> subscriptions;
    for (auto& callback : oldest_first) callback.emplace(token, f);
    for (auto& callback : in_place) callback.emplace(inplace.get_token(), f);
    for (int i = 0; i != 100'000; ++i) subscriptions.push_back(token.subscribe(f));
    for (auto& callback : oldest_first) callback.reset();
    for (auto& callback : in_place) callback.reset();
    for (auto& each : subscriptions) EXPECT_EQ(each.unsubscribe(), unsubscribed::removed);
    EXPECT_TRUE(source.try_reset());
}

// Handles of all kinds end on other threads than they began on, while parents stop and deadlines
// come.
TEST(stop_race_shared, handles_may_end_in_any_order_while_everything_runs_at_once) {
    for (int round = 0; round != repeated(200); ++round) {
        stop_source parent;
        stop_source linked = stop_source::linked_to(parent.get_token());
        linked.request_stop_after(std::chrono::microseconds(round % 50));
        std::vector<std::thread> threads;
        threads.emplace_back([token = linked.get_token()] {
            stop_subscription kept;
            for (int i = 0; i != 20; ++i) {
                stop_callback callback(token, [] {});
                kept = token.subscribe([] {});
                if (i % 2 == 0) kept.try_unsubscribe();
            }
        });
        threads.emplace_back([source = linked]() mutable { source.request_stop({2, "own"}); });
        threads.emplace_back([&parent] { parent.request_stop({1, "parent"}); });
        linked = stop_source(nostopstate);
        for (std::thread& t : threads) t.join();
    }
}

}  // namespace
