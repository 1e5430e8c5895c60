// when_all: runs several senders concurrently; completes with all values when all have completed.
#pragma once
// The first error or stop asks the other senders to stop and decides how the operation completes.
// The operation always waits for all of them. A stop from outside reaches all of them. Each sender
// may have at most one value completion; use when_all_with_variant for others. Cost: no allocation,
// one atomic operation per sender. Source: [exec.when.all], P3409R1 7.5.

#include <coppice/exec/internal/when_all_sender.hpp>
#include <coppice/exec/into_variant.hpp>

namespace coppice::execution {

// Sends all values together, in the order of the senders. Takes at least one sender.
struct when_all_t {
    template <sender... Sndrs>
        requires(sizeof...(Sndrs) != 0)
    constexpr auto operator()(Sndrs&&... sndrs) const {
        using result = internal::when_all_sender<std::decay_t<Sndrs>...>;
        static_assert(pipeline_check<result>::done);
        return result(internal::construct_each(), static_cast<Sndrs&&>(sndrs)...);
    }
};
inline constexpr when_all_t when_all{};

// As when_all, for senders with several value completions: sends a variant of tuples for each.
struct when_all_with_variant_t {
    template <sender... Sndrs>
        requires(sizeof...(Sndrs) != 0)
    constexpr auto operator()(Sndrs&&... sndrs) const {
        return internal::when_all_with_variant_sender<std::decay_t<Sndrs>...>(
            internal::construct_each(), static_cast<Sndrs&&>(sndrs)...);
    }
    template <internal::sender_for<when_all_with_variant_t> Sndr, class Env>
    constexpr auto transform_sender(set_value_t, Sndr&& sndr, const Env&) const {
        return static_cast<Sndr&&>(sndr).children.apply([](auto&&... children) {
            return when_all(into_variant(static_cast<decltype(children)>(children))...);
        });
    }
};
inline constexpr when_all_with_variant_t when_all_with_variant{};

}  // namespace coppice::execution
