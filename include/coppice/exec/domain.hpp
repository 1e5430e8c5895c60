// Domains: how an execution resource replaces the implementation of an algorithm.
#pragma once
// Before a sender is connected it is transformed twice: by the domain where it completes (tag
// set_value), then by the domain where it starts (tag start). default_domain asks the sender's own
// algorithm; starts_on, on, bulk, and others are written this way in terms of simpler algorithms.
// connect skips the transformations when neither domain nor algorithm defines one.
// Source: [exec.domain.default], [exec.domain.indeterminate], [exec.snd.transform],
// [exec.snd.apply].

#include <coppice/exec/completion_signatures.hpp>
#include <coppice/exec/internal/sender_parts.hpp>
#include <coppice/exec/internal/transformation.hpp>
#include <coppice/exec/queries.hpp>

namespace coppice::execution {

// The algorithm that made a sender. [exec.snd.concepts]
using internal::tag_of_t;

// Used where nothing is customized.
struct default_domain {
    // Returns what the sender's own algorithm makes of it for Tag, otherwise the sender.
    template <class Tag, class Sndr, internal::queryable Env>
    static constexpr decltype(auto) transform_sender(Tag, Sndr&& sndr, const Env& env) noexcept(
        transforms_nothrow<Tag, Sndr, Env>()) {
        if constexpr (internal::self_transforming<Sndr, Tag, Env>) {
            return tag_of_t<Sndr>().transform_sender(Tag(), static_cast<Sndr&&>(sndr), env);
        } else {
            return static_cast<Sndr>(static_cast<Sndr&&>(sndr));
        }
    }
    // Returns Tag().apply_sender(sndr, args...).
    template <class Tag, class Sndr, class... Args>
        requires requires(Sndr&& sndr, Args&&... args) {
            Tag().apply_sender(static_cast<Sndr&&>(sndr), static_cast<Args&&>(args)...);
        }
    static constexpr decltype(auto) apply_sender(Tag, Sndr&& sndr, Args&&... args) noexcept(
        noexcept(Tag().apply_sender(static_cast<Sndr&&>(sndr), static_cast<Args&&>(args)...))) {
        return Tag().apply_sender(static_cast<Sndr&&>(sndr), static_cast<Args&&>(args)...);
    }

private:
    template <class Tag, class Sndr, class Env>
    static consteval bool transforms_nothrow() noexcept {
        if constexpr (internal::self_transforming<Sndr, Tag, Env>) {
            return noexcept(tag_of_t<Sndr>().transform_sender(Tag(), std::declval<Sndr>(),
                                                              std::declval<const Env&>()));
        } else {
            return std::is_nothrow_constructible_v<Sndr, Sndr>;
        }
    }
};

// The domain of a sender that may complete in any of several domains. Transforms as default_domain
// does; each of the domains must agree with that.
template <class... Domains>
struct indeterminate_domain {
    indeterminate_domain() = default;
    // Converts any other domain.
    template <class T>
    constexpr indeterminate_domain(T&&) noexcept {}

