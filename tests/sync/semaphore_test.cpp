// sync/semaphore.hpp: permits, and large requests among small ones.
#include <coppice/sync/semaphore.hpp>

#include "kinds.hpp"

#include <array>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;

TEST(async_semaphore, a_permit_gives_back_what_it_holds) {
    async_semaphore semaphore(3);
    {
        const auto two = semaphore.try_acquire(2);
        ASSERT_TRUE(two);
        EXPECT_EQ(two->count(), 2u);
        EXPECT_EQ(semaphore.available(), 1u);
        EXPECT_FALSE(semaphore.try_acquire(2));
    }
    EXPECT_EQ(semaphore.available(), 3u);
}

TEST(async_semaphore, a_forgotten_permit_stays_taken_until_it_is_released_by_hand) {
    async_semaphore semaphore(1);
    semaphore.try_acquire()->forget();
    EXPECT_EQ(semaphore.available(), 0u);
    semaphore.release();
    EXPECT_EQ(semaphore.available(), 1u);
}

TEST(async_semaphore, a_moved_permit_gives_back_once) {
    async_semaphore semaphore(2);
    async_semaphore::permit kept;
    {
        auto first = semaphore.try_acquire();
        kept = std::move(*first);
        EXPECT_FALSE(*first);
        EXPECT_EQ(first->count(), 0u);
    }
    EXPECT_EQ(semaphore.available(), 1u);
    kept.release();
    EXPECT_EQ(semaphore.available(), 2u);
}

TEST(async_semaphore, release_may_add_permits_that_it_never_had) {
    async_semaphore semaphore(0);
    semaphore.release(5);
    EXPECT_TRUE(semaphore.try_acquire(5));
    EXPECT_EQ(semaphore.available(), 5u);
}

struct request {
    void acquire(async_semaphore& s, std::size_t n) {
        s.acquire(n, bind_env(ex::prop(get_stop_token, stop.get_token()),
                              [this](std::error_code ec, async_semaphore::permit p) {
                                  ended = true;
                                  error = ec;
                                  permit = std::move(p);
                              }));
    }
    inplace_stop_source stop;
    bool ended = false;
    std::error_code error;
    async_semaphore::permit permit;
};

TEST(async_semaphore, a_large_request_is_not_overtaken) {
    async_semaphore semaphore(1);
    request large;
    request small;
    large.acquire(semaphore, 3);
    small.acquire(semaphore, 1);
    EXPECT_FALSE(large.ended || small.ended);
    EXPECT_FALSE(semaphore.try_acquire(1));
    semaphore.release(1);
    EXPECT_FALSE(large.ended || small.ended);
    semaphore.release(1);
    EXPECT_TRUE(large.ended);
    EXPECT_FALSE(small.ended);
    large.permit.release();
    EXPECT_TRUE(small.ended);
    EXPECT_EQ(semaphore.available(), 2u);
}

TEST(async_semaphore, a_stopped_large_request_at_the_head_lets_smaller_ones_go) {
    async_semaphore semaphore(2);
    request large;
    std::array<request, 3> small;
    large.acquire(semaphore, 3);
    for (auto& s : small) s.acquire(semaphore, 1);
    EXPECT_FALSE(small[0].ended);
    large.stop.request_stop();
    EXPECT_EQ(large.error, std::errc::operation_canceled);
    EXPECT_EQ(large.permit.count(), 0u);
    EXPECT_TRUE(small[0].ended && small[1].ended);
    EXPECT_FALSE(small[2].ended);
    small[0].permit.release();
    EXPECT_TRUE(small[2].ended);
}

TEST(async_semaphore, one_release_grants_as_many_requests_as_it_satisfies) {
    async_semaphore semaphore(0);
    std::array<request, 3> requests;
    for (auto& r : requests) r.acquire(semaphore, 2);
    semaphore.release(5);
    EXPECT_TRUE(requests[0].ended && requests[1].ended);
    EXPECT_FALSE(requests[2].ended);
    EXPECT_EQ(semaphore.available(), 1u);
    requests[2].stop.request_stop();
    EXPECT_TRUE(requests[2].ended);
}

TEST(async_semaphore, a_request_for_nothing_waits_for_the_requests_before_it) {
    async_semaphore semaphore(1);
    request none;
    none.acquire(semaphore, 0);
    EXPECT_TRUE(none.ended);
    request large;
    request behind;
    large.acquire(semaphore, 2);
    behind.acquire(semaphore, 0);
    EXPECT_FALSE(behind.ended);
    semaphore.release();
    EXPECT_TRUE(large.ended && behind.ended);
}

TEST(async_semaphore_death_test, more_permits_than_its_range_stop_the_process) {
    EXPECT_DEATH(async_semaphore(SIZE_MAX), "more than 2\\^61 - 1 permits");
    async_semaphore full(SIZE_MAX / 8);
    EXPECT_DEATH(full.release(), "more than 2\\^61 - 1 permits");
}

}  // namespace
