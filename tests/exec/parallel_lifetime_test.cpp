// Plan: the lifetime of a parallel_scheduler's backend: every scheduler, sender, and operation that
// refers to it keeps it alive, and so does each call to it.
#include <coppice/execution.hpp>

#include "emulated.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <semaphore>
#include <thread>
#include <utility>

namespace {

namespace ex = coppice::execution;
namespace replacement = ex::parallel_scheduler_replacement;
using coppice::this_thread::sync_wait;

// Counts the user's backends, and how they were called.
struct counts {
    int alive = 0;
    int calls = 0;
};

// Completes at once, and uses itself afterwards.
class counted_backend final : public replacement::parallel_scheduler_backend {
public:
    explicit counted_backend(counts& c) : counts_(c) { ++c.alive; }
    counted_backend(counted_backend&&) = delete;
    ~counted_backend() override { --counts_.alive; }
    void schedule(replacement::receiver_proxy& r, std::span<std::byte>) noexcept override {
        r.set_value();
        ++counts_.calls;
    }
    void schedule_bulk_chunked(std::size_t n, replacement::bulk_item_receiver_proxy& r,
                               std::span<std::byte>) noexcept override {
        if (n != 0) r.execute(0, n);
        r.set_value();
        ++counts_.calls;
    }
    void schedule_bulk_unchunked(std::size_t n, replacement::bulk_item_receiver_proxy& r,
                                 std::span<std::byte>) noexcept override {
        for (std::size_t i = 0; i != n; ++i) r.execute(i, i + 1);
        r.set_value();
        ++counts_.calls;
    }

private:
    counts& counts_;
};

// Makes one operation and destroys it as soon as it has completed in any way.
template <class Sndr>
class self_destroying {
    struct receiver {
        using receiver_concept = ex::receiver_tag;
        self_destroying* self;
        void set_value(auto&&...) && noexcept { self->end("value"); }
        void set_error(auto&&) && noexcept { self->end("error"); }
        void set_stopped() && noexcept { self->end("stopped"); }
    };
    struct connected {
        connected(Sndr&& sndr, receiver r) : op(ex::connect(std::move(sndr), r)) {}
        ex::connect_result_t<Sndr, receiver> op;
    };

public:
    explicit self_destroying(Sndr sndr) {
        op_ = std::make_unique<connected>(std::move(sndr), receiver{this});
    }
    void start() { ex::start(op_->op); }
    // Blocks until the operation has completed and is destroyed.
    const char* wait() {
        ended_.acquire();
        return how_;
    }

private:
    void end(const char* how) noexcept {
        op_.reset();
        how_ = how;
        ended_.release();
    }
    std::unique_ptr<connected> op_;
    const char* how_ = "";
    std::binary_semaphore ended_{0};
};

// Calls `check` with functions that make each kind of sender of the current scheduler.
template <class Check>
void for_each_kind(Check check) {
    const auto nothing = [](auto...) noexcept {};
    check([] { return ex::schedule(ex::get_parallel_scheduler()); });
    check([=] {
        return ex::schedule(ex::get_parallel_scheduler()) | ex::bulk_chunked(ex::par, 3, nothing);
    });
    check([=] {
        return ex::schedule(ex::get_parallel_scheduler()) | ex::bulk_unchunked(ex::par, 3, nothing);
    });
    check([=] {
        return ex::starts_on(ex::get_parallel_scheduler(), ex::just(1)) |
               ex::bulk(ex::seq, 3, nothing);
    });
}

TEST(exec_parschedrepl, a_replaced_backend_lives_until_its_operations_have_ended) {
    for_each_kind([](auto make) {
        counts c;
        replacement::set_parallel_scheduler_backend(std::make_shared<counted_backend>(c));
        {
            self_destroying op(make());
            replacement::set_parallel_scheduler_backend(nullptr);
            EXPECT_EQ(c.alive, 1);
            op.start();
            EXPECT_STREQ(op.wait(), "value");
        }
        EXPECT_GE(c.calls, 1);
        EXPECT_EQ(c.alive, 0);
    });
}

TEST(exec_parschedrepl, senders_and_schedulers_keep_a_replaced_backend) {
    counts c;
    replacement::set_parallel_scheduler_backend(std::make_shared<counted_backend>(c));
    auto sch = std::make_optional(ex::get_parallel_scheduler());
    auto sndr = std::make_optional(ex::schedule(*sch));
    replacement::set_parallel_scheduler_backend(nullptr);
    sch.reset();
    EXPECT_EQ(c.alive, 1);
    EXPECT_TRUE(sync_wait(*sndr));  // connects a copy
    EXPECT_EQ(c.alive, 1);
    EXPECT_TRUE(sync_wait(std::move(*sndr)));
    sndr.reset();
    EXPECT_EQ(c.alive, 0);
    EXPECT_EQ(c.calls, 2);
}

TEST(exec_parschedrepl, an_operation_that_is_never_started_releases_its_backend) {
    counts c;
    replacement::set_parallel_scheduler_backend(std::make_shared<counted_backend>(c));
    std::make_optional<self_destroying<decltype(ex::schedule(ex::get_parallel_scheduler()))>>(
        ex::schedule(ex::get_parallel_scheduler()));
    EXPECT_EQ(c.alive, 1);
    replacement::set_parallel_scheduler_backend(nullptr);
    EXPECT_EQ(c.alive, 0);
}

TEST(exec_par_scheduler, work_may_replace_the_backend_that_runs_it) {
    const auto before = std::make_shared<int>(7);
    auto [value] = *sync_wait(ex::schedule(ex::get_parallel_scheduler()) | ex::then([&] {
                                  replacement::set_parallel_scheduler_backend(nullptr);
                                  return *before;
                              }));
    EXPECT_EQ(value, 7);
}

TEST(exec_par_scheduler, work_in_flight_ends_on_the_backend_that_was_replaced) {
    coppice::internal::atomic<int> ran{0};
    counts c;
    const auto counting = std::make_shared<counted_backend>(c);
    ex::counting_scope scope;
    replacement::set_parallel_scheduler_backend(nullptr);
    for (int i = 0; i != 100; ++i) {
        // relaxed: read after the join
        ex::spawn(ex::schedule(ex::get_parallel_scheduler()) | ex::then([&]() noexcept {
                      ran.fetch_add(1, coppice::internal::relaxed);
                  }) | ex::upon_error([](auto&&) noexcept {}),
                  scope.get_token());
        if (i % 20 == 10) replacement::set_parallel_scheduler_backend(i < 50 ? counting : nullptr);
    }
    replacement::set_parallel_scheduler_backend(nullptr);
    sync_wait(scope.join());
    EXPECT_EQ(ran.load(coppice::internal::relaxed), 100);
}

// The work waits for the thread that replaces the backend. So that thread must not wait for it.
TEST(exec_par_scheduler, replacing_the_backend_does_not_wait_for_its_work) {
    std::binary_semaphore replaced{0};
    std::binary_semaphore ended{0};
    replacement::set_parallel_scheduler_backend(nullptr);
    ex::counting_scope scope;
    counts c;
    ex::spawn(ex::schedule(ex::get_parallel_scheduler()) | ex::then([&]() noexcept {
                  replaced.acquire();
                  ended.release();
              }) | ex::upon_error([](auto&&) noexcept {}),
              scope.get_token());
    replacement::set_parallel_scheduler_backend(std::make_shared<counted_backend>(c));
    replaced.release();
    ended.acquire();
    replacement::set_parallel_scheduler_backend(nullptr);
    sync_wait(scope.join());
}

// Uses the scheduler when the process exits. Constructed before the scheduler is first used.
struct uses_it_at_exit {
    ~uses_it_at_exit() {
        auto sum =
            sync_wait(ex::schedule(ex::get_parallel_scheduler()) | ex::then([] { return 40; }) |
                      ex::bulk(ex::par, 2, [](int, int) noexcept {}));
        std::fprintf(stderr, "at exit: %d\n", sum ? std::get<0>(*sum) : -1);
    }
};

TEST(exec_par_scheduler, destructors_of_static_objects_may_use_it) {
    GTEST_FLAG_SET(death_test_style, coppice::test::style_of_new_process);
    EXPECT_EXIT(
        {
            static uses_it_at_exit made_first;
            sync_wait(ex::schedule(ex::get_parallel_scheduler()));
            static uses_it_at_exit made_second;
            std::exit(7);
        },
        testing::ExitedWithCode(7), "at exit: 40\nat exit: 40");
}

TEST(exec_par_scheduler, destructors_of_static_objects_may_be_the_first_to_use_it) {
    GTEST_FLAG_SET(death_test_style, coppice::test::style_of_new_process);
    EXPECT_EXIT(
        {
            static uses_it_at_exit made_first;
            std::exit(7);
        },
        testing::ExitedWithCode(7), "at exit: 40");
}

TEST(exec_par_scheduler, its_work_may_exit_the_process) {
    GTEST_FLAG_SET(death_test_style, coppice::test::style_of_new_process);
    EXPECT_EXIT(
        {
            sync_wait(ex::schedule(ex::get_parallel_scheduler()) |
                      ex::then([]() { std::exit(8); }));
        },
        testing::ExitedWithCode(8), "");
}

TEST(exec_par_scheduler, its_idle_threads_do_not_disturb_exit) {
    GTEST_FLAG_SET(death_test_style, coppice::test::style_of_new_process);
    EXPECT_EXIT(
        {
            sync_wait(ex::schedule(ex::get_parallel_scheduler()));
            std::exit(9);
        },
        testing::ExitedWithCode(9), "");
}

}  // namespace
