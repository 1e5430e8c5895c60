// runs_here: asks a scheduler if the calling thread is one of its own, now.
#pragma once
// A waiter whose scheduler answers true may be resumed in place instead of through the scheduler's
// queue. A scheduler that does not know the query answers false.

#include <coppice/base/internal/namespaces.hpp>

namespace coppice::execution::internal {

// Returns true if work of `sch` may run on the calling thread, under the function that asks.
struct runs_here_t {
    template <class Sch>
    constexpr bool operator()(const Sch& sch) const noexcept {
        if constexpr (requires { static_cast<bool>(sch.query(*this)); }) {
            return sch.query(*this);
        } else {
            return false;
        }
    }
};
inline constexpr runs_here_t runs_here{};

}  // namespace coppice::execution::internal
