// The sender of just, just_error, and just_stopped.
#pragma once

#include <coppice/base/internal/check.hpp>
#include <coppice/exec/internal/allocator_aware.hpp>
#include <coppice/exec/internal/attrs.hpp>

namespace coppice::execution::internal {

// An operation that completes inside start(). Misuse: a second start ends the process.
template <class Complete, class Values, class Rcvr>
class just_operation {
public:
    using operation_state_concept = operation_state_tag;

    template <class Init>
    constexpr just_operation(Init&& values, Rcvr rcvr) noexcept(
        noexcept(forward_with_allocator<Values>(static_cast<Init&&>(values), rcvr)))
        : rcvr_(static_cast<Rcvr&&>(rcvr)),
          values_(
              forward_with_allocator<Values>(static_cast<Init&&>(values), std::as_const(rcvr_))) {}
    just_operation(just_operation&&) = delete;

    constexpr void start() & noexcept {
        COPPICE_CHECK(!started_,
                      "an operation of just was started twice: connect its sender again");
        started_ = true;
        std::move(values_).apply([this](auto&&... values) noexcept {
            Complete()(static_cast<Rcvr&&>(rcvr_), static_cast<decltype(values)>(values)...);
        });
    }

private:
    [[no_unique_address]] Rcvr rcvr_;
    [[no_unique_address]] Values values_;
    bool started_ = false;
};

// Decomposes as [tag, data]; data decomposes into the values.
template <class Tag, class Complete, class... Ts>
struct just_sender {
    using sender_concept = sender_tag;
    using tag_type = Tag;
    using decomposable = void;
    using values_type = product<Ts...>;

    [[no_unique_address]] values_type data;

    template <class... Us>
    constexpr explicit just_sender(construct_each,
                                   Us&&... us) noexcept((std::is_nothrow_constructible_v<Ts, Us> &&
                                                         ...))
        : data(construct_each(), static_cast<Us&&>(us)...) {}

    constexpr inline_attrs<Complete> get_env() const noexcept { return {}; }
    constexpr just_sender affine() && { return static_cast<just_sender&&>(*this); }
    constexpr just_sender affine() const& { return *this; }

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return completion_signatures<Complete(Ts...)>();
    }
    template <receiver Rcvr>
    constexpr auto connect(Rcvr rcvr) && noexcept(
        std::is_nothrow_constructible_v<just_operation<Complete, values_type, Rcvr>, values_type,
                                        Rcvr>) {
        return just_operation<Complete, values_type, Rcvr>(static_cast<values_type&&>(data),
                                                           static_cast<Rcvr&&>(rcvr));
    }
    template <receiver Rcvr>
        requires(std::copy_constructible<Ts> && ...)
    constexpr auto connect(Rcvr rcvr) const& noexcept(
        std::is_nothrow_constructible_v<just_operation<Complete, values_type, Rcvr>,
                                        const values_type&, Rcvr>) {
        return just_operation<Complete, values_type, Rcvr>(data, static_cast<Rcvr&&>(rcvr));
    }
};

}  // namespace coppice::execution::internal
