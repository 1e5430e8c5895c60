// algorithm: the two forms of each algorithm, blocking and as a sender, made of one description.
#pragma once
// A description is a class with overloads of a static function bind(args...), which take what the
// algorithm takes, and return its engine (place.hpp). The engine holds its arguments by value;
// ranges are held as iterators. In the blocking form everything outlives the engine. The sender is
// only made of ranges whose iterators outlive the range object: l-values, and views such as span.

#include <coppice/parallel/internal/engine_sender.hpp>
#include <coppice/parallel/internal/place.hpp>

#include <optional>
#include <ranges>
#include <system_error>
#include <type_traits>
#include <utility>

namespace coppice::parallel::internal {

template <class T>
concept place = is_place<std::remove_cvref_t<T>>;

template <class Description, class... Args>
concept binds = requires(Args&&... args) { Description::bind(static_cast<Args&&>(args)...); };

// Ranges are kept by their iterators.
template <class T>
concept outlives_call = !std::ranges::range<T> || std::ranges::borrowed_range<T>;

// What the caller of the blocking form gets. A part of a result is never given as the whole.
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

// The function object of an algorithm in its blocking form.
template <class Description>
struct algorithm {
    template <place Place, class... Args>
        requires binds<Description, Args...>
    auto operator()(Place where, Args&&... args) const {
        auto engine = Description::bind(static_cast<Args&&>(args)...);
        return internal::given(where.call(engine));
    }
    template <class... Args>
        requires binds<Description, Args...>
    auto operator()(Args&&... args) const {
        return (*this)(nearest_place(), static_cast<Args&&>(args)...);
    }
};

// The function object of an algorithm as a sender.
template <class Description>
struct async_algorithm {
    template <place Place, class... Args>
        requires binds<Description, Args...> && (outlives_call<Args> && ...)
    [[nodiscard]] auto operator()(Place where, Args&&... args) const {
        auto engine = Description::bind(static_cast<Args&&>(args)...);
        using Sch = std::remove_cvref_t<decltype(where.get_scheduler())>;
        return engine_sender<Sch, decltype(engine)>(where.get_scheduler(), std::move(engine));
    }
    template <class... Args>
        requires binds<Description, Args...> && (outlives_call<Args> && ...)
    [[nodiscard]] auto operator()(Args&&... args) const {
        return (*this)(nearest_place(), static_cast<Args&&>(args)...);
    }
};

}  // namespace coppice::parallel::internal
