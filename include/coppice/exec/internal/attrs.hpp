// The attributes of senders: where a sender completes, and what it passes on from its child.
#pragma once
// An environment asks a sender's attributes for the scheduler and the domain of its completions
// with each tag. Other forwarding queries go to the child. Which algorithm has which attributes:
//
//   inline_attrs     just, read_env, affine,         completes where it is started
//                    a scope's join
//   child_attrs      schedule_from, stop_when,       completes where the child does, with some of
//                    timeout, repeat_until, retry,   the three tags (child_attrs.hpp)
//                    bulk on a scheduler
//   mapped_attrs     then, upon_error, upon_stopped, completes where the child does, but turns one
//                    bulk, into_variant,             kind of completion into another
//                    stopped_as_optional,
//                    stopped_as_error
//   let_attrs        let_value, let_error,           completes where the second sender does
//                    let_stopped                     (let_attrs.hpp)
//   forwarded_attrs  continues_on, starts_on, on,    says itself where it completes; this is the
//                    write_env                       base of all that have a child
//
// Source: [exec.snd.general] p4, p5.

#include <coppice/exec/domain.hpp>
#include <coppice/exec/scheduler.hpp>

namespace coppice::execution::internal {

template <class Query>
inline constexpr bool says_where = false;  // true if the query asks where a sender completes
template <class Tag>
inline constexpr bool says_where<get_completion_scheduler_t<Tag>> = true;
template <class Tag>
inline constexpr bool says_where<get_completion_domain_t<Tag>> = true;

// The attributes of a sender whose completions with Tags happen where it is started.
template <class... Tags>
struct inline_attrs {
    constexpr inline_attrs() noexcept = default;
    template <class Tag, class Env>
        requires one_of<Tag, Tags...> && callable<get_start_scheduler_t, const Env&>
    constexpr auto query(get_completion_scheduler_t<Tag>, const Env& env) const noexcept {
        return get_start_scheduler(env);
    }
    template <class Tag, class Env>
        requires one_of<Tag, Tags...> && (!callable<get_start_scheduler_t, const Env&>) &&
                 callable<get_scheduler_t, const Env&>
    constexpr auto query(get_completion_scheduler_t<Tag>, const Env& env) const noexcept {
        return get_scheduler(env);
    }
    template <class Tag, class Env>
        requires one_of<Tag, Tags...>
    constexpr auto query(get_completion_domain_t<Tag>, const Env& env) const noexcept {
        return get_domain(env);
    }
};

// Passes the forwarding queries on to the child, except those that ask where it completes.
template <class Child>
class forwarded_attrs {
public:
    constexpr explicit forwarded_attrs(const Child& child) noexcept : child_(&child) {}

