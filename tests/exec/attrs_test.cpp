// Plan: [exec.snd.general] p4, p5: in which domain, and on which scheduler, the senders of adaptors
// complete with each of the three tags.
#include <coppice/exec/bulk.hpp>
#include <coppice/exec/continues_on.hpp>
#include <coppice/exec/internal/attrs.hpp>
#include <coppice/exec/internal/let_attrs.hpp>
#include <coppice/exec/into_variant.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/on.hpp>
#include <coppice/exec/parallel_scheduler.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/when_all.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

namespace {

namespace ex = coppice::execution;
using V = ex::set_value_t;
using E = ex::set_error_t;
using S = ex::set_stopped_t;

struct d1 {};
struct d2 {};
struct d3 {};

// Completes with an int in domain Dv, an error in De, or stopped in Ds. Where the domain is void,
// it has no such completion.
template <class Dv, class De, class Ds>
struct ends_in {
    using sender_concept = ex::sender_tag;
    template <class D, class Fn>
    using if_not_void = std::conditional_t<std::is_void_v<D>, ex::completion_signatures<>,
                                           ex::completion_signatures<Fn>>;
    using completion_signatures =
        ex::internal::signatures_union_t<if_not_void<Dv, V(int)>, if_not_void<De, E(int)>,
                                         if_not_void<Ds, S()>>;
    struct attrs {
        attrs() noexcept = default;
        Dv query(ex::get_completion_domain_t<V>) const noexcept
            requires(!std::is_void_v<Dv>)
        {
            return Dv();
        }
        De query(ex::get_completion_domain_t<E>) const noexcept
            requires(!std::is_void_v<De>)
        {
            return De();
        }
        Ds query(ex::get_completion_domain_t<S>) const noexcept
            requires(!std::is_void_v<Ds>)
        {
            return Ds();
        }
    };
    attrs get_env() const noexcept { return attrs(); }
};
using each = ends_in<d1, d2, d3>;

template <class Sndr, class Tag, class Env>
struct domain_of {
    using type = void;
};
template <class Sndr, class Tag, class Env>
    requires ex::internal::callable<ex::get_completion_domain_t<Tag>, ex::env_of_t<Sndr>,
                                    const Env&>
struct domain_of<Sndr, Tag, Env> {
    using type = ex::internal::call_result_t<ex::get_completion_domain_t<Tag>, ex::env_of_t<Sndr>,
                                             const Env&>;
};
template <class Sndr, class Dv, class De, class Ds, class Env = ex::env<>>
concept completes_in = std::same_as<typename domain_of<Sndr, V, Env>::type, Dv> &&
                       std::same_as<typename domain_of<Sndr, E, Env>::type, De> &&
                       std::same_as<typename domain_of<Sndr, S, Env>::type, Ds>;
template <class... Ds>
using any_of = ex::indeterminate_domain<Ds...>;

inline constexpr auto f = [](auto...) noexcept { return 1; };
inline constexpr auto g = [](auto...) { return 1; };
static_assert(completes_in<each, d1, d2, d3>);

TEST(exec_snd_general, then_completes_where_the_child_completes) {
    static_assert(completes_in<decltype(ex::then(each(), f)), d1, d2, d3>);
    static_assert(completes_in<decltype(ex::then(each(), g)), d1, any_of<d1, d2>, d3>);
    static_assert(completes_in<decltype(ex::upon_error(each(), f)), any_of<d1, d2>, void, d3>);
    static_assert(completes_in<decltype(ex::upon_error(each(), g)), any_of<d1, d2>, d2, d3>);
    static_assert(completes_in<decltype(ex::upon_stopped(each(), f)), any_of<d1, d3>, d2, void>);
    static_assert(
        completes_in<decltype(ex::upon_stopped(each(), g)), any_of<d1, d3>, any_of<d2, d3>, void>);
    using values_only = ends_in<d1, void, void>;
    static_assert(completes_in<decltype(ex::then(values_only(), g)), d1, d1, void>);
    static_assert(completes_in<decltype(ex::upon_error(values_only(), g)), d1, void, void>);
}

TEST(exec_snd_general, other_adaptors_complete_where_the_child_completes) {
    const auto call = [](int, int&) {};
    using bulk = decltype(ex::bulk_unchunked(each(), ex::seq, 1, call));
    static_assert(completes_in<bulk, d1, any_of<d1, d2>, d3>);
    static_assert(completes_in<decltype(ex::into_variant(each())), d1, d2, d3>);
    static_assert(
        completes_in<decltype(ex::stopped_as_optional(each())), any_of<d1, d3>, d2, void>);
    static_assert(
        completes_in<decltype(ex::stopped_as_error(each(), 1)), d1, any_of<d2, d3>, void>);
}

TEST(exec_snd_general, when_all_completes_where_the_last_of_its_children_may) {
    static_assert(completes_in<decltype(ex::when_all(each(), each())), d1, any_of<d1, d2, d3>,
                               any_of<d1, d2, d3>>);
    using one = ends_in<d1, void, void>;
    using other = ends_in<d2, void, void>;
    static_assert(
        std::same_as<domain_of<decltype(ex::when_all(one(), other())), V, ex::env<>>::type,
                     any_of<d1, d2>>);
    static_assert(
        std::same_as<domain_of<decltype(ex::when_all(one(), one())), V, ex::env<>>::type, d1>);
}

TEST(exec_snd_general, let_value_completes_where_its_second_sender_does) {
    using to_other =
        decltype(ex::let_value(each(), [](int) noexcept { return ends_in<d2, void, void>(); }));
    static_assert(completes_in<to_other, d2, d2, d3>);
    using to_just = decltype(ex::let_value(each(), [](int) noexcept { return ex::just(1); }));
    static_assert(completes_in<to_just, d1, d2, d3>);
    using error_to_just = decltype(ex::let_error(each(), [](int) { return ex::just(1); }));
    static_assert(completes_in<error_to_just, any_of<d1, d2>, d2, d3>);
}

TEST(exec_snd_general, let_value_knows_where_a_stateless_second_sender_completes) {
    ex::run_loop loop;
    const auto sch = loop.get_scheduler();
    const auto first = ex::schedule(sch) | ex::let_value([] { return ex::just(1); });
    EXPECT_EQ(ex::get_completion_scheduler<V>(ex::get_env(first), ex::env<>()), sch);
    // So on() can return from another context.
    ex::run_loop here;
    probes::record r;
    auto op =
        ex::connect(ex::just() | ex::let_value([] { return ex::just(20); }) |
                        ex::on(sch, ex::then([](int i) { return i + 1; })),
                    probes::receiver(r, ex::prop(ex::get_start_scheduler, here.get_scheduler())));
    ex::start(op);
    loop.finish();
    loop.run();
    EXPECT_EQ(r.said(), "");
    here.finish();
    here.run();
    EXPECT_EQ(r.said(), "value(21)");
}

TEST(exec_continues_on,
     completes_on_its_scheduler_with_every_tag_that_scheduling_cannot_fail_with) {
    ex::run_loop loop;
    const auto sch = loop.get_scheduler();
    const auto sndr = ex::continues_on(each(), sch);
    const ex::env<> none;
    EXPECT_EQ(ex::get_completion_scheduler<V>(ex::get_env(sndr), none), sch);
    EXPECT_EQ(ex::get_completion_scheduler<E>(ex::get_env(sndr), none), sch);
    EXPECT_EQ(ex::get_completion_scheduler<S>(ex::get_env(sndr), none), sch);
    using stoppable = decltype(probes::stop_env(std::declval<coppice::inplace_stop_source&>()));
    using attrs = ex::env_of_t<decltype(sndr)>;
    static_assert(
        !ex::internal::callable<ex::get_completion_scheduler_t<S>, attrs, const stoppable&>);
    using no_error = decltype(ex::continues_on(ex::just(), sch));
    static_assert(!ex::internal::callable<ex::get_completion_scheduler_t<E>, ex::env_of_t<no_error>,
                                          const ex::env<>&>);
}

TEST(exec_starts_on, does_not_say_where_scheduling_fails) {
    ex::run_loop loop;
    coppice::inplace_stop_source source;
    const auto env =
        ex::env(probes::stop_env(source), ex::prop(ex::get_start_scheduler, loop.get_scheduler()));
    using Env = std::remove_cv_t<decltype(env)>;
    using sndr = decltype(ex::starts_on(loop.get_scheduler(), each()));
    static_assert(completes_in<sndr, d1, d2, void, Env>);
    static_assert(completes_in<sndr, d1, d2, d3>);  // if it cannot be stopped
}

TEST(exec_par_scheduler, bulk_after_when_all_runs_where_when_all_completes) {
    const auto sch = ex::get_parallel_scheduler();
    int calls = 0;
    auto [a, b] = *coppice::this_thread::sync_wait(
        ex::when_all(ex::schedule(sch) | ex::then([] { return 1; }),
                     ex::schedule(sch) | ex::then([] { return 2; })) |
        ex::bulk(ex::par, 10, [&](int, int&, int&) { ++calls; }));
    EXPECT_EQ(a + b, 3);
    EXPECT_EQ(calls, 10);
}

}  // namespace
