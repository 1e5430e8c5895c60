// task/generator.hpp: its types, and the elements that it gives, its own and those of others.
// Plan: [coro.generator.class] and [coro.generator.promise] clause by clause;
// generator_ends_test.cpp has the clauses on exceptions and ends. What the draft does not promise
// is in generator_cost_test.cpp: cost per level, constant stack, and frames that are recycled.
#include <coppice/generator.hpp>

#include "generators.hpp"

#include <gtest/gtest.h>

#include <concepts>
#include <cstddef>
#include <iterator>
#include <list>
#include <memory>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using coppice::generator;
using coppice::ranges::elements_of;
using coppice::test::all_of;
using coppice::test::counting;
using coppice::test::ints;
using strings = std::vector<std::string>;

template <class G, class Reference, class Value, class Yielded>
constexpr bool is_a_generator_of =
    std::ranges::input_range<G> && std::ranges::view<G> && !std::ranges::forward_range<G> &&
    !std::copyable<G> && std::movable<G> && !std::copyable<std::ranges::iterator_t<G>> &&
    std::same_as<std::ranges::range_reference_t<G>, Reference> &&
    std::same_as<std::ranges::range_value_t<G>, Value> &&
    std::same_as<typename G::yielded, Yielded> &&
    std::same_as<std::ranges::sentinel_t<G>, std::default_sentinel_t>;

static_assert(is_a_generator_of<generator<int>, int&&, int, int&&>);
static_assert(is_a_generator_of<generator<int&>, int&, int, int&>);
static_assert(is_a_generator_of<generator<const int&>, const int&, int, const int&>);
static_assert(is_a_generator_of<generator<int&&>, int&&, int, int&&>);
static_assert(is_a_generator_of<generator<std::string, std::string>, std::string, std::string,
                                const std::string&>);
static_assert(is_a_generator_of<generator<std::string_view, std::string>, std::string_view,
                                std::string, const std::string_view&>);
static_assert(is_a_generator_of<generator<std::unique_ptr<int>>, std::unique_ptr<int>&&,
                                std::unique_ptr<int>, std::unique_ptr<int>&&>);
static_assert(noexcept(*std::declval<std::ranges::iterator_t<generator<int&>>&>()));
static_assert(
    !noexcept(*std::declval<std::ranges::iterator_t<generator<std::string, std::string>>&>()));

TEST(generator, runs_its_body_only_while_an_element_is_asked_for) {
    int step = 0;
    const auto body = [](int& at) -> generator<int> {
        at = 1;
        co_yield 10;
        at = 2;
        co_yield 20;
        at = 3;
    };
    generator<int> g = body(step);
    EXPECT_EQ(step, 0);
    auto i = g.begin();
    EXPECT_EQ(step, 1);
    EXPECT_EQ(*i, 10);
    EXPECT_EQ(*i, 10);
    ++i;
    EXPECT_EQ(step, 2);
    EXPECT_EQ(*i, 20);
    EXPECT_FALSE(i == g.end());
    i++;
    EXPECT_EQ(step, 3);
    EXPECT_TRUE(i == g.end());
}

TEST(generator, of_no_elements_ends_in_begin) {
    EXPECT_EQ(all_of(counting(0, 0)), ints());
    generator<int> g = counting(0, 0);
    EXPECT_TRUE(g.begin() == g.end());
}

TEST(generator, gives_references_to_the_objects_that_were_yielded) {
    int a = 1;
    int b = 2;
    const auto body = [](int& x, int& y) -> generator<int&> {
        co_yield x;
        co_yield y;
    };
    for (int& each : body(a, b)) each *= 10;
    EXPECT_EQ(a, 10);
    EXPECT_EQ(b, 20);
}

TEST(generator, of_values_copies_a_yielded_lvalue_and_gives_the_copy) {
    const auto body = [](std::string& kept) -> generator<std::string> {
        co_yield kept;
        co_yield std::as_const(kept);
        co_yield std::string("moved");
        co_yield "converted";
    };
    std::string kept = "a string that is too long for the small buffer of strings";
    const std::string before = kept;
    strings taken;
    for (std::string&& each : body(kept)) taken.push_back(std::move(each));
    EXPECT_EQ(taken, (strings{before, before, "moved", "converted"}));
    EXPECT_EQ(kept, before);
}

