// Plan: let_async_scope (P3296R3): it joins on every path; which error wins; stops; spawns from
// nested work and from other threads; environments; scoped.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/associate.hpp>
#include <coppice/exec/continues_on.hpp>
#include <coppice/exec/let_async_scope.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/spawn_future.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>

#include "strict.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;
using probes::outcome;

// A child of a scope that the test completes.
auto by_hand(probes::by_hand& hand) {
    return hand.get() | ex::then([](int) noexcept {});
}

// A scope with one nested operation, connected and started.
template <class Sndr, class Env = ex::env<>>
class started {
public:
    explicit started(Sndr sndr, Env env = Env())
        : op_(ex::connect(std::move(sndr), probes::receiver<Env>(record_, std::move(env)))) {
        ex::start(op_);
    }
    const std::string& said() const { return record_.said(); }

private:
    probes::record record_;
    ex::connect_result_t<Sndr, probes::receiver<Env>> op_;
};

TEST(let_async_scope, completes_with_the_body_once_all_nested_work_has_ended) {
    probes::by_hand hand;
    const started op(ex::just(3) | ex::let_async_scope([&](auto scope, int& i) {
                         ex::spawn(by_hand(hand), scope);
                         return ex::just(&i) | ex::then([](const int* p) { return *p + 1; });
                     }));
    EXPECT_EQ(op.said(), "");
    EXPECT_EQ(hand.started, 1);
    hand.value(0);
    EXPECT_EQ(op.said(), "value(4)");
}

TEST(let_async_scope, a_function_that_returns_nothing_sends_nothing) {
    int ran = 0;
    EXPECT_EQ(outcome(ex::just() | ex::let_async_scope([&](auto scope) {
                          ex::spawn(ex::just() | ex::then([&] { ++ran; }), scope);
                          ex::spawn(ex::just() | ex::then([&] { ++ran; }), scope);
                      })),
              "value()");
    EXPECT_EQ(ran, 2);
}

TEST(let_async_scope, passes_the_errors_and_stops_of_the_first_sender) {
    const auto never = [](auto, auto&...) { return ex::just(1); };
    EXPECT_EQ(outcome(ex::just_error(1) | ex::let_async_scope(never)), "error(1)");
    EXPECT_EQ(outcome(ex::just_stopped() | ex::let_async_scope(never)), "stopped");
}

TEST(let_async_scope, joins_when_the_function_throws_after_it_has_spawned) {
    probes::by_hand hand;
    const started op(ex::just() | ex::let_async_scope([&](auto scope) {
                         ex::spawn(by_hand(hand), scope);
                         throw std::runtime_error("after the spawn");
                     }));
    EXPECT_EQ(op.said(), "");
    hand.stopped();
    EXPECT_EQ(op.said(), "error(exception after the spawn)");
}

TEST(let_async_scope, an_exception_of_the_function_stops_the_nested_work) {
    EXPECT_EQ(outcome(ex::just() | ex::let_async_scope([&](auto scope) {
                          ex::spawn(probes::until_stopped() | ex::then([](int) noexcept {}), scope);
                          throw 7;
                      })),
              "error(exception 7)");
    EXPECT_EQ(outcome(ex::just() | ex::let_async_scope([&](auto scope) {
                          ex::spawn(probes::until_stopped() | ex::then([](int) noexcept {}), scope);
                          return ex::just_error(8);
                      })),
              "error(8)");
}

TEST(let_async_scope, the_first_error_of_nested_work_stops_the_rest_and_wins) {
    EXPECT_EQ(outcome(ex::just() | ex::let_async_scope([&](auto scope) {
                          ex::spawn(probes::until_stopped() | ex::then([](int) noexcept {}), scope);
                          ex::spawn(ex::just_error(std::runtime_error("first")), scope);
                          ex::spawn(ex::just_error(std::runtime_error("second")), scope);
                          return probes::until_stopped();
                      })),
              "error(exception first)");
    // It also wins over a body that ended long before.
    probes::by_hand hand;
    const started op(ex::just() | ex::let_async_scope([&](auto scope) {
                         ex::spawn(by_hand(hand), scope);
                         return ex::just(1);
                     }));
    hand.error(9);
    EXPECT_EQ(op.said(), "error(exception 9)");
    // A body's error wins over a later error of nested work.
    probes::by_hand late;
    const started second(ex::just() | ex::let_async_scope([&](auto scope) {
                             ex::spawn(by_hand(late), scope);
                             return ex::just_error(std::string("body"));
                         }));
    late.error(9);
    EXPECT_EQ(second.said(), "error(body)");
}

