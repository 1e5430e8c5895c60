// algorithm: the two forms of each algorithm, blocking and as a sender, made of one description.
#pragma once
// A description is a class with overloads of a static function bind(args...). They take the
// arguments of the algorithm, and return its engine (place.hpp). The engine holds its arguments by
// value, and ranges as iterators. In the blocking form all arguments outlive the engine. The sender
// accepts only ranges whose iterators outlive the range object: l-values, and views such as span.
//
// An argument may be {}, as in sort(v, {}, &T::key). The compiler deduces no type from {}, so the
// parameter types of the function objects default to `unset`. bind() gets {} for such an argument,
// or no argument if only unset ones follow. Its own defaults decide what that means.

#include <coppice/parallel/internal/engine_sender.hpp>
#include <coppice/parallel/internal/place.hpp>

#include <cstddef>
#include <optional>
#include <ranges>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

namespace coppice::parallel::internal {

template <class T>
concept place = is_place<std::remove_cvref_t<T>>;

// The number of arguments that may be ranges, and are then held as iterators. An argument behind
// them is a value or a function, even if its type is a range, such as a string.
template <class Description>
inline constexpr std::size_t ranges_max = static_cast<std::size_t>(-1);
template <class Description>
    requires requires { Description::ranges_max; }
inline constexpr std::size_t ranges_max<Description> = Description::ranges_max;
template <class T>
concept outlives_call = !std::ranges::range<T> || std::ranges::borrowed_range<T>;
template <class Description, class... Args>
consteval bool ranges_outlive_call() {
    constexpr bool outlives[] = {outlives_call<Args>...};
    constexpr bool is_place_argument[] = {place<Args>...};
    for (std::size_t i = 0, ranges = ranges_max<Description>; i != sizeof...(Args); ++i) {
        if (is_place_argument[i]) continue;
        if (ranges != 0 && !outlives[i]) return false;
        if (ranges != 0) --ranges;
    }
    return true;
}

// Returns what the caller of the blocking form gets. Throws if the result is incomplete.
inline bool given(bool complete) noexcept {
    return complete;
}
template <class T>
T given(std::optional<T>&& result) {
    if (!result) {
        throw std::system_error(std::make_error_code(std::errc::operation_canceled),
                                "coppice::parallel: a stop request left work out");
    }
    return *std::move(result);
}

// The type of an argument that is {} or missing.
struct unset {};

// Describes which arguments are set: those before `end`, except the ones in [gap, behind_gap).
struct set_arguments {
    std::size_t end = 0;
    std::size_t gap = 0;
    std::size_t behind_gap = 0;
};
template <class... Args>
consteval set_arguments find_set_arguments() {
    constexpr bool is_set[] = {!std::is_same_v<std::remove_cvref_t<Args>, unset>...};
    set_arguments found;
    for (std::size_t i = 0; i != sizeof...(Args); ++i) {
        if (!is_set[i]) continue;
        if (i != found.end) {
            found.gap = found.end;
            found.behind_gap = i;
        }
        found.end = i + 1;
    }
    return found;
}

// Calls bind() with references to the arguments. A gap is one or two unset arguments, as in
// merge(a, b, out, {}, {}, &T::key).
template <class Description, class... Args>
class binder {
    static constexpr set_arguments set = internal::find_set_arguments<Args...>();
    static constexpr std::size_t gap_size = set.behind_gap - set.gap;
    using tuple = std::tuple<Args&&...>;
    using before = std::make_index_sequence<set.gap>;
    using behind = std::make_index_sequence<set.end - set.behind_gap>;
    template <std::size_t I>
    static std::tuple_element_t<I, tuple> at(tuple& args) noexcept {
        return std::get<I>(std::move(args));
    }
    template <std::size_t... I, std::size_t... K>
    static auto call(tuple& args, std::index_sequence<I...>, std::index_sequence<K...>)
        requires(gap_size == 0) && requires { Description::bind(at<K>(args)...); }
    {
        return Description::bind(at<K>(args)...);
    }
    template <std::size_t... I, std::size_t... K>
    static auto call(tuple& args, std::index_sequence<I...>, std::index_sequence<K...>)
        requires(gap_size == 1) &&
                requires { Description::bind(at<I>(args)..., {}, at<set.behind_gap + K>(args)...); }
    {
        return Description::bind(at<I>(args)..., {}, at<set.behind_gap + K>(args)...);
    }
    template <std::size_t... I, std::size_t... K>
    static auto call(tuple& args, std::index_sequence<I...>, std::index_sequence<K...>)
        requires(gap_size == 2) && requires {
            Description::bind(at<I>(args)..., {}, {}, at<set.behind_gap + K>(args)...);
        }
    {
        return Description::bind(at<I>(args)..., {}, {}, at<set.behind_gap + K>(args)...);
    }

public:
    static auto bind(Args&&... args)
        requires requires(tuple& all) { call(all, before(), behind()); }
    {
        tuple all(static_cast<Args&&>(args)...);
        return call(all, before(), behind());
    }
};

// The arguments of a call, which may start with a place.
template <class Description, class... Args>
struct binding {
    static nearest_place where(const Args&...) noexcept { return {}; }
    static auto engine(Args&&... args)
        requires requires { binder<Description, Args...>::bind(static_cast<Args&&>(args)...); }
    {
        return binder<Description, Args...>::bind(static_cast<Args&&>(args)...);
    }
};
template <class Description, place Place, class... Args>
struct binding<Description, Place, Args...> {
    static std::remove_cvref_t<Place> where(const Place& first, const Args&...) { return first; }
    static auto engine(Place&&, Args&&... args)
        requires requires { binder<Description, Args...>::bind(static_cast<Args&&>(args)...); }
    {
        return binder<Description, Args...>::bind(static_cast<Args&&>(args)...);
    }
};
template <class Description, class... Args>
concept binds = requires(Args&&... args) {
    binding<Description, Args...>::engine(static_cast<Args&&>(args)...);
};

struct blocking_form {
    template <class Description, class... Args>
    static constexpr bool takes = true;
    template <class Where, class Engine>
    static auto make(const Where& where, Engine engine) {
        return internal::given(where.call(engine));
    }
};
struct sender_form {
    template <class Description, class... Args>
    static constexpr bool takes = internal::ranges_outlive_call<Description, Args...>();
    template <class Where, class Engine>
    static auto make(const Where& where, Engine engine) {
        using Sch = std::remove_cvref_t<decltype(where.get_scheduler())>;
        return engine_sender<Sch, Engine>(where.get_scheduler(), std::move(engine));
    }
};

template <class Form, class Description, class... Args>
concept can_call = binds<Description, Args...> && Form::template takes<Description, Args...>;

// The function object of an algorithm in one of its forms. The longest call has a place and eight
// arguments.
template <class Form, class Description>
class algorithm_function {
    template <class... Args>
    static auto call(Args&&... args) {
        using bound = binding<Description, Args...>;
        const auto where = bound::where(args...);
        return Form::make(where, bound::engine(static_cast<Args&&>(args)...));
    }

public:
    template <class A, class B = unset, class C = unset, class D = unset, class E = unset,
              class F = unset, class G = unset, class H = unset, class I = unset>
        requires can_call<Form, Description, A, B, C, D, E, F, G, H, I>
    auto operator()(A&& a, B&& b = {}, C&& c = {}, D&& d = {}, E&& e = {}, F&& f = {}, G&& g = {},
                    H&& h = {}, I&& i = {}) const {
        return call<A, B, C, D, E, F, G, H, I>(
            static_cast<A&&>(a), static_cast<B&&>(b), static_cast<C&&>(c), static_cast<D&&>(d),
            static_cast<E&&>(e), static_cast<F&&>(f), static_cast<G&&>(g), static_cast<H&&>(h),
            static_cast<I&&>(i));
    }
};
template <class Description>
using algorithm = algorithm_function<blocking_form, Description>;
template <class Description>
using async_algorithm = algorithm_function<sender_form, Description>;

}  // namespace coppice::parallel::internal
