// What only one of the in-place families promises: its size, its slots, and what it refuses.
#include <coppice/stop_token.hpp>

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;

TEST(stop_sizes, are_as_promised) {
    struct functor {
        void* state;
        void operator()() const noexcept {}
    };
    static_assert(sizeof(single_inplace_stop_source) == 8);
    static_assert(sizeof(single_inplace_stop_callback<functor>) == 16 + sizeof(functor));
    static_assert(sizeof(finite_inplace_stop_source<1>) <= 3 * sizeof(void*));
    static_assert(sizeof(finite_inplace_stop_source<10>) <= 12 * sizeof(void*));
    static_assert(sizeof(finite_inplace_stop_callback<10, 3, functor>) == 16 + sizeof(functor));
    static_assert(std::is_empty_v<finite_inplace_stop_source<0>>);
    static_assert(sizeof(inplace_stop_source) == 16);
    static_assert(sizeof(inplace_stop_callback<functor>) <= 48);
    auto empty = [] {};
    static_assert(sizeof(single_inplace_stop_callback<decltype(empty)>) == 16);
}

TEST(stop_finite, without_slots_is_disengaged) {
    finite_inplace_stop_source<0> source;
    static_assert(stoppable_source<finite_inplace_stop_source<0>>);
    static_assert(!finite_inplace_stop_source<0>::stop_possible());
    EXPECT_FALSE(source.request_stop());
    EXPECT_FALSE(source.stop_requested());
}

TEST(stop_finite, runs_every_slot_once) {
    finite_inplace_stop_source<3> source;
    std::array<int, 3> runs{};
    finite_inplace_stop_callback first(source.get_token<0>(), [&] { ++runs[0]; });
    finite_inplace_stop_callback last(source.get_token<2>(), [&] { ++runs[2]; });
    EXPECT_TRUE(source.request_stop());
    EXPECT_EQ(runs, (std::array{1, 0, 1}));
    finite_inplace_stop_callback late(source.get_token<1>(), [&] { ++runs[1]; });
    EXPECT_EQ(runs, (std::array{1, 1, 1}));
}

TEST(stop_finite, a_callback_may_remove_another_one) {
    finite_inplace_stop_source<2> source;
    bool ran = false;
    auto f = [&] { ran = true; };
    std::optional<finite_inplace_stop_callback<2, 1, decltype(f)>> second;
    second.emplace(source.get_token<1>(), f);
    finite_inplace_stop_callback first(source.get_token<0>(), [&] { second.reset(); });
    EXPECT_TRUE(source.request_stop());
    EXPECT_FALSE(ran);
}

// [stoptoken.concepts]: deregistration never waits for another callback.
TEST(stop_finite, destruction_does_not_wait_for_another_callback) {
    finite_inplace_stop_source<2> source;
    atomic<bool> first_done{false};
    std::optional<finite_inplace_stop_callback<2, 0, std::function<void()>>> first;
    std::optional<finite_inplace_stop_callback<2, 1, std::function<void()>>> second;
    std::thread remover;
    first.emplace(source.get_token<0>(), [&] { first_done.store(true, release); });
    second.emplace(source.get_token<1>(), [&] {
        // While this callback runs, another thread destroys the first, which must not wait for this
        // one.
        remover = std::thread([&] { first.reset(); });
        remover.join();
    });
    EXPECT_TRUE(source.request_stop());
    EXPECT_TRUE(first_done.load(acquire));
}

TEST(stop_inplace, holds_any_number_of_callbacks_and_removes_any_of_them) {
    inplace_stop_source source;
    int runs = 0;
    auto f = [&] { ++runs; };
    using callback = inplace_stop_callback<decltype(f)>;
    std::vector<std::unique_ptr<callback>> callbacks;
    for (int i = 0; i != 100; ++i) {
        callbacks.push_back(std::make_unique<callback>(source.get_token(), f));
    }
    for (std::size_t i = 0; i < 100; i += 3) callbacks[i].reset();  // 34 of them
    EXPECT_TRUE(source.request_stop());
    EXPECT_EQ(runs, 66);
}

TEST(stop_inplace, a_callback_may_remove_another_one) {
    inplace_stop_source source;
    int runs = 0;
    std::optional<inplace_stop_callback<std::function<void()>>> a, b;
    a.emplace(source.get_token(), [&] { ++runs, b.reset(); });
    b.emplace(source.get_token(), [&] { ++runs, a.reset(); });
    EXPECT_TRUE(source.request_stop());
    EXPECT_EQ(runs, 1);
}

// [stoptoken.concepts]: deregistration never waits for another callback.
TEST(stop_inplace, destruction_does_not_wait_for_another_callback) {
    inplace_stop_source source;
    std::optional<inplace_stop_callback<std::function<void()>>> waiting, removed;
    waiting.emplace(source.get_token(), [] {});
    removed.emplace(source.get_token(), [&] { std::thread([&] { waiting.reset(); }).join(); });
    EXPECT_TRUE(source.request_stop());
}

TEST(stop_inplace, many_threads_register_and_remove_while_one_requests) {
    for (int round = 0; round != 50; ++round) {
        inplace_stop_source source;
        atomic<int> inside{0};
        std::vector<std::thread> threads;
        for (int t = 0; t != 3; ++t) {
            threads.emplace_back([&] {
                bool stopped = false;
                while (!stopped) {
                    auto f = [&] { inside.fetch_add(1, relaxed); };
                    inplace_stop_callback a(source.get_token(), f);
                    inplace_stop_callback b(source.get_token(), f);
                    stopped = source.stop_requested();
                }
            });
        }
        std::this_thread::yield();
        EXPECT_TRUE(source.request_stop());
        for (std::thread& t : threads) t.join();
    }
}

TEST(stop_misuse, a_second_callback_on_a_single_source_stops_the_process) {
    single_inplace_stop_source source;
    single_inplace_stop_callback first(source.get_token(), [] {});
    EXPECT_DEATH(single_inplace_stop_callback second(source.get_token(), [] {}),
                 "a second callback was registered");
}

TEST(stop_misuse, a_second_callback_on_a_slot_stops_the_process) {
    finite_inplace_stop_source<2> source;
    finite_inplace_stop_callback first(source.get_token<1>(), [] {});
    finite_inplace_stop_callback neighbor(source.get_token<0>(), [] {});
    EXPECT_DEATH(finite_inplace_stop_callback second(source.get_token<1>(), [] {}),
                 "a second callback was registered");
}

TEST(stop_misuse, a_second_callback_on_an_asymmetric_source_stops_the_process) {
    asymmetric_inplace_stop_source<> source;
    asymmetric_inplace_stop_callback first(source.get_token(), [] {});
    EXPECT_DEATH(asymmetric_inplace_stop_callback second(source.get_token(), [] {}),
                 "a second callback was registered");
}

TEST(stop_never, cannot_be_stopped) {
    static_assert(unstoppable_token<never_stop_token>);
    static_assert(stoppable_callback_for<void (*)(), never_stop_token>);
    static_assert(!never_stop_token::stop_possible() && !never_stop_token::stop_requested());
    EXPECT_EQ(never_stop_token(), never_stop_token());
    stop_callback_for_t<never_stop_token, void (*)()> callback(never_stop_token(), nullptr);
}

}  // namespace
