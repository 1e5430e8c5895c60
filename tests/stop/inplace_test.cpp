// The in-place families, clause by clause: [stoptoken.concepts], and P3409R1 where it adds to that.
#include "families.hpp"

#include "allocations.hpp"
#include "emulated.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;

template <class Family>
class stop_family : public testing::Test {};
using families = testing::Types<inplace_family, single_family, finite_family<1, 0>,
                                finite_family<3, 0>, finite_family<3, 2>, finite_family<10, 5, 64>,
                                asymmetric_family<1, 0>, asymmetric_family<3, 2>>;
TYPED_TEST_SUITE(stop_family, families);

template <class Family, class F>
using callback_of = stop_callback_for_t<typename Family::token, F>;

TYPED_TEST(stop_family, models_the_concepts) {
    using token = typename TypeParam::token;
    static_assert(stoppable_token<token>);
    static_assert(!unstoppable_token<token>);
    static_assert(stoppable_source<typename TypeParam::source>);
    static_assert(stoppable_callback_for<void (*)(), token>);
    static_assert(std::is_nothrow_default_constructible_v<typename TypeParam::source>);
    static_assert(!std::is_move_constructible_v<typename TypeParam::source>);
    static_assert(!std::is_copy_assignable_v<typename TypeParam::source>);
    static_assert(!std::is_move_constructible_v<callback_of<TypeParam, void (*)()>>);
    static_assert(TypeParam::source::stop_possible());
    static_assert(std::is_trivially_copyable_v<token>);
}

TYPED_TEST(stop_family, sources_are_constant_initialized) {
    static constinit typename TypeParam::source source;
    static constexpr typename TypeParam::token token = TypeParam::token_of(source);
    EXPECT_TRUE(token.stop_possible());
    EXPECT_FALSE(token.stop_requested());
}

// [stoptoken.concepts]: a token without a source is disengaged.
TYPED_TEST(stop_family, a_default_token_cannot_be_stopped) {
    const typename TypeParam::token token;
    EXPECT_FALSE(token.stop_possible());
    EXPECT_FALSE(token.stop_requested());
    bool ran = false;
    {
        auto f = [&] { ran = true; };
        callback_of<TypeParam, decltype(f)> callback(token, f);
    }
    EXPECT_FALSE(ran);
}

TYPED_TEST(stop_family, tokens_compare_by_source_and_swap) {
    typename TypeParam::source a, b;
    auto token_a = TypeParam::token_of(a);
    auto token_b = TypeParam::token_of(b);
    EXPECT_EQ(token_a, TypeParam::token_of(a));
    EXPECT_NE(token_a, token_b);
    EXPECT_EQ(typename TypeParam::token(), typename TypeParam::token());
    EXPECT_NE(token_a, typename TypeParam::token());
    token_a.swap(token_b);
    EXPECT_EQ(token_a, TypeParam::token_of(b));
    std::swap(token_a, token_b);
    EXPECT_EQ(token_a, TypeParam::token_of(a));
}

TYPED_TEST(stop_family, only_the_first_request_returns_true) {
    typename TypeParam::source source;
    const auto& constant = source;
    const auto token = TypeParam::token_of(constant);
    EXPECT_FALSE(constant.stop_requested());
    EXPECT_TRUE(source.request_stop());
    EXPECT_TRUE(constant.stop_requested());
    EXPECT_TRUE(token.stop_requested());
    EXPECT_TRUE(token.stop_possible());
    EXPECT_FALSE(source.request_stop());
}

TYPED_TEST(stop_family, a_request_runs_the_callback_on_its_own_thread) {
    typename TypeParam::source source;
    std::thread::id where;
    bool seen = false;
    const auto token = TypeParam::token_of(source);
    auto f = [&] {
        where = std::this_thread::get_id();
        seen = token.stop_requested();
    };
    callback_of<TypeParam, decltype(f)> callback(token, f);
    EXPECT_EQ(where, std::thread::id());
    std::thread requester([&] {
        EXPECT_TRUE(source.request_stop());
        EXPECT_EQ(where, std::this_thread::get_id());
    });
    requester.join();
    EXPECT_TRUE(seen);
}

// [stoptoken.concepts]: after a request, the callback of every slot runs in its constructor.
TYPED_TEST(stop_family, a_late_callback_runs_in_its_constructor) {
    typename TypeParam::source source;
    source.request_stop();
    for (int round = 0; round != 3; ++round) {
        int runs = 0;
        {
            auto f = [&] { ++runs; };
            callback_of<TypeParam, decltype(f)> callback(TypeParam::token_of(source), f);
            EXPECT_EQ(runs, 1);
        }
        EXPECT_EQ(runs, 1);
    }
}

TYPED_TEST(stop_family, a_destroyed_callback_does_not_run) {
    typename TypeParam::source source;
    int runs = 0;
    auto f = [&] { ++runs; };
    for (int round = 0; round != 3; ++round) {
        callback_of<TypeParam, decltype(f)> callback(TypeParam::token_of(source), f);
    }
    EXPECT_TRUE(source.request_stop());
    EXPECT_EQ(runs, 0);
}

