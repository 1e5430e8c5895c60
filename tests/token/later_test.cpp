// Operations that declare they never complete inside their initiation: later on this thread, on
// another thread, and what happens if one does so anyway.
#include <coppice/execution.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include "allocations.hpp"
#include "detached.hpp"
#include "system.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;
namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;

// Makes the declaration, whatever the operation does.
template <class Initiation>
struct promising : Initiation {
    explicit promising(Initiation&& given) noexcept
        : Initiation(static_cast<Initiation&&>(given)) {}
    static constexpr bool completes_inside = false;
};
template <class Initiation, class Token>
auto promise(Initiation initiation, Token&& token) {
    return completion_token_transform<void(std::error_code, int)>(
        static_cast<Token&&>(token), promising<Initiation>(static_cast<Initiation&&>(initiation)));
}
template <class Token = use_await_t>
auto queued(test::system& os, int number, Token&& token = {}) {
    return promise(test::system::initiation(os, number), static_cast<Token&&>(token));
}
template <class Token = use_await_t>
auto on_a_thread(int number, Token&& token = {}) {
    return promise(
        [number](completion<int> done) noexcept {
            std::thread([=]() mutable { std::move(done)(no_error, number); }).detach();
        },
        static_cast<Token&&>(token));
}
template <class Token = use_await_t>
auto inside_after_all(int number, Token&& token = {}) {
    return promise([number](completion<int> done) noexcept { std::move(done)(no_error, number); },
                   static_cast<Token&&>(token));
}

static_assert(!may_complete_inside<promising<test::system::initiation>>());
static_assert(may_complete_inside<test::system::initiation>());
static_assert(may_complete_inside<decltype([](completion<int>) noexcept {})>());
static_assert(sizeof(marked_start<true>) == sizeof(void*));

TEST(later, is_awaited_by_coroutines_and_tasks) {
    test::system os;
    int got = 0;
    auto wait = [&]() -> task<> {
        for (int i = 0; i != 1000; ++i) got += co_await queued(os, i & 1);
    };
    auto run = [&]() -> detached { co_await wait(); };
    auto plain = [&]() -> detached { got += co_await queued(os, 10'000); };
    run();
    plain();
    EXPECT_EQ(got, 0);
    os.run();
    EXPECT_EQ(got, 10'500);
}

TEST(later, calls_back_and_allocates_nothing) {
    test::system os;
    int left = 1000;
    struct again {
        test::system* os;
        int* left;
        void operator()(std::error_code, int) const {
            if (--*left != 0) queued(*os, 1, *this);
        }
    };
    queued(os, 1, again{&os, &left});
    os.run();
    EXPECT_EQ(left, 0);
    left = 100;
    queued(os, 1, again{&os, &left});
    allocation_count allocations;
    os.run();
    EXPECT_EQ(left, 0);
    EXPECT_EQ(allocations.so_far(), 0u);
}

TEST(later, may_complete_on_another_thread) {
    for (int i = 0; i != 200; ++i) {
        auto wait = [&]() -> task<int> { co_return co_await on_a_thread(i); };
        EXPECT_EQ(sync_wait(wait()), std::tuple(i));
        EXPECT_EQ(on_a_thread(i, block), i);
    }
}

TEST(later, completing_inside_after_all_costs_only_stack) {
    int got = 0;
    auto wait = [&]() -> task<int> {
        for (int i = 0; i != 20; ++i) got += co_await inside_after_all(1);
        co_return got;
    };
    EXPECT_EQ(sync_wait(wait()), std::tuple(20));
    inside_after_all(1, [&](std::error_code, int n) { got += n; });
    EXPECT_EQ(got, 21);
    EXPECT_EQ(inside_after_all(1, use_future).get(), 1);
    EXPECT_EQ(sync_wait(inside_after_all(7)), std::tuple(7));
}

TEST(later, a_callback_with_a_scheduler_is_called_there) {
    test::system os;
    ex::run_loop here;
    int got = 0;
    queued(os, 3,
           bind_env(ex::prop(ex::get_scheduler, here.get_scheduler()),
                    [&](std::error_code, int n) { got = n; }));
    os.run();
    EXPECT_EQ(got, 0);
    here.finish();
    here.run();
    EXPECT_EQ(got, 3);
}

}  // namespace
