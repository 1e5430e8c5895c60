// Plan: the concepts of [exec.recv] and [exec.snd.concepts] accept and reject what the draft says;
// how signatures are found [exec.getcomplsigs].
#include <coppice/exec/connect.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/then.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

namespace {

namespace ex = coppice::execution;
using ex::completion_signatures;
using ex::set_error_t;
using ex::set_stopped_t;
using ex::set_value_t;

struct plain_receiver {
    using receiver_concept = ex::receiver_tag;
    void set_value(int) && noexcept {}
    void set_stopped() && noexcept {}
};
struct final_receiver final {
    using receiver_concept = ex::receiver_tag;
};
struct throwing_receiver {
    using receiver_concept = ex::receiver_tag;
    throwing_receiver(throwing_receiver&&) noexcept(false);
};
struct tag_derived : ex::receiver_tag {};
struct derived_tag_receiver {
    using receiver_concept = tag_derived;
};

TEST(exec_recv_concepts, a_receiver_declares_itself_and_moves_without_throwing) {
    static_assert(ex::receiver<plain_receiver>);
    static_assert(ex::receiver<plain_receiver&>);
    static_assert(ex::receiver<derived_tag_receiver>);
    static_assert(!ex::receiver<final_receiver>);
    static_assert(!ex::receiver<throwing_receiver>);
    static_assert(!ex::receiver<int>);
}

TEST(exec_recv_concepts, receiver_of_checks_every_signature) {
    static_assert(ex::receiver_of<plain_receiver, completion_signatures<set_value_t(int)>>);
    static_assert(
        ex::receiver_of<plain_receiver, completion_signatures<set_value_t(int), set_stopped_t()>>);
    static_assert(!ex::receiver_of<plain_receiver, completion_signatures<set_value_t()>>);
    static_assert(!ex::receiver_of<plain_receiver, completion_signatures<set_error_t(int)>>);
}

TEST(exec_recv_concepts, inlinable_receiver_can_be_made_from_the_childs_operation) {
    struct op;
    struct inlinable {
        using receiver_concept = ex::receiver_tag;
        static inlinable make_receiver_for(op*) noexcept { return {}; }
    };
    static_assert(ex::inlinable_receiver<inlinable, op>);
    static_assert(!ex::inlinable_receiver<plain_receiver, op>);
}

struct plain_sender {
    using sender_concept = ex::sender_tag;
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() {
        return completion_signatures<set_value_t(int), set_stopped_t()>();
    }
    struct operation {
        using operation_state_concept = ex::operation_state_tag;
        void start() & noexcept {}
    };
    template <class Rcvr>
    operation connect(Rcvr) const {
        return {};
    }
};
struct nested_type_sender {
    using sender_concept = ex::sender_tag;
    using completion_signatures = ex::completion_signatures<set_value_t()>;
};
struct opted_in {};
struct opted_out {
    using sender_concept = ex::sender_tag;
};
struct moves_only {
    using sender_concept = ex::sender_tag;
    moves_only(moves_only&&) = default;
};

}  // namespace

template <>
inline constexpr bool coppice::execution::enable_sender<opted_in> = true;
template <>
inline constexpr bool coppice::execution::enable_sender<opted_out> = false;