TYPED_TEST(stop_family, a_callback_may_destroy_itself) {
    typename TypeParam::source source;
    bool ended = false;
    std::unique_ptr<callback_of<TypeParam, std::function<void()>>> callback;
    auto f = [&] {
        callback.reset();
        ended = true;
    };
    callback = std::make_unique<callback_of<TypeParam, std::function<void()>>>(
        TypeParam::token_of(source), std::ref(f));
    EXPECT_TRUE(source.request_stop());
    EXPECT_TRUE(ended);
    EXPECT_TRUE(source.stop_requested());
}

// Ours (P3409's Appendix B uses freed memory here): the source may be destroyed inside its
// callback, and the callback before the source, after it, or after the request.
TYPED_TEST(stop_family, a_source_may_be_destroyed_inside_its_callback) {
    enum class order { callback_first, source_first, callback_later };
    for (const order how : {order::callback_first, order::source_first, order::callback_later}) {
        auto source = std::make_unique<typename TypeParam::source>();
        std::unique_ptr<callback_of<TypeParam, std::function<void()>>> callback;
        auto f = [&] {
            if (how == order::callback_first) callback.reset();
            source.reset();
            if (how == order::source_first) callback.reset();
        };
        callback = std::make_unique<callback_of<TypeParam, std::function<void()>>>(
            TypeParam::token_of(*source), std::ref(f));
        EXPECT_TRUE(source->request_stop());
        EXPECT_EQ(source, nullptr);
        EXPECT_EQ(callback == nullptr, how != order::callback_later);
    }
}

