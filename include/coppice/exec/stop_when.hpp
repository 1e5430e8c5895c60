// stop_when: a sender that is stopped through a given token as well as the receiver's.
#pragma once
// Source: [exec.stop.when], which is for exposition only; counting_scope, spawn_future, and others
// need it.

#include <coppice/exec/internal/stop_when_sender.hpp>

namespace coppice::execution {

// Also stops sndr when `token` is stopped. A token that cannot be stopped changes nothing. Cost: no
// allocation. If the receiver's token can be stopped too, each of sndr's callbacks is registered
// with both tokens, and one atomic exchange decides which of the two stops runs it.
struct stop_when_t {
    template <sender Sndr, stoppable_token Token>
    constexpr auto operator()(Sndr&& sndr, Token token) const {
        if constexpr (unstoppable_token<Token>) {
            return std::decay_t<Sndr>(static_cast<Sndr&&>(sndr));
        } else {
            return internal::stop_when_sender<Token, std::decay_t<Sndr>>(
                static_cast<Token&&>(token), static_cast<Sndr&&>(sndr));
        }
    }
};
inline constexpr stop_when_t stop_when{};

}  // namespace coppice::execution
