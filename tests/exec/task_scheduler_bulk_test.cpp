// Plan: bulk on a task_scheduler [exec.task.scheduler]: which threads make the calls, and its end.
// Tests on a pool and in tasks are in tests/pool/task_scheduler_test.cpp.
#include <coppice/exec/any_scheduler.hpp>
#include <coppice/exec/bulk.hpp>
#include <coppice/exec/continues_on.hpp>
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/internal/task_scheduler_bulk.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/on.hpp>
#include <coppice/exec/parallel_scheduler.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/write_env.hpp>

#include "logging_allocator.hpp"
#include "strict.hpp"

#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace {

namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;
using probes::allocation_log;
using probes::logging_allocator;
using probes::outcome;

// ---- Schedulers that tests put into it --------------------------------------------------------

// Runs work at once. Its Domain replaces bulk.
template <class Domain>
class domain_scheduler {
public:
    using scheduler_concept = ex::scheduler_tag;
    domain_scheduler() noexcept = default;
    struct sender {
        using sender_concept = ex::sender_tag;
        template <class Tag>
            requires(!std::same_as<Tag, ex::set_error_t>)
        domain_scheduler query(ex::get_completion_scheduler_t<Tag>) const noexcept {
            return {};
        }
        sender get_env() const noexcept { return {}; }
        template <class Self, class... Env>
        static consteval auto get_completion_signatures() noexcept {
            return ex::completion_signatures<ex::set_value_t()>();
        }
        template <class Rcvr>
        auto connect(Rcvr rcvr) const noexcept {
            return ex::connect(ex::just(), std::move(rcvr));
        }
    };
    sender schedule() const noexcept { return {}; }
    Domain query(ex::get_completion_domain_t<ex::set_value_t>) const noexcept { return {}; }
    bool operator==(const domain_scheduler&) const noexcept = default;
};

// bulk_chunked: calls the second half on a thread of its own.
struct halves_domain {
    template <ex::internal::sender_for<ex::bulk_chunked_t> Sndr, class Env>
    static auto transform_sender(ex::set_value_t, Sndr&& sndr, const Env&) {
        return std::forward<Sndr>(sndr).child |
               ex::then([data = std::forward<Sndr>(sndr).data]() mutable {
                   const auto half = data.shape / 2;
                   std::thread other([&] { data.f(half, data.shape); });
                   if (half != 0) data.f(decltype(half)(0), half);
                   other.join();
               });
    }
};
// bulk_unchunked: calls from the last index to the first.
struct backwards_domain {
    template <ex::internal::sender_for<ex::bulk_unchunked_t> Sndr, class Env>
    static auto transform_sender(ex::set_value_t, Sndr&& sndr, const Env&) {
        return std::forward<Sndr>(sndr).child |
               ex::then([data = std::forward<Sndr>(sndr).data]() mutable {
                   for (auto i = data.shape; i-- != 0;) data.f(i);
               });
    }
};
// Connecting a bulk on it throws.
struct throwing_domain {
    struct sender {
        using sender_concept = ex::sender_tag;
        template <class Self, class... Env>
        static consteval auto get_completion_signatures() noexcept {
            return ex::completion_signatures<ex::set_value_t()>();
        }
        template <class Rcvr>
        auto connect(Rcvr rcvr) const {
            if (true) throw std::runtime_error("no room");
            return ex::connect(ex::just(), std::move(rcvr));
        }
    };
    template <ex::internal::sender_for<ex::bulk_chunked_t> Sndr, class Env>
    static sender transform_sender(ex::set_value_t, Sndr&&, const Env&) {
        return {};
    }
};
// Makes operations of one kilobyte, and reports the error or the stop that it was given.
template <class Ending>
struct large_domain {
    template <ex::internal::sender_for<ex::bulk_chunked_t> Sndr, class Env>
    static auto transform_sender(ex::set_value_t, Sndr&&, const Env&) {
        return ex::just(std::array<char, 1000>()) | ex::let_value([](auto&) { return Ending()(); });
    }
};

