// base/lifetime.hpp: construction and destruction by hand, and at the end of scopes.
#include <coppice/base/lifetime.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

namespace {

// Counts the living objects of its type.
struct counted : coppice::immovable {
    explicit counted(int& count) : alive(count) { ++alive; }
    ~counted() { --alive; }
    int& alive;
};

TEST(immovable, types_can_be_neither_copied_nor_moved) {
    static_assert(!std::is_copy_constructible_v<counted> && !std::is_move_constructible_v<counted>);
    static_assert(!std::is_copy_assignable_v<coppice::immovable>);
    static_assert(!std::is_move_assignable_v<coppice::immovable>);
    static_assert(std::is_empty_v<coppice::immovable>);
}

TEST(manual_lifetime, constructs_and_destroys_only_when_told) {
    int alive = 0;
    {
        coppice::manual_lifetime<counted> storage;
        EXPECT_EQ(alive, 0);
        EXPECT_EQ(&storage.construct(alive).alive, &alive);
        EXPECT_EQ(alive, 1);
        storage.destroy();
        EXPECT_EQ(alive, 0);
        storage.construct(alive);
    }
    EXPECT_EQ(alive, 1) << "the storage's destructor must destroy nothing";
}

TEST(manual_lifetime, constructs_from_immovable_results_without_a_move) {
    int alive = 0;
    coppice::manual_lifetime<counted> storage;
    storage.construct_with([&] { return counted(alive); });
    EXPECT_EQ(alive, 1);
    EXPECT_EQ(&storage.get().alive, &alive);
    storage.destroy();
}

TEST(manual_lifetime, a_throwing_constructor_leaves_the_storage_empty_and_usable) {
    struct picky {
        explicit picky(int n) : value(n) {
            if (n < 0) throw std::invalid_argument("negative");
        }
        int value;
    };
    coppice::manual_lifetime<picky> storage;
    EXPECT_THROW(storage.construct(-1), std::invalid_argument);
    EXPECT_EQ(storage.construct(3).value, 3);
    storage.destroy();
}

// There is no memory for the object, or for what its constructor allocates.
struct needy {
    needy(int& count, std::vector<int>&& taken, bool fails) : counts(count) {
        if (fails) throw std::bad_alloc();
        all = std::move(taken);
    }
    static void* operator new(std::size_t bytes) {
        if (is_short) throw std::bad_alloc();
        return ::operator new(bytes);
    }
    static void operator delete(void* memory) { ::operator delete(memory); }
    static inline bool is_short = false;
    counted counts;
    std::vector<int> all;
};

TEST(try_new, returns_the_object_or_nullptr_without_memory) {
    int alive = 0;
    const std::vector<int> numbers{1, 2, 3};
    std::vector<int> given = numbers;
    needy::is_short = true;
    EXPECT_EQ(coppice::try_new<needy>(alive, std::move(given), false), nullptr);
    needy::is_short = false;
    EXPECT_EQ(coppice::try_new<needy>(alive, std::move(given), true), nullptr);
    EXPECT_EQ(given, numbers);
    EXPECT_EQ(alive, 0);
    const std::unique_ptr<needy> made(coppice::try_new<needy>(alive, std::move(given), false));
    ASSERT_NE(made, nullptr);
    EXPECT_EQ(made->all, numbers);
    EXPECT_EQ(alive, 1);
}

TEST(scope_exit, runs_once_at_the_end_of_the_scope_even_after_an_exception) {
    int runs = 0;
    {
        const coppice::scope_exit exit([&] { ++runs; });
    }
    EXPECT_EQ(runs, 1);
    try {
        const coppice::scope_exit exit([&] { ++runs; });
        throw 1;
    } catch (int) {
        EXPECT_EQ(runs, 2);
    }
}

TEST(scope_exit, does_not_run_when_dismissed) {
    int runs = 0;
    {
        coppice::scope_exit exit([&] { ++runs; });
        exit.dismiss();
    }
    EXPECT_EQ(runs, 0);
}

}  // namespace
