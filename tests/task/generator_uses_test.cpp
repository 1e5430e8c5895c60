// Plan: what std::generator is used for beyond plain loops: owned ranges and views in elements_of,
// polymorphic memory, abstract elements, and bodies that go on after an exception.
#include <coppice/generator.hpp>

#include "generators.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <memory_resource>
#include <ranges>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using coppice::generator;
using coppice::ranges::elements_of;
using coppice::test::all_of;
using coppice::test::counting;
using coppice::test::failing_below;
using coppice::test::ints;

TEST(generator_uses, elements_of_keeps_a_range_that_it_is_given_by_value) {
    const auto body = []() -> generator<const std::string&> {
        std::vector<std::string> words(2, std::string(100, 'x'));
        co_yield elements_of<std::vector<std::string>>(std::move(words));
        co_yield elements_of(std::vector<std::string>(2, std::string(100, 'y')));
    };
    std::string all;
    for (const std::string& word : body()) all += word;
    EXPECT_EQ(all, std::string(200, 'x') + std::string(200, 'y'));
}

TEST(generator_uses, elements_of_takes_views_of_other_generators) {
    const auto body = []() -> generator<int> {
        const auto is_even = [](int i) { return i % 2 == 0; };
        co_yield elements_of(counting(0, 1'000'000) | std::views::take(2));
        co_yield elements_of(counting(0, 6) | std::views::filter(is_even));
    };
    EXPECT_EQ(all_of(body()), (ints{0, 1, 0, 2, 4}));
}

TEST(generator_uses, a_generator_of_generators_is_a_range_of_ranges) {
    const auto rows = []() -> generator<generator<int>> {
        co_yield counting(0, 2);
        co_yield counting(5, 7);
    };
    ints all;
    for (auto&& row : rows()) {
        for (const int i : row) all.push_back(i);
    }
    EXPECT_EQ(all, (ints{0, 1, 5, 6}));
}

TEST(generator_uses, elements_may_be_objects_of_an_abstract_class) {
    struct shape {
        virtual ~shape() = default;
        virtual int corners() const = 0;
    };
    struct square : shape {
        int corners() const override { return 4; }
    };
    const auto by_const = []() -> generator<const shape&> {
        const square kept;
        co_yield kept;
        co_yield square();
    };
    const auto by_rvalue = []() -> generator<shape&&> {
        co_yield square();
        square kept;
        co_yield std::move(kept);
    };
    int corners = 0;
    for (const shape& each : by_const()) corners += each.corners();
    for (shape&& each : by_rvalue()) corners += each.corners();
    EXPECT_EQ(corners, 16);
}

TEST(generator_uses, a_body_goes_on_after_each_failure_of_a_nested_one) {
    const auto tries = [](int times) -> generator<int> {
        for (int i = 0; i != times; ++i) {
            bool failed = false;
            try {
                co_yield elements_of(failing_below(2));
            } catch (const std::runtime_error&) {
                failed = true;
            }
            if (failed) co_yield 100;
        }
    };
    const auto outer = [&tries]() -> generator<int> {
        co_yield elements_of(tries(2));
        co_yield -1;
    };
    EXPECT_EQ(all_of(outer()), (ints{2, 1, 100, 2, 1, 100, -1}));
}

// Counts what is taken from it, and what has not come back.
struct counting_resource : std::pmr::memory_resource {
    int taken = 0;
    int kept = 0;

private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        ++taken;
        ++kept;
        return std::pmr::new_delete_resource()->allocate(bytes, alignment);
    }
    void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
        --kept;
        std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
    }
    bool do_is_equal(const memory_resource& other) const noexcept override {
        return this == &other;
    }
};
using any_memory = std::pmr::polymorphic_allocator<std::byte>;
using pmr_ints = generator<int, void, any_memory>;

pmr_ints from_resource(std::allocator_arg_t, std::pmr::memory_resource*, int to) {
    for (int i = 0; i < to; ++i) co_yield i;
}
pmr_ints from_default(int to) {
    for (int i = 0; i < to; ++i) co_yield i;
}
generator<int> failing_in(std::allocator_arg_t tag, any_memory memory, int levels) {
    co_yield levels;
    if (levels == 0) throw std::runtime_error("deep");
    co_yield elements_of(failing_in(tag, memory, levels - 1));
}

TEST(generator_uses, takes_polymorphic_memory_and_gives_it_back_however_it_ends) {
    counting_resource memory;
    const auto mixed = [&memory]() -> generator<int> {
        co_yield elements_of(from_resource(std::allocator_arg, &memory, 2));
        co_yield elements_of(from_default(1));
        const std::vector<std::int8_t> seven(1, 7);
        co_yield elements_of(seven, any_memory(&memory));
    };
    EXPECT_EQ(all_of(mixed()), (ints{0, 1, 0, 7}));
    EXPECT_EQ(memory.taken, 2);
    EXPECT_THROW(all_of(failing_in(std::allocator_arg, &memory, 20)), std::runtime_error);
    EXPECT_EQ(memory.taken, 2 + 21);
    {
        generator<int> left = failing_in(std::allocator_arg, &memory, 20);
        auto i = left.begin();
        for (int n = 0; n != 10; ++n) ++i;
        EXPECT_EQ(*i, 10);
        EXPECT_GT(memory.kept, 10);
    }
    EXPECT_EQ(memory.kept, 0);
}

}  // namespace
