// affine: complete on the scheduler on which the operation was started.
#pragma once
// The draft writes it as continues_on(child, unstoppable start scheduler). Here the transfer back
// is left out where it is not needed. At compile time: for a sender with a member affine(), as just
// and read_env have. At run time: if the child's completion scheduler equals the start scheduler,
// which costs one comparison when the sender is connected. Source: [exec.affine].

#include <coppice/exec/closure.hpp>
#include <coppice/exec/internal/affine_sender.hpp>

namespace coppice::execution {

// Completes on the scheduler on which the operation was started.
struct affine_t : sender_adaptor_closure<affine_t> {
    template <sender Sndr>
    constexpr auto operator()(Sndr&& sndr) const {
        return internal::affine_sender<std::decay_t<Sndr>>(internal::construct_each(),
                                                           static_cast<Sndr&&>(sndr));
    }
    constexpr auto operator()() const noexcept { return execution::bind_adaptor(*this); }

    template <internal::sender_for<affine_t> Sndr, class Env>
        requires requires(Sndr&& sndr) { static_cast<Sndr&&>(sndr).child.affine(); }
    constexpr auto transform_sender(set_value_t, Sndr&& sndr, const Env&) const {
        return static_cast<Sndr&&>(sndr).child.affine();
    }
};
inline constexpr affine_t affine{};

}  // namespace coppice::execution
