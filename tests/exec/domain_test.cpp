// Plan: domains [exec.domain.default], [exec.domain.indeterminate], [exec.snd.transform],
// [exec.snd.apply]: what transforms a sender, in which order; a user's domain replaces an
// algorithm.
#include <coppice/exec/bulk.hpp>
#include <coppice/exec/continues_on.hpp>
#include <coppice/exec/domain.hpp>
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/when_all.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

namespace {

namespace ex = coppice::execution;
using probes::outcome;

// A domain that makes `then` send 99, and counts bulk.
struct my_domain {
    template <ex::internal::sender_for<ex::then_t> Sndr, class Env>
    static auto transform_sender(ex::set_value_t, Sndr&&, const Env&) {
        return ex::just(99);
    }
    template <class Sndr>
    static auto apply_sender(coppice::this_thread::sync_wait_t, Sndr&& sndr) {
        using result = coppice::this_thread::sync_wait_result_t<Sndr>;
        static_cast<void>(sndr);
        return result(std::in_place, 1234);
    }
};
class my_scheduler {
public:
    using scheduler_concept = ex::scheduler_tag;
    class sender {
    public:
        using sender_concept = ex::sender_tag;
        sender() noexcept = default;
        struct attrs {
            attrs() noexcept = default;
            my_scheduler query(ex::get_completion_scheduler_t<ex::set_value_t>) const noexcept;
        };
        attrs get_env() const noexcept { return attrs(); }
        template <class Self, class... Env>
        static consteval auto get_completion_signatures() noexcept {
            return ex::completion_signatures<ex::set_value_t()>();
        }
        template <class Rcvr>
        auto connect(Rcvr rcvr) const noexcept {
            return ex::internal::inline_operation<Rcvr>(std::move(rcvr));
        }
    };
    my_scheduler() noexcept = default;
    sender schedule() const noexcept { return sender(); }
    my_domain query(ex::get_completion_domain_t<ex::set_value_t>) const noexcept { return {}; }
    bool operator==(const my_scheduler&) const noexcept { return true; }
};
my_scheduler my_scheduler::sender::attrs::query(
    ex::get_completion_scheduler_t<ex::set_value_t>) const noexcept {
    return {};
}

TEST(exec_snd_transform, the_domain_where_a_sender_completes_may_replace_it) {
    EXPECT_EQ(outcome(ex::schedule(my_scheduler()) | ex::then([] { return 1; })), "value(99)");
    EXPECT_EQ(outcome(ex::just() | ex::then([] { return 1; })), "value(1)");
    auto over = ex::just() | ex::continues_on(my_scheduler()) | ex::then([] { return 1; });
    EXPECT_EQ(outcome(std::move(over)), "value(99)");
}

TEST(exec_snd_transform, the_signatures_are_those_of_the_replacement) {
    using sndr = decltype(ex::schedule(my_scheduler()) | ex::then([] { return 'c'; }));
    static_assert(std::is_same_v<ex::completion_signatures_of_t<sndr, ex::env<>>,
                                 ex::completion_signatures<ex::set_value_t(int)>>);
}

struct start_domain {
    template <ex::internal::sender_for<ex::just_t> Sndr, class Env>
    static auto transform_sender(ex::start_t, Sndr&&, const Env&) {
        return ex::just_error(std::string("replaced where it starts"));
    }
};

TEST(exec_snd_transform, the_domain_where_a_sender_starts_may_replace_it) {
    EXPECT_EQ(outcome(ex::just(1), ex::prop(ex::get_domain, start_domain())),
              "error(replaced where it starts)");
    EXPECT_EQ(outcome(ex::just(1)), "value(1)");
}

TEST(exec_snd_transform, an_uncustomized_sender_is_returned_as_it_is) {
    const ex::env<> none;
    auto sndr = ex::just(1);
    static_assert(
        std::is_same_v<decltype(ex::transform_sender(std::move(sndr), none)), decltype(sndr)>);
    static_assert(std::is_same_v<decltype(ex::transform_sender(sndr, none)), decltype(sndr)&>);
    static_assert(!ex::needs_transform<decltype(sndr), ex::env<>>);
}

// A user's algorithm, written in terms of others.
struct twice_t {
    template <class Sndr>
    auto operator()(Sndr&& sndr) const;
    template <class Sndr, class Env>
    auto transform_sender(ex::set_value_t, Sndr&& sndr, const Env&) const {
        return ex::then(std::forward<Sndr>(sndr).child, [](int i) { return 2 * i; });
    }
};
template <class Child>
struct twice_sender {
    using sender_concept = ex::sender_tag;
    using tag_type = twice_t;
    explicit twice_sender(Child c) : child(std::move(c)) {}
    Child child;
};
template <class Sndr>
auto twice_t::operator()(Sndr&& sndr) const {
    return twice_sender<std::decay_t<Sndr>>(std::forward<Sndr>(sndr));
}

TEST(exec_domain_default, asks_the_senders_own_algorithm) {
    EXPECT_EQ(outcome(twice_t()(ex::just(21))), "value(42)");
    EXPECT_EQ(outcome(twice_t()(twice_t()(ex::just(3)))), "value(12)");
}

// The same algorithm with an aggregate sender whose first member is the tag, as in the draft.
struct thrice_t {
    template <class Sndr, class Env>
    auto transform_sender(ex::set_value_t, Sndr&& sndr, const Env&) const {
        auto&& [tag, factor, child] = sndr;
        return ex::then(std::move(child), [f = factor](int i) { return f * i; });
    }
};
template <class Child>
struct thrice_sender {
    thrice_t tag;
    int factor;
    Child child;
    using sender_concept = ex::sender_tag;
};

TEST(exec_snd_concepts, tag_of_t_is_an_aggregates_first_member) {
    using sender = thrice_sender<decltype(ex::just(1))>;
    static_assert(std::is_same_v<ex::tag_of_t<sender>, thrice_t>);
    static_assert(std::is_same_v<ex::tag_of_t<const sender&>, thrice_t>);
    static_assert(ex::internal::sender_for<sender, thrice_t>);
    EXPECT_EQ(outcome(sender{{}, 3, ex::just(14)}), "value(42)");
    struct no_tag {
        int data;
    };
    struct alone {};
    static_assert(!ex::internal::has_tag<no_tag> && !ex::internal::has_tag<alone> &&
                  !ex::internal::has_tag<int>);
    static_assert(!ex::internal::has_tag<probes::by_hand::sender>);
}

TEST(exec_bulk, becomes_bulk_chunked_without_customization) {
    auto sndr = ex::just() | ex::bulk(ex::seq, 3, [](int) {});
    using transformed = ex::transformed_t<decltype(sndr), ex::env<>>;
    static_assert(std::is_same_v<ex::tag_of_t<transformed>, ex::bulk_chunked_t>);
}

TEST(exec_snd_apply, a_domain_may_replace_a_consumer) {
    const auto result =
        coppice::this_thread::sync_wait(ex::schedule(my_scheduler()) | ex::then([] { return 1; }));
    EXPECT_EQ(std::get<0>(*result), 1234);
}

TEST(exec_domain_indeterminate, the_common_domain_is_the_only_one_or_the_set) {
    struct a {};
    struct b {};
    static_assert(std::is_same_v<ex::common_domain_t<a, a>, a>);
    static_assert(std::is_same_v<ex::common_domain_t<a, b, a>, ex::indeterminate_domain<a, b>>);
    static_assert(std::is_same_v<ex::common_domain_t<>, ex::indeterminate_domain<>>);
    static_assert(std::is_same_v<
                  std::common_type_t<ex::indeterminate_domain<a>, ex::indeterminate_domain<b, a>>,
                  ex::indeterminate_domain<a, b>>);
    static_assert(std::is_same_v<std::common_type_t<ex::indeterminate_domain<>, a>, a>);
    static_assert(std::is_same_v<std::common_type_t<a, ex::indeterminate_domain<b>>,
                                 ex::indeterminate_domain<b, a>>);
}

}  // namespace
