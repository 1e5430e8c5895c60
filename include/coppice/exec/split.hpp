// split: a sender that can be started many times, while its child runs once for all.
#pragma once
// The copies of a split sender share one state. The first one to start also starts the child. Each
// gets the child's results as const lvalues, where the child completes, or inside its own start if
// the child has completed before. A stop request of any of them stops the child, and so all others.
// The child's environment has only a stop token. Threads: any may copy, start, and destroy copies.
// Source: P2300R10 [exec.split] (not in C++26), P3409R1 5.5.1.

#include <coppice/exec/closure.hpp>
#include <coppice/exec/internal/split_sender.hpp>

namespace coppice::execution {

// Makes sndr shareable; the result can be copied. Errors: what allocating or connecting throws.
// Cost: one allocation per split, with the allocator of sndr's attributes, if they name one.
struct split_t : sender_adaptor_closure<split_t> {
    template <sender Sndr>
    auto operator()(Sndr&& sndr) const {
        using Child = std::decay_t<Sndr>;
        using Sigs = internal::split_stored_t<Child>;
        if constexpr (!is_completion_signatures<Sigs>) {
            static_assert(internal::diagnosis<Sigs>::reported);
        } else if constexpr (!is_completion_signatures<
                                 typename internal::split_signatures<Sigs>::type>) {
            static_assert(
                internal::diagnosis<typename internal::split_signatures<Sigs>::type>::reported);
        } else {
            auto allocator = internal::choose_allocator(sndr, env<>());
            using state = internal::split_state<Child, decltype(allocator)>;
            return internal::split_sender<Sigs>(
                *internal::new_with<state>(allocator, allocator, Child(static_cast<Sndr&&>(sndr))));
        }
    }
    constexpr auto operator()() const noexcept { return execution::bind_adaptor(*this); }
};
inline constexpr split_t split{};

}  // namespace coppice::execution
