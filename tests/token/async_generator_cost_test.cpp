// What an async_generator costs: its frame, nothing for an element, and constant stack.
#include <coppice/token/async_generator.hpp>

#include <coppice/exec/just.hpp>
#include <coppice/task/task.hpp>

#include "allocations.hpp"
#include "async_generators.hpp"
#include "small_stack.hpp"
#include "witness.hpp"

#include <gtest/gtest.h>

#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <system_error>

namespace {

namespace ex = coppice::execution;
using coppice::async_generator;
using coppice::task;
using coppice::test::all_of_temporary;
using coppice::test::counting;
using coppice::test::counting_slowly;
using coppice::test::ints;
using coppice::test::run;
using coppice::test::witness;

TEST(async_generator, allocates_nothing_for_an_element) {
    const auto body = [&]() -> task<> {
        auto quick = counting(0, 1000);
        auto slow = counting_slowly(0, 1000);
        co_await quick.next();
        co_await slow.next();
        const std::size_t before = coppice::test::allocations();
        long sum = 0;
        for (int i = 1; i != 1000; ++i) sum += *co_await quick.next();
        for (int i = 1; i != 1000; ++i) sum += *co_await slow.next();
        EXPECT_EQ(coppice::test::allocations(), before);
        EXPECT_EQ(sum, 999'000);
    };
    run(body());
    const auto by_other_tokens = [] {
        auto g = counting(0, 3);
        g.next([](std::error_code, std::optional<int>) {});
        int sum = 0;
        while (const auto item = g.next(coppice::block)) sum += *item;
        EXPECT_EQ(sum, 3);
    };
    by_other_tokens();  // what it frees is used again
    const std::size_t before = coppice::test::allocations();
    for (int i = 0; i != 10; ++i) by_other_tokens();
    EXPECT_EQ(coppice::test::allocations(), before);
}

TEST(async_generator, a_million_elements_use_constant_stack) {
    coppice::test::on_a_stack_of(256 * 1024, [] {
        const auto sum_of = [](async_generator<int> g) -> task<long> {
            long sum = 0;
            while (const auto item = co_await g.next()) sum += *item;
            co_return sum;
        };
        EXPECT_EQ(run(sum_of(counting(0, 1'000'000))), 499'999'500'000);
        EXPECT_EQ(run(sum_of(counting_slowly(0, 100'000))), 4'999'950'000);
    });
}

async_generator<int> deep(int levels, int elements, bool slowly) {
    if (levels == 0) {
        for (int i = 0; i != elements; ++i) {
            if (slowly) co_await ex::just();
            co_yield i;
        }
    } else {
        auto inner = deep(levels - 1, elements, slowly);
        while (const auto item = co_await inner.next()) co_yield *item;
    }
}

TEST(async_generator, ten_thousand_levels_use_constant_stack) {
    coppice::test::on_a_stack_of(256 * 1024, [] {
        const auto body = [](bool slowly) -> task<> {
            auto g = deep(10'000, 3, slowly);
            for (int i = 0; i != 3; ++i) EXPECT_EQ(co_await g.next(), i);
            EXPECT_EQ(co_await g.next(), std::nullopt);
        };
        run(body(false));
        run(body(true));
    });
}

// A coroutine that knows nothing of coppice.
struct plain {
    struct promise_type {
        plain get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void unhandled_exception() noexcept { std::terminate(); }
        void return_void() noexcept {}
    };
};

TEST(async_generator, is_awaited_by_coroutines_of_other_types_with_constant_stack) {
    coppice::test::on_a_stack_of(256 * 1024, [] {
        long sum = 0;
        [](long& s) -> plain {
            auto quick = counting(0, 100'000);
            while (const auto item = co_await quick.next()) s += *item;
            auto slow = counting_slowly(0, 1000);
            while (const auto item = co_await slow.next()) s += *item;
        }(sum);
        EXPECT_EQ(sum, 4'999'950'000 + 499'500);
    });
}

struct books {
    int allocated = 0;
    int deallocated = 0;
    bool fails = false;
};
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

// noinline: clang would put the frame on the stack.
[[gnu::noinline]] async_generator<int> allocated(std::allocator_arg_t,
                                                 const counting_allocator<std::byte>&, witness) {
    co_yield 1;
}

TEST(async_generator, takes_its_frame_from_an_allocator_that_may_fail) {
    books book;
    int alive = 0;
    const counting_allocator<std::byte> from_book(book);
    EXPECT_EQ(run(all_of_temporary(allocated(std::allocator_arg, from_book, witness(alive)))),
              ints{1});
    EXPECT_EQ(book.allocated, 1);
    EXPECT_EQ(book.deallocated, 1);
    book.fails = true;
    EXPECT_THROW(static_cast<void>(allocated(std::allocator_arg, from_book, witness(alive))),
                 std::bad_alloc);
    EXPECT_EQ(alive, 0);
}

}  // namespace
