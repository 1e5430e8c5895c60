// token/async_generator.hpp: its elements, its end and its failures, and its frame between them.
#include <coppice/token/async_generator.hpp>

#include <coppice/exec/connect.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/task/task.hpp>

#include "async_generators.hpp"
#include "witness.hpp"

#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace {

namespace ex = coppice::execution;
using coppice::async_generator;
using coppice::task;
using coppice::test::all_of;
using coppice::test::all_of_temporary;
using coppice::test::counting;
using coppice::test::counting_slowly;
using coppice::test::ints;
using coppice::test::run;
using coppice::test::witness;

static_assert(std::is_same_v<async_generator<int>::item_type, std::optional<int>>);
static_assert(std::is_same_v<async_generator<int&>::item_type, int*>);
static_assert(std::is_same_v<async_generator<const int&>::item_type, const int*>);
static_assert(!std::is_copy_constructible_v<async_generator<int>>);
static_assert(std::is_nothrow_move_constructible_v<async_generator<int>>);
static_assert(noexcept(std::declval<async_generator<int>&>().next()));

// ---- Elements -----------------------------------------------------------------------------------

TEST(async_generator, gives_its_elements_and_then_nothing_each_time) {
    const auto body = []() -> task<> {
        auto g = counting(0, 2);
        EXPECT_EQ(co_await g.next(), 0);
        EXPECT_EQ(co_await g.next(), 1);
        EXPECT_EQ(co_await g.next(), std::nullopt);
        EXPECT_EQ(co_await g.next(), std::nullopt);
    };
    run(body());
    EXPECT_EQ(run(all_of_temporary(counting_slowly(0, 4))), (ints{0, 1, 2, 3}));
}

TEST(async_generator, runs_only_while_an_element_is_awaited) {
    int step = 0;
    const auto numbers = [](int& at) -> async_generator<int> {
        at = 1;
        co_yield 10;
        at = 2;
    };
    const auto body = [&]() -> task<> {
        auto g = numbers(step);
        EXPECT_EQ(step, 0);
        auto first = g.next();
        EXPECT_EQ(step, 0);
        co_await std::move(first);
        EXPECT_EQ(step, 1);
        co_await g.next();
        EXPECT_EQ(step, 2);
    };
    run(body());
}

TEST(async_generator, gives_move_only_elements_and_copies_of_lvalues) {
    const auto pointers = []() -> async_generator<std::unique_ptr<int>> {
        co_yield std::make_unique<int>(1);
        auto two = std::make_unique<int>(2);
        co_yield std::move(two);
    };
    const auto strings = []() -> async_generator<std::string> {
        std::string kept = "kept";
        co_yield kept;
        EXPECT_EQ(kept, "kept");
        co_yield "converted";
    };
    const auto body = [&]() -> task<> {
        auto p = pointers();
        int sum = 0;
        while (auto each = co_await p.next()) sum += **each;
        EXPECT_EQ(sum, 3);
        auto s = strings();
        std::string all;
        while (auto each = co_await s.next()) all += *each;
        EXPECT_EQ(all, "keptconverted");
    };
    run(body());
}

TEST(async_generator, of_references_gives_pointers_to_the_yielded_objects) {
    const auto objects = [](int& a, int& b) -> async_generator<int&> {
        co_yield a;
        co_await ex::just();
        co_yield b;
    };
    const auto temporaries = []() -> async_generator<const std::string&> {
        co_yield "a temporary that is too long for the small buffer of strings";
    };
    int a = 1;
    int b = 2;
    const auto body = [&]() -> task<> {
        auto g = objects(a, b);
        while (int* each = co_await g.next()) *each *= 10;
        auto t = temporaries();
        const std::string* text = co_await t.next();
        EXPECT_EQ(text->size(), 60u);
        EXPECT_EQ(co_await t.next(), nullptr);
    };
    run(body());
    EXPECT_EQ(a, 10);
    EXPECT_EQ(b, 20);
}

TEST(async_generator, awaits_tasks_and_other_async_generators) {
    const auto squared = [](int i) -> task<int> {
        co_await ex::just();
        co_return i* i;
    };
    const auto squares = [&](int n) -> async_generator<int> {
        auto inner = counting_slowly(0, n);
        while (auto i = co_await inner.next()) co_yield co_await squared(*i);
    };
    EXPECT_EQ(run(all_of_temporary(squares(4))), (ints{0, 1, 4, 9}));
}

// ---- Ends ---------------------------------------------------------------------------------------

async_generator<int> failing(int& alive, int elements, bool slowly) {
    const witness local(alive);
    for (int i = 0; i < elements; ++i) {
        if (slowly) co_await ex::just();
        co_yield i;
    }
    if (slowly) co_await ex::just();
    throw std::runtime_error("failed");
}

