// erased_sender: a sender of any type behind virtual functions; what an any_sender holds.
#pragma once

#include <coppice/exec/internal/erased_operation.hpp>

#include <cstddef>
#include <type_traits>

namespace coppice::execution::internal {

// A sender whose type is hidden. Connects itself, once, to a receiver of Fns.
template <class... Fns>
class erased_sender {
public:
    static constexpr std::size_t size =
        3 * sizeof(void*);  // bytes for a sender that is held inside
    using storage = small_object<erased_sender, sizeof(void*) + size>;

    virtual ~erased_sender() = default;
    virtual void relocate(storage& to) noexcept = 0;
    virtual void connect_into(any_operation_storage& to, any_receiver<Fns...> rcvr) = 0;
};
template <class Sndr, class... Fns>
class held_sender final : public erased_sender<Fns...> {
public:
    explicit held_sender(Sndr&& sndr) noexcept(std::is_nothrow_move_constructible_v<Sndr>)
        : sndr_(static_cast<Sndr&&>(sndr)) {}
    void relocate(typename erased_sender<Fns...>::storage& to) noexcept override {
        to.template emplace_with<held_sender>(
            [this] { return held_sender(static_cast<Sndr&&>(sndr_)); });
    }
    void connect_into(any_operation_storage& to, any_receiver<Fns...> rcvr) override {
        using operation = any_connected<Sndr, any_receiver<Fns...>>;
        to.emplace_with<operation>(
            [this, &rcvr] { return operation(static_cast<Sndr&&>(sndr_), rcvr); });
    }

private:
    Sndr sndr_;
};

// The result of the search below if no completion is missing.
struct nothing_missing {};
template <class Missing>
inline constexpr bool is_nothing_missing = std::is_same_v<Missing, nothing_missing>;
// Names, in the compiler's message, why an any_sender cannot hold a sender. Missing is the sender's
// first completion that is not among those of the any_sender and converts to none of them; or it is
// the exception_ptr completion that such a conversion needs.
template <class Missing>
concept any_sender_declares = is_nothing_missing<Missing>;

// Fn; or set_error_t(exception_ptr) if Fn converts and only the exception's signature is missing.
template <class Rcvr, class Fn>
struct missing_completion;
template <class... Fns, class Tag, class... Args>
struct missing_completion<any_receiver<Fns...>, Tag(Args...)> {
    static constexpr bool converts =
        completes_erased<any_receiver_base<Fns...>, true, Tag, Args...>;
    using type = std::conditional_t<converts, set_error_t(std::exception_ptr), Tag(Args...)>;
};
template <class Rcvr, class Sigs>
struct first_missing {
    using type = nothing_missing;
};
template <class Rcvr, class Fn, class... Fns>
struct first_missing<Rcvr, completion_signatures<Fn, Fns...>>
    : std::conditional_t<valid_completion_for<Fn, Rcvr>,
                         first_missing<Rcvr, completion_signatures<Fns...>>,
                         missing_completion<Rcvr, Fn>> {};
template <class Sndr, class Rcvr>
using first_missing_t = typename first_missing<Rcvr, signatures_of<Sndr, env_of_t<Rcvr>>>::type;

// True if an any_sender of Fns can hold a Sndr.
template <class Sndr, class... Fns>
concept erasable_sender =
    sender_in<Sndr, any_env> && any_sender_declares<first_missing_t<Sndr, any_receiver<Fns...>>> &&
    sender_to<Sndr, any_receiver<Fns...>>;

}  // namespace coppice::execution::internal
