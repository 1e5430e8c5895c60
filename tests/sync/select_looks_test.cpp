// A branch that looks for longer before it waits: only if no branch is ready, and one at a time.
#include <coppice/channel.hpp>
#include <coppice/sync/internal/wait_initiation.hpp>
#include <coppice/task.hpp>

#include "select_of.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
using nothing = std::monostate;

// Is never ready when it is tried; counts its looks, and comes while it looks if told so.
class looker {
    struct request {
        using waiter_type = internal::waiter;
        using result = void;
        static constexpr const char* name = "looker::wait";

        internal::queue_lock& lock() noexcept { return object->lock_; }
        static bool try_now() noexcept { return false; }
        bool try_soon() noexcept {
            ++object->looks;
            return object->comes;
        }
        static bool attempt(internal::granted_waiters&) noexcept { return false; }
        void link(waiter_type& w) noexcept { object->waiters_.push_back(w); }
        void unlink(waiter_type& w, internal::granted_waiters&) noexcept {
            object->waiters_.erase(w);
        }
        static std::error_code error() noexcept { return {}; }
        static void take() noexcept {}
        static void nothing() noexcept {}

        looker* object;
    };

public:
    [[nodiscard]] auto wait() { return internal::initiate_wait(request{this}, use_await); }
    bool is_waited_for() const { return !waiters_.empty(); }
    int looks = 0;
    bool comes = false;

private:
    internal::queue_lock lock_{0};
    internal::waiter_queue<internal::waiter> waiters_;
};

template <class... Ops>
task<std::size_t> choose(Ops... ops) {
    const auto got = co_await coppice::select(std::move(ops)...);
    co_return got.index();
}
template <class... Ops>
std::size_t chosen(Ops... ops) {
    return std::get<0>(*coppice::this_thread::sync_wait(choose(std::move(ops)...)));
}

TEST(select_looks, no_branch_looks_while_another_is_ready) {
    looker a;
    looker b;
    channel<int> c(1);
    for (int round = 0; round != 50; ++round) {
        EXPECT_TRUE(c.try_send(1));
        EXPECT_EQ(chosen(a.wait(), c.receive(), b.wait()), 1u);
        EXPECT_TRUE(c.try_send(1));
        auto s = operation_of<std::variant<nothing, std::optional<int>>>(
            coppice::select(a.wait(), c.receive()));
        s.start();
        EXPECT_EQ(s.value().index(), 1u);
    }
    EXPECT_EQ(a.looks + b.looks, 0);
}

TEST(select_looks, one_branch_looks_before_all_wait) {
    looker a;
    looker b;
    channel<int> c(1);
    for (int round = 1; round != 200; ++round) {
        auto s = operation_of<std::variant<nothing, std::optional<int>, nothing>>(
            coppice::select(a.wait(), c.receive(), b.wait()));
        s.start();
        EXPECT_EQ(a.looks + b.looks, round);
        EXPECT_TRUE(a.is_waited_for() && b.is_waited_for());
        s.stop();
    }
    EXPECT_GT(a.looks, 0);
    EXPECT_GT(b.looks, 0);
}

TEST(select_looks, what_comes_meanwhile_is_taken_and_nothing_else) {
    looker a;
    a.comes = true;
    channel<int> c(1);
    for (int round = 0; round != 20; ++round) {
        EXPECT_EQ(chosen(c.receive(), a.wait()), 1u);
        auto s = operation_of<std::variant<std::optional<int>, nothing>>(
            coppice::select(c.receive(), a.wait()));
        s.start();
        EXPECT_EQ(s.value().index(), 1u);
        std::vector<decltype(a.wait())> ops;
        ops.push_back(a.wait());
        auto r =
            operation_of<std::pair<std::size_t, nothing>>(coppice::select_range(std::move(ops)));
        r.start();
        EXPECT_EQ(r.value().first, 0u);
    }
    EXPECT_EQ(a.looks, 60);
    EXPECT_FALSE(a.is_waited_for());
    EXPECT_TRUE(c.try_send(1));  // no waiter was left there
    EXPECT_EQ(c.size(), 1u);
}

TEST(select_looks, a_wait_without_a_select_looks_once) {
    looker a;
    auto s = operation_of<nothing>(a.wait());
    s.start();
    EXPECT_EQ(a.looks, 1);
    s.stop();
    EXPECT_EQ(s.how(), channel_end::stopped);
}

}  // namespace
