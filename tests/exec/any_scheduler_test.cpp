// Plan: any_scheduler: scheduling, comparing.
#include <coppice/exec/any_scheduler.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/parallel_scheduler.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

namespace {

namespace ex = coppice::execution;

TEST(any_scheduler, schedules_on_what_it_holds_and_compares_with_it) {
    static_assert(ex::scheduler<ex::any_scheduler>);
    static_assert(ex::infallible_scheduler<ex::any_scheduler, ex::env<>>);
    probes::by_hand_context context;
    probes::by_hand_context other;
    const ex::any_scheduler sch = context.get_scheduler();
    const ex::any_scheduler copy = sch;
    EXPECT_TRUE(sch == copy);
    EXPECT_TRUE(sch == context.get_scheduler());
    EXPECT_FALSE(sch == ex::any_scheduler(other.get_scheduler()));
    EXPECT_FALSE(sch == ex::any_scheduler(ex::inline_scheduler()));
    probes::record r;
    auto op = ex::connect(ex::schedule(copy), probes::receiver<>(r));
    ex::start(op);
    EXPECT_EQ(r.said(), "");
    context.run_one();
    EXPECT_EQ(r.said(), "value()");
}

// Completes everything at once, in the caller's thread.
class inline_backend final : public ex::parallel_scheduler_replacement::parallel_scheduler_backend {
public:
    using proxy = ex::parallel_scheduler_replacement::receiver_proxy;
    using bulk_proxy = ex::parallel_scheduler_replacement::bulk_item_receiver_proxy;
    void schedule(proxy& r, std::span<std::byte> storage) noexcept override {
        EXPECT_GE(storage.size(), 64u);
        const auto token = r.try_query<coppice::inplace_stop_token>(coppice::get_stop_token);
        EXPECT_TRUE(token.has_value());
        EXPECT_FALSE(r.try_query<int>(coppice::get_stop_token).has_value());
        if (token->stop_requested()) {
            r.set_stopped();
        } else {
            r.set_value();
        }
    }
    void schedule_bulk_chunked(std::size_t n, bulk_proxy& r,
                               std::span<std::byte>) noexcept override {
        r.execute(0, n / 2);
        r.execute(n / 2, n);
        r.set_value();
    }
    void schedule_bulk_unchunked(std::size_t n, bulk_proxy& r,
                                 std::span<std::byte>) noexcept override {
        for (std::size_t i = 0; i != n; ++i) r.execute(i, i + 1);
        r.set_value();
    }
};

}  // namespace
