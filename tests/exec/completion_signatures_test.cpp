// Plan: sets of signatures as a type [exec.cmplsig]; gathering; unions; how errors propagate.
#include <coppice/exec/completion_signatures.hpp>
#include <coppice/exec/value_types.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

namespace {

namespace ex = coppice::execution;
using ex::set_error_t;
using ex::set_stopped_t;
using ex::set_value_t;

struct incomplete;

using sigs =
    ex::completion_signatures<set_value_t(int, const float&), set_error_t(std::exception_ptr),
                              set_value_t(), set_stopped_t()>;

TEST(exec_cmplsig, only_the_three_forms_are_completion_signatures) {
    static_assert(ex::completion_signature<set_value_t()>);
    static_assert(ex::completion_signature<set_value_t(int&, incomplete*)>);
    static_assert(ex::completion_signature<set_error_t(int)>);
    static_assert(ex::completion_signature<set_stopped_t()>);
    static_assert(!ex::completion_signature<set_error_t()>);
    static_assert(!ex::completion_signature<set_error_t(int, int)>);
    static_assert(!ex::completion_signature<set_stopped_t(int)>);
    static_assert(!ex::completion_signature<int(int)>);
    static_assert(!ex::completion_signature<set_value_t>);
}

TEST(exec_cmplsig, count_of_counts_by_tag) {
    static_assert(sigs::count_of(ex::set_value) == 2);
    static_assert(sigs::count_of(ex::set_error) == 1);
    static_assert(sigs::count_of(ex::set_stopped) == 1);
    static_assert(ex::completion_signatures<>::count_of(ex::set_value) == 0);
}

TEST(exec_cmplsig, for_each_visits_every_signature_in_order) {
    std::string tags;
    sigs::for_each([&]<class Tag, class... Args>(Tag (*)(Args...)) {
        tags += std::is_same_v<Tag, set_value_t>   ? "v"
                : std::is_same_v<Tag, set_error_t> ? "e"
                                                   : "s";
        tags += std::to_string(sizeof...(Args));
    });
    EXPECT_EQ(tags, "v2e1v0s0");
}

template <class... Ts>
struct tuple;
template <class... Ts>
struct variant;
template <class T>
struct one;

TEST(exec_cmplsig, gather_signatures_applies_tuple_to_each_and_variant_to_all) {
    static_assert(std::is_same_v<ex::gather_signatures<set_value_t, sigs, tuple, variant>,
                                 variant<tuple<int, const float&>, tuple<>>>);
    static_assert(std::is_same_v<ex::gather_signatures<set_stopped_t, sigs, tuple, variant>,
                                 variant<tuple<>>>);
    // META-APPLY: templates with one parameter work as well.
    static_assert(std::is_same_v<ex::gather_signatures<set_error_t, sigs, one, one>,
                                 one<one<std::exception_ptr>>>);
}

// A sender with exactly these signatures; never connected.
template <class Sigs>
struct sends {
    using sender_concept = ex::sender_tag;
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return Sigs();
    }
};

TEST(exec_cmplsig, value_types_of_t_decays_and_drops_duplicates) {
    using s = sends<ex::completion_signatures<set_value_t(int&, const float&),
                                              set_value_t(int, float), set_value_t()>>;
    static_assert(std::is_same_v<ex::value_types_of_t<s>,
                                 std::variant<std::tuple<int, float>, std::tuple<>>>);
    static_assert(std::is_same_v<ex::value_types_of_t<s, ex::env<>, tuple, variant>,
                                 variant<tuple<int&, const float&>, tuple<int, float>, tuple<>>>);
}

TEST(exec_cmplsig, error_types_of_t_is_the_empty_variant_without_errors) {
    using none = ex::error_types_of_t<sends<ex::completion_signatures<set_value_t()>>>;
    static_assert(std::is_same_v<none, ex::empty_variant>);
    static_assert(!std::is_default_constructible_v<none>);
    using some = sends<ex::completion_signatures<set_error_t(int), set_error_t(const int&)>>;
    static_assert(std::is_same_v<ex::error_types_of_t<some>, std::variant<int>>);
}

TEST(exec_cmplsig, sends_stopped_is_true_only_with_that_signature) {
    static_assert(ex::sends_stopped<sends<sigs>>);
    static_assert(!ex::sends_stopped<sends<ex::completion_signatures<set_value_t()>>>);
}

TEST(execution_syn, single_sender_value_type_is_void_the_value_or_a_tuple) {
    using ex::completion_signatures;
    using ex::single_sender_value_type;
    static_assert(
        std::is_same_v<
            single_sender_value_type<sends<completion_signatures<set_value_t(const int&)>>>, int>);
    static_assert(
        std::is_void_v<single_sender_value_type<sends<completion_signatures<set_value_t()>>>>);
    static_assert(
        std::is_void_v<single_sender_value_type<sends<completion_signatures<set_stopped_t()>>>>);
    static_assert(std::is_same_v<
                  single_sender_value_type<sends<completion_signatures<set_value_t(int, char&)>>>,
                  std::tuple<int, char>>);
    static_assert(ex::single_sender<sends<completion_signatures<set_value_t(int)>>>);
    static_assert(
        !ex::single_sender<sends<completion_signatures<set_value_t(int), set_value_t(char)>>>);
}

TEST(signatures_union, keeps_the_first_of_equal_signatures) {
    using a = ex::completion_signatures<set_value_t(int), set_stopped_t()>;
    using b = ex::completion_signatures<set_stopped_t(), set_error_t(int)>;
    static_assert(std::is_same_v<
                  ex::internal::signatures_union_t<a, b>,
                  ex::completion_signatures<set_value_t(int), set_stopped_t(), set_error_t(int)>>);
}

TEST(signatures_union, an_error_wins_over_a_missing_environment) {
    using error = ex::internal::pipeline_error<ex::internal::in_algorithm<int>, ex::internal::got<>,
                                               ex::internal::wanted<>>;
    using a = ex::completion_signatures<set_value_t(int)>;
    static_assert(
        std::is_same_v<ex::internal::signatures_union_t<a, ex::internal::dependent_signatures>,
                       ex::internal::dependent_signatures>);
    static_assert(
        std::is_same_v<
            ex::internal::signatures_union_t<ex::internal::dependent_signatures, a, error>, error>);
    static_assert(
        std::is_same_v<ex::internal::signatures_union_t<error, ex::internal::dependent_signatures>,
                       error>);
}

TEST(exec_set_value, is_ill_formed_for_lvalue_and_const_receivers) {
    using rcvr = probes::receiver<>;
    static_assert(ex::internal::callable<set_value_t, rcvr, int>);
    static_assert(!ex::internal::callable<set_value_t, rcvr&, int>);
    static_assert(!ex::internal::callable<set_value_t, const rcvr, int>);
    static_assert(!ex::internal::callable<set_error_t, rcvr&, int>);
    static_assert(!ex::internal::callable<set_stopped_t, rcvr&>);
    static_assert(noexcept(ex::set_value(std::declval<rcvr>(), 1)));
}

}  // namespace
