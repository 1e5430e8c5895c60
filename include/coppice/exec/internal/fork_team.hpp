// get_fork_team: the workers to which work that runs in an environment may fork calls.
#pragma once

#include <coppice/exec/queries.hpp>

namespace coppice::internal {

class fork_team;  // base/internal/fork_deque.hpp

}  // namespace coppice::internal

namespace coppice::execution::internal {

// Returns the fork team of a scheduler's workers, or nullptr if it has none. Work that runs on that
// scheduler may fork calls to the team. An environment that names no scheduler answers with the
// team of the pool that its tasks were submitted to.
struct get_fork_team_t {
    template <class Env>
    constexpr const fork_team* operator()(const Env& env) const noexcept {
        if constexpr (has_query<Env, get_fork_team_t>) {
            return env.query(*this);
        } else {
            return nullptr;
        }
    }
    static constexpr bool query(forwarding_query_t) noexcept { return true; }
};

// Returns the team of the pool that a scheduler belongs to, or nullptr.
template <class Sch>
const fork_team* team_of(const Sch& sch) noexcept {
    if constexpr (requires { sch.query(get_fork_team_t()); }) {
        return sch.query(get_fork_team_t());
    } else {
        return nullptr;
    }
}

}  // namespace coppice::execution::internal
