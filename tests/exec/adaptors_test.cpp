// Plan: what all factories and adaptors of [exec.factories] and [exec.adapt] have in common: which
// arguments they reject, that they decompose, pipe, copy, and move, and their signatures.
#include <coppice/execution.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

namespace {

namespace ex = coppice::execution;

template <class Adaptor, class... Args>
inline constexpr bool takes = std::is_invocable_v<const Adaptor&, Args...>;
template <class Sndr, class Env = ex::env<>>
using sigs = ex::completion_signatures_of_t<Sndr, Env>;
template <class... Fns>
using are = ex::completion_signatures<Fns...>;
// True if both have the same set of signatures, in any order.
template <class A, class B>
inline constexpr bool same_set = false;
template <class... As, class... Bs>
inline constexpr bool same_set<are<As...>, are<Bs...>> =
    sizeof...(As) == sizeof...(Bs) && (ex::internal::one_of<As, Bs...> && ...);
template <class Sndr, class... Fns>
concept sends = same_set<sigs<Sndr>, are<Fns...>>;

using V = ex::set_value_t;
using E = ex::set_error_t;
using S = ex::set_stopped_t;
using exception = E(std::exception_ptr);

using int_sender = decltype(ex::just(1));
using scheduler = decltype(std::declval<ex::run_loop&>().get_scheduler());
using token = ex::counting_scope::token;
struct text {};
inline constexpr auto plus_one = [](int i) noexcept { return i + 1; };
inline constexpr auto throws = [](int i) { return i; };
using nothrow_t = decltype(plus_one);
struct unmovable {
    unmovable() = default;
    unmovable(unmovable&&) = delete;
    void operator()() const {}
};
struct any_call {
    void operator()(auto&&...) const {}
};
using closure = decltype(ex::then(plus_one));

// ---- Rejected arguments -----------------------------------------------------------------------

static_assert(takes<ex::just_t> && takes<ex::just_t, int, text> && !takes<ex::just_t, unmovable>);
static_assert(!takes<ex::just_t, int (&)[3]>);
static_assert(takes<ex::just_error_t, int> && !takes<ex::just_error_t> &&
              !takes<ex::just_error_t, int, int>);
static_assert(takes<ex::just_stopped_t> && !takes<ex::just_stopped_t, int>);
static_assert(takes<ex::schedule_t, scheduler> && !takes<ex::schedule_t, int>);

static_assert(takes<ex::then_t, int_sender, nothrow_t> && !takes<ex::then_t, int, nothrow_t>);
static_assert(!takes<ex::then_t, int_sender, unmovable>);
static_assert(takes<ex::upon_error_t, int_sender, text> &&
              takes<ex::upon_stopped_t, int_sender, text>);
static_assert(takes<ex::let_error_t, int_sender, text> && !takes<ex::let_value_t, int, text>);
static_assert(!takes<ex::let_stopped_t, int_sender, text>);  // [exec.let] p4
static_assert(takes<ex::let_stopped_t, int_sender, decltype([] { return ex::just(); })>);

static_assert(takes<ex::bulk_t, int_sender, ex::parallel_policy, int, any_call> &&
              takes<ex::bulk_chunked_t, int_sender, const ex::sequenced_policy&, char, any_call> &&
              takes<ex::bulk_unchunked_t, int_sender, ex::unsequenced_policy, long, any_call>);
static_assert(!takes<ex::bulk_t, int_sender, int, int, any_call> &&
              !takes<ex::bulk_t, int_sender, ex::parallel_policy, double, any_call> &&
              !takes<ex::bulk_t, int, ex::parallel_policy, int, any_call>);
struct move_only {
    move_only() = default;
    move_only(move_only&&) = default;
    void operator()(auto&&...) const {}
};
static_assert(!takes<ex::bulk_t, int_sender, ex::parallel_policy, int, move_only>);

static_assert(takes<ex::starts_on_t, scheduler, int_sender> &&
              !takes<ex::starts_on_t, int, int_sender> && !takes<ex::starts_on_t, scheduler, int>);
static_assert(takes<ex::continues_on_t, int_sender, scheduler> &&
              !takes<ex::continues_on_t, scheduler, int_sender> &&
              !takes<ex::continues_on_t, int_sender, int>);
static_assert(takes<ex::schedule_from_t, int_sender> && !takes<ex::schedule_from_t, int>);
static_assert(takes<ex::on_t, scheduler, int_sender> && takes<ex::on_t, scheduler, closure> &&
              takes<ex::on_t, int_sender, scheduler, closure>);
static_assert(!takes<ex::on_t, scheduler, int> && !takes<ex::on_t, int, int_sender> &&
              !takes<ex::on_t, int_sender, scheduler, int> &&
              !takes<ex::on_t, int_sender, int, closure>);
static_assert(takes<ex::affine_t, int_sender> && !takes<ex::affine_t, int>);
static_assert(takes<decltype(ex::write_env), int_sender, ex::env<>> &&
              !takes<decltype(ex::write_env), int, ex::env<>>);
static_assert(takes<decltype(ex::unstoppable), int_sender> &&
              !takes<decltype(ex::unstoppable), int>);

static_assert(takes<ex::when_all_t, int_sender> && takes<ex::when_all_t, int_sender, int_sender&>);
static_assert(!takes<ex::when_all_t> && !takes<ex::when_all_t, int_sender, int>);
static_assert(!takes<ex::when_all_with_variant_t> &&
              takes<ex::when_all_with_variant_t, int_sender, int_sender>);
static_assert(takes<ex::into_variant_t, int_sender> && !takes<ex::into_variant_t, int>);
static_assert(takes<ex::stopped_as_optional_t, int_sender> &&
              takes<ex::stopped_as_error_t, int_sender, int> &&
              !takes<ex::stopped_as_error_t, int_sender, unmovable>);

static_assert(takes<ex::associate_t, int_sender, token> && !takes<ex::associate_t, int, token> &&
              !takes<ex::associate_t, int_sender, int>);
static_assert(takes<ex::spawn_future_t, int_sender, token> &&
              takes<ex::spawn_future_t, int_sender, token, ex::env<>> &&
              !takes<ex::spawn_future_t, int, token> &&
              !takes<ex::spawn_future_t, int_sender, int>);
using void_sender = decltype(ex::just());
static_assert(takes<ex::spawn_t, void_sender, token> && !takes<ex::spawn_t, int, token> &&
              !takes<ex::spawn_t, void_sender, int>);
static_assert(std::is_void_v<std::invoke_result_t<ex::spawn_t, void_sender, token>>);
static_assert(takes<coppice::this_thread::sync_wait_t, int_sender> &&
              !takes<coppice::this_thread::sync_wait_t, int>);

// ---- Signatures -------------------------------------------------------------------------------

using stop_env = decltype(probes::stop_env(std::declval<coppice::inplace_stop_source&>()));
static_assert(sends<int_sender, V(int)> && sends<decltype(ex::just_error(1)), E(int)> &&
              sends<decltype(ex::just_stopped()), S()> && sends<decltype(ex::just()), V()>);
static_assert(sends<decltype(ex::read_env(coppice::get_stop_token)), V(coppice::never_stop_token)>);
static_assert(sends<decltype(ex::just(1) | ex::then(plus_one)), V(int)> &&
              sends<decltype(ex::just(1) | ex::then(throws)), V(int), exception>);
static_assert(sends<decltype(ex::just(1) | ex::then([](int) noexcept {})), V()>);
static_assert(
    sends<decltype(ex::just_error(1) | ex::upon_error(plus_one)), V(int)> &&
    sends<decltype(ex::just_stopped() | ex::upon_stopped([]() noexcept { return 1; })), V(int)>);
static_assert(sends<decltype(ex::just(1) | ex::upon_error(plus_one)), V(int)>);
static_assert(
    sends<decltype(ex::just(1) | ex::let_value([](int& i) noexcept { return ex::just(&i); })),
          V(int*)>);
static_assert(sends<decltype(ex::just(1) | ex::let_value([](int&) { return ex::just_error('c'); })),
                    E(char), exception>);
static_assert(
    sends<decltype(ex::just(1) | ex::bulk(ex::par, 2, [](int, int&) noexcept {})), V(int)>);
static_assert(sends<decltype(ex::just(1) | ex::bulk_chunked(ex::par, 2, [](int, int, int&) {})),
                    V(int), exception>);
static_assert(sends<decltype(ex::when_all(ex::just(1, 'c'), ex::just(), ex::just(2.0))),
                    V(int, char, double)>);
static_assert(sends<decltype(ex::when_all(ex::just(1), ex::just_error(text()), ex::just_stopped())),
                    E(text), S()>);
static_assert(sends<decltype(ex::into_variant(ex::just(1))), V(std::variant<std::tuple<int>>)>);
static_assert(sends<decltype(ex::when_all_with_variant(ex::just(1), ex::just())),
                    V(std::variant<std::tuple<int>>, std::variant<std::tuple<>>)>);
static_assert(
    sends<decltype(ex::just(1) | ex::stopped_as_optional()), V(std::optional<int>)> &&
    sends<decltype(probes::until_stopped() | ex::stopped_as_error('c')), V(int), E(char)>);
static_assert(
    sends<decltype(ex::schedule(std::declval<scheduler>())), V()> &&
    same_set<sigs<decltype(ex::schedule(std::declval<scheduler>())), stop_env>, are<V(), S()>>);
static_assert(sends<decltype(ex::schedule(ex::inline_scheduler())), V()>);
static_assert(sends<decltype(ex::just(1) | ex::continues_on(std::declval<scheduler>())), V(int)> &&
              sends<decltype(ex::starts_on(std::declval<scheduler>(), ex::just(1))), V(int)>);
static_assert(sends<decltype(ex::just(1) | ex::associate(std::declval<token>())), V(int), S()> &&
              sends<decltype(ex::spawn_future(ex::just(1), std::declval<token>())), V(int), S()>);
static_assert(sends<decltype(ex::unstoppable(ex::schedule(std::declval<scheduler>()))), V()>);
// References stay references through adaptors that store nothing; the others store values.
static_assert(sends<decltype(ex::just() | ex::then([]() noexcept -> const text& {
                                 static text t;
                                 return t;
                             })),
                    V(const text&)>);

// An adaptor needs an environment only if its child does.
using dependent = decltype(ex::read_env(coppice::get_stop_token) | ex::then([](auto) noexcept {}));
static_assert(ex::dependent_sender<dependent> && !ex::sender_in<dependent>);
static_assert(ex::sender_in<decltype(ex::just(1) | ex::then(plus_one) | ex::into_variant())>);
static_assert(ex::dependent_sender<decltype(ex::when_all(ex::just(), std::declval<dependent>()))>);
static_assert(ex::dependent_sender<decltype(ex::on(std::declval<scheduler>(), ex::just()))> &&
              ex::dependent_sender<decltype(ex::affine(ex::just() | ex::then([] {})))>);

// ---- Taking apart, piping, copying --------------------------------------------------------------

TEST(exec_snd_expos, every_sender_of_the_library_decomposes_into_tag_data_and_children) {
    auto source = ex::just(1, 'c');
    {
        auto& [tag, data] = source;
        static_assert(std::is_same_v<std::decay_t<decltype(tag)>, ex::just_t>);
        auto& [first, second] = data;
        EXPECT_EQ(first, 1);
        EXPECT_EQ(second, 'c');
    }
    {
        auto sndr = ex::then(ex::just(1), plus_one);
        auto& [tag, f, child] = sndr;
        static_assert(std::is_same_v<std::decay_t<decltype(tag)>, ex::then_t>);
        EXPECT_EQ(f(1), 2);
        static_assert(std::is_same_v<std::decay_t<decltype(child)>, int_sender>);
    }
    {
        auto sndr = ex::when_all(ex::just(1), ex::just('c'));
        auto& [tag, data, first, second] = sndr;
        static_assert(std::is_same_v<std::decay_t<decltype(tag)>, ex::when_all_t>);
        static_assert(std::is_same_v<std::decay_t<decltype(second)>, decltype(ex::just('c'))>);
        static_cast<void>(data);
        static_cast<void>(first);
    }
    {
        auto sndr = ex::bulk(ex::just(1), ex::par, 3, [](int, int&) {});
        auto& [tag, data, child] = sndr;
        static_assert(std::is_same_v<std::decay_t<decltype(tag)>, ex::bulk_t>);
        auto& [policy, shape, f] = data;
        static_assert(std::is_same_v<std::decay_t<decltype(policy)>, ex::parallel_policy>);
        EXPECT_EQ(shape, 3);
        static_cast<void>(f);
        static_cast<void>(child);
    }
    ex::run_loop loop;
    auto sndr = ex::continues_on(ex::just(1), loop.get_scheduler());
    auto& [tag, sch, child] = sndr;
    EXPECT_EQ(sch, loop.get_scheduler());
    static_assert(std::is_same_v<ex::tag_of_t<decltype(child)>, ex::schedule_from_t>);
    static_assert(std::is_same_v<std::decay_t<decltype(tag)>, ex::continues_on_t>);
}

TEST(exec_adapt_obj, closures_compose_in_any_grouping_and_can_be_reused) {
    const auto add = ex::then(plus_one);
    const auto add_two = add | add;
    const auto add_three = add | (add | add);
    EXPECT_EQ(probes::outcome(ex::just(1) | add_two | add_three), "value(6)");
    EXPECT_EQ(probes::outcome(add_three(ex::just(1))), "value(4)");
    EXPECT_EQ(probes::outcome(ex::just(1) | ex::then(plus_one) | ex::into_variant() |
                              ex::then([](auto v) { return std::get<0>(std::get<0>(v)); })),
              "value(2)");
}

struct doubled : ex::sender_adaptor_closure<doubled> {
    template <ex::sender Sndr>
    auto operator()(Sndr&& sndr) const {
        return ex::then(std::forward<Sndr>(sndr), [](int i) { return 2 * i; });
    }
};

TEST(exec_adapt_obj, a_users_closure_pipes_with_the_librarys_and_with_itself) {
    EXPECT_EQ(probes::outcome(ex::just(1) | doubled() | ex::then(plus_one)), "value(3)");
    EXPECT_EQ(probes::outcome(ex::just(1) | (ex::then(plus_one) | doubled() | doubled())),
              "value(8)");
    ex::run_loop loop;
    static_assert(takes<ex::on_t, scheduler, doubled>);
}

TEST(exec_snd_concepts, senders_connect_as_lvalues_only_if_they_copy) {
    auto copies = ex::just(1) | ex::then(plus_one);
    EXPECT_EQ(probes::outcome(copies), "value(2)");
    EXPECT_EQ(probes::outcome(copies), "value(2)");
    auto moves = ex::just(move_only()) | ex::then([](move_only) noexcept { return 1; });
    static_assert(!std::is_invocable_v<ex::connect_t, decltype(moves)&, probes::receiver<>>);
    EXPECT_EQ(probes::outcome(std::move(moves)), "value(1)");
}

}  // namespace