struct foo {
    std::string in_words() const { return "foo"; }
};
struct bar {
    std::string in_words() const { return "bar"; }
};

TEST(let_async_scope, with_error_keeps_the_types_of_errors) {
    auto sndr = ex::just() | ex::let_async_scope_with_error<foo, bar>([](auto scope) noexcept {
                    ex::spawn(ex::just_error(bar()), scope);
                    ex::spawn(ex::just_error(foo()), scope);
                });
    using Sigs = ex::completion_signatures_of_t<decltype(sndr), ex::env<>>;
    static_assert(Sigs::count_of(ex::set_error) == 2);
    EXPECT_EQ(outcome(std::move(sndr)), "error(bar)");
    auto none = ex::just() | ex::let_async_scope_with_error<>(
                                 [](auto scope) noexcept { ex::spawn(ex::just(), scope); });
    using None = ex::completion_signatures_of_t<decltype(none), ex::env<>>;
    static_assert(None::count_of(ex::set_error) == 0);
    EXPECT_EQ(outcome(std::move(none)), "value()");
}

TEST(let_async_scope, a_stop_reaches_the_body_and_all_nested_work) {
    coppice::inplace_stop_source source;
    int stopped = 0;
    const started op(ex::just() | ex::let_async_scope([&](auto scope) {
                         for (int i = 0; i != 3; ++i) {
                             ex::spawn(probes::until_stopped() | ex::then([](int) noexcept {}) |
                                           ex::upon_stopped([&]() noexcept { ++stopped; }),
                                       scope);
                         }
                         return probes::until_stopped();
                     }),
                     probes::stop_env(source));
    EXPECT_EQ(op.said(), "");
    source.request_stop();
    EXPECT_EQ(op.said(), "stopped");
    EXPECT_EQ(stopped, 3);
}

TEST(let_async_scope, an_earlier_stop_stops_what_is_spawned_later) {
    coppice::inplace_stop_source source;
    source.request_stop();
    EXPECT_EQ(outcome(ex::just() | ex::let_async_scope([&](auto scope) {
                          ex::spawn(probes::until_stopped() | ex::then([](int) noexcept {}), scope);
                      }),
                      probes::stop_env(source)),
              "value()");
}

TEST(let_async_scope, nested_work_spawns_more_even_after_the_body_has_ended) {
    ex::run_loop loop;
    int ran = 0;
    const auto sch = loop.get_scheduler();
    const started op(
        ex::just() | ex::let_async_scope([&](auto scope) {
            ex::spawn(ex::schedule(sch) | ex::then([&, scope] {
                          ++ran;
                          ex::spawn(ex::schedule(sch) | ex::then([&, scope] {
                                        ++ran;
                                        ex::spawn(ex::just() | ex::then([&] { ++ran; }), scope);
                                    }),
                                    scope);
                      }),
                      scope);
            return ex::just(5);
        }));
    EXPECT_EQ(op.said(), "");
    loop.finish();
    loop.run();
    EXPECT_EQ(op.said(), "value(5)");
    EXPECT_EQ(ran, 3);
}

TEST(let_async_scope, spawn_future_gives_its_result_to_the_body) {
    EXPECT_EQ(outcome(ex::just() | ex::let_async_scope([](auto scope) {
                          return ex::spawn_future(
                              ex::just(1) | ex::then([](int i) { return i + 1; }), scope);
                      })),
              "value(2)");
    // Its error belongs to its consumer, and does not stop the scope.
    EXPECT_EQ(outcome(ex::just() | ex::let_async_scope([](auto scope) {
                          return ex::spawn_future(ex::just_error(3), scope) |
                                 ex::upon_error([](int i) { return i; });
                      })),
              "value(3)");
}

