// gathered: collects the completion signatures with one tag in a template; for gather_signatures.
#pragma once

#include <coppice/exec/internal/meta.hpp>

namespace coppice::execution::internal {

// META-APPLY of the draft: passes a pack to a template with a fixed number of parameters.
template <bool>
struct indirect_apply {
    template <template <class...> class T, class... As>
    using apply = T<As...>;
};
template <template <class...> class T, class... As>
using meta_apply = typename indirect_apply<always_false<As...> || true>::template apply<T, As...>;

template <class Tag, template <class...> class Tuple, class Signature>
struct gather_one {
    using type = type_list<>;
};
template <class Tag, template <class...> class Tuple, class... Args>
struct gather_one<Tag, Tuple, Tag(Args...)> {
    using type = type_list<meta_apply<Tuple, Args...>>;
};

template <class... Lists>
struct concatenated {
    using type = type_list<>;
};
template <class... Ts>
struct concatenated<type_list<Ts...>> {
    using type = type_list<Ts...>;
};
template <class... Ts, class... Us, class... Lists>
struct concatenated<type_list<Ts...>, type_list<Us...>, Lists...>
    : concatenated<type_list<Ts..., Us...>, Lists...> {};

template <template <class...> class Variant, class List>
struct apply_to_list;
template <template <class...> class Variant, class... Ts>
struct apply_to_list<Variant, type_list<Ts...>> {
    using type = meta_apply<Variant, Ts...>;
};

template <class Tag, class Completions, template <class...> class Tuple,
          template <class...> class Variant>
struct gathered;
template <class Tag, template <class...> class Sigs, class... Fns, template <class...> class Tuple,
          template <class...> class Variant>
struct gathered<Tag, Sigs<Fns...>, Tuple, Variant>
    : apply_to_list<Variant,
                    typename concatenated<typename gather_one<Tag, Tuple, Fns>::type...>::type> {};

}  // namespace coppice::execution::internal
