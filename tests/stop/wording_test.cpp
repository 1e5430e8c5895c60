// The spelling of <coppice/stop_token.hpp>: what docs/stop-tokens.md, [thread.stoptoken], and
// P3409R1 say of each declaration; mostly decided by the compiler.
#include <coppice/stop_token.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace {

// The names, as a user of either namespace finds them.
using coppice::finite_inplace_stop_callback;
using coppice::finite_inplace_stop_source;
using coppice::finite_inplace_stop_token;
using coppice::inplace_stop_callback;
using coppice::inplace_stop_source;
using coppice::inplace_stop_token;
using coppice::never_stop_token;
using coppice::nostopstate;
using coppice::nostopstate_t;
using coppice::single_inplace_stop_callback;
using coppice::single_inplace_stop_source;
using coppice::single_inplace_stop_token;
using coppice::stop_callback;
using coppice::stop_callback_for_t;
using coppice::stop_cause;
using coppice::stop_source;
using coppice::stop_token;
using coppice::stoppable_token;
using coppice::unstoppable_token;

struct function {
    void* state = nullptr;
    void operator()() const noexcept {}
};
struct empty_function {
    void operator()() const noexcept {}
};
struct from_text {
    from_text(const char*) noexcept {}
    from_text(const std::string&) {}
    void operator()() const {}
};

// True if `Callback c = {token, init};` compiles, so that the constructor is not explicit.
template <class Callback>
void take(Callback);
template <class Callback, class Token, class Init>
concept converts = requires(Token token, Init init) { take<Callback>({token, init}); };

// [stoptoken.inplace], [stoptoken.single], [stoptoken.finite]; [stopcallback.*]; [stopsource.*].
template <class Source, class Token>
constexpr bool in_place_as_worded() {
    using callback = stop_callback_for_t<Token, function>;
    using by_text = stop_callback_for_t<Token, from_text>;

    static_assert(stoppable_token<Token> && !unstoppable_token<Token>);
    static_assert(std::regular<Token> && std::is_trivially_copyable_v<Token>);
    static_assert(std::is_nothrow_default_constructible_v<Token>);
    static_assert(!std::is_constructible_v<Token, const Source*>, "only a source gives tokens");
    static_assert(requires(Token t, const Token c) {
        { t.swap(t) } noexcept -> std::same_as<void>;
        { c.stop_requested() } noexcept -> std::same_as<bool>;
        { c.stop_possible() } noexcept -> std::same_as<bool>;
        { c == c } -> std::same_as<bool>;
    });

    static_assert(coppice::stoppable_source<Source>);
    static_assert(std::is_nothrow_default_constructible_v<Source>);
    static_assert(!std::is_copy_constructible_v<Source> && !std::is_move_constructible_v<Source>);
    static_assert(!std::is_copy_assignable_v<Source> && !std::is_move_assignable_v<Source>);
    static_assert(requires(Source s, const Source c) {
        { s.request_stop() } noexcept -> std::same_as<bool>;
        { c.stop_requested() } noexcept -> std::same_as<bool>;
        requires std::bool_constant<Source::stop_possible()>::value;
    });
    static_assert(!requires(const Source c) { c.request_stop(); });

    static_assert(std::same_as<typename callback::callback_type, function>);
    static_assert(coppice::stoppable_callback_for<function, Token>);
    static_assert(coppice::stoppable_callback_for<from_text, Token, const char*>);
    static_assert(!coppice::stoppable_callback_for<from_text, Token, int>);
    static_assert(std::is_nothrow_constructible_v<callback, Token, function>);
    static_assert(std::is_nothrow_constructible_v<callback, const Token&, function>);
    static_assert(std::is_nothrow_constructible_v<by_text, Token, const char*>);
    static_assert(std::is_constructible_v<by_text, Token, std::string>);
    static_assert(!std::is_nothrow_constructible_v<by_text, Token, std::string>);
    static_assert(!std::is_constructible_v<callback, Token, int>);
    static_assert(!std::is_default_constructible_v<callback>);
    static_assert(!std::is_copy_constructible_v<callback>);
    static_assert(!std::is_move_constructible_v<callback>);
    static_assert(!std::is_copy_assignable_v<callback> && !std::is_move_assignable_v<callback>);
    static_assert(!converts<callback, Token, function>);
    static_assert(std::is_nothrow_destructible_v<callback>);
    // [[no_unique_address]]: a function without state takes no space.
    static_assert(sizeof(stop_callback_for_t<Token, empty_function>) + sizeof(function) ==
                  sizeof(callback));
    return true;
}
static_assert(in_place_as_worded<inplace_stop_source, inplace_stop_token>());
static_assert(in_place_as_worded<single_inplace_stop_source, single_inplace_stop_token>());
static_assert(in_place_as_worded<finite_inplace_stop_source<1>, finite_inplace_stop_token<1, 0>>());
static_assert(
    in_place_as_worded<finite_inplace_stop_source<10>, finite_inplace_stop_token<10, 9>>());
