// Plan: timers of each scheduler, by name and in an any_scheduler: the extremes of time, deadlines,
// and the end of the scheduler, under a receiver that cannot be stopped.
#include <coppice/exec/any_scheduler.hpp>
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timed_scheduler.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_any.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/io/context.hpp>
#include <coppice/pool/queue_pool.hpp>
#include <coppice/pool/thread_pool.hpp>

#include "probes.hpp"
#include "until_stopped.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

namespace {

namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;
using namespace std::chrono_literals;

// ---- What has timers ----------------------------------------------------------------------------

class loop_of_a_thread {
public:
    ~loop_of_a_thread() {
        loop_.finish();
        runner_.join();
    }
    auto get_scheduler() { return loop_.get_scheduler(); }

private:
    ex::run_loop loop_;
    std::thread runner_{[this] { loop_.run(); }};
};
class context_of_a_thread {
public:
    ~context_of_a_thread() {
        context_.stop();
        runner_.join();
    }
    auto get_scheduler() { return context_.get_scheduler(); }

private:
    coppice::io::context context_;
    coppice::io::context::work_guard guard_{context_};
    std::thread runner_{[this] { context_.run(); }};
};
struct one_worker : coppice::thread_pool {
    one_worker() : thread_pool(1) {}
};
struct one_queue : coppice::queue_pool<coppice::mutex_queue> {
    one_queue() : queue_pool(1) {}
};
// Hides the type of the scheduler.
template <class Resource>
class erased {
public:
    ex::any_scheduler get_scheduler() { return ex::any_scheduler(resource_.get_scheduler()); }

private:
    Resource resource_;
};

template <class Resource>
class timers_of : public testing::Test {
protected:
    Resource resource;
};
using every_resource =
    testing::Types<loop_of_a_thread, context_of_a_thread, one_worker, one_queue,
                   erased<loop_of_a_thread>, erased<context_of_a_thread>, erased<one_worker>>;
TYPED_TEST_SUITE(timers_of, every_resource);

constexpr std::int64_t earliest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t latest = std::numeric_limits<std::int64_t>::max();

TYPED_TEST(timers_of, a_time_that_has_passed_completes_however_early_it_is) {
    const auto sch = this->resource.get_scheduler();
    for (const std::int64_t n : {earliest, earliest + 1, std::int64_t{-1}, std::int64_t{0}}) {
        EXPECT_TRUE(sync_wait(ex::schedule_at(sch, ex::instant(n)))) << n;
        EXPECT_TRUE(sync_wait(ex::schedule_after(sch, ex::time_span(n)))) << n;
    }
}

TYPED_TEST(timers_of, a_time_that_never_comes_waits_until_it_is_stopped) {
    const auto sch = this->resource.get_scheduler();
    const auto loses = [sch](auto timer) {
        auto both = ex::when_any(std::move(timer) | ex::then([] { return false; }),
                                 ex::schedule_after(sch, 1ms) | ex::then([] { return true; }));
        return std::get<0>(*sync_wait(std::move(both)));
    };
    for (const std::int64_t n : {latest, latest - 1, latest - 65536, latest / 2}) {
        EXPECT_TRUE(loses(ex::schedule_at(sch, ex::instant(n)))) << n;
        EXPECT_TRUE(loses(ex::schedule_after(sch, ex::time_span(n)))) << n;
    }
}

auto under_deadline(ex::instant when, auto sndr) {
    return ex::write_env(std::move(sndr), ex::prop(ex::get_deadline, when));
}

TYPED_TEST(timers_of, a_deadline_ends_a_timer_as_stopped_though_its_waiter_cannot_be_stopped) {
    const auto sch = this->resource.get_scheduler();
    const ex::instant soon = ex::now(sch) + ex::time_span(1ms);
    for (const ex::instant when : {ex::instant(earliest), ex::instant(0), soon}) {
        EXPECT_FALSE(sync_wait(under_deadline(when, ex::schedule_after(sch, 1h))));
        EXPECT_FALSE(sync_wait(under_deadline(when, ex::schedule_at(sch, ex::instant::never()))));
    }
}

TYPED_TEST(timers_of, a_later_deadline_does_not_end_a_timer) {
    const auto sch = this->resource.get_scheduler();
    for (const ex::instant when : {ex::instant(latest - 1), ex::instant::never()}) {
        EXPECT_TRUE(sync_wait(under_deadline(when, ex::schedule_after(sch, 1us))));
        EXPECT_TRUE(sync_wait(under_deadline(when, ex::schedule_at(sch, ex::now(sch)))));
    }
}

TYPED_TEST(timers_of, the_end_of_a_timeout_is_no_deadline_that_a_timer_keeps_itself) {
    const auto sch = this->resource.get_scheduler();
    // If the timer kept the deadline, it would be stopped, and upon_stopped would send a value.
    auto late = ex::timeout(ex::schedule_after(sch, 1h) | ex::upon_stopped([]() noexcept {}), 1ms);
    EXPECT_THROW(sync_wait(std::move(late)), std::system_error);
}

// ---- The end of what has timers -----------------------------------------------------------------

TEST(any_scheduler_timers, the_end_of_a_pool_stops_them_though_their_waiters_cannot_be_stopped) {
    auto pool = std::make_unique<coppice::thread_pool>(1);
    const ex::any_scheduler sch = pool->get_scheduler();
    probes::record r;
    auto waiting = ex::connect(ex::schedule_after(sch, 1h), probes::receiver<>(r));
    ex::start(waiting);
    pool->request_stop();
    EXPECT_FALSE(sync_wait(ex::schedule_after(sch, 1h)));
    EXPECT_FALSE(sync_wait(ex::schedule_at(sch, ex::instant::never())));
    pool.reset();
    EXPECT_EQ(r.said(), "stopped");
}

TEST(any_scheduler_timers, the_end_of_a_context_stops_them_though_their_waiters_cannot_be_stopped) {
    auto context = std::make_unique<coppice::io::context>();
    const ex::any_scheduler sch = context->get_scheduler();
    probes::record r;
    auto waiting = ex::connect(ex::schedule_after(sch, 1h), probes::receiver<>(r));
    ex::start(waiting);
    context.reset();
    EXPECT_EQ(r.said(), "stopped");
}

// Waits until it is stopped, with a limit of an hour that these timers keep.
auto limited(const auto& timers) {
    return ex::write_env(ex::timeout(coppice::test::until_stopped(), 1h),
                         ex::prop(ex::get_timed_scheduler, timers));
}

TEST(timeout, whose_timer_ends_with_its_pool_stops_what_would_have_no_limit) {
    auto pool = std::make_unique<coppice::thread_pool>(1);
    const auto sch = pool->get_scheduler();
    probes::record r, erased;
    auto waiting = ex::connect(limited(sch), probes::receiver<>(r));
    auto of_any = ex::connect(limited(ex::any_scheduler(sch)), probes::receiver<>(erased));
    ex::start(waiting);
    ex::start(of_any);
    pool->request_stop();
    EXPECT_FALSE(sync_wait(limited(sch)));  // it starts after the end
    pool.reset();
    EXPECT_EQ(r.said(), "stopped");
    EXPECT_EQ(erased.said(), "stopped");
}

TEST(timeout, whose_timer_ends_with_its_context_stops_what_would_have_no_limit) {
    auto context = std::make_unique<coppice::io::context>();
    probes::record r;
    auto waiting = ex::connect(limited(context->get_scheduler()), probes::receiver<>(r));
    ex::start(waiting);
    context.reset();
    EXPECT_EQ(r.said(), "stopped");
}

TEST(timeout, of_a_result_in_time_needs_no_timer_of_a_pool_that_has_ended) {
    coppice::thread_pool pool(1);
    pool.request_stop();
    auto in_time = ex::write_env(ex::timeout(ex::just(7), 1h),
                                 ex::prop(ex::get_timed_scheduler, pool.get_scheduler()));
    EXPECT_EQ(sync_wait(std::move(in_time)), std::tuple(7));
}

// ---- What an any_scheduler passes on ------------------------------------------------------------

// Notes what it is asked for. Its timers end at once; with `stops`, its schedule() does so, too,
// as stopped.
struct noting_scheduler {
    using scheduler_concept = ex::scheduler_tag;
    struct notes {
        ex::instant now{10};
        ex::instant at;
        int spans = 0;
        bool stops = false;
    };
    struct sender {
        using sender_concept = ex::sender_tag;
        notes* noted;
        template <class Self, class... Env>
        static consteval auto get_completion_signatures() noexcept {
            return ex::completion_signatures<ex::set_value_t(), ex::set_stopped_t()>();
        }
        template <class Rcvr>
        struct operation {
            using operation_state_concept = ex::operation_state_tag;
            operation(bool stopped, Rcvr rcvr) noexcept
                : stops(stopped), receiver(std::move(rcvr)) {}
            bool stops;
            Rcvr receiver;
            void start() & noexcept {
                if (stops) return ex::set_stopped(std::move(receiver));
                ex::set_value(std::move(receiver));
            }
        };
        template <class Rcvr>
        auto connect(Rcvr rcvr) const noexcept {
            return operation<Rcvr>(noted->stops, std::move(rcvr));
        }
        struct attrs {
            notes* noted;
            noting_scheduler query(ex::get_completion_scheduler_t<ex::set_value_t>) const noexcept {
                return noting_scheduler{noted};
            }
        };
        attrs get_env() const noexcept { return attrs{noted}; }
    };
    notes* noted;
    sender schedule() const noexcept { return sender{noted}; }
    sender schedule_after(ex::time_span) const noexcept {
        ++noted->spans;
        return sender{noted};
    }
    sender schedule_at(ex::instant when) const noexcept {
        noted->at = when;
        return sender{noted};
    }
    ex::instant now() const noexcept { return noted->now; }
    friend bool operator==(const noting_scheduler&, const noting_scheduler&) noexcept = default;
};

TEST(any_scheduler_timers, wait_for_the_time_that_was_asked_for_however_late_they_start) {
    noting_scheduler::notes noted;
    const ex::any_scheduler sch = noting_scheduler{&noted};
    auto timer = ex::schedule_at(sch, ex::instant(20));
    noted.now = ex::instant(1000);
    EXPECT_TRUE(sync_wait(std::move(timer)));
    EXPECT_EQ(noted.at, ex::instant(20));
    EXPECT_EQ(noted.spans, 0);
}

TEST(any_scheduler_death, a_scheduler_that_stops_what_cannot_be_stopped_ends_the_process) {
    EXPECT_DEATH(
        {
            noting_scheduler::notes noted;
            noted.stops = true;
            const ex::any_scheduler sch = noting_scheduler{&noted};
            probes::record r;
            auto op = ex::connect(ex::schedule(sch), probes::receiver<>(r));
            ex::start(op);
        },
        "stopped an operation that cannot be stopped");
}

}  // namespace
