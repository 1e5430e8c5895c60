// Plan: every name of [execution.syn], with its kind, its constraints, its noexcept, and its
// result. "A program written for C++26 compiles here when std:: becomes coppice::": `lib` is that
// namespace.
#include <coppice/execution.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>

namespace {

namespace lib = coppice;
namespace ex = lib::execution;

template <class T>
using tag_of = std::remove_cvref_t<T>;

// ---- [execpol] --------------------------------------------------------------------------------

static_assert(std::is_same_v<decltype(ex::seq), const ex::sequenced_policy>);
static_assert(std::is_same_v<decltype(ex::par), const ex::parallel_policy>);
static_assert(std::is_same_v<decltype(ex::par_unseq), const ex::parallel_unsequenced_policy>);
static_assert(std::is_same_v<decltype(ex::unseq), const ex::unsequenced_policy>);
static_assert(lib::is_execution_policy_v<ex::parallel_policy> && !lib::is_execution_policy_v<int>);
static_assert(lib::is_execution_policy<ex::sequenced_policy>::value);

// ---- [exec.queries] ---------------------------------------------------------------------------

static_assert(std::is_same_v<decltype(lib::forwarding_query), const lib::forwarding_query_t>);
static_assert(std::is_same_v<decltype(lib::get_allocator), const lib::get_allocator_t>);
static_assert(std::is_same_v<decltype(lib::get_stop_token), const lib::get_stop_token_t>);
static_assert(std::is_same_v<decltype(ex::get_domain), const ex::get_domain_t>);
static_assert(std::is_same_v<decltype(ex::get_scheduler), const ex::get_scheduler_t>);
static_assert(std::is_same_v<decltype(ex::get_start_scheduler), const ex::get_start_scheduler_t>);
static_assert(
    std::is_same_v<decltype(ex::get_delegation_scheduler), const ex::get_delegation_scheduler_t>);
static_assert(std::is_same_v<decltype(ex::get_forward_progress_guarantee),
                             const ex::get_forward_progress_guarantee_t>);
static_assert(std::is_same_v<decltype(ex::get_completion_scheduler<ex::set_value_t>),
                             const ex::get_completion_scheduler_t<ex::set_value_t>>);
static_assert(
    std::is_same_v<decltype(ex::get_completion_domain<>), const ex::get_completion_domain_t<void>>);
static_assert(std::is_same_v<decltype(ex::get_await_completion_adaptor),
                             const ex::get_await_completion_adaptor_t>);
static_assert(std::is_same_v<decltype(ex::get_env), const ex::get_env_t>);
static_assert(std::is_same_v<ex::env_of_t<int>, ex::env<>>);
static_assert(ex::forward_progress_guarantee::concurrent <
              ex::forward_progress_guarantee::parallel);
static_assert(ex::forward_progress_guarantee::parallel <
              ex::forward_progress_guarantee::weakly_parallel);

// Queries that pass through adaptors, and queries that do not.
static_assert(lib::forwarding_query(lib::get_allocator) &&
              lib::forwarding_query(lib::get_stop_token));
static_assert(lib::forwarding_query(ex::get_domain) && lib::forwarding_query(ex::get_scheduler));
static_assert(lib::forwarding_query(ex::get_start_scheduler) &&
              lib::forwarding_query(ex::get_delegation_scheduler));
static_assert(lib::forwarding_query(ex::get_completion_scheduler<ex::set_error_t>) &&
              lib::forwarding_query(ex::get_completion_domain<>) &&
              lib::forwarding_query(ex::get_await_completion_adaptor));
static_assert(!lib::forwarding_query(ex::get_forward_progress_guarantee));
static_assert(noexcept(lib::forwarding_query(ex::get_scheduler)));

// ---- [exec.domain.default], [exec.domain.indeterminate], [exec.snd.transform], [exec.snd.apply] -

static_assert(std::is_empty_v<ex::default_domain> && std::is_empty_v<ex::indeterminate_domain<>>);
static_assert(std::is_constructible_v<ex::indeterminate_domain<int>, int> &&
              std::is_nothrow_default_constructible_v<ex::indeterminate_domain<int>>);
using just_int = decltype(ex::just(1));
static_assert(noexcept(ex::transform_sender(std::declval<just_int>(), ex::env<>())));
static_assert(noexcept(
    ex::default_domain().transform_sender(ex::set_value, std::declval<just_int&>(), ex::env<>())));
static_assert(noexcept(ex::indeterminate_domain<>().transform_sender(ex::set_value,
                                                                     std::declval<just_int&>(),
                                                                     ex::env<>())));
using pinned = decltype(ex::just(std::declval<probes::throwing_copy>()));
static_assert(
    !noexcept(ex::transform_sender(std::declval<pinned>(), ex::env<>())) ||
    std::is_reference_v<decltype(ex::transform_sender(std::declval<pinned>(), ex::env<>()))>);
template <class Domain, class Tag, class Sndr>
concept applies = requires(Domain d, Tag t, Sndr sndr) { ex::apply_sender(d, t, sndr); };
static_assert(applies<ex::default_domain, lib::this_thread::sync_wait_t, just_int>);
static_assert(!applies<ex::default_domain, ex::then_t, just_int>);

// ---- [exec.sched], [exec.recv], [exec.opstate], [exec.snd] --------------------------------------

using loop_scheduler = decltype(std::declval<ex::run_loop&>().get_scheduler());
static_assert(ex::scheduler<ex::inline_scheduler> && ex::scheduler<loop_scheduler> &&
              ex::scheduler<ex::parallel_scheduler> && !ex::scheduler<int>);
static_assert(std::is_empty_v<ex::scheduler_tag> && std::is_empty_v<ex::receiver_tag> &&
              std::is_empty_v<ex::sender_tag> && std::is_empty_v<ex::operation_state_tag>);
static_assert(std::is_same_v<ex::schedule_result_t<ex::inline_scheduler>,
                             decltype(ex::schedule(ex::inline_scheduler()))>);

using some_receiver = probes::receiver<>;
static_assert(ex::receiver<some_receiver> && ex::receiver<some_receiver&> && !ex::receiver<int>);
static_assert(ex::receiver_of<some_receiver, ex::completion_signatures<ex::set_value_t(int)>>);
struct final_receiver final {
    using receiver_concept = ex::receiver_tag;
};
struct throwing_receiver {
    using receiver_concept = ex::receiver_tag;
    throwing_receiver(throwing_receiver&&) noexcept(false);
};
struct untagged_receiver {
    void set_value() && noexcept {}
};
static_assert(!ex::receiver<final_receiver> && !ex::receiver<throwing_receiver> &&
              !ex::receiver<untagged_receiver>);
struct remade_receiver {
    using receiver_concept = ex::receiver_tag;
    static remade_receiver make_receiver_for(int*) noexcept;
};
static_assert(ex::inlinable_receiver<remade_receiver, int> &&
              !ex::inlinable_receiver<remade_receiver, char> &&
              !ex::inlinable_receiver<some_receiver, int>);

// Completion functions accept only rvalues.
static_assert(std::is_invocable_v<ex::set_value_t, some_receiver, int>);
static_assert(!std::is_invocable_v<ex::set_value_t, some_receiver&, int>);
static_assert(!std::is_invocable_v<ex::set_value_t, const some_receiver, int>);
static_assert(!std::is_invocable_v<ex::set_error_t, some_receiver&, int>);
static_assert(!std::is_invocable_v<ex::set_error_t, some_receiver>);
static_assert(!std::is_invocable_v<ex::set_error_t, some_receiver, int, int>);
static_assert(!std::is_invocable_v<ex::set_stopped_t, some_receiver&>);
static_assert(std::is_void_v<decltype(ex::set_stopped(std::declval<some_receiver>()))>);
static_assert(noexcept(ex::set_value(std::declval<some_receiver>(), 1)));

using operation = ex::connect_result_t<just_int, some_receiver>;
static_assert(ex::operation_state<operation> && !ex::operation_state<int>);
static_assert(std::is_invocable_v<ex::start_t, operation&>);
static_assert(!std::is_invocable_v<ex::start_t, operation>);
static_assert(!std::is_move_constructible_v<operation> && !std::is_copy_assignable_v<operation>);
static_assert(noexcept(ex::start(std::declval<operation&>())));

static_assert(ex::sender<just_int> && ex::sender<const just_int&> && !ex::sender<int>);
static_assert(ex::enable_sender<just_int> && !ex::enable_sender<int>);
static_assert(ex::sender_in<just_int> && ex::sender_in<just_int, ex::env<>>);
static_assert(!ex::sender_in<just_int, ex::env<>, ex::env<>>);
using reads = decltype(ex::read_env(lib::get_stop_token));
static_assert(ex::dependent_sender<reads> && !ex::dependent_sender<just_int>);
static_assert(ex::sender_in<reads, ex::env<>> && !ex::sender_in<reads>);
static_assert(ex::sender_to<just_int, some_receiver>);
static_assert(std::is_same_v<ex::tag_of_t<just_int>, ex::just_t> &&
              std::is_same_v<ex::tag_of_t<const just_int&>, ex::just_t>);
static_assert(std::is_base_of_v<std::exception, ex::dependent_sender_error>);

// ---- [exec.getcomplsigs], [exec.cmplsig] ------------------------------------------------------

using several = ex::completion_signatures<ex::set_value_t(int, char), ex::set_value_t(),
                                          ex::set_error_t(int), ex::set_stopped_t()>;
struct declares_a_type {
    using sender_concept = ex::sender_tag;
    using completion_signatures = several;
};
struct declares_a_function {
    using sender_concept = ex::sender_tag;
    template <class Self, class... Env>
    static consteval several get_completion_signatures() {
        return {};
    }
};
static_assert(std::is_same_v<decltype(ex::get_completion_signatures<declares_a_type>()), several>);
static_assert(std::is_same_v<ex::completion_signatures_of_t<declares_a_function>, several>);
static_assert(
    std::is_same_v<ex::completion_signatures_of_t<declares_a_function&, ex::env<>>, several>);
static_assert(std::is_same_v<ex::value_types_of_t<declares_a_type>,
                             std::variant<std::tuple<int, char>, std::tuple<>>>);
static_assert(std::is_same_v<ex::error_types_of_t<declares_a_type>, std::variant<int>>);
template <class... Ts>
struct list {};
static_assert(std::is_same_v<ex::value_types_of_t<declares_a_type, ex::env<>, list, list>,
                             list<list<int, char>, list<>>>);
static_assert(ex::sends_stopped<declares_a_type> && !ex::sends_stopped<just_int>);
template <class Fn>
concept makes_signatures = requires { typename ex::completion_signatures<Fn>; };
static_assert(makes_signatures<ex::set_value_t(int&, const char&&)> &&
              makes_signatures<ex::set_error_t(int)>);
static_assert(!makes_signatures<ex::set_error_t()> && !makes_signatures<ex::set_stopped_t(int)> &&
              !makes_signatures<int(int)> && !makes_signatures<ex::set_error_t(int, int)>);

// ---- [exec.prop], [exec.env] ------------------------------------------------------------------

struct color_t {
    template <class Env>
    constexpr auto operator()(const Env& env) const noexcept -> decltype(env.query(*this)) {
        return env.query(*this);
    }
};
inline constexpr color_t color{};
struct size_query_t : lib::forwarding_query_t {
    template <class Env>
    constexpr auto operator()(const Env& env) const noexcept -> decltype(env.query(*this)) {
        return env.query(*this);
    }
};
inline constexpr size_query_t size_query{};
constexpr auto both = ex::env{ex::prop{color, 1}, ex::prop{size_query, 2}, ex::prop{color, 3}};
static_assert(color(both) == 1 && size_query(both) == 2);
static_assert(std::is_same_v<decltype(ex::prop{color, 1}), ex::prop<color_t, int>>);
static_assert(std::is_same_v<decltype(ex::prop{color, std::declval<std::reference_wrapper<int>>()}),
                             ex::prop<color_t, int&>>);
static_assert(!std::is_copy_assignable_v<ex::prop<color_t, int>> &&
              !std::is_move_assignable_v<decltype(both)>);
static_assert(std::is_copy_constructible_v<ex::prop<color_t, int>> &&
              std::is_copy_constructible_v<tag_of<decltype(both)>>);
static_assert(std::is_same_v<decltype(color(both)), const int&> && noexcept(color(both)));
static_assert(!lib::forwarding_query(color) && lib::forwarding_query(size_query));

TEST(execution_syn, adaptors_do_not_pass_non_forwarding_queries) {
    EXPECT_EQ(probes::outcome(ex::read_env(color) | ex::write_env(both)), "value(1)");
    EXPECT_EQ(probes::outcome(ex::read_env(size_query) | ex::then([](int i) { return i; }) |
                              ex::write_env(both)),
              "value(2)");
    using through = decltype(ex::read_env(color) | ex::then([](int i) { return i; }));
    static_assert(!ex::sender_in<through, tag_of<decltype(both)>>);
}

// ---- [exec.factories], [exec.adapt]: the types of the names -------------------------------------

template <class Object, class Type>
concept names_a = std::is_same_v<Object, const Type>;
static_assert(names_a<decltype(ex::set_value), ex::set_value_t>);
static_assert(names_a<decltype(ex::set_error), ex::set_error_t>);
static_assert(names_a<decltype(ex::set_stopped), ex::set_stopped_t>);
static_assert(names_a<decltype(ex::start), ex::start_t>);
static_assert(names_a<decltype(ex::connect), ex::connect_t>);
static_assert(names_a<decltype(ex::just), ex::just_t>);
static_assert(names_a<decltype(ex::just_error), ex::just_error_t>);
static_assert(names_a<decltype(ex::just_stopped), ex::just_stopped_t>);
static_assert(names_a<decltype(ex::schedule), ex::schedule_t>);
static_assert(names_a<decltype(ex::starts_on), ex::starts_on_t>);
static_assert(names_a<decltype(ex::continues_on), ex::continues_on_t>);
static_assert(names_a<decltype(ex::on), ex::on_t>);
static_assert(names_a<decltype(ex::schedule_from), ex::schedule_from_t>);
static_assert(names_a<decltype(ex::then), ex::then_t>);
static_assert(names_a<decltype(ex::upon_error), ex::upon_error_t>);
static_assert(names_a<decltype(ex::upon_stopped), ex::upon_stopped_t>);
static_assert(names_a<decltype(ex::let_value), ex::let_value_t>);
static_assert(names_a<decltype(ex::let_error), ex::let_error_t>);
static_assert(names_a<decltype(ex::let_stopped), ex::let_stopped_t>);
static_assert(names_a<decltype(ex::bulk), ex::bulk_t>);
static_assert(names_a<decltype(ex::bulk_chunked), ex::bulk_chunked_t>);
static_assert(names_a<decltype(ex::bulk_unchunked), ex::bulk_unchunked_t>);
static_assert(names_a<decltype(ex::when_all), ex::when_all_t>);
static_assert(names_a<decltype(ex::when_all_with_variant), ex::when_all_with_variant_t>);
static_assert(names_a<decltype(ex::into_variant), ex::into_variant_t>);
static_assert(names_a<decltype(ex::stopped_as_optional), ex::stopped_as_optional_t>);
static_assert(names_a<decltype(ex::stopped_as_error), ex::stopped_as_error_t>);
static_assert(names_a<decltype(ex::associate), ex::associate_t>);
static_assert(names_a<decltype(ex::spawn_future), ex::spawn_future_t>);
static_assert(names_a<decltype(ex::spawn), ex::spawn_t>);
static_assert(names_a<decltype(ex::as_awaitable), ex::as_awaitable_t>);
static_assert(names_a<decltype(ex::affine), ex::affine_t>);
static_assert(
    std::is_same_v<decltype(lib::this_thread::sync_wait), const lib::this_thread::sync_wait_t>);
static_assert(std::is_same_v<decltype(lib::this_thread::sync_wait_with_variant),
                             const lib::this_thread::sync_wait_with_variant_t>);
static_assert(std::is_object_v<decltype(ex::read_env)> &&
              std::is_object_v<decltype(ex::write_env)> &&
              std::is_object_v<decltype(ex::unstoppable)>);

// ---- [exec.run.loop], [exec.counting.scopes], [exec.par.scheduler], [exec.parschedrepl] ---------

static_assert(std::is_nothrow_default_constructible_v<ex::run_loop> &&
              !std::is_move_constructible_v<ex::run_loop>);
static_assert(noexcept(std::declval<ex::run_loop&>().run()) &&
              noexcept(std::declval<ex::run_loop&>().finish()) &&
              noexcept(std::declval<ex::run_loop&>().get_scheduler()));
template <class Scope>
inline constexpr bool is_scope =
    std::is_nothrow_default_constructible_v<Scope> && !std::is_move_constructible_v<Scope> &&
    Scope::max_associations >= 1'000'000 && ex::scope_token<typename Scope::token> &&
    std::is_same_v<decltype(std::declval<Scope&>().get_token()), typename Scope::token> &&
    ex::scope_association<decltype(std::declval<typename Scope::token>().try_associate())> &&
    ex::sender<decltype(std::declval<Scope&>().join())> &&
    noexcept(std::declval<Scope&>().get_token()) && noexcept(std::declval<Scope&>().close()) &&
    noexcept(std::declval<Scope&>().join());
static_assert(is_scope<ex::simple_counting_scope> && is_scope<ex::counting_scope>);
static_assert(noexcept(std::declval<ex::counting_scope&>().request_stop()));
static_assert(!ex::scope_token<int> && !ex::scope_association<int>);
static_assert(std::is_same_v<decltype(ex::get_parallel_scheduler()), ex::parallel_scheduler>);
namespace replacement = ex::parallel_scheduler_replacement;
static_assert(
    std::is_base_of_v<replacement::receiver_proxy, replacement::bulk_item_receiver_proxy>);
static_assert(std::has_virtual_destructor_v<replacement::parallel_scheduler_backend>);
static_assert(std::is_same_v<decltype(replacement::query_parallel_scheduler_backend()),
                             std::shared_ptr<replacement::parallel_scheduler_backend>>);

// ---- [exec.with.awaitable.senders] ------------------------------------------------------------

struct some_promise : ex::with_awaitable_senders<some_promise> {};
static_assert(noexcept(std::declval<some_promise&>().unhandled_stopped()) &&
              noexcept(std::declval<some_promise&>().continuation()));

}  // namespace
