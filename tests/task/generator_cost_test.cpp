// What a generator costs: one resume an element, constant stack, and memory from its allocator.
#include <coppice/generator.hpp>

#include "allocations.hpp"
#include "generators.hpp"
#include "small_stack.hpp"
#include "witness.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <new>
#include <stdexcept>

namespace {

using coppice::generator;
using coppice::ranges::elements_of;
using coppice::test::all_of;
using coppice::test::counting;
using coppice::test::failing_below;
using coppice::test::ints;
using coppice::test::witness;

// ---- Levels and stack ---------------------------------------------------------------------------

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

}  // namespace
