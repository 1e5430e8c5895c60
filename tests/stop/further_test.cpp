// Tolerant sources: any number of callbacks on a token that takes one elsewhere.
#include "allocations.hpp"
#include "emulated.hpp"
#include "sanitizers.hpp"

#include <coppice/stop_token.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <thread>
#include <variant>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;

struct single_tolerant {
    using source = tolerant_single_stop_source;
    using token = single_inplace_stop_token;
    static token token_of(const source& s) noexcept { return s.get_token(); }
};
template <std::size_t N, std::size_t Index>
struct finite_tolerant {
    using source = tolerant_finite_stop_source<N>;
    using token = finite_inplace_stop_token<N, Index>;
    static token token_of(const source& s) noexcept { return s.template get_token<Index>(); }
};

struct call {
    std::function<void()>* what;
    void operator()() const { (*what)(); }
};
template <class Family>
using callback_of = stop_callback_for_t<typename Family::token, call>;

// Callbacks on one token. Each counts its runs and then does what the test says.
template <class Family, std::size_t Count>
struct crowd {
    typename Family::source source;
    std::array<int, Count> runs{};
    std::array<std::function<void()>, Count> functions;
    std::array<std::optional<callback_of<Family>>, Count> callbacks;
    std::function<void(std::size_t)> then = [](std::size_t) {};

    void add(std::size_t i) {
        functions[i] = [this, i] {
            ++runs[i];
            then(i);
        };
        callbacks[i].emplace(Family::token_of(source), call{&functions[i]});
    }
    void add_all() {
        for (std::size_t i = 0; i != Count; ++i) add(i);
    }
    int all_runs() const { return std::accumulate(runs.begin(), runs.end(), 0); }
};

template <class Family>
class stop_further : public testing::Test {};
using families = testing::Types<single_tolerant, finite_tolerant<1, 0>, finite_tolerant<2, 0>,
                                finite_tolerant<3, 2>>;
TYPED_TEST_SUITE(stop_further, families);

static_assert(std::is_same_v<decltype(std::declval<tolerant_single_stop_source&>().get_token()),
                             single_inplace_stop_token>);
static_assert(
    std::is_same_v<decltype(std::declval<tolerant_finite_stop_source<3>&>().get_token<1>()),
                   finite_inplace_stop_token<3, 1>>);
static_assert(sizeof(tolerant_single_stop_source) <= sizeof(single_inplace_stop_source) + 16);
static_assert(sizeof(tolerant_finite_stop_source<10>) <=
              sizeof(finite_inplace_stop_source<10>) + 16);

TYPED_TEST(stop_further, sources_model_the_concepts_and_are_constant_initialized) {
    static_assert(stoppable_source<typename TypeParam::source>);
    static constinit typename TypeParam::source source;
    EXPECT_FALSE(source.stop_requested());
    EXPECT_TRUE(TypeParam::token_of(source).stop_possible());
    EXPECT_EQ(TypeParam::token_of(source), TypeParam::token_of(source));
    typename TypeParam::source other;
    EXPECT_NE(TypeParam::token_of(source), TypeParam::token_of(other));
    EXPECT_FALSE(TypeParam::token_of(other).stop_requested());
    EXPECT_TRUE(other.request_stop());
    EXPECT_FALSE(other.request_stop());
    EXPECT_TRUE(TypeParam::token_of(other).stop_requested());
}

TYPED_TEST(stop_further, a_request_runs_all_callbacks_of_a_token_on_its_thread) {
    const allocation_count allocations;
    const auto self = std::this_thread::get_id();
    crowd<TypeParam, 10> c;
    c.then = [&](std::size_t) {
        EXPECT_EQ(std::this_thread::get_id(), self);
        EXPECT_TRUE(c.source.stop_requested());
    };
    c.add_all();
    const std::size_t before = allocations.so_far();
    EXPECT_TRUE(c.source.request_stop());
    for (auto& callback : c.callbacks) callback.reset();
    EXPECT_EQ(allocations.so_far(), before);
    for (const int runs : c.runs) EXPECT_EQ(runs, 1);
}