static_assert(in_place_as_worded<coppice::asymmetric_inplace_stop_source<>,
                                 coppice::asymmetric_inplace_stop_token<>>());

// callback_type is the callback of its own family.
static_assert(std::same_as<stop_callback_for_t<stop_token, function>, stop_callback<function>>);
static_assert(std::same_as<stop_callback_for_t<inplace_stop_token, function>,
                           inplace_stop_callback<function>>);
static_assert(std::same_as<stop_callback_for_t<single_inplace_stop_token, function>,
                           single_inplace_stop_callback<function>>);
static_assert(std::same_as<stop_callback_for_t<finite_inplace_stop_token<3, 1>, function>,
                           finite_inplace_stop_callback<3, 1, function>>);

// get_token: constexpr, noexcept, and in a finite source one type per index below N.
template <class Source, std::size_t Index>
concept has_token = requires(const Source s) { s.template get_token<Index>(); };
static_assert(std::same_as<decltype(std::declval<const finite_inplace_stop_source<3>&>()
                                        .template get_token<2>()),
                           finite_inplace_stop_token<3, 2>>);
static_assert(noexcept(std::declval<const finite_inplace_stop_source<3>&>().get_token<0>()));
static_assert(noexcept(std::declval<const single_inplace_stop_source&>().get_token()));
static_assert(noexcept(std::declval<const inplace_stop_source&>().get_token()));
static_assert(noexcept(std::declval<const stop_source&>().get_token()));
static_assert(has_token<finite_inplace_stop_source<3>, 2>);
static_assert(!has_token<finite_inplace_stop_source<3>, 3>);
static_assert(!has_token<finite_inplace_stop_source<0>, 0>);
static_assert(!std::is_constructible_v<finite_inplace_stop_callback<2, 0, function>,
                                       finite_inplace_stop_token<2, 1>, function>);
static_assert(!std::equality_comparable_with<finite_inplace_stop_token<2, 0>,
                                             finite_inplace_stop_token<2, 1>>);

// The source without slots: empty, disengaged, and still a source (P3409R1, 5.4).
using no_slots = finite_inplace_stop_source<0>;
static_assert(std::is_empty_v<no_slots> && coppice::stoppable_source<no_slots>);
static_assert(std::is_nothrow_default_constructible_v<no_slots>);
static_assert(!std::is_move_constructible_v<no_slots>);
static_assert(!no_slots::stop_possible());
struct holds_no_slots {
    void* other;
    [[no_unique_address]] no_slots source;
};
static_assert(sizeof(holds_no_slots) == sizeof(void*));

// [stopsource], [stoptoken], [stopcallback].
static_assert(coppice::stoppable_source<stop_source> && stoppable_token<stop_token>);
static_assert(std::regular<stop_token> && !unstoppable_token<stop_token>);
static_assert(std::is_nothrow_default_constructible_v<stop_token>);
static_assert(std::is_nothrow_copy_constructible_v<stop_token>);
static_assert(std::is_nothrow_copy_assignable_v<stop_source>);
static_assert(std::is_nothrow_constructible_v<stop_source, nostopstate_t>);
static_assert(!std::is_convertible_v<nostopstate_t, stop_source>);
static_assert(!std::is_nothrow_default_constructible_v<stop_source>, "it allocates");
static_assert(std::is_nothrow_constructible_v<stop_callback<function>, stop_token, function>);
static_assert(std::is_nothrow_constructible_v<stop_callback<function>, stop_token&, function>);
static_assert(!std::is_nothrow_constructible_v<stop_callback<from_text>, stop_token, std::string>);
static_assert(!std::is_constructible_v<stop_callback<function>, stop_token, int>);
static_assert(!converts<stop_callback<function>, stop_token, function>);
static_assert(requires(stop_source s, const stop_source c, stop_token t, const stop_token ct) {
    { s.request_stop() } noexcept -> std::same_as<bool>;
    { s.request_stop(stop_cause{}) } noexcept -> std::same_as<bool>;
    { s.request_stop_after(std::chrono::nanoseconds(1)) } -> std::same_as<bool>;
    { s.try_reset() } noexcept -> std::same_as<bool>;
    { s.swap(s) } noexcept;
    { t.swap(t) } noexcept;
    { c.stop_requested() } noexcept -> std::same_as<bool>;
    { c.stop_possible() } noexcept -> std::same_as<bool>;
    { ct.cause() } noexcept -> std::same_as<stop_cause>;
});

