// Where an adaptor that changes the kind of completion completes; for then, bulk, and others.
#pragma once
// A Map says what becomes of the child's completions:
//
//   Map::template leads<From, To, Sigs>   true if a completion with From may become one with To
//   Map::template always<Tag>             true if Tag comes from Tag and from nothing else, for any
//                                         signatures; saves looking at the child's signatures
//
// If completions with a tag have one source, the adaptor completes where the child completes with
// that source. With several sources it has no completion scheduler, and its domain is what their
// domains have in common.
// Source: [exec.snd.general] p4, p5.

#include <coppice/exec/domain.hpp>
#include <coppice/exec/scheduler.hpp>

namespace coppice::execution {

// The domain in which a sender with these attributes completes with Tag, as a list of one.
// COMPL-DOMAIN of the draft.
template <class Tag, class Attrs, class... Env>
consteval auto find_one_domain() noexcept {
    if constexpr (internal::callable<get_completion_domain_t<Tag>, const Attrs&, const Env&...>) {
        return internal::type_list<
            internal::call_result_t<get_completion_domain_t<Tag>, const Attrs&, const Env&...>>();
    } else {
        return internal::type_list<indeterminate_domain<>>();
    }
}
template <class Tag, class Sndr, class... Env>
using domains_with =
    decltype(execution::find_one_domain<Tag, std::remove_cvref_t<env_of_t<const Sndr&>>, Env...>());

// The domain that a list of domains has in common.
template <class List>
using common_domain_of = internal::with_elements_t<common_domain, List>;

// Those of the three tags for which Holds<Tag> is true.
template <template <class> class Holds>
using tags_that = typename internal::concatenated<
    std::conditional_t<Holds<set_value_t>::value, internal::type_list<set_value_t>,
                       internal::type_list<>>,
    std::conditional_t<Holds<set_error_t>::value, internal::type_list<set_error_t>,
                       internal::type_list<>>,
    std::conditional_t<Holds<set_stopped_t>::value, internal::type_list<set_stopped_t>,
                       internal::type_list<>>>::type;

template <class Child, class Map>
class mapped_attrs {
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
            return internal::type_list<Tag>();
        } else {
            using Sigs = signatures_of<Child, fwd_env_t<Env>...>;
            if constexpr (is_completion_signatures<Sigs>) {
                return typename from_signatures<Sigs, Tag>::type();
            } else {
                return internal::type_list<>();
            }
        }
    }
    // The child's tags that may become Tag.
    template <class Tag, class... Env>
    using sources = decltype(find_sources<Tag, Env...>());

    template <class Sources, class... Env>
    struct only {
        static constexpr bool has_scheduler = false;
        using domains = internal::type_list<>;
    };
    template <class From, class... Env>
    struct only<internal::type_list<From>, Env...> {
        using tag = From;
        static constexpr bool has_scheduler =
            internal::callable<get_completion_scheduler_t<From>, child_env, const Env&...>;
        using domains = std::conditional_t<
            internal::callable<get_completion_domain_t<From>, child_env, const Env&...>,
            domains_with<From, Child, Env...>, internal::type_list<>>;
    };
    template <class From, class Also, class... More, class... Env>
    struct only<internal::type_list<From, Also, More...>, Env...> {
        static constexpr bool has_scheduler = false;
        using domains = typename internal::concatenated<domains_with<From, Child, Env...>,
                                                        domains_with<Also, Child, Env...>,
                                                        domains_with<More, Child, Env...>...>::type;
    };

public:
    constexpr explicit mapped_attrs(const Child& child) noexcept : child_(&child) {}

    template <class Query, class... Args>
        requires is_forwarding_query<Query> && has_query<child_env, Query, Args...> &&
                 (!says_where<Query>)
    constexpr decltype(auto) query(Query tag, Args&&... args) const noexcept {
        return execution::query_attrs(*child_, tag, static_cast<Args&&>(args)...);
    }
    template <completion_tag Tag, class... Env>
        requires only<sources<Tag, Env...>, Env...>::has_scheduler
    constexpr auto query(get_completion_scheduler_t<Tag>, const Env&... env) const noexcept {
        using From = typename only<sources<Tag, Env...>, Env...>::tag;
        return get_completion_scheduler<From>(execution::get_env(*child_), env...);
    }
    template <completion_tag Tag, class... Env>
        requires(!std::is_same_v<typename only<sources<Tag, Env...>, Env...>::domains,
                                 internal::type_list<>>)
    constexpr auto query(get_completion_domain_t<Tag>, const Env&...) const noexcept {
        using domains = typename only<sources<Tag, Env...>, Env...>::domains;
        return typename common_domain_of<domains>::type();
    }

private:
    const Child* child_;
};

}  // namespace coppice::execution
