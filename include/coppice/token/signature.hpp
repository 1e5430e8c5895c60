// signature: names the results of an operation; for tokens and their users.
#pragma once

#include <coppice/exec/deadline.hpp>
#include <coppice/exec/queries.hpp>
#include <coppice/stop/inplace.hpp>

namespace coppice {

// Names the results of an operation whose signature is void(std::error_code, R...).
template <class... R>
struct signature {};

namespace internal {

// True if an operation in this environment may be told to give up.
template <class Env>
inline constexpr bool may_be_stopped = !unstoppable_token<stop_token_of_t<Env>> ||
                                       execution::has_query<Env, execution::get_deadline_t>;

// True if the operation can use the coroutine's stop token directly.
template <class Promise>
inline constexpr bool followed_directly =
    unstoppable_token<stop_token_of_t<execution::env_of_t<Promise>>> ||
    std::is_same_v<stop_token_of_t<execution::env_of_t<Promise>>, inplace_stop_token>;

}  // namespace internal

}  // namespace coppice
