// Plan: the states of scopes [exec.counting.scopes]; join, close, stop; associate, spawn, and
// spawn_future in them; the listing of outstanding operations; misuse.
#include <coppice/exec/associate.hpp>
#include <coppice/exec/internal/allocate.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/spawn_future.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace {

namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;
using probes::outcome;

// A join, connected to a receiver whose start scheduler is a context of the test.
class joined {
public:
    template <class Scope>
    explicit joined(Scope& scope)
        : context_(),
          record_(),
          op_(ex::connect(scope.join(), receiver(record_, ex::prop(ex::get_start_scheduler,
                                                                   context_.get_scheduler())))) {
        ex::start(op_);
        context_.run_all();
    }
    const std::string& said() {
        context_.run_all();
        return record_.said();
    }

private:
    using receiver =
        probes::receiver<ex::prop<ex::get_start_scheduler_t, probes::by_hand_context::scheduler>>;
    probes::by_hand_context context_;
    probes::record record_;
    ex::connect_result_t<ex::internal::scope_join_sender, receiver> op_;
};

template <class Scope>
class exec_counting_scopes : public testing::Test {};
using scopes = testing::Types<ex::simple_counting_scope, ex::counting_scope>;
TYPED_TEST_SUITE(exec_counting_scopes, scopes);

TYPED_TEST(exec_counting_scopes, an_unused_scope_is_destroyed_without_a_join) {
    TypeParam unused;
    TypeParam closed;
    closed.close();
    static_assert(ex::scope_token<decltype(unused.get_token())>);
    static_assert(ex::scope_association<decltype(unused.get_token().try_associate())>);
    static_assert(noexcept(unused.close()) && noexcept(unused.get_token()));
}

TYPED_TEST(exec_counting_scopes, join_of_an_unused_scope_completes_at_once) {
    TypeParam scope;
    EXPECT_EQ(joined(scope).said(), "value()");
    EXPECT_FALSE(scope.get_token().try_associate());
}

TYPED_TEST(exec_counting_scopes, join_completes_when_the_last_association_ends) {
    TypeParam scope;
    auto a = scope.get_token().try_associate();
    auto b = a.try_associate();
    EXPECT_TRUE(a && b);
    EXPECT_EQ(scope.outstanding(), 2u);
    joined first(scope);
    joined second(scope);
    a = {};
    EXPECT_EQ(first.said(), "");
    b = {};
    EXPECT_EQ(first.said(), "value()");
    EXPECT_EQ(second.said(), "value()");
    EXPECT_EQ(joined(scope).said(), "value()");
}

TYPED_TEST(exec_counting_scopes, a_joining_scope_takes_associations_until_it_is_closed) {
    TypeParam scope;
    auto a = scope.get_token().try_associate();
    joined j(scope);
    auto b = scope.get_token().try_associate();
    EXPECT_TRUE(b);
    scope.close();
    EXPECT_FALSE(scope.get_token().try_associate());
    EXPECT_FALSE(a.try_associate());
    a = {};
    EXPECT_EQ(j.said(), "");
    b = {};
    EXPECT_EQ(j.said(), "value()");
}

TYPED_TEST(exec_counting_scopes, associations_move_and_are_released_once) {
    TypeParam scope;
    {
        auto a = scope.get_token().try_associate();
        auto b = std::move(a);
        EXPECT_FALSE(a);
        EXPECT_TRUE(b);
        auto c = scope.get_token().try_associate();
        c = std::move(b);
        EXPECT_EQ(scope.outstanding(), 1u);
        decltype(c) none;
        EXPECT_FALSE(none);
        EXPECT_FALSE(none.try_associate());
    }
    EXPECT_EQ(scope.outstanding(), 0u);
    EXPECT_EQ(joined(scope).said(), "value()");
}

TYPED_TEST(exec_counting_scopes, associate_ties_the_sender_to_the_scope) {
    TypeParam scope;
    {
        auto sndr = ex::just(3) | ex::associate(scope.get_token());
        EXPECT_EQ(scope.outstanding(), 1u);
        auto copy = sndr;
        EXPECT_EQ(scope.outstanding(), 2u);
        EXPECT_EQ(outcome(std::move(sndr)), "value(3)");
        EXPECT_EQ(scope.outstanding(), 1u);
        EXPECT_EQ(outcome(copy), "value(3)");
    }
    scope.close();
    EXPECT_EQ(outcome(ex::associate(ex::just(3), scope.get_token())), "stopped");
    EXPECT_EQ(joined(scope).said(), "value()");
}

TYPED_TEST(exec_counting_scopes, spawn_runs_now_and_join_waits_for_it) {
    TypeParam scope;
    probes::by_hand hand;
    ex::spawn(hand.get() | ex::let_error([](int) noexcept { return ex::just(0); }) |
                  ex::then([](int) noexcept {}),
              scope.get_token());
    EXPECT_EQ(hand.started, 1);
    joined j(scope);
    EXPECT_EQ(j.said(), "");
    hand.value(1);
    EXPECT_EQ(hand.destroyed, 1);
    EXPECT_EQ(j.said(), "value()");
}

