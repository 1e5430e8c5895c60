// Chains of linked stop sources: however long, they are stopped, asked and destroyed in a small
// stack.
#include "sanitizers.hpp"

#include <coppice/stop_token.hpp>

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <unistd.h>

namespace {

using namespace coppice;
using namespace coppice::test;

constexpr int links = sanitized ? 50'000 : 500'000;

// Runs f on a thread with a stack of 64 KiB, or 1 MiB where a sanitizer's frames need more.
template <class F>
void on_small_stack(F f) {
    pthread_attr_t attributes;
    ASSERT_EQ(pthread_attr_init(&attributes), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, sanitized ? 1 << 20 : 1 << 16), 0);
    pthread_t thread;
    const auto run = [](void* what) -> void* {
        (*static_cast<F*>(what))();
        return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, &attributes, run, &f), 0);
    ASSERT_EQ(pthread_join(thread, nullptr), 0);
    pthread_attr_destroy(&attributes);
}

// The last of `count` sources linked to `first`, each to the one before; the others' handles are
// dropped.
stop_source chain(const stop_source& first, int count) {
    stop_source last = first;
    for (int i = 0; i != count; ++i) last = stop_source::linked_to(last.get_token());
    return last;
}

TEST(stop_chain, half_a_million_links_are_stopped_in_a_small_stack) {
    on_small_stack([] {
        stop_source first;
        const stop_source last = chain(first, links);
        int runs = 0;
        stop_callback callback(last.get_token(), [&] { ++runs; });
        EXPECT_TRUE(first.request_stop({7, "the first"}));
        EXPECT_EQ(runs, 1) << "the stop returned before it had reached the end";
        EXPECT_TRUE(last.stop_requested());
        EXPECT_EQ(last.cause().code, 7);
    });
}

TEST(stop_chain, half_a_million_links_are_destroyed_in_a_small_stack) {
    on_small_stack([] {
        stop_source first;
        {
            const stop_source last = chain(first, links);
        }
        EXPECT_TRUE(first.request_stop());
        stop_source stopped;
        const stop_source last = chain(stopped, links);
        stopped.request_stop();
    });
}

// The first source is gone before the last one: the last one's end frees all.
TEST(stop_chain, the_last_handle_of_a_chain_frees_all_of_it) {
    on_small_stack([] {
        std::optional<stop_source> last;
        last = chain(stop_source(), links);
        EXPECT_FALSE(last->stop_requested());
        last.reset();
    });
}

// Each link has a callback, and the middle is kept and dropped by others.
TEST(stop_chain, every_callback_of_a_long_chain_runs_once) {
    on_small_stack([] {
        constexpr int count = links / 10;
        struct counting {
            int* runs;
            void operator()() const noexcept { ++*runs; }
        };
        int runs = 0;
        stop_source first;
        std::vector<std::optional<stop_callback<counting>>> callbacks(count);
        {
            stop_source last = first;
            for (auto& callback : callbacks) {
                last = stop_source::linked_to(last.get_token());
                callback.emplace(last.get_token(), counting{&runs});
            }
        }
        first.request_stop();
        EXPECT_EQ(runs, count);
    });
}

TEST(stop_chain, whether_a_long_chain_can_stop_is_found_in_a_small_stack) {
    on_small_stack([] {
        std::optional<stop_source> first(std::in_place);
        stop_token last = first->get_token();
        for (int i = 0; i != links; ++i) {
            stop_source other;
            last = i % 2 == 0 ? stop_source::linked_to(last, other.get_token()).get_token()
                              : stop_source::linked_to(other.get_token(), last).get_token();
        }
        EXPECT_TRUE(last.stop_possible());
        first.reset();
        EXPECT_FALSE(last.stop_possible());
    });
}

// A request of a user's own, inside a callback of a chain that is being stopped, has run all of its
// callbacks when it returns, also those of its linked sources.
TEST(stop_chain, a_request_within_a_chain_does_not_return_early) {
    stop_source first;
    const stop_source second = stop_source::linked_to(first.get_token());
    const stop_source third = stop_source::linked_to(second.get_token());
    stop_source other;
    const stop_source linked_other = stop_source::linked_to(other.get_token());
    const stop_source twice_linked = stop_source::linked_to(linked_other.get_token());
    bool other_ran = false;
    stop_callback on_other(twice_linked.get_token(), [&] { other_ran = true; });
    int seen = 0;
    auto ask = [&] {
        other.request_stop();
        seen += other_ran;
    };
    stop_callback on_second(second.get_token(), ask);
    stop_callback on_third(third.get_token(), ask);
    first.request_stop();
    EXPECT_EQ(seen, 2);
}

// The stop shows on the whole way down before the callbacks further down run.
TEST(stop_chain, two_threads_stop_and_drop_a_chain_at_once) {
    constexpr int rounds = sanitized ? 20 : 200;
    for (int round = 0; round != rounds; ++round) {
        stop_source first;
        stop_source middle = chain(first, 50);
        stop_source last = chain(middle, 50);
        int runs = 0;
        auto nothing = [] {};
        std::optional<stop_callback<decltype(nothing)>> removed;
        removed.emplace(last.get_token(), nothing);
        auto count = [&] { ++runs; };
        {
            stop_callback callback(last.get_token(), count);
            std::thread up([&] { first.request_stop({1, "first"}); });
            std::thread between([stopping = std::move(middle)]() mutable {
                stopping.request_stop({2, "middle"});
                stopping = stop_source(nostopstate);
            });
            removed.reset();
            up.join();
            between.join();
        }
        EXPECT_EQ(runs, 1);
        EXPECT_TRUE(last.stop_requested());
    }
}

}  // namespace