// A new source may have the address of another, which died in its callback. The old request does
// not take it for that one.
TYPED_TEST(stop_family, a_new_source_at_the_old_address_waits_for_its_own_callback) {
    std::optional<typename TypeParam::source> source;
    source.emplace();
    std::optional<callback_of<TypeParam, std::function<void()>>> callback;
    atomic<bool> inner_runs{false};
    atomic<bool> inner_returned{false};
    std::function<void()> inner = [&] {
        inner_runs.store(true, release);
        while (!inner_runs.load(acquire)) spin_hint();
        for (int i = 0; i != 2'000; ++i) spin_hint();
        inner_returned.store(true, release);
    };
    std::function<void()> outer = [&] {
        callback.reset();
        source.reset();
        source.emplace();
        callback.emplace(TypeParam::token_of(*source), std::ref(inner));
        std::thread requester([&] { source->request_stop(); });
        while (!inner_runs.load(acquire)) std::this_thread::yield();
        callback.reset();
        EXPECT_TRUE(inner_returned.load(acquire));
        requester.join();
    };
    callback.emplace(TypeParam::token_of(*source), std::ref(outer));
    EXPECT_TRUE(source->request_stop());
    EXPECT_TRUE(source->stop_requested());
}

// [stoptoken.concepts]: deregistration waits for its own callback on another thread.
TYPED_TEST(stop_family, destruction_waits_for_the_callback_on_another_thread) {
    for (int round = 0; round != repeated(200); ++round) {
        typename TypeParam::source source;
        atomic<bool> entered{false};
        bool returned = false;
        auto f = [&] {
            entered.store(true, release);
            if (round % 4 == 0) std::this_thread::yield();
            returned = true;
        };
        std::optional<callback_of<TypeParam, decltype(f)>> callback;
        callback.emplace(TypeParam::token_of(source), f);
        std::thread requester([&] { source.request_stop(); });
        while (!entered.load(acquire)) std::this_thread::yield();
        callback.reset();
        EXPECT_TRUE(returned);
        requester.join();
    }
}

TYPED_TEST(stop_family, exactly_one_of_racing_requests_wins) {
    for (int round = 0; round != repeated(500); ++round) {
        typename TypeParam::source source;
        int runs = 0;
        auto f = [&] { ++runs; };
        std::array<bool, 3> won{};
        std::array<bool, 3> seen{};
        {
            callback_of<TypeParam, decltype(f)> callback(TypeParam::token_of(source), f);
            std::array<std::thread, 3> threads;
            for (std::size_t i = 0; i != 3; ++i) {
                threads[i] = std::thread([&, i] {
                    won[i] = source.request_stop();
                    seen[i] = source.stop_requested();
                });
            }
            for (std::thread& t : threads) t.join();
        }
        EXPECT_EQ(won[0] + won[1] + won[2], 1);
        EXPECT_EQ(seen[0] + seen[1] + seen[2], 3);
        EXPECT_EQ(runs, 1);
    }
}

// The request runs the callback, or the constructor does, or the callback is destroyed first.
TYPED_TEST(stop_family, a_racing_registration_runs_its_callback_at_most_once) {
    for (int round = 0; round != repeated(2'000); ++round) {
        typename TypeParam::source source;
        int runs = 0;
        bool requested_before = false;
        std::thread requester([&] { source.request_stop(); });
        {
            requested_before = source.stop_requested();
            auto f = [&] { ++runs; };
            callback_of<TypeParam, decltype(f)> callback(TypeParam::token_of(source), f);
        }
        const int runs_at_end = runs;
        requester.join();
        EXPECT_LE(runs, 1);
        EXPECT_EQ(runs, runs_at_end);
        if (requested_before) {
            EXPECT_EQ(runs, 1);
        }
    }
}

TYPED_TEST(stop_family, callback_functions_may_be_references_and_move_only) {
    typename TypeParam::source source;
    int runs = 0;
    auto f = [&, owned = std::make_unique<int>(1)] { runs += *owned; };
    {
        callback_of<TypeParam, decltype(f)&> by_reference(TypeParam::token_of(source), f);
    }
    callback_of<TypeParam, decltype(f)> moved(TypeParam::token_of(source), std::move(f));
    source.request_stop();
    EXPECT_EQ(runs, 1);
}

// [stoptoken.concepts]: the function is called as std::forward<CallbackFn>(callback_fn)().
struct counts_value_category {
    int* as_rvalue;
    int* as_lvalue;
    void operator()() && { ++*as_rvalue; }
    void operator()() & { ++*as_lvalue; }
};
TYPED_TEST(stop_family, the_function_is_called_with_its_value_category) {
    int as_rvalue = 0;
    int as_lvalue = 0;
    counts_value_category f{&as_rvalue, &as_lvalue};
    {
        typename TypeParam::source source;
        callback_of<TypeParam, counts_value_category> value(TypeParam::token_of(source), f);
        source.request_stop();
    }
    {
        typename TypeParam::source source;
        callback_of<TypeParam, counts_value_category&> ref(TypeParam::token_of(source), f);
        source.request_stop();
    }
    EXPECT_EQ(as_rvalue, 1);
    EXPECT_EQ(as_lvalue, 1);
}

struct throws_on_construction {
    explicit throws_on_construction(int) { throw std::runtime_error("no"); }
    explicit throws_on_construction(char) noexcept {}
    void operator()() noexcept {}
};
TYPED_TEST(stop_family, a_throwing_initializer_leaves_nothing_registered) {
    using callback = callback_of<TypeParam, throws_on_construction>;
    using token = typename TypeParam::token;
    static_assert(!std::is_nothrow_constructible_v<callback, token, int>);
    static_assert(std::is_nothrow_constructible_v<callback, token, char>);
    static_assert(!std::is_constructible_v<callback, token, std::string>);
    static_assert(!std::is_convertible_v<token, callback>);
    typename TypeParam::source source;
    EXPECT_THROW(callback(TypeParam::token_of(source), 1), std::runtime_error);
    callback fine(TypeParam::token_of(source), 'c');
    EXPECT_TRUE(source.request_stop());
}

TYPED_TEST(stop_family, nothing_allocates) {
    allocation_count allocations;
    typename TypeParam::source source;
    auto f = [] {};
    {
        callback_of<TypeParam, decltype(f)> first(TypeParam::token_of(source), f);
    }
    callback_of<TypeParam, decltype(f)> second(TypeParam::token_of(source), f);
    source.request_stop();
    callback_of<TypeParam, decltype(f)> late(TypeParam::token_of(source), f);
    EXPECT_EQ(allocations.so_far(), 0u);
}

TYPED_TEST(stop_family, a_throwing_callback_terminates) {
    typename TypeParam::source source;
    auto f = [] { throw std::runtime_error("out of a callback"); };
    callback_of<TypeParam, decltype(f)> callback(TypeParam::token_of(source), f);
    EXPECT_DEATH(source.request_stop(), "");
}

TYPED_TEST(stop_family, destroying_a_source_with_a_registered_callback_stops_the_process) {
    auto die = [] {
        auto source = std::make_unique<typename TypeParam::source>();
        auto f = [] {};
        callback_of<TypeParam, decltype(f)> callback(TypeParam::token_of(*source), f);
        source.reset();
    };
    EXPECT_DEATH(die(), "destroyed while a callback was registered");
}

// The first callback destroys the parent's callback and the child source, as the last completion of
// when_all does.
TYPED_TEST(stop_family, a_parent_forwards_to_a_child_that_is_destroyed_by_its_last_completion) {
    inplace_stop_source parent;
    struct operation {
        typename TypeParam::source child;
        std::optional<inplace_stop_callback<std::function<void()>>> from_parent;
        std::optional<callback_of<TypeParam, std::function<void()>>> on_stop;
    };
    auto op = std::make_unique<operation>();
    op->on_stop.emplace(TypeParam::token_of(op->child), [&] {
        op->on_stop.reset();
        op->from_parent.reset();
        op.reset();
    });
    op->from_parent.emplace(parent.get_token(), [&] { op->child.request_stop(); });
    EXPECT_TRUE(parent.request_stop());
    EXPECT_EQ(op, nullptr);
}

}  // namespace
