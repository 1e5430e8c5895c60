// transformation: the sender that is connected in place of another one, step by step.
#pragma once
// A sender is transformed by the domain where it completes, with the tag set_value, and then by the
// domain where it starts, with the tag start. Each repeats until the type stays the same.
// Source: [exec.snd.transform].

#include <coppice/exec/internal/sender_parts.hpp>
#include <coppice/exec/queries.hpp>

namespace coppice::execution {

struct start_t;
struct default_domain;

namespace internal {

template <class Algorithm, class Tag, class Sndr, class Env>
concept algorithm_transforms = requires(Sndr&& sndr, const Env& env) {
    Algorithm().transform_sender(Tag(), static_cast<Sndr&&>(sndr), env);
};
template <class Sndr, class Tag, class Env>
concept self_transforming = has_tag<Sndr> && algorithm_transforms<tag_of_t<Sndr>, Tag, Sndr, Env>;

template <class Domain, class Tag, class Sndr, class Env>
concept domain_transforms = requires(Sndr&& sndr, const Env& env) {
    Domain().transform_sender(Tag(), static_cast<Sndr&&>(sndr), env);
};

template <class Sndr, class Env>
consteval auto find_completion_domain() noexcept {
    using Attrs = env_of_t<Sndr>;
    if constexpr (callable<get_completion_domain_t<>, Attrs, const Env&>) {
        return type_list<
            std::decay_t<call_result_t<get_completion_domain_t<>, Attrs, const Env&>>>();
    } else {
        return type_list<default_domain>();
    }
}
template <class Domain>
constexpr Domain only_domain(type_list<Domain>) noexcept;
template <class Sndr, class Env>
using completion_domain_of_t = decltype(internal::only_domain(find_completion_domain<Sndr, Env>()));
template <class Env>
using start_domain_of_t = std::decay_t<call_result_t<get_domain_t, const Env&>>;

// Domain if it can transform this sender, otherwise default_domain.
template <class Domain, class Tag, class Sndr, class Env>
using transformer_t =
    std::conditional_t<domain_transforms<Domain, Tag, Sndr, Env>, Domain, default_domain>;

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

// Transformations by the domain where the sender completes, then by the domain where it starts.
template <class Sndr, class Env>
using completion_transformation =
    transformation<completion_domain_of_t<Sndr, Env>, set_value_t, Sndr, Env>;
template <class Sndr, class Env>
using start_transformation = transformation<start_domain_of_t<Env>, start_t,
                                            decltype(completion_transformation<Sndr, Env>::apply(
                                                std::declval<Sndr>(), std::declval<const Env&>())),
                                            Env>;

template <class Domain, class Tag, class Sndr, class... Args>
concept domain_applies = requires(Domain domain, Sndr&& sndr, Args&&... args) {
    domain.apply_sender(Tag(), static_cast<Sndr&&>(sndr), static_cast<Args&&>(args)...);
};
template <class Domain, class Tag, class Sndr, class... Args>
using applier_t =
    std::conditional_t<domain_applies<Domain, Tag, Sndr, Args...>, Domain, default_domain>;

}  // namespace internal

}  // namespace coppice::execution
