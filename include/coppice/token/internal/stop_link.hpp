// stop_link: gives an operation an inplace_stop_token, whatever the type of its waiter's token.
#pragma once

#include <coppice/exec/internal/linked_stop.hpp>
#include <coppice/token/internal/completion_env.hpp>

namespace coppice::internal {

// For a token of another type, the link owns a source that the token stops. Lifetime: call engage()
// before the operation is initiated, and reset() when it has completed, before anything it uses
// ends.
template <class Token>
class stop_link : immovable {
public:
    inplace_stop_token engage(Token token) noexcept {
        linked_.engage(static_cast<Token&&>(token));
        return linked_.token();
    }
    void reset() noexcept { linked_.reset(); }

private:
    execution::internal::linked_stop<inplace_stop_source, Token> linked_;
};

template <>
class stop_link<inplace_stop_token> : immovable {
public:
    inplace_stop_token engage(inplace_stop_token token) noexcept { return token; }
    void reset() noexcept {}
};

template <unstoppable_token Token>
class stop_link<Token> : immovable {
public:
    inplace_stop_token engage(Token) noexcept { return {}; }
    void reset() noexcept {}
};

template <class Env>
using stop_link_for = stop_link<stop_token_of_t<Env>>;

// Returns what an operation is told of an environment: the stop token, and the deadline at which it
// must give up by itself.
template <class Env, class Link>
completion_env completion_env_of(const Env& env, Link& link) noexcept {
    return {link.engage(get_stop_token(env)), execution::get_unwatched_deadline(env)};
}

}  // namespace coppice::internal