TYPED_TEST(exec_counting_scopes, spawn_into_a_closed_scope_starts_nothing) {
    TypeParam scope;
    scope.close();
    bool ran = false;
    ex::spawn(ex::just() | ex::then([&]() noexcept { ran = true; }), scope.get_token());
    EXPECT_FALSE(ran);
}

TYPED_TEST(exec_counting_scopes, spawn_future_gives_the_result_in_either_order) {
    TypeParam scope;
    EXPECT_EQ(outcome(ex::spawn_future(ex::just(1, 2), scope.get_token())), "value(1, 2)");
    probes::by_hand hand;
    probes::record r;
    auto op = ex::connect(ex::spawn_future(hand.get(), scope.get_token()), probes::receiver<>(r));
    ex::start(op);
    EXPECT_EQ(r.said(), "");
    hand.error(4);
    EXPECT_EQ(r.said(), "error(4)");
    EXPECT_EQ(hand.destroyed, 1);
    EXPECT_EQ(joined(scope).said(), "value()");
}

TYPED_TEST(exec_counting_scopes, dropping_a_future_asks_the_operation_to_stop) {
    TypeParam scope;
    probes::by_hand hand;
    {
        auto dropped = ex::spawn_future(hand.get(), scope.get_token());
    }
    EXPECT_TRUE(hand.stop_requested());
    hand.stopped();
    EXPECT_EQ(hand.destroyed, 1);
    EXPECT_EQ(joined(scope).said(), "value()");
}

TYPED_TEST(exec_counting_scopes, a_stop_of_the_consumer_stops_the_operation_and_completes_at_once) {
    TypeParam scope;
    coppice::inplace_stop_source source;
    probes::by_hand hand;
    probes::record r;
    {
        auto op = ex::connect(ex::spawn_future(hand.get(), scope.get_token()),
                              probes::receiver(r, probes::stop_env(source)));
        ex::start(op);
        source.request_stop();
        EXPECT_EQ(r.said(), "stopped");
        EXPECT_TRUE(hand.stop_requested());
    }
    hand.value(1);
    EXPECT_EQ(hand.destroyed, 1);
    EXPECT_EQ(joined(scope).said(), "value()");
}

TYPED_TEST(exec_counting_scopes, an_operation_that_completes_inside_the_consumers_stop_is_safe) {
    TypeParam scope;
    coppice::inplace_stop_source source;
    probes::record r;
    auto op = ex::connect(ex::spawn_future(probes::until_stopped(), scope.get_token()),
                          probes::receiver(r, probes::stop_env(source)));
    ex::start(op);
    source.request_stop();
    EXPECT_EQ(r.said(), "stopped");
    EXPECT_EQ(joined(scope).said(), "value()");
}

TYPED_TEST(exec_counting_scopes, spawn_future_into_a_closed_scope_is_stopped) {
    TypeParam scope;
    scope.close();
    EXPECT_EQ(outcome(ex::spawn_future(ex::just(1), scope.get_token())), "stopped");
}

TEST(exec_scope_counting, request_stop_reaches_running_and_later_operations) {
    ex::counting_scope scope;
    probes::by_hand hand;
    ex::spawn(hand.get() | ex::let_error([](int) noexcept { return ex::just(0); }) |
                  ex::then([](int) noexcept {}),
              scope.get_token());
    EXPECT_FALSE(hand.stop_requested());
    scope.request_stop();
    EXPECT_TRUE(hand.stop_requested());
    EXPECT_EQ(outcome(ex::associate(probes::until_stopped(), scope.get_token())), "stopped");
    hand.stopped();
    EXPECT_EQ(joined(scope).said(), "value()");
}

TEST(exec_scope_counting, request_stop_of_an_unused_scope_leaves_it_unused) {
    ex::counting_scope scope;
    scope.request_stop();
    EXPECT_EQ(scope.outstanding(), 0u);
}

TEST(exec_scope_counting, join_waits_for_a_running_request_stop) {
    for (int round = 0; round != 200; ++round) {
        auto scope = std::make_unique<ex::counting_scope>();
        ex::spawn(probes::until_stopped() | ex::then([](int) noexcept {}), scope->get_token());
        std::thread stopper([s = scope.get()] { s->request_stop(); });
        sync_wait(scope->join());
        scope.reset();
        stopper.join();
    }
}

template <class T>
class counting_allocator {
public:
    using value_type = T;
    explicit counting_allocator(int& count) noexcept : count_(&count) {}
    template <class U>
    counting_allocator(const counting_allocator<U>& other) noexcept : count_(other.count_) {}
    T* allocate(std::size_t n) {
        ++*count_;
        return std::allocator<T>().allocate(n);
    }
    void deallocate(T* memory, std::size_t n) {
        --*count_;
        std::allocator<T>().deallocate(memory, n);
    }
    bool operator==(const counting_allocator&) const = default;

private:
    template <class>
    friend class counting_allocator;
    int* count_;
};