// Records how work is given to it. Makes the calls on the caller's thread.
class counting_backend final
    : public ex::parallel_scheduler_replacement::parallel_scheduler_backend {
    using proxy = ex::parallel_scheduler_replacement::receiver_proxy;
    using bulk_proxy = ex::parallel_scheduler_replacement::bulk_item_receiver_proxy;

public:
    void schedule(proxy& r, std::span<std::byte>) noexcept override {
        said += "schedule ";
        if (fails) {
            r.set_error(std::make_exception_ptr(std::runtime_error("full")));
        } else {
            r.set_value();
        }
    }
    void schedule_bulk_chunked(std::size_t n, bulk_proxy& r,
                               std::span<std::byte> storage) noexcept override {
        EXPECT_GE(storage.size(), 64u);
        said += "chunked ";
        if (n > 1) r.execute(0, n / 2);
        r.execute(n / 2, n);
        r.set_value();
    }
    void schedule_bulk_unchunked(std::size_t n, bulk_proxy& r,
                                 std::span<std::byte>) noexcept override {
        said += "unchunked ";
        for (std::size_t i = 0; i != n; ++i) r.execute(i, i + 1);
        r.set_value();
    }
    std::string said;
    bool fails = false;
};

ex::task_scheduler halves() {
    return ex::task_scheduler(domain_scheduler<halves_domain>());
}

TEST(exec_task_scheduler, bulk_without_a_domain_runs_in_order_where_the_child_completes) {
    probes::by_hand_context context;
    const ex::task_scheduler sch(context.get_scheduler());
    std::string said;
    probes::record r;
    auto op = ex::connect(
        ex::schedule(sch) | ex::then([] { return 10; }) |
            ex::bulk(ex::par, 3, [&](int i, int& v) { said += std::to_string(i + v++) + " "; }) |
            ex::bulk_unchunked(ex::par_unseq, 2, [&](int i, int) { said += std::to_string(i); }) |
            ex::bulk_chunked(ex::par, 5,
                             [&](int b, int e, int) {
                                 said += " " + std::to_string(b) + "-" + std::to_string(e);
                             }),
        probes::receiver<>(r));
    ex::start(op);
    EXPECT_EQ(said, "");
    EXPECT_EQ(context.size(), 1u);
    context.run_one();
    EXPECT_EQ(context.size(), 0u);
    EXPECT_EQ(said, "10 12 14 01 0-5");
    EXPECT_EQ(r.said(), "value(13)");
}

TEST(exec_task_scheduler, the_held_schedulers_domain_customizes_bulk) {
    std::barrier both(2);
    std::array<std::thread::id, 2> threads;
    const auto meet = [&](std::size_t i) {
        threads[i] = std::this_thread::get_id();
        both.arrive_and_wait();
    };
    EXPECT_EQ(outcome(ex::schedule(halves()) | ex::bulk(ex::par, std::size_t(2), meet)), "value()");
    EXPECT_NE(threads[0], threads[1]);
    std::string said;
    const ex::task_scheduler backwards{domain_scheduler<backwards_domain>()};
    EXPECT_EQ(outcome(ex::schedule(backwards) |
                      ex::bulk_unchunked(ex::par, 4, [&](int i) { said += std::to_string(i); })),
              "value()");
    EXPECT_EQ(said, "3210");
}

TEST(exec_task_scheduler, bulk_finds_it_through_senders_that_name_it) {
    std::barrier both(2);
    const auto meet = [&](int, auto&...) { both.arrive_and_wait(); };
    const ex::scheduler_env in_halves(halves());
    EXPECT_EQ(outcome(ex::just(4) | ex::bulk(ex::par, 2, meet), in_halves), "value(4)");
    EXPECT_EQ(outcome(ex::just() | ex::then([] { return 1; }) | ex::bulk(ex::par, 2, meet) |
                          ex::bulk(ex::par_unseq, 2, meet),
                      in_halves),
              "value(1)");
    EXPECT_EQ(outcome(ex::just(4) | ex::continues_on(halves()) | ex::bulk(ex::par, 2, meet)),
              "value(4)");
    EXPECT_EQ(outcome(ex::on(halves(), ex::just(4) | ex::bulk(ex::par, 2, meet)),
                      ex::prop(ex::get_start_scheduler, ex::inline_scheduler())),
              "value(4)");
    const auto lvalue = ex::schedule(halves()) | ex::bulk(ex::par, 2, meet);
    EXPECT_EQ(outcome(lvalue), "value()");
}