TEST(generator, gives_move_only_elements) {
    const auto body = []() -> generator<std::unique_ptr<int>> {
        co_yield std::make_unique<int>(1);
        auto two = std::make_unique<int>(2);
        co_yield std::move(two);
        EXPECT_EQ(two, nullptr);
    };
    int sum = 0;
    for (std::unique_ptr<int> each : body()) sum += *each;
    EXPECT_EQ(sum, 3);
}

TEST(generator, of_const_references_keeps_a_temporary_until_the_next_element) {
    const auto body = []() -> generator<const std::string&> {
        co_yield "a temporary that is too long for the small buffer of strings";
        const std::string local = "a variable";
        co_yield local;
    };
    std::vector<std::size_t> sizes;
    for (const std::string& each : body()) sizes.push_back(each.size());
    EXPECT_EQ(sizes, (std::vector<std::size_t>{60, 10}));
}

TEST(generator, of_proxies_gives_them_by_value) {
    const auto body = []() -> generator<std::string_view, std::string> {
        const std::string local = "local";
        co_yield local;
        co_yield "text";
    };
    strings taken;
    for (std::string_view each : body()) taken.emplace_back(each);
    EXPECT_EQ(taken, (strings{"local", "text"}));
}

TEST(generator, is_a_view_that_adaptors_take) {
    const auto even = [](int i) { return i % 2 == 0; };
    const auto squared = [](int i) { return i * i; };
    EXPECT_EQ(all_of(counting(0, 1000) | std::views::filter(even) | std::views::transform(squared) |
                     std::views::take(4)),
              (ints{0, 4, 16, 36}));
}

// ---- elements_of --------------------------------------------------------------------------------

TEST(generator, gives_the_elements_of_generators_and_ranges_in_place) {
    const auto body = []() -> generator<int> {
        co_yield 1;
        co_yield elements_of(counting(2, 4));
        co_yield elements_of(counting(0, 0));
        generator<int> named = counting(4, 6);
        co_yield elements_of(named);
        co_yield elements_of(std::views::iota(6, 8));
        co_yield 8;
    };
    EXPECT_EQ(all_of(body()), (ints{1, 2, 3, 4, 5, 6, 7, 8}));
    const auto references = []() -> generator<const int&> {
        const ints kept{1, 2};
        co_yield elements_of(kept);
        co_yield elements_of(std::list<int>(2, 3));
    };
    EXPECT_EQ(all_of(references()), (ints{1, 2, 3, 3}));
}

TEST(generator, nests_generators_of_other_value_types_with_the_same_yielded_type) {
    const auto inner = [](std::allocator_arg_t, std::allocator<int>)
        -> generator<const std::string&, std::string_view, std::allocator<int>> { co_yield "in"; };
    const auto outer = [&]() -> generator<const std::string&> {
        co_yield elements_of(inner(std::allocator_arg, {}));
        co_yield elements_of(strings(2, "a"));
        co_yield elements_of(std::vector<const char*>(1, "c"));  // converts each
    };
    strings taken;
    for (const std::string& each : outer()) taken.push_back(each);
    EXPECT_EQ(taken, (strings{"in", "a", "a", "c"}));
}

struct tree {
    std::unique_ptr<tree> left, right;
    int value = 0;
};
generator<int> in_order_of(const tree* t) {
    if (t == nullptr) co_return;
    co_yield elements_of(in_order_of(t->left.get()));
    co_yield t->value;
    co_yield elements_of(in_order_of(t->right.get()));
}
std::unique_ptr<tree> tree_of(int from, int to) {
    if (from == to) return nullptr;
    const int middle = (from + to) / 2;
    auto made = std::make_unique<tree>();
    made->value = middle;
    made->left = tree_of(from, middle);
    made->right = tree_of(middle + 1, to);
    return made;
}

TEST(generator, walks_a_tree) {
    const auto root = tree_of(0, 1000);
    int expected = 0;
    for (int each : in_order_of(root.get())) ASSERT_EQ(each, expected++);
    EXPECT_EQ(expected, 1000);
}

}  // namespace