    // If the child returns its attributes by value, they do not outlive the question, and an answer
    // by reference is copied.
    template <class Query, class... Args>
        requires is_forwarding_query<Query> && has_query<env_of_t<const Child&>, Query, Args...> &&
                 (!says_where<Query>)
    constexpr decltype(auto) query(Query ask, Args&&... args) const noexcept {
        using Attrs = env_of_t<const Child&>;
        using Answer = decltype(std::declval<Attrs>().query(ask, static_cast<Args&&>(args)...));
        if constexpr (std::is_lvalue_reference_v<Attrs>) {
            return execution::get_env(*child_).query(ask, static_cast<Args&&>(args)...);
        } else {
            return std::decay_t<Answer>(
                execution::get_env(*child_).query(ask, static_cast<Args&&>(args)...));
        }
    }

protected:
    const Child* child_;
};

// The domain in which a sender with these attributes completes with Tag, as a list of one.
// COMPL-DOMAIN of the draft.
template <class Tag, class Attrs, class... Env>
consteval auto find_one_domain() noexcept {
    if constexpr (callable<get_completion_domain_t<Tag>, const Attrs&, const Env&...>) {
        return type_list<
            call_result_t<get_completion_domain_t<Tag>, const Attrs&, const Env&...>>();
    } else {
        return type_list<indeterminate_domain<>>();
    }
}
template <class Tag, class Sndr, class... Env>
using domains_with =
    decltype(internal::find_one_domain<Tag, std::remove_cvref_t<env_of_t<const Sndr&>>, Env...>());

// The domain that a list of domains has in common.
template <class List>
using common_domain_of = with_elements_t<common_domain, List>;

// Those of the three tags for which Holds<Tag> is true.
template <template <class> class Holds>
using tags_that = typename concatenated<
    std::conditional_t<Holds<set_value_t>::value, type_list<set_value_t>, type_list<>>,
    std::conditional_t<Holds<set_error_t>::value, type_list<set_error_t>, type_list<>>,
    std::conditional_t<Holds<set_stopped_t>::value, type_list<set_stopped_t>, type_list<>>>::type;

// A Map says what becomes of the child's completions:
//
//   Map::template leads<From, To, Sigs>   true if a completion with From may become one with To
//   Map::template always<Tag>             true if Tag comes from Tag and from nothing else, for any
//                                         signatures; saves looking at the child's signatures
//
// If completions with a tag have one source, the adaptor completes where the child completes with
// that source. With several sources it has no completion scheduler, and its domain is what their
// domains have in common.
template <class Child, class Map>
class mapped_attrs : public forwarded_attrs<Child> {
    using child_env = env_of_t<const Child&>;

    template <class Sigs, class Tag>
    struct from_signatures {
        template <class From>
        using leads =
            std::bool_constant<Sigs::count_of(From()) != 0 && Map::template leads<From, Tag, Sigs>>;
        using type = tags_that<leads>;
    };
    template <class Tag, class... Env>
    static consteval auto find_sources() noexcept {
        if constexpr (Map::template always<Tag>) {
            return type_list<Tag>();
        } else {
            using Sigs = signatures_of<Child, fwd_env_t<Env>...>;
            if constexpr (is_completion_signatures<Sigs>) {
                return typename from_signatures<Sigs, Tag>::type();
            } else {
                return type_list<>();
            }
        }
    }
    // The child's tags that may become Tag.
    template <class Tag, class... Env>
    using sources = decltype(find_sources<Tag, Env...>());

    template <class Sources, class... Env>
    struct only {
        static constexpr bool has_scheduler = false;
        using domains = type_list<>;
    };
    template <class From, class... Env>
    struct only<type_list<From>, Env...> {
        using tag = From;
        static constexpr bool has_scheduler =
            callable<get_completion_scheduler_t<From>, child_env, const Env&...>;
        using domains =
            std::conditional_t<callable<get_completion_domain_t<From>, child_env, const Env&...>,
                               domains_with<From, Child, Env...>, type_list<>>;
    };
    template <class From, class Also, class... More, class... Env>
    struct only<type_list<From, Also, More...>, Env...> {
        static constexpr bool has_scheduler = false;
        using domains = typename concatenated<domains_with<From, Child, Env...>,
                                              domains_with<Also, Child, Env...>,
                                              domains_with<More, Child, Env...>...>::type;
    };

public:
    using forwarded_attrs<Child>::forwarded_attrs;
    using forwarded_attrs<Child>::query;

    template <completion_tag Tag, class... Env>
        requires only<sources<Tag, Env...>, Env...>::has_scheduler
    constexpr auto query(get_completion_scheduler_t<Tag>, const Env&... env) const noexcept {
        using From = typename only<sources<Tag, Env...>, Env...>::tag;
        return get_completion_scheduler<From>(execution::get_env(*this->child_), env...);
    }
    template <completion_tag Tag, class... Env>
        requires(!std::is_same_v<typename only<sources<Tag, Env...>, Env...>::domains, type_list<>>)
    constexpr auto query(get_completion_domain_t<Tag>, const Env&...) const noexcept {
        using domains = typename only<sources<Tag, Env...>, Env...>::domains;
        return typename common_domain_of<domains>::type();
    }
};

}  // namespace coppice::execution::internal
