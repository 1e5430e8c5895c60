// What the children of when_all and when_all_range may send: their values, and their failures.
#pragma once

#include <coppice/exec/completion_signatures.hpp>
#include <coppice/exec/internal/product.hpp>
#include <coppice/exec/internal/signature_sets.hpp>

namespace coppice::execution {
struct when_all_t;
}

namespace coppice::execution::internal {

// What one child's signature contributes.
template <class Fn>
struct when_all_child_signature {  // set_stopped
    using values = type_list<>;
    using failures = completion_signatures<Fn>;
};
template <class... Args>
struct when_all_child_signature<set_value_t(Args...)> {
    using values = type_list<product<std::decay_t<Args>...>>;
    using failures = exception_signature<!nothrow_decay_copyable<Args...>>;
};
template <class Error>
struct when_all_child_signature<set_error_t(Error)> {
    using values = type_list<>;
    using failures = set_union_t<completion_signatures<set_error_t(std::decay_t<Error>)>,
                                 exception_signature<!nothrow_decay_copyable<Error>>>;
};

template <class Sigs>
struct when_all_child {  // an error, or signatures that are not known yet
    using values = type_list<product<>>;
    using failures = Sigs;
};
template <class... Fns>
    requires(!(stores_results<Fns> && ...))
struct when_all_child<completion_signatures<Fns...>> {
    using values = type_list<product<>>;
    using failures =
        pipeline_error<in_algorithm<when_all_t>, got<Fns...>, wanted<decay_copyable_results>>;
};
template <class... Fns>
    requires(completion_signatures<Fns...>::count_of(set_value_t()) > 1)
struct when_all_child<completion_signatures<Fns...>> {
    using values = type_list<product<>>;
    using failures =
        pipeline_error<in_algorithm<when_all_t>, got<Fns...>, wanted<at_most_one_value_completion>>;
};
template <class... Fns>
    requires(completion_signatures<Fns...>::count_of(set_value_t()) <= 1) &&
            (stores_results<Fns> && ...)
struct when_all_child<completion_signatures<Fns...>> {
    using values = typename concatenated<typename when_all_child_signature<Fns>::values...>::type;
    using failures = signatures_union_t<typename when_all_child_signature<Fns>::failures...>;
};

// The values of all children together; nothing if some child never sends values.
template <class... Values>
struct when_all_values {
    static constexpr bool sends = false;
    using signature = completion_signatures<>;
};
template <class... Products>
struct when_all_values<type_list<Products>...> {
    static constexpr bool sends = true;
    template <class... Lists>
    struct joined;
    template <class... Ts>
    struct joined<product<Ts...>> {
        using type = completion_signatures<set_value_t(Ts...)>;
    };
    template <class... Ts, class... Us, class... Rest>
    struct joined<product<Ts...>, product<Us...>, Rest...>
        : joined<product<Ts..., Us...>, Rest...> {};
    using signature = typename joined<Products...>::type;
};

template <class... Sigs>
using when_all_signatures_t = signatures_union_t<
    typename when_all_values<typename when_all_child<Sigs>::values...>::signature,
    typename when_all_child<Sigs>::failures...>;

}  // namespace coppice::execution::internal
