// task/generator.hpp: elements, exceptions, lifetimes, nesting, allocators, and stack use.
// Plan: [coro.generator.class] and [coro.generator.promise] clause by clause, then what the draft
// does not promise: cost per level, constant stack, and frames that are recycled.
#include <coppice/generator.hpp>

#include "allocations.hpp"
#include "small_stack.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <new>
#include <ranges>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using coppice::generator;
using coppice::ranges::elements_of;
using strings = std::vector<std::string>;
using ints = std::vector<int>;

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

template <class G>
ints all_of(G&& each) {
    ints all;
    for (auto&& element : each) all.push_back(element);
    return all;
}

generator<int> counting(int from, int to) {
    for (int i = from; i < to; ++i) co_yield i;
}

// Counts the instances that are alive.
struct witness {
    explicit witness(int& a) : alive(&a) { ++*alive; }
    witness(const witness& other) : alive(other.alive) { ++*alive; }
    witness& operator=(const witness&) = delete;
    ~witness() { --*alive; }
    int* alive;
};

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

generator<int> failing_below(int levels) {
    if (levels == 0) throw std::runtime_error("deep");
    co_yield levels;
    co_yield elements_of(failing_below(levels - 1));
    co_yield -1000;
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

constexpr int levels_max = 10'000;

// Counts how often a body is resumed, in all levels.
generator<int> deep(int levels, int elements, long& resumed) {
    ++resumed;
    if (levels == 0) {
        for (int i = 0; i < elements; ++i) {
            co_yield i;
            ++resumed;
        }
    } else {
        co_yield elements_of(deep(levels - 1, elements, resumed));
        ++resumed;
    }
}

TEST(generator, an_element_resumes_one_body_however_deep_it_is) {
    long resumed = 0;
    generator<int> g = deep(levels_max, 100, resumed);
    auto i = g.begin();
    EXPECT_EQ(resumed, levels_max + 1);
    for (int n = 1; n != 100; ++n) {
        ++i;
        ASSERT_EQ(*i, n);
    }
    EXPECT_EQ(resumed, levels_max + 1 + 99);
    ++i;
    EXPECT_TRUE(i == g.end());
    EXPECT_EQ(resumed, 2 * (levels_max + 1) + 99);
}

TEST(generator, ten_thousand_levels_use_constant_stack_also_when_destroyed_or_failing) {
    coppice::test::on_a_stack_of(64 * 1024, [] {
        long resumed = 0;
        EXPECT_EQ(all_of(deep(levels_max, 3, resumed)), (ints{0, 1, 2}));
        {
            generator<int> g = deep(levels_max, 3, resumed);
            EXPECT_EQ(*g.begin(), 0);
        }
        generator<int> failing = failing_below(200);
        EXPECT_THROW(all_of(failing), std::runtime_error);
    });
}

TEST(generator, a_million_elements_use_constant_stack_and_allocate_nothing) {
    coppice::test::on_a_stack_of(64 * 1024, [] {
        generator<int> g = counting(0, 1'000'000);
        auto i = g.begin();
        const std::size_t before = coppice::test::allocations();
        long sum = 0;
        for (; i != g.end(); ++i) sum += *i;
        EXPECT_EQ(coppice::test::allocations(), before);
        EXPECT_EQ(sum, 499'999'500'000);
    });
}

// ---- Allocators ---------------------------------------------------------------------------------

// noinline: clang puts the frame of a generator that is used where it is made on the stack.
[[gnu::noinline]] generator<int> opaque(int from, int to) {
    return counting(from, to);
}

TEST(generator, its_frames_are_recycled) {
    const auto use = [] {
        long resumed = 0;
        return all_of(opaque(0, 3)).size() + all_of(deep(10, 3, resumed)).size();
    };
    use();
    const std::size_t before = coppice::test::allocations();
    int sum = 0;
    for (int i = 0; i != 100; ++i) {
        for (int each : opaque(0, 3)) sum += each;
        long resumed = 0;
        for (int each : deep(10, 3, resumed)) sum += each;
    }
    EXPECT_EQ(coppice::test::allocations(), before);
    EXPECT_EQ(sum, 600);
}

struct books {
    int allocated = 0;
    int deallocated = 0;
    bool fails = false;
};
// A stateful allocator without a default constructor.
template <class T>
struct counting_allocator {
    using value_type = T;
    explicit counting_allocator(books& b) : kept(&b) {}
    template <class U>
    counting_allocator(const counting_allocator<U>& other) : kept(other.kept) {}
    T* allocate(std::size_t n) {
        if (kept->fails) throw std::bad_alloc();
        ++kept->allocated;
        return std::allocator<T>().allocate(n);
    }
    void deallocate(T* memory, std::size_t n) {
        ++kept->deallocated;
        std::allocator<T>().deallocate(memory, n);
    }
    friend bool operator==(const counting_allocator&, const counting_allocator&) = default;
    books* kept;
};
books stateless_books;
template <class T>
struct stateless_allocator {
    using value_type = T;
    stateless_allocator() = default;
    template <class U>
    stateless_allocator(const stateless_allocator<U>&) {}
    T* allocate(std::size_t n) { return counting_allocator<T>(stateless_books).allocate(n); }
    void deallocate(T* memory, std::size_t n) {
        counting_allocator<T>(stateless_books).deallocate(memory, n);
    }
    friend bool operator==(const stateless_allocator&, const stateless_allocator&) = default;
};

TEST(generator, takes_its_frame_from_any_allocator_that_follows_allocator_arg) {
    struct thing {
        generator<int> member(std::allocator_arg_t, counting_allocator<char>) { co_yield number; }
        int number = 3;
    };
    const auto body = [](std::allocator_arg_t, counting_allocator<std::byte>,
                         int n) -> generator<int> { co_yield n; };
    books book;
    EXPECT_EQ(all_of(body(std::allocator_arg, counting_allocator<std::byte>(book), 2)), ints{2});
    EXPECT_EQ(book.allocated, 1);
    EXPECT_EQ(book.deallocated, 1);
    thing t;
    EXPECT_EQ(all_of(t.member(std::allocator_arg, counting_allocator<char>(book))), ints{3});
    EXPECT_EQ(book.allocated, 2);
    EXPECT_EQ(book.deallocated, 2);
}

TEST(generator, with_an_allocator_type_default_constructs_it_or_converts_what_is_given) {
    const auto by_default = [](int n) -> generator<int, void, stateless_allocator<std::byte>> {
        co_yield n;
    };
    stateless_books = {};
    EXPECT_EQ(all_of(by_default(1)), ints{1});
    EXPECT_EQ(stateless_books.allocated, 1);
    EXPECT_EQ(stateless_books.deallocated, 1);
    const auto converted = [](std::allocator_arg_t, counting_allocator<long>,
                              int n) -> generator<int, void, counting_allocator<std::byte>> {
        co_yield n;
    };
    books book;
    EXPECT_EQ(all_of(converted(std::allocator_arg, counting_allocator<long>(book), 2)), ints{2});
    EXPECT_EQ(book.allocated, 1);
    EXPECT_EQ(book.deallocated, 1);
}

TEST(generator, gives_the_allocator_of_elements_of_to_the_coroutine_for_a_range) {
    books book;
    const auto body = [](counting_allocator<std::byte> from) -> generator<const int&> {
        co_yield elements_of(ints(2, 1), from);
    };
    EXPECT_EQ(all_of(body(counting_allocator<std::byte>(book))), (ints{1, 1}));
    EXPECT_EQ(book.allocated, 1);
    EXPECT_EQ(book.deallocated, 1);
}

[[gnu::noinline]] generator<int> failing_to_begin(std::allocator_arg_t,
                                                  counting_allocator<std::byte>, witness) {
    co_yield 1;
}

TEST(generator, an_allocation_that_fails_throws_from_the_call_or_from_the_co_yield) {
    books book;
    book.fails = true;
    int alive = 0;
    const counting_allocator<std::byte> from_book(book);
    EXPECT_THROW(static_cast<void>(failing_to_begin(std::allocator_arg, from_book, witness(alive))),
                 std::bad_alloc);
    EXPECT_EQ(alive, 0);
    const auto outer = [](counting_allocator<std::byte> from) -> generator<const int&> {
        int caught = 0;
        try {
            co_yield elements_of(ints(2, 1), from);
        } catch (const std::bad_alloc&) {
            caught = 100;
        }
        co_yield caught;
    };
    EXPECT_EQ(all_of(outer(counting_allocator<std::byte>(book))), ints{100});
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
