// The rivals of the token benchmark; each runs `size` operations, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bench_token {

// Operations completed from the queue of the calling thread.
std::uint64_t intrusive_by_hand(std::size_t size);  // a callback in the operation's own context
std::uint64_t awaiter_by_hand(std::size_t size);    // only the paper's awaiter
std::uint64_t await_coppice(std::size_t size);
std::uint64_t await_any(std::size_t size);      // an operation that does not know its waiter's type
std::uint64_t await_looking(std::size_t size);  // one that may complete inside its initiation
std::uint64_t await_in_task(std::size_t size);
std::uint64_t callback_default(std::size_t size);
std::uint64_t callback_arena(std::size_t size);
std::uint64_t callback_malloc(std::size_t size);
std::uint64_t future_coppice(std::size_t size);
std::uint64_t block_coppice(std::size_t size);
std::uint64_t callback_asio(std::size_t size);
std::uint64_t deferred_asio(std::size_t size);
std::uint64_t awaitable_asio(std::size_t size);
std::uint64_t future_asio(std::size_t size);

// Operations that complete inside their initiation.
std::uint64_t inline_by_hand(std::size_t size);
std::uint64_t inline_await(std::size_t size);
std::uint64_t inline_callback(std::size_t size);

// Operations completed by another thread, waited for by this one.
std::uint64_t other_thread_block(std::size_t size);
std::uint64_t other_thread_future(std::size_t size);
std::uint64_t other_thread_future_asio(std::size_t size);

}  // namespace bench_token