TYPED_TEST(stop_further, a_late_callback_runs_in_its_constructor) {
    crowd<TypeParam, 4> c;
    c.add(0);
    c.add(1);
    c.source.request_stop();
    c.add(2);
    EXPECT_EQ(c.runs[2], 1);
    c.callbacks[0].reset();
    c.callbacks[1].reset();
    c.add(3);
    EXPECT_EQ(c.runs[3], 1);
    EXPECT_EQ(c.all_runs(), 4);
}

// Tries every order of removing five callbacks, with a request after every number of removals.
TYPED_TEST(stop_further, callbacks_may_be_removed_in_any_order) {
    std::array<std::size_t, 5> order{0, 1, 2, 3, 4};
    do {
        for (std::size_t removed = 0; removed <= order.size(); ++removed) {
            crowd<TypeParam, 5> c;
            c.add_all();
            for (std::size_t i = 0; i != removed; ++i) c.callbacks[order[i]].reset();
            if (removed % 2 == 1) c.add(order[0]);  // registers again
            c.source.request_stop();
            for (std::size_t i = 0; i != order.size(); ++i) {
                const bool there = i >= removed || (i == 0 && removed % 2 == 1);
                EXPECT_EQ(c.runs[order[i]], there) << i;
            }
        }
    } while (std::next_permutation(order.begin(), order.end()));
}

TYPED_TEST(stop_further, a_running_callback_may_remove_itself_others_or_all) {
    for (int what = 0; what != 4; ++what) {
        crowd<TypeParam, 4> c;
        c.then = [&, what](std::size_t i) {
            if (what == 0) c.callbacks[i].reset();
            if (what == 1) c.callbacks[(i + 1) % 4].reset();
            if (what == 2) {
                for (auto& callback : c.callbacks) callback.reset();
            }
            if (what == 3) c.callbacks[3 - i].reset();
        };
        c.add_all();
        EXPECT_TRUE(c.source.request_stop());
        EXPECT_EQ(c.all_runs(), what == 2 ? 1 : what == 0 ? 4 : what == 3 ? 2 : c.all_runs());
        for (const int runs : c.runs) EXPECT_LE(runs, 1);
    }
}

// The slot of the first callback becomes free while further ones stay where they are.
TYPED_TEST(stop_further, a_new_callback_takes_the_slot_that_became_free) {
    crowd<TypeParam, 3> c;
    c.add(0);
    c.add(1);
    for (int i = 0; i != 10; ++i) {
        c.callbacks[0].reset();
        c.add(0);
        c.add(2);
        c.callbacks[2].reset();
    }
    c.source.request_stop();
    EXPECT_EQ(c.runs, (std::array{1, 1, 0}));
}

// A destructor waits for its own function and for no other.
TYPED_TEST(stop_further, a_removal_waits_for_its_own_callback_only) {
    crowd<TypeParam, 3> c;
    c.then = [&](std::size_t i) {
        if (c.all_runs() != 1) return;
        std::thread([&] { c.callbacks[(i + 1) % 3].reset(); }).join();
    };
    c.add_all();
    c.source.request_stop();
    EXPECT_EQ(c.all_runs(), 2);
}

// Callbacks of three kinds on one token; a chain keeps those of a kind together. Each counts its
// runs, and reports if the function of another kind runs it.
template <class Family>
struct kinds {
    struct entry {
        int kind = 0;
        int runs = 0;
        const std::function<void()>* then = nullptr;
    };
    template <int Kind>
    struct count {
        entry* its;
        void operator()() const {
            EXPECT_EQ(its->kind, Kind);
            ++its->runs;
            if (its->then != nullptr) (*its->then)();
        }
    };
    template <int Kind>
    using callback = stop_callback_for_t<typename Family::token, count<Kind>>;