TEST(exec_task_scheduler, a_sequenced_bulk_stays_in_order_on_one_thread) {
    std::string said;
    const auto each = [&](int i) { said += std::to_string(i); };
    EXPECT_EQ(outcome(ex::schedule(halves()) | ex::bulk(ex::seq, 4, each)), "value()");
    EXPECT_EQ(outcome(ex::schedule(halves()) | ex::bulk_unchunked(ex::unseq, 4, each)), "value()");
    EXPECT_EQ(said, "01230123");
}

TEST(exec_task_scheduler, holds_a_parallel_scheduler_whose_backend_gets_the_bulk) {
    const auto backend = std::make_shared<counting_backend>();
    const ex::task_scheduler sch{ex::parallel_scheduler(backend)};
    std::string calls;
    const auto each = [&](int i) { calls += std::to_string(i); };
    EXPECT_EQ(outcome(ex::schedule(sch) | ex::bulk(ex::par, 4, each)), "value()");
    EXPECT_EQ(std::exchange(backend->said, ""), "schedule chunked ");
    EXPECT_EQ(outcome(ex::schedule(sch) | ex::bulk_unchunked(ex::par, 3, each)), "value()");
    EXPECT_EQ(std::exchange(backend->said, ""), "schedule unchunked ");
    EXPECT_EQ(outcome(ex::schedule(sch) | ex::bulk(ex::seq, 2, each)), "value()");
    EXPECT_EQ(backend->said, "schedule ");
    EXPECT_EQ(calls, "012301201");
}

TEST(exec_task_scheduler, calls_every_index_once_on_the_parallel_scheduler) {
    const ex::task_scheduler sch(ex::get_parallel_scheduler());
    std::vector<int> calls(1000);
    for (int round = 0; round != 20; ++round) {
        const auto result = sync_wait(
            ex::schedule(sch) | ex::then([] { return std::make_unique<int>(3); }) |
            ex::bulk(ex::par, calls.size(),
                     [&](std::size_t i, const std::unique_ptr<int>& v) { calls[i] += *v; }) |
            ex::bulk_unchunked(ex::par, calls.size(),
                               [&](std::size_t i, const auto&) { ++calls[i]; }));
        ASSERT_TRUE(result);
        EXPECT_EQ(*std::get<0>(*result), 3);
    }
    for (const int n : calls) ASSERT_EQ(n, 20 * 4);
}

TEST(exec_task_scheduler_death, a_backend_that_cannot_schedule_ends_the_process) {
    const auto backend = std::make_shared<counting_backend>();
    backend->fails = true;
    const ex::task_scheduler sch{ex::parallel_scheduler(backend)};
    EXPECT_DEATH(outcome(ex::schedule(sch)), "failed to schedule");
}

TEST(exec_task_scheduler, a_stop_before_the_start_calls_nothing) {
    coppice::inplace_stop_source source;
    source.request_stop();
    int calls = 0;
    const auto count = [&](auto...) { ++calls; };
    const auto ends = [&](const ex::task_scheduler& sch) {
        const auto env = probes::stop_env(source);
        const auto first = ex::unstoppable(ex::schedule(sch));  // only the bulk sees the stop
        EXPECT_EQ(outcome(first | ex::bulk(ex::par, 9, count), env), "stopped");
        EXPECT_EQ(outcome(first | ex::bulk_chunked(ex::par, 9, count), env), "stopped");
        EXPECT_EQ(outcome(first | ex::bulk_unchunked(ex::par, 9, count), env), "stopped");
    };
    ends(halves());
    ends(ex::task_scheduler(ex::parallel_scheduler(std::make_shared<counting_backend>())));
    ends(ex::task_scheduler(ex::inline_scheduler()));
    EXPECT_EQ(calls, 0);
}

