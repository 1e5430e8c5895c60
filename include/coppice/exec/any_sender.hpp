// any_sender: a sender of any type with given completion signatures; for interfaces.
#pragma once
// The sender is kept in a small buffer, and so is its operation once connected; each goes to the
// heap if it does not fit. Two parts of the receiver's environment pass through the erased
// interface: the stop token, as an inplace_stop_token, and the deadline. A linked_stop converts a
// stop token of another type. Move-only. Source: ours.

#include <coppice/exec/internal/erased_sender.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace coppice::execution {

template <class Sigs>
class any_sender;

// A sender that completes with one of Fns. Holds any sender whose completions are among them, in an
// environment with an inplace_stop_token and a deadline. Values and errors convert to those of Fns.
// An exception from a conversion is sent as an exception_ptr; if Fns has no such signature, a
// sender whose conversions may throw is rejected at compile time.
// Lifetime: a moved-from any_sender can be assigned to and destroyed.
template <class... Fns>
class any_sender<completion_signatures<Fns...>> {
    using erased = internal::erased_sender<Fns...>;

public:
    using sender_concept = sender_tag;

    // The largest sender and the largest operation that need no allocation. Units: bytes. Neither
    // includes the pointer to the virtual functions.
    static constexpr std::size_t sender_size = erased::size;
    static constexpr std::size_t operation_size = internal::any_operation_size;

    // Holds a copy of `sndr`, or moves it.
    // Errors: what copying or moving it, and allocation, throw.
    // Cost: no allocation for a sender of up to sender_size bytes that moves without exceptions,
    // otherwise one.
    template <class Sndr>
        requires(!std::same_as<std::decay_t<Sndr>, any_sender>) &&
                internal::erasable_sender<std::decay_t<Sndr>, Fns...>
    any_sender(Sndr&& sndr) {
        using plain = std::decay_t<Sndr>;
        using held = internal::held_sender<plain, Fns...>;
        sndr_.template emplace_with<held, std::is_nothrow_move_constructible_v<plain>>(
            [&sndr] { return held(plain(static_cast<Sndr&&>(sndr))); });
    }
    any_sender(any_sender&&) noexcept = default;
    any_sender& operator=(any_sender&&) noexcept = default;

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return completion_signatures<Fns...>();
    }
    // Connects the held sender. Errors: what connecting it, and allocation, throw.
    // Cost: no allocation for an operation of up to operation_size bytes, otherwise one.
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) && {
        using operation = internal::any_sender_operation<operation_size, Rcvr,
                                                         completion_signatures<Fns...>, Fns...>;
        return operation(
            [this](internal::any_operation_storage& to, internal::any_receiver<Fns...> outer) {
                sndr_.get()->connect_into(to, outer);
            },
            static_cast<Rcvr&&>(rcvr));
    }

private:
    typename erased::storage sndr_;
};

}  // namespace coppice::execution
