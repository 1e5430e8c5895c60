// Domains: how an execution resource replaces the implementation of an algorithm.
#pragma once
// Before a sender is connected it is transformed twice: by the domain where it completes (tag
// set_value), then by the domain where it starts (tag start). default_domain asks the sender's own
// algorithm; starts_on, on, bulk, and others are written this way in terms of simpler algorithms.
// connect skips the transformations when neither domain nor algorithm defines one.
// Source: [exec.domain.default], [exec.domain.indeterminate], [exec.snd.transform],
// [exec.snd.apply].

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/exec/completion_signatures.hpp>
#include <coppice/exec/internal/sender_parts.hpp>
#include <coppice/exec/queries.hpp>

namespace coppice::execution {

struct start_t;

template <class Algorithm, class Tag, class Sndr, class Env>
concept algorithm_transforms = requires(Sndr&& sndr, const Env& env) {
    Algorithm().transform_sender(Tag(), static_cast<Sndr&&>(sndr), env);
};
template <class Sndr, class Tag, class Env>
concept self_transforming = has_tag<Sndr> && algorithm_transforms<tag_of_t<Sndr>, Tag, Sndr, Env>;

// Used where nothing is customized.
struct default_domain {
    template <class Tag, class Sndr, internal::queryable Env>
    static constexpr decltype(auto) transform_sender(Tag, Sndr&& sndr, const Env& env) noexcept(
        transforms_nothrow<Tag, Sndr, Env>()) {
        if constexpr (self_transforming<Sndr, Tag, Env>) {
            return tag_of_t<Sndr>().transform_sender(Tag(), static_cast<Sndr&&>(sndr), env);
        } else {
            return static_cast<Sndr>(static_cast<Sndr&&>(sndr));
        }
    }
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
        if constexpr (self_transforming<Sndr, Tag, Env>) {
            return noexcept(tag_of_t<Sndr>().transform_sender(Tag(), std::declval<Sndr>(),
                                                              std::declval<const Env&>()));
        } else {
            return std::is_nothrow_constructible_v<Sndr, Sndr>;
        }
    }
};

template <class Domain, class Tag, class Sndr, class Env>
concept domain_transforms = requires(Sndr&& sndr, const Env& env) {
    Domain().transform_sender(Tag(), static_cast<Sndr&&>(sndr), env);
};

// The domain of a sender that may complete in any of several domains. Transforms as default_domain
// does; each of the domains must agree with that.
template <class... Domains>
struct indeterminate_domain {
    indeterminate_domain() = default;
    template <class T>
    constexpr indeterminate_domain(T&&) noexcept {}

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
        if constexpr (domain_transforms<Domain, Tag, Sndr, Env>) {
            return std::is_same_v<std::decay_t<decltype(Domain().transform_sender(
                                      Tag(), std::declval<Sndr>(), std::declval<const Env&>()))>,
                                  std::decay_t<decltype(default_domain().transform_sender(
                                      Tag(), std::declval<Sndr>(), std::declval<const Env&>()))>>;
        } else {
            return true;
        }
    }
};

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

template <class Sndr, class Env>
consteval auto find_completion_domain() noexcept {
    using Attrs = env_of_t<Sndr>;
    if constexpr (internal::callable<get_completion_domain_t<>, Attrs, const Env&>) {
        return internal::type_list<
            std::decay_t<internal::call_result_t<get_completion_domain_t<>, Attrs, const Env&>>>();
    } else {
        return internal::type_list<default_domain>();
    }
}
template <class Domain>
constexpr Domain only_domain(internal::type_list<Domain>) noexcept;
template <class Sndr, class Env>
using completion_domain_of_t =
    decltype(execution::only_domain(find_completion_domain<Sndr, Env>()));
template <class Env>
using start_domain_of_t = std::decay_t<internal::call_result_t<get_domain_t, const Env&>>;

// Domain if it can transform this sender, otherwise default_domain.
template <class Domain, class Tag, class Sndr, class Env>
using transformer_t =
    std::conditional_t<domain_transforms<Domain, Tag, Sndr, Env>, Domain, default_domain>;

