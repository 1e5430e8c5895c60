// stop_link: gives an operation an inplace_stop_token, whatever token its waiter has.
#pragma once

#include <coppice/exec/linked_stop.hpp>
#include <coppice/token/completion.hpp>

namespace coppice::internal {

// A token of another kind is followed by a source of our own. Lifetime: engage() before the
// operation is initiated; reset() when it has completed, before anything of it ends.
template <class Token>
class stop_link : immovable {
public:
    inplace_stop_token engage(Token token) noexcept {
        linked_.engage(static_cast<Token&&>(token));
        return linked_.token();
    }
    void reset() noexcept { linked_.reset(); }

private:
    execution::linked_stop<inplace_stop_source, Token> linked_;
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

// What an operation hears of an environment: when nobody else will stop it.
template <class Env, class Link>
completion_env completion_env_of(const Env& env, Link& link) noexcept {
    return {link.engage(get_stop_token(env)), execution::get_unwatched_deadline(env)};
}

}  // namespace coppice::internal