namespace {

TEST(exec_snd_concepts, a_sender_declares_itself_or_is_enabled) {
    static_assert(ex::sender<plain_sender>);
    static_assert(ex::sender<const plain_sender&>);
    static_assert(ex::sender<opted_in>);
    static_assert(!ex::sender<opted_out>);
    static_assert(!ex::sender<int>);
    static_assert(ex::sender<moves_only>);
    static_assert(!ex::sender<moves_only&>);
}

TEST(exec_snd_concepts, sender_in_needs_signatures) {
    static_assert(ex::sender_in<plain_sender>);
    static_assert(ex::sender_in<plain_sender, ex::env<>>);
    static_assert(ex::sender_in<nested_type_sender, ex::env<>>);
    static_assert(!ex::sender_in<opted_in, ex::env<>>);
}

TEST(exec_snd_concepts, sender_to_needs_a_receiver_for_all_signatures) {
    struct values_only {
        using receiver_concept = ex::receiver_tag;
        void set_value(int) && noexcept {}
    };
    static_assert(ex::sender_to<plain_sender, plain_receiver>);
    static_assert(!ex::sender_to<plain_sender, values_only>);
    static_assert(!ex::sender_to<plain_sender, int>);
}

// Senders that need an environment, each in a different way.
struct dependent_by_throw {
    using sender_concept = ex::sender_tag;
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() {
        if constexpr (sizeof...(Env) == 0) {
            throw ex::dependent_sender_error();
        } else {
            return completion_signatures<set_value_t(Env...)>();
        }
    }
};
struct dependent_by_comma {
    using sender_concept = ex::sender_tag;
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() {
        if constexpr (sizeof...(Env) == 0) {
            return (throw ex::dependent_sender_error(), completion_signatures());
        } else {
            return completion_signatures<set_value_t()>();
        }
    }
};
struct dependent_by_parameter {
    using sender_concept = ex::sender_tag;
    template <class Self, class Env>
    static consteval auto get_completion_signatures() {
        return completion_signatures<set_value_t()>();
    }
};

TEST(exec_getcomplsigs, a_sender_without_constant_signatures_and_environment_is_dependent) {
    static_assert(ex::dependent_sender<dependent_by_throw>);
    static_assert(ex::dependent_sender<dependent_by_comma>);
    static_assert(ex::dependent_sender<dependent_by_parameter>);
    static_assert(!ex::dependent_sender<plain_sender>);
    static_assert(!ex::sender_in<dependent_by_throw>);
    static_assert(ex::sender_in<dependent_by_throw, ex::env<>>);
    static_assert(ex::sender_in<dependent_by_comma, ex::env<>>);
    static_assert(ex::sender_in<dependent_by_parameter, ex::env<>>);
    static_assert(std::is_same_v<ex::completion_signatures_of_t<dependent_by_throw, ex::env<>>,
                                 completion_signatures<set_value_t(ex::env<>)>>);
}

TEST(exec_getcomplsigs, an_adaptor_of_a_dependent_sender_is_dependent) {
    auto sndr = dependent_by_comma() | ex::then([] {});
    static_assert(ex::dependent_sender<decltype(sndr)>);
    static_assert(ex::sender_in<decltype(sndr), ex::env<>>);
    static_assert(!ex::dependent_sender<decltype(ex::just() | ex::then([] {}))>);
}

struct without_environment {
    using sender_concept = ex::sender_tag;
    template <class Self>
    static consteval auto get_completion_signatures() {
        return completion_signatures<set_value_t(char)>();
    }
};

TEST(exec_getcomplsigs, falls_back_to_the_form_without_environment) {
    static_assert(std::is_same_v<ex::completion_signatures_of_t<without_environment, ex::env<>>,
                                 completion_signatures<set_value_t(char)>>);
}

TEST(exec_getcomplsigs, is_a_consteval_function_that_returns_the_set) {
    constexpr auto set = ex::get_completion_signatures<plain_sender, ex::env<>>();
    static_assert(set.count_of(ex::set_value) == 1);
    static_assert(std::is_same_v<decltype(ex::get_completion_signatures<plain_sender>()),
                                 ex::completion_signatures_of_t<plain_sender>>);
}

struct by_category {
    using sender_concept = ex::sender_tag;
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() {
        if constexpr (std::is_lvalue_reference_v<Self>) {
            return completion_signatures<set_value_t(int)>();
        } else {
            return completion_signatures<set_value_t(char)>();
        }
    }
};

TEST(exec_getcomplsigs, sees_the_value_category_of_the_sender) {
    static_assert(std::is_same_v<ex::completion_signatures_of_t<by_category>,
                                 completion_signatures<set_value_t(char)>>);
    static_assert(std::is_same_v<ex::completion_signatures_of_t<const by_category&>,
                                 completion_signatures<set_value_t(int)>>);
}

}  // namespace