    // Returns what default_domain returns.
    template <class Tag, class Sndr, internal::queryable Env>
    static constexpr decltype(auto) transform_sender(Tag, Sndr&& sndr, const Env& env) noexcept(
        noexcept(default_domain().transform_sender(Tag(), static_cast<Sndr&&>(sndr), env))) {
        static_assert((agrees<Domains, Tag, Sndr, Env>() && ...),
                      "a sender that may complete in several domains is customized by one of them");
        return default_domain().transform_sender(Tag(), static_cast<Sndr&&>(sndr), env);
    }

private:
    template <class Domain, class Tag, class Sndr, class Env>
    static consteval bool agrees() noexcept {
        if constexpr (internal::domain_transforms<Domain, Tag, Sndr, Env>) {
            return std::is_same_v<std::decay_t<decltype(Domain().transform_sender(
                                      Tag(), std::declval<Sndr>(), std::declval<const Env&>()))>,
                                  std::decay_t<decltype(default_domain().transform_sender(
                                      Tag(), std::declval<Sndr>(), std::declval<const Env&>()))>>;
        } else {
            return true;
        }
    }
};

// One domain for all of Domains: the first if all are the same, otherwise their common type,
// otherwise an indeterminate_domain.
template <class... Domains>
struct common_domain {
    using type = internal::set_union_t<indeterminate_domain<>, internal::type_list<Domains...>>;
};
template <class Domain, class... Domains>
    requires(std::is_same_v<Domain, Domains> && ...)
struct common_domain<Domain, Domains...> {
    using type = Domain;
};
template <class... Domains>
    requires(sizeof...(Domains) > 1) && requires { typename std::common_type_t<Domains...>; } &&
            (!(std::is_same_v<std::common_type_t<Domains...>, Domains> && ...))
struct common_domain<Domains...> {
    using type = std::common_type_t<Domains...>;
};
// COMMON-DOMAIN of the draft.
template <class... Domains>
using common_domain_t = typename common_domain<Domains...>::type;

// Returns the sender that is connected in place of this one. Source: [exec.snd.transform].
template <class Sndr, internal::queryable Env>
constexpr decltype(auto) transform_sender(Sndr&& sndr, const Env& env) noexcept(
    internal::completion_transformation<Sndr, Env>::is_nothrow() &&
    internal::start_transformation<Sndr, Env>::is_nothrow()) {
    return internal::start_transformation<Sndr, Env>::apply(
        internal::completion_transformation<Sndr, Env>::apply(static_cast<Sndr&&>(sndr), env), env);
}

// True if a domain, other than the default or an unknown one, transforms this sender.
template <class Domain, class Tag, class Sndr, class Env>
concept may_transform = (!internal::one_of<Domain, default_domain, indeterminate_domain<>>) &&
                        internal::domain_transforms<Domain, Tag, Sndr, Env>;

// True if transform_sender would do more than move the sender.
template <class Sndr, class Env>
concept needs_transform =
    internal::self_transforming<Sndr, set_value_t, Env> ||
    internal::self_transforming<Sndr, start_t, Env> ||
    may_transform<internal::completion_domain_of_t<Sndr, Env>, set_value_t, Sndr, Env> ||
    may_transform<internal::start_domain_of_t<Env>, start_t, Sndr, Env>;

namespace internal {

template <class Sndr, class... Env>
struct transformed {
    using type = Sndr;
};
template <class Sndr, class Env>
    requires needs_transform<Sndr, Env>
struct transformed<Sndr, Env> {
    using type =
        decltype(execution::transform_sender(std::declval<Sndr>(), std::declval<const Env&>()));
};

}  // namespace internal

// The type of the sender that is connected in place of a Sndr.
template <class Sndr, class... Env>
using transformed_t = typename internal::transformed<Sndr, Env...>::type;

// Lets a domain run a consuming algorithm. Source: [exec.snd.apply].
template <class Domain, class Tag, class Sndr, class... Args>
    requires internal::domain_applies<internal::applier_t<Domain, Tag, Sndr, Args...>, Tag, Sndr,
                                      Args...>
constexpr decltype(auto) apply_sender(Domain domain, Tag, Sndr&& sndr, Args&&... args) noexcept(
    noexcept(std::declval<internal::applier_t<Domain, Tag, Sndr, Args...>&>().apply_sender(
        Tag(), static_cast<Sndr&&>(sndr), static_cast<Args&&>(args)...))) {
    if constexpr (internal::domain_applies<Domain, Tag, Sndr, Args...>) {
        return domain.apply_sender(Tag(), static_cast<Sndr&&>(sndr), static_cast<Args&&>(args)...);
    } else {
        return default_domain().apply_sender(Tag(), static_cast<Sndr&&>(sndr),
                                             static_cast<Args&&>(args)...);
    }
}

}  // namespace coppice::execution

// The common type of indeterminate domains. Source: [exec.domain.indeterminate] p4.
template <class... Ds, class... Es>
struct std::common_type<coppice::execution::indeterminate_domain<Ds...>,
                        coppice::execution::indeterminate_domain<Es...>> {
    using type = coppice::execution::internal::set_union_t<
        coppice::execution::indeterminate_domain<>,
        coppice::execution::internal::type_list<Ds..., Es...>>;
};
template <class... Ds, class D>
struct std::common_type<coppice::execution::indeterminate_domain<Ds...>, D> {
    using type = std::conditional_t<sizeof...(Ds) == 0, D,
                                    coppice::execution::internal::set_union_t<
                                        coppice::execution::indeterminate_domain<>,
                                        coppice::execution::internal::type_list<Ds..., D>>>;
};
template <class D, class... Ds>
struct std::common_type<D, coppice::execution::indeterminate_domain<Ds...>>
    : std::common_type<coppice::execution::indeterminate_domain<Ds...>, D> {};