    typename Family::source source;
    std::vector<entry> entries;
    std::unique_ptr<std::variant<std::monostate, callback<0>, callback<1>, callback<2>>[]>
        callbacks;

    explicit kinds(std::size_t size) : entries(size) {
        callbacks = std::make_unique<typename decltype(callbacks)::element_type[]>(size);
    }
    void add(std::size_t i, int kind) {
        entries[i].kind = kind;
        const auto token = Family::token_of(source);
        if (kind == 0) callbacks[i].template emplace<1>(token, count<0>{&entries[i]});
        if (kind == 1) callbacks[i].template emplace<2>(token, count<1>{&entries[i]});
        if (kind == 2) callbacks[i].template emplace<3>(token, count<2>{&entries[i]});
    }
    void remove(std::size_t i) { callbacks[i].template emplace<0>(); }
    bool has(std::size_t i) const { return callbacks[i].index() != 0; }
};

// Tries every order of removing five callbacks of every choice of kinds, with a request after every
// number of removals.
TYPED_TEST(stop_further, callbacks_of_any_kinds_may_be_removed_in_any_order) {
    constexpr int kinds_used = sanitized ? 2 : 3;
    std::array<int, 5> kind{};
    for (bool more = true; more;) {
        std::array<std::size_t, 5> order{0, 1, 2, 3, 4};
        do {
            for (std::size_t removed = 0; removed <= order.size(); ++removed) {
                kinds<TypeParam> c(order.size());
                for (std::size_t i = 0; i != order.size(); ++i) c.add(i, kind[i]);
                for (std::size_t i = 0; i != removed; ++i) c.remove(order[i]);
                c.source.request_stop();
                for (std::size_t i = 0; i != order.size(); ++i) {
                    EXPECT_EQ(c.entries[order[i]].runs, i >= removed) << i;
                }
            }
        } while (std::next_permutation(order.begin(), order.end()));
        more = false;
        for (int& digit : kind) {
            digit = (digit + 1) % kinds_used;
            if (digit != 0) {
                more = true;
                break;
            }
        }
    }
}

