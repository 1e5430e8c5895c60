// Plan: storage and small tools of the room: alternatives, completion_store, product, invoke, meta,
// stop_registration, start_race.
#include <coppice/exec/internal/alternatives.hpp>
#include <coppice/exec/internal/invoke.hpp>
#include <coppice/exec/internal/meta.hpp>
#include <coppice/exec/internal/product.hpp>
#include <coppice/exec/internal/start_race.hpp>
#include <coppice/exec/internal/stop_registration.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>

namespace {

namespace ex = coppice::execution;

TEST(alternatives, hold_one_object_and_destroy_it) {
    auto shared = std::make_shared<int>(1);
    {
        ex::internal::alternatives<std::shared_ptr<int>, int> a;
        EXPECT_TRUE(a.empty());
        a.emplace<std::shared_ptr<int>>(shared);
        EXPECT_EQ(shared.use_count(), 2);
        EXPECT_TRUE(a.holds<std::shared_ptr<int>>());
        a.emplace<int>(5);
        EXPECT_EQ(shared.use_count(), 1);
        int seen = 0;
        a.visit([&](auto& value) {
            if constexpr (std::is_same_v<decltype(value), int&>) seen = value;
        });
        EXPECT_EQ(seen, 5);
        a.emplace<std::shared_ptr<int>>(shared);
    }
    EXPECT_EQ(shared.use_count(), 1);
}

TEST(alternatives, are_empty_after_a_constructor_that_throws) {
    ex::internal::alternatives<probes::throwing_copy, int> a;
    a.emplace<int>(1);
    probes::throwing_copy bad(1);
    bad.value = -1;
    EXPECT_THROW(a.emplace<probes::throwing_copy>(bad), std::runtime_error);
    EXPECT_TRUE(a.empty());
    int visits = 0;
    a.visit([&](auto&) { ++visits; });
    EXPECT_EQ(visits, 0);
}

TEST(alternatives, hold_immovable_types_made_in_place) {
    struct immovable {
        explicit immovable(int i) : value(i) {}
        immovable(immovable&&) = delete;
        int value;
    };
    ex::internal::alternatives<immovable> a;
    a.emplace_with<immovable>([] { return immovable(3); });
    EXPECT_EQ(a.get<immovable>().value, 3);
}

TEST(completion_store, delivers_the_stored_completion_once_or_as_copies) {
    using sigs = ex::completion_signatures<ex::set_value_t(int, std::string), ex::set_error_t(int),
                                           ex::set_stopped_t()>;
    ex::internal::completion_store<sigs> store;
    EXPECT_TRUE(store.empty());
    store.keep(ex::set_value, 1, std::string("two"));
    probes::record r;
    probes::receiver<> rcvr(r);
    store.deliver_copy(rcvr);
    store.deliver(rcvr);
    EXPECT_EQ(r.said(), "value(1, two) and value(1, two)");
}

TEST(completion_store, an_exception_while_storing_becomes_the_completion) {
    ex::internal::completion_store<
        ex::completion_signatures<ex::set_value_t(const probes::throwing_copy&)>>
        store;
    probes::throwing_copy bad(1);
    bad.value = -1;
    store.keep(ex::set_value, std::as_const(bad));
    probes::record r;
    probes::receiver<> rcvr(r);
    store.deliver(rcvr);
    EXPECT_EQ(r.said(), "error(exception copy)");
}

TEST(product, applies_decomposes_and_stores_empty_types_in_no_space) {
    struct empty_a {};
    struct empty_b {};
    ex::internal::product<int, std::unique_ptr<int>> p(ex::internal::construct_each(), 1,
                                                       std::make_unique<int>(2));
    EXPECT_EQ(p.apply([](int i, std::unique_ptr<int>& q) { return i + *q; }), 3);
    auto& [one, two] = p;
    EXPECT_EQ(one + *two, 3);
    EXPECT_EQ(std::move(p).apply([](int, std::unique_ptr<int>&& q) { return *std::move(q); }), 2);
    static_assert(sizeof(ex::internal::product<empty_a, int, empty_b>) == sizeof(int));
    // g++ 12 zeroed neighbors of empty elements while these were aggregates.
    const ex::internal::product<empty_a, int, empty_b, int> full(ex::internal::construct_each(),
                                                                 empty_a(), 7, empty_b(), 8);
    EXPECT_EQ(full.get<1>() * full.get<3>(), 56);
}

TEST(invoke, calls_everything_that_std_invoke_calls) {
    struct thing {
        explicit thing(int i) : value(i) {}
        int add(int i) const { return value + i; }
        int value;
    };
    thing t(1);
    std::reference_wrapper<thing> wrapped(t);
    const auto unique = std::make_unique<thing>(5);
    EXPECT_EQ(ex::internal::invoke([](int i) { return i; }, 3), 3);
    EXPECT_EQ(ex::internal::invoke(&thing::add, t, 1), std::invoke(&thing::add, t, 1));
    EXPECT_EQ(ex::internal::invoke(&thing::add, &t, 1), 2);
    EXPECT_EQ(ex::internal::invoke(&thing::add, wrapped, 1), 2);
    EXPECT_EQ(ex::internal::invoke(&thing::value, unique), 5);
    ex::internal::invoke(&thing::value, t) = 9;
    EXPECT_EQ(t.value, 9);
    static_assert(noexcept(ex::internal::invoke([]() noexcept {})));
    static_assert(!noexcept(ex::internal::invoke([] {})));
}

TEST(meta, sets_keep_the_first_of_equal_types) {
    static_assert(
        std::is_same_v<ex::internal::set_insert_t<ex::internal::type_list<int>, char, int, char>,
                       ex::internal::type_list<int, char>>);
    static_assert(std::is_same_v<
                  ex::internal::set_union_t<ex::internal::type_list<>, ex::internal::type_list<int>,
                                            ex::internal::type_list<char, int>>,
                  ex::internal::type_list<int, char>>);
    static_assert(ex::internal::movable_value<int&> && !ex::internal::movable_value<int(&)[3]>);
    static_assert(std::is_same_v<ex::internal::like_t<const int&, char>, const char&>);
}

TEST(stop_registration, runs_its_function_until_it_is_reset) {
    coppice::inplace_stop_source source;
    coppice::inplace_stop_source target;
    using fn = ex::internal::request_stop_of<coppice::inplace_stop_source>;
    ex::internal::stop_registration<coppice::inplace_stop_token, fn> registration;
    registration.engage(source.get_token(), fn(target));
    registration.reset();
    source.request_stop();
    EXPECT_FALSE(target.stop_requested());
    ex::internal::stop_registration<coppice::inplace_stop_token, fn> late;
    late.engage(source.get_token(), fn(target));
    EXPECT_TRUE(target.stop_requested());
    static_assert(std::is_empty_v<ex::internal::stop_registration<coppice::never_stop_token, fn>>);
}

TEST(start_race, only_the_second_of_starter_and_completion_continues) {
    ex::internal::start_race race;
    race.open();
    EXPECT_FALSE(race.completed());  // inside start(): the starter continues
    EXPECT_TRUE(race.returned());
    race.open();
    EXPECT_FALSE(race.returned());  // nothing has completed yet
    EXPECT_TRUE(race.completed());  // so the completion continues
}

TEST(start_race, exactly_one_of_two_threads_continues) {
    for (int round = 0; round != 2000; ++round) {
        ex::internal::start_race race;
        bool completion_goes_on = false;
        race.open();
        std::thread other([&] { completion_goes_on = race.completed(); });
        const bool starter_goes_on = race.returned();
        other.join();
        EXPECT_NE(starter_goes_on, completion_goes_on);
    }
}

}  // namespace
