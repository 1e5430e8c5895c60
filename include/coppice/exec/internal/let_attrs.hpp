// Where let_value, let_error, and let_stopped start their second sender, and where they complete.
#pragma once
// The second sender does not exist before the first has completed, but its type is known. So its
// domain is always known. Its completion scheduler is known if its attributes hold no state, as
// with just and read_env. Source: [exec.let], [exec.snd.general] p4, p5.

#include <coppice/exec/internal/attrs.hpp>

namespace coppice::execution::internal {

// An environment that answers only get_domain.
template <class Domain>
class domain_env {
public:
    constexpr domain_env() noexcept = default;
    constexpr Domain query(get_domain_t) const noexcept { return Domain(); }
};

// let-env of the draft: where the second sender starts, as far as the first one's attributes tell.
template <class Handled, class Attrs, class Env>
constexpr auto let_env(const Attrs& attrs, const Env& env) noexcept {
    if constexpr (callable<get_completion_scheduler_t<Handled>, const Attrs&, const Env&>) {
        return scheduler_env(get_completion_scheduler<Handled>(attrs, env));
    } else if constexpr (callable<get_completion_domain_t<Handled>, const Attrs&, const Env&>) {
        return domain_env<
            call_result_t<get_completion_domain_t<Handled>, const Attrs&, const Env&>>();
    } else {
        return execution::env<>();
    }
}
template <class Handled, class Child, class Env>
using let_env_t = decltype(internal::let_env<Handled>(std::declval<env_of_t<Child>>(),
                                                      std::declval<const fwd_env_t<Env>&>()));
// The environment of the second sender.
template <class LetEnv, class Env>
using let_joined_env_t = join_env_t<const LetEnv&, fwd_env_t<Env>>;

// What one of the first sender's signatures adds to the completions with Tag: a list of places.
template <class Sndr, class From, class Env>
struct completing {  // Sndr completes with From, in Env
    using attrs = std::remove_cvref_t<env_of_t<const Sndr&>>;
    using ask_scheduler = get_completion_scheduler_t<From>;
    using domains = domains_with<From, Sndr, Env>;
};

template <class Handled, class F, class Child, class Env, class Signature, class Tag>
struct let_places {
    using type = type_list<>;
};
template <class Handled, class F, class Child, class Env, class Tag, class... Args>
    requires(!std::is_same_v<Handled, Tag>)
struct let_places<Handled, F, Child, Env, Tag(Args...), Tag> {
    using type = type_list<completing<Child, Tag, Env>>;
};
template <class Handled, class F, class Child, class Env, class Tag, class... Args>
    requires std::is_invocable_v<F, std::decay_t<Args>&...>
struct let_places<Handled, F, Child, Env, Handled(Args...), Tag> {
    using second = std::invoke_result_t<F, std::decay_t<Args>&...>;
    using second_env = let_joined_env_t<let_env_t<Handled, Child, Env>, Env>;
    using second_sigs = signatures_of<second, second_env>;
    static constexpr bool nothrow =
        nothrow_decay_copyable<Args...> && std::is_nothrow_invocable_v<F, std::decay_t<Args>&...>;
    template <class Sigs>
    static consteval bool sends() noexcept {
        if constexpr (is_completion_signatures<Sigs>) {
            return Sigs::count_of(Tag()) != 0;
        } else {
            return false;
        }
    }
    using of_second =
        std::conditional_t<sends<second_sigs>(),
                           type_list<completing<std::remove_cvref_t<second>, Tag, second_env>>,
                           type_list<>>;
    using thrown = std::conditional_t<!nothrow && std::is_same_v<Tag, set_error_t>,
                                      type_list<completing<Child, Handled, Env>>, type_list<>>;
    using type = typename concatenated<of_second, thrown>::type;
};

template <class Handled, class F, class Child>
class let_attrs : public forwarded_attrs<Child> {
    template <class Sigs, class Tag, class Env>
    struct found {
        using type = type_list<>;
    };
    template <class... Fns, class Tag, class Env>
    struct found<completion_signatures<Fns...>, Tag, Env> {
        using all = typename concatenated<
            typename let_places<Handled, F, Child, Env, Fns, Tag>::type...>::type;
        using type = with_elements_t<type_list, set_union_t<type_list<>, all>>;
    };
    template <class Tag, class Env>
    using places = typename found<signatures_of<Child, fwd_env_t<Env>>, Tag, Env>::type;

    template <class Places, class Env>
    struct only {
        static constexpr bool is_child = false;
        static constexpr bool is_second = false;
    };
    template <class Sndr, class From, class InEnv, class Env>
    struct only<type_list<completing<Sndr, From, InEnv>>, Env> {
        using attrs = typename completing<Sndr, From, InEnv>::attrs;
        using tag = From;
        static constexpr bool is_first = std::is_same_v<Sndr, Child> && std::is_same_v<InEnv, Env>;
        static constexpr bool is_child =
            is_first && callable<get_completion_scheduler_t<From>, const attrs&, const Env&>;
        static constexpr bool is_second =
            !is_first && std::is_empty_v<attrs> && std::is_default_constructible_v<attrs> &&
            callable<get_completion_scheduler_t<From>, const attrs&, const InEnv&>;
    };
    template <class Places>
    struct domains_of;
    template <class... Places>
    struct domains_of<type_list<Places...>> {
        using type = typename common_domain_of<
            typename concatenated<typename Places::domains...>::type>::type;
    };

public:
    using forwarded_attrs<Child>::forwarded_attrs;
    using forwarded_attrs<Child>::query;

    template <completion_tag Tag, class Env>
        requires only<places<Tag, Env>, Env>::is_child
    constexpr auto query(get_completion_scheduler_t<Tag>, const Env& env) const noexcept {
        using From = typename only<places<Tag, Env>, Env>::tag;
        return get_completion_scheduler<From>(execution::get_env(*this->child_), env);
    }
    template <completion_tag Tag, class Env>
        requires only<places<Tag, Env>, Env>::is_second
    constexpr auto query(get_completion_scheduler_t<Tag>, const Env& env) const noexcept {
        using second_attrs = typename only<places<Tag, Env>, Env>::attrs;
        const auto second_env = internal::let_env<Handled>(execution::get_env(*this->child_),
                                                           internal::forward_env(env));
        return get_completion_scheduler<Tag>(second_attrs(),
                                             let_joined_env_t<decltype(second_env), const Env&>(
                                                 second_env, internal::forward_env(env)));
    }
    template <completion_tag Tag, class Env>
        requires(!std::is_same_v<places<Tag, Env>, type_list<>>)
    constexpr auto query(get_completion_domain_t<Tag>, const Env&) const noexcept {
        return typename domains_of<places<Tag, Env>>::type();
    }
};

}  // namespace coppice::execution::internal