TEST(async_generator, throws_what_its_body_throws_and_has_then_ended) {
    for (const bool slowly : {false, true}) {
        for (const int elements : {0, 2}) {
            int alive = 0;
            const auto body = [&]() -> task<> {
                auto g = failing(alive, elements, slowly);
                for (int i = 0; i != elements; ++i) EXPECT_EQ(co_await g.next(), i);
                bool caught = false;
                try {
                    co_await g.next();
                } catch (const std::runtime_error& e) {
                    caught = std::string(e.what()) == "failed";
                }
                EXPECT_TRUE(caught);
                EXPECT_EQ(alive, 0);
                EXPECT_EQ(co_await g.next(), std::nullopt);
            };
            run(body());
        }
    }
}

TEST(async_generator, an_element_whose_constructor_throws_leaves_the_co_yield) {
    struct fragile {
        explicit fragile(int i) {
            if (i == 1) throw std::runtime_error("element");
        }
    };
    const auto elements = [](int& caught) -> async_generator<fragile> {
        for (int i = 0; i != 3; ++i) {
            try {
                co_yield i;
            } catch (const std::runtime_error&) {
                ++caught;
            }
        }
    };
    int caught = 0;
    const auto body = [&]() -> task<int> {
        auto g = elements(caught);
        int count = 0;
        while (const auto item = co_await g.next()) ++count;
        co_return count;
    };
    EXPECT_EQ(run(body()), 2);
    EXPECT_EQ(caught, 1);
}

TEST(async_generator, a_destructor_that_throws_at_the_end_is_an_error_in_place_of_the_end) {
    struct thrower {
        ~thrower() noexcept(false) { throw std::runtime_error("destructor"); }
    };
    const auto elements = []() -> async_generator<int> {
        const thrower local;
        co_yield 1;
    };
    const auto body = [&]() -> task<> {
        auto g = elements();
        EXPECT_EQ(co_await g.next(), 1);
        bool caught = false;
        try {
            co_await g.next();
        } catch (const std::runtime_error&) {
            caught = true;
        }
        EXPECT_TRUE(caught);
    };
    run(body());
}

struct coded {
    using error_types =
        ex::completion_signatures<ex::set_error_t(std::exception_ptr), ex::set_error_t(int)>;
};
async_generator<int, coded> ends_with_code() {
    co_yield 1;
    co_yield ex::with_error(7);
    ADD_FAILURE() << "the body went on";
}

TEST(async_generator, ends_with_an_error_of_its_environment_that_a_sender_sends_unchanged) {
    auto g = ends_with_code();
    struct receiver {
        using receiver_concept = ex::receiver_tag;
        int* code;
        void set_value(std::optional<int>) && noexcept {}
        void set_error(int e) && noexcept { *code = e; }
        void set_error(std::exception_ptr) && noexcept {}
        void set_stopped() && noexcept {}
    };
    int code = 0;
    auto first = ex::connect(g.next(), receiver{&code});
    ex::start(first);
    EXPECT_EQ(code, 0);
    auto second = ex::connect(g.next(), receiver{&code});
    ex::start(second);
    EXPECT_EQ(code, 7);
}

// ---- Lifetimes ----------------------------------------------------------------------------------

async_generator<int> holding(int& alive, int elements) {
    const witness local(alive);
    for (int i = 0; i < elements; ++i) co_yield i;
}

TEST(async_generator, may_be_moved_and_destroyed_between_two_elements_at_each_state) {
    int alive = 0;
    {
        const auto never = holding(alive, 2);
    }
    const auto body = [&]() -> task<> {
        {
            auto a = holding(alive, 2);
            EXPECT_EQ(co_await a.next(), 0);
            EXPECT_EQ(alive, 1);
        }
        EXPECT_EQ(alive, 0);
        auto a = holding(alive, 3);
        auto b = std::move(a);
        EXPECT_EQ(co_await b.next(), 0);
        auto c = std::move(b);
        EXPECT_EQ(co_await c.next(), 1);
        EXPECT_EQ(co_await b.next(), std::nullopt);
        c = holding(alive, 1);  // destroys the body that waits
        EXPECT_EQ(alive, 0);
        const ints rest = co_await all_of(c);
        EXPECT_EQ(rest, ints{0});
    };
    run(body());
    EXPECT_EQ(alive, 0);
}

TEST(async_generator, destroys_its_frame_before_the_end_is_told) {
    int alive = 0;
    const auto elements = [](witness) -> async_generator<int> { co_yield 1; };
    const auto body = [&]() -> task<> {
        auto g = elements(witness(alive));
        EXPECT_EQ(alive, 1);
        co_await g.next();
        EXPECT_EQ(alive, 1);
        co_await g.next();
        EXPECT_EQ(alive, 0);
    };
    run(body());
}

}  // namespace
