// read_env: a sender that completes with the environment's answer to a query.
#pragma once
// Source: [exec.read.env].

#include <coppice/exec/internal/read_env_sender.hpp>

namespace coppice::execution {

// Sends query(get_env(receiver)), inside start(). Errors: what the query throws.
struct read_env_t {
    template <class Query>
    constexpr auto operator()(Query query) const noexcept {
        return internal::read_env_sender<Query>(query);
    }
};
inline constexpr read_env_t read_env{};

}  // namespace coppice::execution