// Callbacks of random kinds are added and removed; running ones remove others and themselves.
TYPED_TEST(stop_further, random_callbacks_may_be_removed_before_and_during_a_stop) {
    std::minstd_rand random(3);
    constexpr std::size_t size = 20;
    for (int round = 0; round != (sanitized ? 300 : 3'000); ++round) {
        kinds<TypeParam> c(size);
        std::array<bool, size> may_be_skipped{};
        const std::function<void()> remove_one = [&] {
            const std::size_t i = random() % size;
            may_be_skipped[i] = true;
            c.remove(i);
        };
        std::array<bool, size> there{};
        for (int step = 0; step != 100; ++step) {
            const std::size_t i = random() % size;
            if (c.has(i)) {
                c.remove(i);
            } else {
                c.add(i, static_cast<int>(random() % 3));
            }
            there[i] = c.has(i);
        }
        if (round % 2 == 1) {
            for (auto& each : c.entries) each.then = &remove_one;
        }
        c.source.request_stop();
        for (std::size_t i = 0; i != size; ++i) {
            EXPECT_LE(c.entries[i].runs, there[i]) << i;
            if (!may_be_skipped[i]) {
                EXPECT_EQ(c.entries[i].runs, there[i]) << i;
            }
        }
    }
}

// A removal takes a few steps. If it walked along the others, this would take 20 billion steps
// each.
TYPED_TEST(stop_further, two_hundred_thousand_callbacks_are_removed_without_a_walk) {
    constexpr std::size_t size = 200'000;
    std::vector<std::size_t> order(size);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (const char* const how : {"oldest first", "newest first", "at random"}) {
        SCOPED_TRACE(how);
        kinds<TypeParam> c(size);
        for (std::size_t i = 0; i != size; ++i) c.add(i, static_cast<int>(i % 3));
        for (std::size_t i = 0; i != size; ++i) {
            if (order[i] != size / 2) c.remove(order[i]);
        }
        c.source.request_stop();
        int runs = 0;
        for (const auto& each : c.entries) runs += each.runs;
        EXPECT_EQ(runs, 1);
        EXPECT_EQ(c.entries[size / 2].runs, 1);
        if (*how == 'o') {
            std::reverse(order.begin(), order.end());
        } else {
            std::shuffle(order.begin(), order.end(), std::minstd_rand(5));
        }
    }
}

// Two threads register and remove at one token while a third stops it.
TYPED_TEST(stop_further, threads_may_register_remove_and_stop_concurrently) {
    constexpr int rounds = repeated(sanitized ? 200 : 2'000);
    for (int round = 0; round != rounds; ++round) {
        typename TypeParam::source source;
        auto come_and_go = [&](int times) {
            for (int i = 0; i != times; ++i) {
                std::array<int, 3> runs{};
                std::array<std::function<void()>, 3> count;
                for (std::size_t k = 0; k != 3; ++k) count[k] = [&runs, k] { ++runs[k]; };
                std::optional<callback_of<TypeParam>> first, second, third;
                first.emplace(TypeParam::token_of(source), call{&count[0]});
                second.emplace(TypeParam::token_of(source), call{&count[1]});
                third.emplace(TypeParam::token_of(source), call{&count[2]});
                if (i % 2 == 0) first.reset();
                second.reset();
                third.reset();
                first.reset();
                for (const int r : runs) EXPECT_LE(r, 1);
            }
        };
        int kept_runs = 0;
        std::function<void()> keep = [&] { ++kept_runs; };
        {
            callback_of<TypeParam> kept(TypeParam::token_of(source), call{&keep});
            std::thread a([&] { come_and_go(3); });
            std::thread b([&] { come_and_go(4); });
            EXPECT_TRUE(source.request_stop());
            a.join();
            b.join();
        }
        EXPECT_EQ(kept_runs, 1);
    }
}

// All slots and further callbacks of a finite source at once.
TEST(stop_further_finite, every_token_takes_any_number_of_callbacks) {
    tolerant_finite_stop_source<3> source;
    std::vector<std::size_t> order;
    auto note = [&](std::size_t which) { return [&order, which] { order.push_back(which); }; };
    finite_inplace_stop_callback c2(source.get_token<2>(), note(2));
    finite_inplace_stop_callback c20(source.get_token<2>(), note(20));
    finite_inplace_stop_callback c0(source.get_token<0>(), note(0));
    finite_inplace_stop_callback c1(source.get_token<1>(), note(1));
    finite_inplace_stop_callback c10(source.get_token<1>(), note(10));
    finite_inplace_stop_callback c200(source.get_token<2>(), note(200));
    source.request_stop();
    ASSERT_EQ(order.size(), 6U);
    std::sort(order.begin() + 3, order.end());  // the order of the further ones is not promised
    EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 10, 20, 200}));
}

TEST(stop_further_misuse, a_second_callback_on_a_strict_source_stops_the_process) {
    const auto twice = [](auto token) {
        auto f = [] {};
        using callback = stop_callback_for_t<decltype(token), decltype(f)>;
        const callback first(token, f);
        const callback second(token, f);
    };
    EXPECT_DEATH(twice(single_inplace_stop_source().get_token()), "a second callback");
    EXPECT_DEATH(twice(finite_inplace_stop_source<2>().get_token<1>()), "a second callback");
}

TEST(stop_further_misuse, a_tolerant_source_destroyed_with_a_callback_stops_the_process) {
    const auto destroy_in_use = [] {
        auto f = [] {};
        using callback = finite_inplace_stop_callback<2, 1, decltype(f)>;
        std::optional<tolerant_finite_stop_source<2>> source(std::in_place);
        std::optional<callback> first;
        std::optional<callback> second;
        first.emplace(source->get_token<1>(), f);
        second.emplace(source->get_token<1>(), f);
        first.reset();
        source.reset();
    };
    EXPECT_DEATH(destroy_in_use(), "while a callback was registered");
}

}  // namespace