// [stoptoken.never]
static_assert(unstoppable_token<never_stop_token> && std::is_empty_v<never_stop_token>);
static_assert(noexcept(never_stop_token::stop_requested()));

TEST(stop_wording, callbacks_are_deduced_from_a_token_and_a_function) {
    stop_source shared;
    inplace_stop_source inplace;
    single_inplace_stop_source single;
    finite_inplace_stop_source<3> finite;
    int runs = 0;
    auto f = [&runs] { ++runs; };
    stop_callback a(shared.get_token(), f);
    inplace_stop_callback b(inplace.get_token(), f);
    single_inplace_stop_callback c(single.get_token(), std::ref(f));
    finite_inplace_stop_callback d(finite.get_token<1>(), f);
    static_assert(std::same_as<decltype(a), stop_callback<decltype(f)>>);
    static_assert(std::same_as<decltype(b), inplace_stop_callback<decltype(f)>>);
    static_assert(std::same_as<decltype(c),
                               single_inplace_stop_callback<std::reference_wrapper<decltype(f)>>>);
    static_assert(std::same_as<decltype(d), finite_inplace_stop_callback<3, 1, decltype(f)>>);
    EXPECT_TRUE(shared.request_stop());
    EXPECT_TRUE(inplace.request_stop());
    EXPECT_TRUE(single.request_stop());
    EXPECT_TRUE(finite.request_stop());
    EXPECT_EQ(runs, 4);
}

// The members of stop_source that std lacks.
TEST(stop_wording, a_linked_source_passes_its_parents_cause_on_and_can_be_reset_before) {
    using namespace std::chrono_literals;
    stop_source parent;
    inplace_stop_source in_place;
    stop_source linked = stop_source::linked_to(parent.get_token(), in_place.get_token());
    EXPECT_TRUE(linked.request_stop_after(1h));
    EXPECT_TRUE(linked.try_reset());
    const stop_token token = linked.get_token();
    stop_cause why{7, "seven"};
    EXPECT_TRUE(parent.request_stop(why));
    EXPECT_TRUE(token.stop_requested());
    EXPECT_EQ(token.cause().code, 7);
    EXPECT_EQ(std::string_view(token.cause().text), "seven");
    EXPECT_FALSE(linked.try_reset());
    EXPECT_FALSE(linked.request_stop_after(1h));
    EXPECT_FALSE(linked.request_stop());
}

// P3409R1, 5.1: code written for any token registers one callback at a time, in every family.
template <stoppable_token Token>
int stop_seen_by(Token token, auto& source) {
    int runs = 0;
    {
        auto f = [&runs] { ++runs; };
        stop_callback_for_t<Token, decltype(f)> callback(token, f);
        source.request_stop();
    }
    return runs + (token.stop_requested() ? 10 : 0);
}
TEST(stop_wording, one_template_serves_every_family) {
    stop_source shared;
    inplace_stop_source inplace;
    single_inplace_stop_source single;
    finite_inplace_stop_source<2> finite;
    coppice::asymmetric_inplace_stop_source<> asymmetric;
    EXPECT_EQ(stop_seen_by(shared.get_token(), shared), 11);
    EXPECT_EQ(stop_seen_by(inplace.get_token(), inplace), 11);
    EXPECT_EQ(stop_seen_by(single.get_token(), single), 11);
    EXPECT_EQ(stop_seen_by(finite.get_token<1>(), finite), 11);
    EXPECT_EQ(stop_seen_by(asymmetric.get_token(), asymmetric), 11);
    EXPECT_EQ(stop_seen_by(never_stop_token(), single), 0);
}

}  // namespace