TEST(exec_task_scheduler, an_exception_of_the_function_is_the_error) {
    const auto fails = [](int i) {
        if (i == 2) throw 7;
    };
    const auto check = [&](const ex::task_scheduler& sch) {
        EXPECT_EQ(outcome(ex::schedule(sch) | ex::bulk(ex::par, 4, fails)), "error(exception 7)");
        EXPECT_EQ(outcome(ex::schedule(sch) | ex::bulk_unchunked(ex::par, 4, fails)),
                  "error(exception 7)");
    };
    check(halves());
    check(ex::task_scheduler(ex::parallel_scheduler(std::make_shared<counting_backend>())));
    check(ex::task_scheduler(ex::inline_scheduler()));
    const probes::throwing_copy value(-1);
    EXPECT_EQ(outcome(ex::schedule(halves()) |
                      ex::then([&]() -> const probes::throwing_copy& { return value; }) |
                      ex::bulk(ex::par, 4, [](int, auto&) {})),
              "error(exception copy)");
}

TEST(exec_task_scheduler, an_error_or_stop_of_the_inner_bulk_ends_the_outer_one) {
    const auto end = [](auto domain) {
        const ex::task_scheduler sch{domain_scheduler<decltype(domain)>()};
        return outcome(ex::schedule(sch) | ex::bulk(ex::par, 4, [](int) {}));
    };
    constexpr auto fails = [] { return ex::just_error(std::runtime_error("broken")); };
    constexpr auto stops = [] { return ex::just_stopped(); };
    EXPECT_EQ(end(large_domain<decltype(fails)>()), "error(exception broken)");
    EXPECT_EQ(end(large_domain<decltype(stops)>()), "stopped");
    EXPECT_EQ(end(throwing_domain()), "error(exception no room)");
}

TEST(exec_task_scheduler, a_large_bulk_is_allocated_with_its_allocator) {
    constexpr auto ends = [] { return ex::just(); };
    allocation_log log;
    const ex::task_scheduler sch(domain_scheduler<large_domain<decltype(ends)>>{},
                                 logging_allocator<int>(log));
    const auto work = ex::schedule(sch) | ex::bulk(ex::par, 4, [](int) {});
    EXPECT_EQ(outcome(work), "value()");
    EXPECT_EQ(log.made, 1);
    EXPECT_EQ(log.live, 0);
    log.fails = true;
    EXPECT_EQ(outcome(work), "error(exception std::bad_alloc)");
    EXPECT_EQ(log.live, 0);
}

// Such a bulk passes the reference on, as all did before task_scheduler had a domain of its own.
TEST(exec_task_scheduler, a_bulk_of_values_that_cannot_be_stored_is_not_transformed) {
    std::unique_ptr<int> value = std::make_unique<int>(1);
    auto sndr = ex::schedule(halves()) |
                ex::then([&]() -> std::unique_ptr<int>& { return value; }) |
                ex::bulk(ex::par, 3, [](int, std::unique_ptr<int>& v) { ++*v; }) |
                ex::then([&](std::unique_ptr<int>& v) { return &v == &value; });
    EXPECT_EQ(outcome(std::move(sndr)), "value(true)");
    EXPECT_EQ(*value, 4);
}

TEST(exec_task_scheduler, bulk_calls_no_completion_that_it_does_not_declare) {
    const auto check_on = [](auto make_scheduler) {
        strict::each_child([=](auto child) {
            const auto check_adapted = [=](auto adapt) {
                strict::check([=](strict::world& w) {
                    return child(w) | ex::continues_on(make_scheduler(w)) | adapt;
                });
            };
            check_adapted(ex::bulk(ex::par, 3, [](int, auto&...) {}));
            check_adapted(ex::bulk_chunked(ex::par, 3, [](int, int, auto&...) noexcept {}));
            check_adapted(ex::bulk_unchunked(ex::par, 3, [](int, auto&...) { throw 1; }));
        });
    };
    check_on([](strict::world& w) { return ex::task_scheduler(w.scheduler()); });
    check_on([](strict::world&) { return halves(); });
    check_on([](strict::world&) {
        return ex::task_scheduler(ex::parallel_scheduler(std::make_shared<counting_backend>()));
    });
}

}  // namespace
