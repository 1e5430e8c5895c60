// Storage for at most one of several types, and for one completion with its results.
#pragma once
// Used by continues_on, let_value, when_all, split, and others for what they keep between two
// steps. Cheaper to compile than std::variant, holds immovable types, and is empty at first.

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/internal/product.hpp>
#include <coppice/exec/internal/signature_sets.hpp>

#include <cstddef>
#include <new>

namespace coppice::execution::internal {

// Holds at most one object of one of Ts. Misuse: reading a type that is not held is undefined.
template <class... Ts>
class alternatives : immovable {
public:
    alternatives() noexcept = default;
    ~alternatives() { clear(); }

    bool empty() const noexcept { return held_ == none; }
    template <class T>
    bool holds() const noexcept {
        return held_ == index_of<T>();
    }
    template <class T>
    T& get() noexcept {
        return *std::launder(reinterpret_cast<T*>(storage_));
    }
    // Destroys the held object and constructs a T. Empty afterwards if the constructor throws.
    template <class T, class... Args>
    T& emplace(Args&&... args) noexcept(std::is_nothrow_constructible_v<T, Args...>) {
        clear();
        T* const made = ::new (static_cast<void*>(storage_)) T(static_cast<Args&&>(args)...);
        held_ = index_of<T>();
        return *made;
    }
    // Does the same with what make() returns, for immovable types.
    template <class T, class Make>
    T& emplace_with(Make&& make) noexcept(noexcept(make())) {
        clear();
        T* const made = ::new (static_cast<void*>(storage_)) T(make());
        held_ = index_of<T>();
        return *made;
    }
    void clear() noexcept {
        if constexpr (sizeof...(Ts) != 0) {
            const unsigned char held = std::exchange(held_, none);
            static_cast<void>(((held == index_of<Ts>() && (get<Ts>().~Ts(), true)) || ...));
        }
    }
    // Calls f with the held object, if there is one. f may destroy *this.
    template <class F>
    void visit(F&& f) {
        if constexpr (sizeof...(Ts) != 0) {
            const unsigned char held = held_;
            static_cast<void>(((held == index_of<Ts>() && (f(get<Ts>()), true)) || ...));
        }
    }

private:
    static constexpr unsigned char none = 255;
    template <class T>
    static consteval unsigned char index_of() noexcept {
        constexpr bool same[] = {std::is_same_v<T, Ts>...};
        unsigned char i = 0;
        while (!same[i]) ++i;
        return i;
    }
    static consteval std::size_t size_max() noexcept {
        std::size_t most = 1;
        ((most = sizeof(Ts) > most ? sizeof(Ts) : most), ...);
        return most;
    }

    alignas(Ts...) std::byte storage_[size_max()];
    unsigned char held_ = none;
};

// A completion and its results.
template <class Tag, class... Ts>
struct stored_completion : product<Ts...> {
    using product<Ts...>::product;
};

template <class Signature>
struct stored_signature;
template <class Tag, class... Args>
struct stored_signature<Tag(Args...)> {
    using type = stored_completion<Tag, std::decay_t<Args>...>;
};

template <class Sigs>
struct stored_signatures;
template <class... Fns>
struct stored_signatures<completion_signatures<Fns...>> {
    using plain = set_insert_t<alternatives<>, typename stored_signature<Fns>::type...>;
    using type =
        std::conditional_t<(stores_results_nothrow<Fns> && ...), plain,
                           set_insert_t<plain, stored_completion<set_error_t, std::exception_ptr>>>;
};

// Holds one completion out of Sigs until it is delivered. If storing the results throws, the
// exception becomes the completion.
template <class Sigs>
class completion_store : immovable {
public:
    bool empty() const noexcept { return stored_.empty(); }

    template <class Tag, class... Args>
    void keep(Tag, Args&&... args) noexcept {
        using completion = stored_completion<Tag, std::decay_t<Args>...>;
        if constexpr (nothrow_decay_copyable<Args...>) {
            stored_.template emplace<completion>(construct_each(), static_cast<Args&&>(args)...);
        } else {
            try {
                stored_.template emplace<completion>(construct_each(),
                                                     static_cast<Args&&>(args)...);
            } catch (...) {
                stored_.template emplace<stored_completion<set_error_t, std::exception_ptr>>(
                    construct_each(), std::current_exception());
            }
        }
    }
    // Completes the receiver with what is stored. Both may be destroyed when this returns.
    template <class Rcvr>
    void deliver(Rcvr& rcvr) noexcept {
        stored_.visit([&rcvr]<class Tag, class... Ts>(stored_completion<Tag, Ts...>& completion) {
            std::move(completion).apply([&rcvr](Ts&&... results) noexcept {
                Tag()(static_cast<Rcvr&&>(rcvr), static_cast<Ts&&>(results)...);
            });
        });
    }
    // Completes the receiver with const lvalues of the results, which can serve several receivers.
    template <class Rcvr>
    void deliver_copy(Rcvr& rcvr) noexcept {
        stored_.visit([&rcvr]<class Tag, class... Ts>(stored_completion<Tag, Ts...>& completion) {
            std::as_const(completion).apply([&rcvr](const Ts&... results) noexcept {
                Tag()(static_cast<Rcvr&&>(rcvr), results...);
            });
        });
    }

private:
    typename stored_signatures<Sigs>::type stored_;
};

// The signatures with which stored completions are delivered: every result by value.
template <class Signature>
struct decayed_signature;
template <class Tag, class... Args>
struct decayed_signature<Tag(Args...)> {
    using type = Tag(std::decay_t<Args>...);
};
template <class Sigs>
struct delivered_signatures;
template <class... Fns>
struct delivered_signatures<completion_signatures<Fns...>> {
    using type =
        set_union_t<set_insert_t<completion_signatures<>, typename decayed_signature<Fns>::type...>,
                    exception_signature<!(stores_results_nothrow<Fns> && ...)>>;
};
template <class Sigs>
using delivered_signatures_t = typename delivered_signatures<Sigs>::type;

}  // namespace coppice::execution::internal