TEST(exec_spawn, allocates_from_the_environment_and_tells_the_sender) {
    ex::simple_counting_scope scope;
    int count = 0;
    const counting_allocator<std::byte> allocator(count);
    probes::by_hand hand;
    bool same = false;
    ex::spawn(hand.get() | ex::let_error([](int) noexcept { return ex::just(0); }) |
                  ex::let_value([](int) noexcept { return ex::read_env(coppice::get_allocator); }) |
                  ex::then([&](auto a) noexcept { same = a == allocator; }),
              scope.get_token(), ex::prop(coppice::get_allocator, allocator));
    EXPECT_EQ(count, 1);
    hand.value(1);
    EXPECT_EQ(count, 0);
    EXPECT_TRUE(same);
    {
        auto future = ex::spawn_future(ex::just(1), scope.get_token(),
                                       ex::prop(coppice::get_allocator, allocator));
        EXPECT_EQ(count, 1);
    }
    EXPECT_EQ(count, 0);
    EXPECT_EQ(joined(scope).said(), "value()");
}

TEST(exec_spawn, an_exception_while_connecting_leaves_nothing_behind) {
    ex::simple_counting_scope scope;
    int count = 0;
    auto sndr = ex::just(probes::throwing_copy(1)) | ex::then([](auto&&) noexcept {});
    sndr.child.data.get<0>().value = -1;
    EXPECT_THROW(ex::spawn(std::move(sndr), scope.get_token(),
                           ex::prop(coppice::get_allocator, counting_allocator<std::byte>(count))),
                 std::runtime_error);
    EXPECT_EQ(count, 0);
    EXPECT_EQ(scope.outstanding(), 0u);
}

TEST(exec_spawn, many_threads_spawn_and_one_join_waits_for_all) {
    for (int round = 0; round != 20; ++round) {
        ex::run_loop loop;
        std::thread runner([&] { loop.run(); });
        ex::simple_counting_scope scope;
        coppice::internal::atomic<int> ran{0};
        std::vector<std::thread> spawners;
        for (int t = 0; t != 3; ++t) {
            spawners.emplace_back([&] {
                for (int i = 0; i != 100; ++i) {
                    ex::spawn(ex::schedule(loop.get_scheduler()) | ex::then([&]() noexcept {
                                  ran.fetch_add(1, coppice::internal::relaxed);
                              }),
                              scope.get_token());
                }
            });
        }
        for (std::thread& s : spawners) s.join();
        sync_wait(scope.join());
        EXPECT_EQ(ran.load(coppice::internal::relaxed), 300);
        loop.finish();
        runner.join();
    }
}

TEST(scope_listing, names_where_running_operations_were_spawned) {
    ex::counting_scope scope(ex::record_outstanding);
    probes::by_hand hand;
    const unsigned line = __LINE__ + 1;
    ex::spawn(hand.get() | ex::let_error([](int) noexcept { return ex::just(0); }) |
                  ex::then([](int) noexcept {}),
              scope.get_token());
    std::vector<unsigned> lines;
    const auto list = [&] {
        lines.clear();
        scope.for_each_outstanding([&](const std::source_location& where) {
            EXPECT_TRUE(std::string(where.file_name()).ends_with("scope_test.cpp"));
            lines.push_back(where.line());
        });
    };
    list();
    EXPECT_EQ(lines, std::vector<unsigned>{line});
    hand.value(1);
    list();
    EXPECT_TRUE(lines.empty());
    EXPECT_EQ(joined(scope).said(), "value()");
}

TEST(scope_listing, prints_one_line_for_each_operation) {
    ex::simple_counting_scope scope(ex::record_outstanding);
    probes::by_hand hand;
    {
        auto future = ex::spawn_future(hand.get(), scope.get_token());
        testing::internal::CaptureStderr();
        scope.print_outstanding();
        const std::string said = testing::internal::GetCapturedStderr();
        EXPECT_NE(said.find("1 outstanding"), std::string::npos) << said;
        EXPECT_NE(said.find("scope_test.cpp:"), std::string::npos) << said;
    }
    hand.stopped();
    EXPECT_EQ(joined(scope).said(), "value()");
}

TEST(exec_scope_death, misuse_ends_the_process) {
    EXPECT_DEATH(
        {
            ex::simple_counting_scope scope;
            outcome(ex::associate(ex::just(), scope.get_token()));
        },
        "scope was destroyed before its join.. completed");
    EXPECT_DEATH(
        {
            auto scope = std::make_unique<ex::counting_scope>();
            probes::by_hand hand;
            auto future = ex::spawn_future(hand.get(), scope->get_token());
            scope.reset();
        },
        "scope was destroyed before its join.. completed");
    EXPECT_DEATH(
        {
            ex::simple_counting_scope scope;
            auto a = scope.get_token().try_associate();
            joined j(scope);
        },
        "destroyed while it waited");
}

}  // namespace
