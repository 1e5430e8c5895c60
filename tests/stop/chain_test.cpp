// Chains of linked stop sources of any length are stopped, queried, and destroyed in a small stack.
#include "emulated.hpp"
#include "sanitizers.hpp"
#include "small_stack.hpp"

#include <coppice/stop_token.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

namespace {

using namespace coppice;
using namespace coppice::test;

constexpr int links = repeated(sanitized ? 50'000 : 500'000);

// Runs f on a thread with a stack of 64 KiB, or of 1 MiB where a sanitizer's frames need more.
template <class F>
void on_small_stack(F f) {
    on_a_stack_of(sanitized ? 1 << 20 : 1 << 16, f);
}

// Returns the last of `count` sources, each linked to the one before it, the first one to `first`.
// The handles of the others are dropped.
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

// The first source is dropped before the last one, whose end frees the whole chain.
TEST(stop_chain, the_last_handle_of_a_chain_frees_the_whole_chain) {
    on_small_stack([] {
        std::optional<stop_source> last;
        last = chain(stop_source(), links);
        EXPECT_FALSE(last->stop_requested());
        last.reset();
    });
}

// Each link has a callback; other threads keep and drop handles of the middle.
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

TEST(stop_chain, stop_possible_of_a_long_chain_needs_only_a_small_stack) {
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

// In these graphs, the number of ways up doubles at each source.
TEST(stop_chain, stop_possible_of_a_lattice_does_not_walk_every_way) {
    const auto lattice = [](stop_token t, int height) {
        stop_token u = t;
        for (int i = 0; i != height; ++i) {
            const stop_source a = stop_source::linked_to(t, u, inplace_stop_token());
            const stop_source b = stop_source::linked_to(never_stop_token(), u, t, u);
            t = a.get_token();
            u = b.get_token();
        }
        return stop_source::linked_to(t, u).get_token();
    };
    std::optional<stop_source> root(std::in_place);
    const stop_token top = lattice(root->get_token(), 300);
    EXPECT_TRUE(top.stop_possible());
    const stop_token higher = lattice(top, 300);
    EXPECT_TRUE(higher.stop_possible());
    root.reset();
    EXPECT_FALSE(higher.stop_possible());
    EXPECT_FALSE(top.stop_possible());
    stop_source late;
    EXPECT_TRUE(stop_source::linked_to(higher, late.get_token(), top).get_token().stop_possible());
}

TEST(stop_chain, stop_possible_of_a_lattice_considers_a_deadline_and_a_stop) {
    const auto above = [](const stop_token& t) {
        const stop_token left = stop_source::linked_to(t).get_token();
        const stop_token right = stop_source::linked_to(t).get_token();
        return stop_source::linked_to(left, right).get_token();
    };
    stop_source root;
    const stop_token top = above(above(root.get_token()));
    root.request_stop_after(std::chrono::hours(1));
    root = stop_source(nostopstate);
    EXPECT_TRUE(top.stop_possible()) << "the deadline is a source";
    stop_source other;
    other.request_stop_after(std::chrono::hours(1));
    EXPECT_TRUE(other.try_reset());  // withdraws the deadline
    const stop_token of_other = above(above(other.get_token()));
    EXPECT_TRUE(of_other.stop_possible());
    other = stop_source(nostopstate);
    EXPECT_FALSE(of_other.stop_possible());
    stop_source stops;
    const stop_token stopped = above(above(stops.get_token()));
    stops.request_stop();
    stops = stop_source(nostopstate);
    EXPECT_TRUE(stopped.stop_possible());
}

// Each source is linked to a dead linked source and to its predecessor, in both orders.
TEST(stop_chain, stop_possible_of_a_chain_with_leaves_needs_only_a_small_stack) {
    on_small_stack([] {
        for (const bool leaf_first : {true, false}) {
            std::optional<stop_source> first(std::in_place);
            const stop_token gone = stop_source().get_token();
            const stop_token leaf = stop_source::linked_to(gone).get_token();
            stop_token last = stop_source::linked_to(first->get_token()).get_token();
            for (int i = 0; i != links / 10; ++i) {
                const stop_token other = stop_source::linked_to(leaf).get_token();
                last = leaf_first ? stop_source::linked_to(other, last).get_token()
                                  : stop_source::linked_to(last, other).get_token();
            }
            EXPECT_TRUE(last.stop_possible());
            first.reset();
            EXPECT_FALSE(last.stop_possible());
            EXPECT_FALSE(last.stop_possible());
        }
    });
}

// Compares with an oracle that follows every way.
TEST(stop_chain, stop_possible_of_a_random_graph_agrees_with_a_full_search) {
    std::minstd_rand random(17);
    const auto below = [&random](std::size_t n) { return random() % n; };
    for (int graph = 0; graph != 200; ++graph) {
        std::vector<std::optional<stop_source>> sources;
        std::vector<stop_token> tokens;
        std::vector<std::vector<std::size_t>> parents;
        for (std::size_t i = 0; i != 12; ++i) {
            std::vector<std::size_t> its;
            for (std::size_t n = i < 3 ? 0 : 1 + below(3); n != 0; --n) its.push_back(below(i));
            const auto parent = [&](std::size_t n) { return tokens[its[n]]; };
            sources.emplace_back(its.size() == 0   ? stop_source()
                                 : its.size() == 1 ? stop_source::linked_to(parent(0))
                                 : its.size() == 2
                                     ? stop_source::linked_to(parent(0), parent(1))
                                     : stop_source::linked_to(parent(0), parent(1), parent(2)));
            tokens.push_back(sources.back()->get_token());
            parents.push_back(std::move(its));
        }
        for (int step = 0; step != 30; ++step) {
            sources[below(sources.size())].reset();
            std::vector<bool> possible;
            for (std::size_t i = 0; i != tokens.size(); ++i) {
                bool any = sources[i].has_value();
                for (const std::size_t p : parents[i]) any = any || possible[p];
                possible.push_back(any);
            }
            const std::size_t asked = below(tokens.size());
            EXPECT_EQ(tokens[asked].stop_possible(), possible[asked]);
        }
    }
}

TEST(stop_chain, stop_possible_may_be_called_while_the_last_source_is_dropped) {
    for (int round = 0; round != 50; ++round) {
        std::optional<stop_source> root(std::in_place);
        stop_token t = root->get_token();
        stop_token u = t;
        for (int i = 0; i != 10; ++i) {
            const stop_token a = stop_source::linked_to(t, u).get_token();
            u = stop_source::linked_to(u, t).get_token();
            t = a;
        }
        const bool stops = round % 2 == 0;
        const auto ask = [t = stop_source::linked_to(t, u).get_token()] {
            for (int i = 0; i != 20; ++i) static_cast<void>(t.stop_possible());
            if (t.stop_requested()) {
                EXPECT_TRUE(t.stop_possible());
            }
            return t;
        };
        std::thread one(ask);
        std::thread two(ask);
        if (stops) root->request_stop();
        root.reset();
        one.join();
        two.join();
        EXPECT_EQ(ask().stop_possible(), stops);
    }
}

// A request that a user makes inside a callback of a chain that is being stopped has run all its
// callbacks when it returns, including those of linked sources.
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

// The stop is visible on the whole chain before the callbacks further down run.
TEST(stop_chain, a_chain_that_one_thread_stops_and_another_drops_runs_its_callback_once) {
    constexpr int rounds = repeated(sanitized ? 20 : 200);
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