namespace internal {

// Transforms repeatedly until the type stays the same.
template <class Domain, class Tag, class Sndr, class Env>
struct transformation {
    using transformer = transformer_t<Domain, Tag, Sndr, Env>;
    using next = decltype(transformer().transform_sender(Tag(), std::declval<Sndr>(),
                                                         std::declval<const Env&>()));
    static constexpr bool nothrow_once = noexcept(
        transformer().transform_sender(Tag(), std::declval<Sndr>(), std::declval<const Env&>()));
    static constexpr bool is_last =
        std::is_same_v<std::remove_cvref_t<next>, std::remove_cvref_t<Sndr>>;

    // The transformation after this one.
    static consteval auto find_following() noexcept {
        using following_domain =
            std::conditional_t<std::is_same_v<Tag, start_t>, start_domain_of_t<Env>,
                               completion_domain_of_t<next, Env>>;
        return transformation<following_domain, Tag, next, Env>();
    }
    static consteval bool is_nothrow() noexcept {
        if constexpr (is_last) {
            return nothrow_once;
        } else {
            return nothrow_once && decltype(find_following())::is_nothrow();
        }
    }
    static constexpr decltype(auto) apply(Sndr&& sndr, const Env& env) noexcept(is_nothrow()) {
        if constexpr (is_last) {
            return transformer().transform_sender(Tag(), static_cast<Sndr&&>(sndr), env);
        } else {
            return decltype(find_following())::apply(
                transformer().transform_sender(Tag(), static_cast<Sndr&&>(sndr), env), env);
        }
    }
};

}  // namespace internal

// Transformations by the domain where the sender completes, then by the domain where it starts.
template <class Sndr, class Env>
using completion_transformation =
    internal::transformation<completion_domain_of_t<Sndr, Env>, set_value_t, Sndr, Env>;
template <class Sndr, class Env>
using start_transformation =
    internal::transformation<start_domain_of_t<Env>, start_t,
                             decltype(completion_transformation<Sndr, Env>::apply(
                                 std::declval<Sndr>(), std::declval<const Env&>())),
                             Env>;

// Returns the sender that is connected in place of this one. Source: [exec.snd.transform].
template <class Sndr, internal::queryable Env>
constexpr decltype(auto) transform_sender(Sndr&& sndr, const Env& env) noexcept(
    completion_transformation<Sndr, Env>::is_nothrow() &&
    start_transformation<Sndr, Env>::is_nothrow()) {
    return start_transformation<Sndr, Env>::apply(
        completion_transformation<Sndr, Env>::apply(static_cast<Sndr&&>(sndr), env), env);
}

// True if a domain, other than the default or an unknown one, transforms this sender.
template <class Domain, class Tag, class Sndr, class Env>
concept may_transform = (!internal::one_of<Domain, default_domain, indeterminate_domain<>>) &&
                        domain_transforms<Domain, Tag, Sndr, Env>;

// True if transform_sender would do more than move the sender.
template <class Sndr, class Env>
concept needs_transform =
    self_transforming<Sndr, set_value_t, Env> || self_transforming<Sndr, start_t, Env> ||
    may_transform<completion_domain_of_t<Sndr, Env>, set_value_t, Sndr, Env> ||
    may_transform<start_domain_of_t<Env>, start_t, Sndr, Env>;

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

template <class Domain, class Tag, class Sndr, class... Args>
concept domain_applies = requires(Domain domain, Sndr&& sndr, Args&&... args) {
    domain.apply_sender(Tag(), static_cast<Sndr&&>(sndr), static_cast<Args&&>(args)...);
};
template <class Domain, class Tag, class Sndr, class... Args>
using applier_t =
    std::conditional_t<domain_applies<Domain, Tag, Sndr, Args...>, Domain, default_domain>;

// Lets a domain run a consuming algorithm. Source: [exec.snd.apply].
template <class Domain, class Tag, class Sndr, class... Args>
    requires domain_applies<applier_t<Domain, Tag, Sndr, Args...>, Tag, Sndr, Args...>
constexpr decltype(auto) apply_sender(Domain domain, Tag, Sndr&& sndr, Args&&... args) noexcept(
    noexcept(std::declval<applier_t<Domain, Tag, Sndr, Args...>&>().apply_sender(
        Tag(), static_cast<Sndr&&>(sndr), static_cast<Args&&>(args)...))) {
    if constexpr (domain_applies<Domain, Tag, Sndr, Args...>) {
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
