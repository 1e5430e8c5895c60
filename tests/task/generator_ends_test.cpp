// How a generator ends: exceptions, moves and destruction at each state, and misuse.
#include <coppice/generator.hpp>

#include "generators.hpp"
#include "witness.hpp"

#include <gtest/gtest.h>

#include <ranges>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace {

using coppice::generator;
using coppice::ranges::elements_of;
using coppice::test::all_of;
using coppice::test::counting;
using coppice::test::failing_below;
using coppice::test::ints;
using coppice::test::witness;

// ---- Exceptions ---------------------------------------------------------------------------------

TEST(generator, throws_from_begin_what_its_body_throws_before_the_first_element) {
    const auto body = []() -> generator<int> {
        throw std::runtime_error("first");
        co_yield 0;
    };
    generator<int> g = body();
    EXPECT_THROW(g.begin(), std::runtime_error);
}

TEST(generator, throws_from_the_increment_and_has_then_ended) {
    int alive = 0;
    const auto body = [](int& a) -> generator<int> {
        const witness local(a);
        co_yield 1;
        throw std::runtime_error("second");
    };
    generator<int> g = body(alive);
    auto i = g.begin();
    EXPECT_EQ(alive, 1);
    EXPECT_THROW(++i, std::runtime_error);
    EXPECT_EQ(alive, 0);
    EXPECT_TRUE(i == g.end());
}

TEST(generator, a_copy_that_throws_leaves_the_yield_of_the_lvalue) {
    struct uncopyable {
        uncopyable() = default;
        uncopyable(const uncopyable&) { throw std::runtime_error("copy"); }
        uncopyable(uncopyable&&) = default;
    };
    const auto body = [](bool& caught) -> generator<uncopyable> {
        uncopyable local;
        try {
            co_yield local;
        } catch (const std::runtime_error&) {
            caught = true;
        }
        co_yield std::move(local);
    };
    bool caught = false;
    int count = 0;
    for ([[maybe_unused]] auto&& each : body(caught)) ++count;
    EXPECT_TRUE(caught);
    EXPECT_EQ(count, 1);
}

generator<int> failing_after(int elements) {
    for (int i = 0; i < elements; ++i) co_yield i;
    throw std::runtime_error("nested");
}

TEST(generator, an_exception_of_a_nested_generator_leaves_the_co_yield_of_the_outer_one) {
    const auto body = []() -> generator<int> {
        for (int elements : {0, 2}) {
            bool caught = false;
            try {
                co_yield elements_of(failing_after(elements));
            } catch (const std::runtime_error& e) {
                caught = std::string(e.what()) == "nested";
            }
            co_yield caught ? 100 : -1;
        }
    };
    EXPECT_EQ(all_of(body()), (ints{100, 0, 1, 100}));
}

TEST(generator, an_exception_passes_through_all_levels_to_the_caller) {
    ints seen;
    generator<int> g = failing_below(3);
    EXPECT_THROW(for (int each : g) seen.push_back(each), std::runtime_error);
    EXPECT_EQ(seen, (ints{3, 2, 1}));
}

TEST(generator, an_exception_of_a_range_leaves_the_co_yield_of_its_elements) {
    const auto thrower = [](int i) {
        if (i == 2) throw std::runtime_error("range");
        return i;
    };
    const auto body = [&]() -> generator<int> {
        int caught = 0;
        try {
            co_yield elements_of(std::views::iota(0, 5) | std::views::transform(thrower));
        } catch (const std::runtime_error&) {
            caught = 100;
        }
        co_yield caught;
    };
    EXPECT_EQ(all_of(body()), (ints{0, 1, 100}));
}

// ---- Lifetimes ----------------------------------------------------------------------------------

generator<int> holding(int& alive, int elements) {
    const witness local(alive);
    for (int i = 0; i < elements; ++i) co_yield i;
}

TEST(generator, may_be_destroyed_before_at_and_after_its_elements) {
    int alive = 0;
    {
        const generator<int> never = holding(alive, 2);
    }
    {
        generator<int> first = holding(alive, 2);
        EXPECT_EQ(*first.begin(), 0);
        EXPECT_EQ(alive, 1);
    }
    EXPECT_EQ(alive, 0);
    {
        generator<int> whole = holding(alive, 2);
        EXPECT_EQ(all_of(whole), (ints{0, 1}));
        EXPECT_EQ(alive, 0);
    }
    EXPECT_EQ(alive, 0);
}

TEST(generator, may_be_moved_at_each_state_and_its_iterator_stays_valid) {
    int alive = 0;
    generator<int> a = holding(alive, 3);
    generator<int> b = std::move(a);
    auto i = b.begin();
    generator<int> c = std::move(b);
    EXPECT_EQ(*i, 0);
    ++i;
    EXPECT_EQ(*i, 1);
    auto j = std::move(i);
    ++j;
    EXPECT_EQ(*j, 2);
    c = holding(alive, 1);  // ends the one that runs
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(all_of(c), (ints{0}));
    a = std::move(c);
    EXPECT_EQ(alive, 0);
}

TEST(generator, destroys_its_parameters_with_its_frame) {
    int alive = 0;
    const auto body = [](witness) -> generator<int> { co_yield 1; };
    {
        generator<int> g = body(witness(alive));
        EXPECT_EQ(alive, 1);
        EXPECT_EQ(all_of(g), (ints{1}));
    }
    EXPECT_EQ(alive, 0);
}

struct in_order {
    explicit in_order(ints& to, int n) : order(&to), number(n) {}
    in_order(const in_order&) = delete;
    ~in_order() { order->push_back(number); }
    ints* order;
    int number;
};
generator<int> nested_in_order(ints& order, int levels) {
    const in_order local(order, levels);
    if (levels == 0) {
        co_yield 0;
    } else {
        co_yield elements_of(nested_in_order(order, levels - 1));
    }
}

TEST(generator, destroyed_inside_nested_ones_destroys_the_innermost_first) {
    ints order;
    {
        generator<int> g = nested_in_order(order, 3);
        EXPECT_EQ(*g.begin(), 0);
        EXPECT_EQ(order, ints());
    }
    EXPECT_EQ(order, (ints{0, 1, 2, 3}));
}

TEST(generator, goes_on_on_another_thread_between_two_elements) {
    generator<int> g = counting(0, 3);
    auto i = g.begin();
    std::thread([&] { ++i; }).join();
    EXPECT_EQ(*i, 1);
    std::thread([moved = std::move(g)]() mutable {
        generator<int> ended = std::move(moved);
    }).join();
}

// ---- Misuse -------------------------------------------------------------------------------------

TEST(generator_death, begin_after_a_move_stops_the_process) {
    generator<int> g = counting(0, 1);
    const generator<int> moved = std::move(g);
    EXPECT_DEATH(static_cast<void>(g.begin()), "generator that was moved from");
}

TEST(generator_death, elements_of_a_generator_that_was_moved_from_stops_the_process) {
    const auto body = [](generator<int> inner) -> generator<int> {
        const generator<int> moved = std::move(inner);
        co_yield elements_of(inner);
    };
    generator<int> g = body(counting(0, 1));
    EXPECT_DEATH(static_cast<void>(g.begin()), "generator that was moved from");
}

}  // namespace
