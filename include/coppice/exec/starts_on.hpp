// starts_on: starts a sender on a scheduler; completes wherever the sender completes.
#pragma once
// Source: [exec.starts.on].

#include <coppice/exec/internal/starts_on_sender.hpp>

namespace coppice::execution {

// Starts sndr on sch. If scheduling fails or is stopped, the whole operation completes the same
// way. Cost: no allocation.
struct starts_on_t {
    template <scheduler Sch, sender Sndr>
    constexpr auto operator()(Sch&& sch, Sndr&& sndr) const {
        using result = internal::starts_on_sender<std::decay_t<Sch>, std::decay_t<Sndr>>;
        static_assert(pipeline_check<result>::done);
        return result(static_cast<Sch&&>(sch), static_cast<Sndr&&>(sndr));
    }
};
inline constexpr starts_on_t starts_on{};

}  // namespace coppice::execution
