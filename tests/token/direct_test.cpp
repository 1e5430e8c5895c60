// Initiations that are templates and find their completion by their own address: for every token,
// with and without members, inside the initiation, later, and on another thread.
#include <coppice/execution.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>
#include <coppice/token/completion.hpp>
#include <coppice/token/signature.hpp>

#include "allocations.hpp"
#include "detached.hpp"
#include "system.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;
namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;

// Returns its parameter through the queue; a negative one is an errno. Keeps no completion.
class queued_initiation : system_context {
public:
    queued_initiation(test::system& s, int value) noexcept : system_(&s) { parameter = value; }
    template <class Completion>
    void operator()(Completion) noexcept {
        function = [](int result, system_context* context) {
            const std::error_code error(result < 0 ? -result : 0, std::system_category());
            Completion::of (*static_cast<queued_initiation*>(context))(error, result);
        };
        system_->start(*this);
    }
    void drive(block_latch& done) noexcept {
        while (!done.is_set()) system_->run_one();
    }

private:
    test::system* system_;
};
class promising_initiation : public queued_initiation {
public:
    static constexpr bool completes_inside = false;
    using queued_initiation::queued_initiation;
};

// Has no members, so it takes no space.
struct empty_initiation {
    template <class Completion>
    void operator()(Completion) noexcept {
        Completion::of (*this)(no_error, 5);
    }
};
// The same on a thread of its own, and move-only.
struct elsewhere_initiation {
    explicit elsewhere_initiation(int n) : number(std::make_unique<int>(n)) {}
    template <class Completion>
    void operator()(Completion) noexcept {
        std::thread([this] { Completion::of (*this)(no_error, *number); }).detach();
    }
    std::unique_ptr<int> number;
};
// Keeps its argument as a completion<int>.
struct converting_initiation {
    template <class Completion>
    void operator()(Completion done) noexcept {
        completion<int> kept = done;
        std::move(kept)(no_error, 9);
    }
};

template <class Initiation, class Token = use_await_t, class... Args>
auto start(Token&& token, Args&&... args) {
    return completion_token_transform<void(std::error_code, int)>(
        static_cast<Token&&>(token), Initiation(static_cast<Args&&>(args)...));
}

static_assert(std::is_empty_v<kept_initiation<empty_initiation>>);
static_assert(sizeof(initiated_state<empty_initiation, int>) == sizeof(completion_state<int>));
static_assert(!std::is_copy_constructible_v<initiated_state<empty_initiation, int>>);

template <class Initiation>
class direct_later : public testing::Test {};
using later_initiations = testing::Types<queued_initiation, promising_initiation>;
TYPED_TEST_SUITE(direct_later, later_initiations);

TYPED_TEST(direct_later, serves_every_token) {
    test::system os;
    int got = 0;
    auto wait = [&]() -> task<> {
        for (int i = 0; i != 100; ++i) got += co_await start<TypeParam>(use_await, os, 1);
        std::error_code ec;
        co_await start<TypeParam>(use_await[ec], os, -EPIPE);
        EXPECT_EQ(ec.value(), EPIPE);
        EXPECT_THROW(co_await start<TypeParam>(use_await, os, -EPIPE), std::system_error);
        got += co_await (start<TypeParam>(use_await, os, 10) |
                         ex::then([](int n) noexcept { return 2 * n; }));
    };
    auto run = [&]() -> detached { co_await wait(); };
    run();
    os.run();
    EXPECT_EQ(got, 120);

    start<TypeParam>([&](std::error_code, int n) { got = n; }, os, 7);
    EXPECT_EQ(got, 120);
    os.run();
    EXPECT_EQ(got, 7);

    std::future<int> future = start<TypeParam>(use_future, os, 8);
    std::future<int> failing = start<TypeParam>(use_future, os, -EIO);
    os.run();
    EXPECT_EQ(future.get(), 8);
    EXPECT_THROW(failing.get(), std::system_error);

    EXPECT_EQ(start<TypeParam>(block, os, 9), 9);
    EXPECT_THROW(start<TypeParam>(block, os, -EIO), std::system_error);
    std::error_code ec;
    start<TypeParam>(block[ec], os, -EIO);
    EXPECT_EQ(ec.value(), EIO);
}

TYPED_TEST(direct_later, allocates_nothing) {
    test::system os;
    int left = 100;
    struct again {
        test::system* os;
        int* left;
        void operator()(std::error_code, int) const {
            if (--*left != 0) start<TypeParam>(*this, *os, 1);
        }
    };
    start<TypeParam>(again{&os, &left}, os, 1);
    os.run();
    left = 1000;
    auto wait = [&]() -> detached {
        for (int i = 0; i != 1000; ++i) co_await start<TypeParam>(use_await, os, 1);
    };
    wait();
    start<TypeParam>(again{&os, &left}, os, 1);
    const allocation_count allocations;
    os.run();
    EXPECT_EQ(left, 0);
    EXPECT_EQ(allocations.so_far(), 0u);
}