TEST(let_async_scope, the_body_may_itself_be_associated_with_the_scope) {
    EXPECT_EQ(outcome(ex::just() | ex::let_async_scope([](auto scope) {
                          return ex::just(4) | ex::associate(scope);
                      })),
              "value(4)");
}

TEST(let_async_scope, nested_work_sees_the_receivers_environment_behind_its_own) {
    ex::run_loop outer;
    ex::run_loop own;
    std::optional<ex::run_loop::scheduler> seen;
    std::optional<ex::run_loop::scheduler> seen_own;
    const auto look = [](auto& at) {
        return ex::read_env(ex::get_scheduler) | ex::then([&at](auto sch) noexcept { at = sch; });
    };
    EXPECT_EQ(outcome(ex::just() | ex::let_async_scope([&](auto scope) {
                          ex::spawn(look(seen), scope);
                          ex::spawn(look(seen_own), scope,
                                    ex::prop(ex::get_scheduler, own.get_scheduler()));
                      }),
                      ex::prop(ex::get_scheduler, outer.get_scheduler())),
              "value()");
    EXPECT_EQ(seen, outer.get_scheduler());
    EXPECT_EQ(seen_own, own.get_scheduler());
}

TEST(let_async_scope, values_live_until_the_last_nested_work_has_ended) {
    probes::by_hand hand;
    std::weak_ptr<int> watched;
    {
        auto value = std::make_shared<int>(3);
        watched = value;
        const started op(ex::just(std::move(value)) |
                         ex::let_async_scope([&](auto scope, std::shared_ptr<int>&) {
                             ex::spawn(by_hand(hand), scope);
                         }));
        EXPECT_FALSE(watched.expired());
        hand.value(1);
        EXPECT_EQ(op.said(), "value()");
    }
    EXPECT_TRUE(watched.expired());
}

TEST(let_async_scope, calls_no_completion_that_it_does_not_declare) {
    strict::each_child([](auto child) {
        strict::check([child](strict::world& w) {
            return child(w) | ex::let_async_scope([](auto scope, auto&...) {
                       ex::spawn(ex::just(), scope);
                       return ex::just(1);
                   });
        });
    });
    strict::each_child([](auto body) {
        strict::check(
            [body](strict::world& w) { return ex::scoped([body, &w](auto) { return body(w); }); });
    });
}

TEST(let_async_scope, waits_for_spawns_from_many_threads) {
    constexpr int threads = 4;
    coppice::internal::atomic<int> ran{0};
    std::vector<std::thread> all;
    sync_wait(ex::scoped([&](auto scope) {
        for (int t = 0; t != threads; ++t) {
            // Each thread's own association keeps the scope open while it spawns.
            all.emplace_back([scope, keep = scope.try_associate(), &ran] {
                for (int i = 0; i != 1'000; ++i) {
                    ex::spawn(ex::just() | ex::then([&ran]() noexcept {
                                  ran.fetch_add(1, coppice::internal::relaxed);
                              }),
                              scope);
                }
            });
        }
    }));
    EXPECT_EQ(ran.load(coppice::internal::relaxed), threads * 1'000);
    for (auto& thread : all) thread.join();
}

TEST(scoped, opens_a_scope_without_a_first_sender) {
    EXPECT_EQ(outcome(ex::scoped([](auto scope) {
                  ex::spawn(ex::just(), scope);
                  return ex::just(2);
              })),
              "value(2)");
}

TEST(scoped, death_a_missing_join_is_reported_by_name) {
    const auto forget = [](auto make) {
        coppice::inplace_stop_source source;
        auto scope = make();
        ex::spawn(probes::until_stopped() | ex::then([](int) noexcept {}), scope->get_token());
        throw 1;
    };
    const auto ended_by_an_exception = [&](auto make) {
        try {
            forget(make);
        } catch (int) {
        }
    };
    EXPECT_DEATH(ended_by_an_exception([] { return std::make_unique<ex::counting_scope>(); }),
                 "a counting_scope was destroyed before its join\\(\\) completed.*scoped");
    EXPECT_DEATH(
        ended_by_an_exception([] { return std::make_unique<ex::simple_counting_scope>(); }),
        "a simple_counting_scope was destroyed before its join\\(\\) completed");
}

}  // namespace
