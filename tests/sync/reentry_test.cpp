// What a waiter does inside the call that grants it: it assigns the guard that is being
// released, and it blocks until another waiter of the same call has run.
#include <coppice/sync.hpp>

#include <coppice/sync/select.hpp>

#include "kinds.hpp"

#include <optional>
#include <utility>

namespace {

using namespace coppice;
using namespace coppice::test;

// A thing that is held, and what can be done with its guard.
struct lock_of_mutex {
    using guard = async_mutex::guard;
    std::optional<guard> try_take() { return mutex.try_lock(); }
    template <class Token>
    auto take(Token token) {
        return mutex.lock(std::move(token));
    }
    async_mutex mutex;
};
struct lock_of_writer {
    using guard = async_shared_mutex::guard;
    std::optional<guard> try_take() { return mutex.try_lock(); }
    template <class Token>
    auto take(Token token) {
        return mutex.lock(std::move(token));
    }
    async_shared_mutex mutex;
};
struct permit_of_semaphore {
    using guard = async_semaphore::permit;
    std::optional<guard> try_take() { return semaphore.try_acquire(2); }
    template <class Token>
    auto take(Token token) {
        return semaphore.acquire(2, std::move(token));
    }
    async_semaphore semaphore{2};
};

template <class Lock>
class a_guard : public testing::Test {};
using all_locks = testing::Types<lock_of_mutex, lock_of_writer, permit_of_semaphore>;
TYPED_TEST_SUITE(a_guard, all_locks);

TYPED_TEST(a_guard, that_a_waiter_assigns_while_it_is_assigned_holds_what_the_waiter_got) {
    using guard = typename TypeParam::guard;
    TypeParam lock;
    guard held = *lock.try_take();
    lock.take([&](std::error_code, guard got) { held = std::move(got); });
    held = guard();  // resumes the waiter
    EXPECT_TRUE(held);
    EXPECT_FALSE(lock.try_take());
    held = guard();
    EXPECT_TRUE(lock.try_take());
}

TYPED_TEST(a_guard, that_a_waiter_assigns_while_another_lock_is_assigned_loses_neither) {
    using guard = typename TypeParam::guard;
    TypeParam first;
    TypeParam second;
    guard held = *first.try_take();
    first.take([&](std::error_code, guard got) { held = std::move(got); });
    held = *second.try_take();  // resumes the waiter, which gives the second lock up
    EXPECT_TRUE(held);
    EXPECT_FALSE(first.try_take());
    EXPECT_TRUE(second.try_take());
}

TYPED_TEST(a_guard, that_is_assigned_to_itself_still_holds) {
    TypeParam lock;
    typename TypeParam::guard held = *lock.try_take();
    typename TypeParam::guard& same = held;
    held = std::move(same);
    EXPECT_TRUE(held);
    EXPECT_FALSE(lock.try_take());
}

TEST(async_shared_mutex, a_shared_guard_that_a_waiter_assigns_while_it_is_assigned_is_kept) {
    async_shared_mutex mutex;
    async_shared_mutex::shared_guard held = *mutex.try_lock_shared();
    async_shared_mutex::guard writer;
    mutex.lock([&](std::error_code, async_shared_mutex::guard got) {
        writer = std::move(got);
        writer.unlock();
        held = *mutex.try_lock_shared();
    });
    held = async_shared_mutex::shared_guard();
    EXPECT_TRUE(held);
    EXPECT_FALSE(mutex.try_lock());
    held.unlock();
    EXPECT_TRUE(mutex.try_lock());
}

// Two callbacks of one call. The first blocks until the second, which the same call has granted,
// has run.
class pair_of_callbacks {
public:
    auto first() {
        return [this](std::error_code, auto&&...) {
            second_ran_.wait(block);
            ++ended_;
        };
    }
    auto second() {
        return [this](std::error_code, auto&&...) {
            second_ran_.set();
            ++ended_;
        };
    }
    ~pair_of_callbacks() { EXPECT_EQ(ended_, 2); }

private:
    async_event second_ran_;
    int ended_ = 0;
};

template <class Kind>
class granted_together : public testing::Test {};
using together = testing::Types<event_kind, latch_kind, barrier_kind, reader_kind>;
TYPED_TEST_SUITE(granted_together, together);

TYPED_TEST(granted_together, a_callback_may_block_until_the_next_one_has_run) {
    TypeParam kind(2);
    pair_of_callbacks both;
    kind.wait(both.first());
    kind.wait(both.second());
    kind.grant();
}

TEST(async_semaphore, a_callback_may_block_until_the_next_one_has_run) {
    async_semaphore semaphore(0);
    pair_of_callbacks both;
    semaphore.acquire(1, both.first());
    semaphore.acquire(1, both.second());
    semaphore.release(2);
}

TEST(async_semaphore, a_stopped_callback_may_block_until_one_that_it_let_go_has_run) {
    async_semaphore semaphore(1);
    pair_of_callbacks both;
    inplace_stop_source stop;
    semaphore.acquire(2, bind_env(ex::prop(get_stop_token, stop.get_token()), both.first()));
    semaphore.acquire(1, both.second());
    stop.request_stop();
}

TEST(async_condition, a_callback_may_block_until_the_next_one_has_run) {
    async_mutex mutexes[2];
    async_condition changed;
    async_mutex::guard guards[] = {*mutexes[0].try_lock(), *mutexes[1].try_lock()};
    pair_of_callbacks both;
    changed.wait(guards[0], both.first());
    changed.wait(guards[1], both.second());
    changed.notify_all();
}

TEST(select, a_callback_may_block_until_one_that_its_other_branch_let_go_has_run) {
    async_semaphore semaphore(1);
    async_event event;
    pair_of_callbacks both;
    ex::counting_scope scope;
    const auto choose = [&]() -> task<> {
        co_await coppice::select(semaphore.acquire(2), event.wait());
        both.first()(std::error_code());
    };
    ex::spawn(choose() | ex::upon_error([](auto&&) noexcept {}), scope.get_token(),
              ex::prop(ex::get_scheduler, ex::inline_scheduler()));
    semaphore.acquire(1, both.second());
    event.set();
    this_thread::sync_wait(scope.join());
}

}  // namespace
