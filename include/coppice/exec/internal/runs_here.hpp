// runs_here: asks a scheduler of one thread if the calling thread is that one, now.
#pragma once
// A waiter whose scheduler answers true may be resumed in place instead of through the scheduler's
// queue. A scheduler that does not know the query answers false. A pool does not answer: in place,
// the waiter would run on top of its releaser although another worker may be idle.

#include <coppice/base/internal/namespaces.hpp>

namespace coppice::execution::internal {

// Returns true if all work of `sch` runs on the calling thread, and may run under the caller.
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