TYPED_TEST(direct_later, is_called_on_the_callbacks_scheduler) {
    test::system os;
    ex::run_loop here;
    int got = 0;
    start<TypeParam>(bind_env(ex::prop(ex::get_scheduler, here.get_scheduler()),
                              [&](std::error_code, int n) { got = n; }),
                     os, 3);
    os.run();
    EXPECT_EQ(got, 0);
    here.finish();
    here.run();
    EXPECT_EQ(got, 3);
}

TEST(direct, an_initiation_may_be_empty) {
    int got = 0;
    auto wait = [&]() -> task<> {
        for (int i = 0; i != 1'000'000; ++i) got += co_await start<empty_initiation>(use_await);
    };
    sync_wait(wait());  // on constant stack
    EXPECT_EQ(got, 5'000'000);
    start<empty_initiation>([&](std::error_code, int n) { got = n; });
    EXPECT_EQ(got, 5);
    EXPECT_EQ(start<empty_initiation>(use_future).get(), 5);
    EXPECT_EQ(start<empty_initiation>(block), 5);
    EXPECT_EQ(sync_wait(start<empty_initiation>(use_await)), std::tuple(5));
}

TEST(direct, completes_on_another_thread) {
    for (int i = 0; i != 200; ++i) {
        auto wait = [&]() -> task<int> {
            co_return co_await start<elsewhere_initiation>(use_await, i);
        };
        EXPECT_EQ(sync_wait(wait()), std::tuple(i));
        EXPECT_EQ(sync_wait(start<elsewhere_initiation>(use_await, i)), std::tuple(i));
        EXPECT_EQ(start<elsewhere_initiation>(block, i), i);
        EXPECT_EQ(start<elsewhere_initiation>(use_future, i).get(), i);
    }
}

TEST(direct, converts_to_a_completion) {
    EXPECT_EQ(start<converting_initiation>(block), 9);
    EXPECT_EQ(sync_wait(start<converting_initiation>(use_await)), std::tuple(9));
    auto wait = [&]() -> task<int> { co_return co_await start<converting_initiation>(use_await); };
    EXPECT_EQ(sync_wait(wait()), std::tuple(9));

    // The completion of a generic lambda stays valid when it is kept.
    std::vector<completion<int>> kept;
    int got = 0;
    completion_token_transform<void(std::error_code, int)>(
        [&](std::error_code, int n) { got = n; },
        [&](auto done) noexcept { kept.push_back(done); });
    EXPECT_EQ(got, 0);
    std::move(kept.back())(no_error, 11);
    EXPECT_EQ(got, 11);
}

// Ends only when it is told to stop.
class stopping_initiation {
public:
    stopping_initiation() noexcept = default;
    stopping_initiation(const stopping_initiation&) noexcept {}
    template <class Completion>
    void operator()(Completion done) noexcept {
        end_ = [](stopping_initiation& self) noexcept {
            auto ended = Completion::of(self);
            ended.tell_stopped();
            std::move(ended)(std::make_error_code(std::errc::operation_canceled), 0);
        };
        registration_.engage(get_stop_token(ex::get_env(done)), on_stop{this});
    }

private:
    struct on_stop {
        stopping_initiation* self;
        void operator()() noexcept { self->end_(*self); }
    };
    void (*end_)(stopping_initiation&) noexcept = nullptr;
    ex::internal::stop_registration<inplace_stop_token, on_stop> registration_;
};

TEST(direct, sees_a_stop_request) {
    inplace_stop_source source;
    std::error_code heard;
    start<stopping_initiation>(bind_env(ex::prop(get_stop_token, source.get_token()),
                                        [&](std::error_code error, int) { heard = error; }));
    EXPECT_FALSE(heard);
    source.request_stop();
    EXPECT_EQ(heard, std::errc::operation_canceled);

    // A sibling fails, and the operation is stopped.
    const auto beside_failure = [](auto operation) {
        bool failed = false;
        sync_wait(ex::when_all(std::move(operation), ex::just_error(1)) |
                  ex::then([](auto&&...) noexcept {}) |
                  ex::upon_error([&](auto) noexcept { failed = true; }));
        return failed;
    };
    auto wait = []() -> task<> { co_await start<stopping_initiation>(use_await); };
    EXPECT_TRUE(beside_failure(wait()));
    EXPECT_TRUE(beside_failure(start<stopping_initiation>(use_await)));
}

}  // namespace
