// channel: a bounded queue between tasks, first in, first out; many senders and many receivers.
#pragma once

#include <coppice/sync/internal/channel_core.hpp>
#include <coppice/sync/internal/ring_core.hpp>
#include <coppice/sync/internal/wait_initiation.hpp>

#include <cstddef>
#include <optional>
#include <utility>

namespace coppice {

// Carries objects of the type T from tasks that send to tasks that receive. It keeps up to
// `capacity` items. A sender waits while it is full, a receiver while it is empty. With capacity 0
// it is a rendezvous: a send completes when a receiver has the item.
//
// Items are received in the order in which they were sent, also those of waiting senders. Waiters
// are served first come, first served. A receive that is stopped, or ends with an error, has taken
// no item; a send that is stopped, or ends with an error, has sent none, and its item is destroyed
// with the operation. A waiter leaves its queue in O(1). A granted waiter continues on its own
// scheduler, as after async_mutex::lock().
//
// close() ends sending. Items that were sent before it are still received. Then receive() gives an
// empty optional. Senders that wait at that moment fail, and their items were not sent.
//
// Threads: any. Blocks: never, except for the few instructions that another thread needs to change
// the queue, or to move an item. Cost: an operation that need not wait is one locked instruction
// and two moves of T; no allocation after the constructor; a slot takes 8 bytes more than T. T:
// moving and destroying it must not throw. Its move must not use the same channel. Lifetime:
// outlives its operations. A receiver that has the last item may destroy it, if no other thread
// uses it. Misuse: destroying it while an operation waits stops the process. Spins: a thread that
// waits by `block` looks for some tens of microseconds before it sleeps, if the capacity is less
// than 64 and such looks paid lately. Source: ours; Go's channels.
template <class T>
class channel : immovable {
    using core_type = internal::ring_core<T>;

public:
    using value_type = T;

    // Allocates `capacity` slots. Errors: std::bad_alloc.
    explicit channel(std::size_t capacity) : core_(capacity) {}

    // Waits for a slot or a receiver, and sends. Result: none. Errors: std::errc::broken_pipe if
    // the channel is closed before the item is taken.
    template <class Token = use_await_t>
    [[nodiscard]] auto send(T value, Token&& token = Token()) {
        return internal::initiate_wait(internal::send_request<core_type>(core_, std::move(value)),
                                       static_cast<Token&&>(token));
    }
    // Waits for an item. Result: std::optional<T>, empty if the channel is closed and drained.
    // Errors: only a stop.
    template <class Token = use_await_t>
    [[nodiscard]] auto receive(Token&& token = Token()) {
        return internal::initiate_wait(internal::receive_request<core_type>(core_),
                                       static_cast<Token&&>(token));
    }
    // Sends if that needs no wait. Returns false if the channel is full or closed; then `value` is
    // untouched. Blocks: never.
    bool try_send(T&& value) noexcept {
        return core_.try_send(value) == internal::send_outcome::sent;
    }
    // Returns the oldest item, or nothing if there is none now. Blocks: never.
    std::optional<T> try_receive() noexcept {
        std::optional<T> item;
        core_.try_receive(item);
        return item;
    }
    // Ends sending; see above. Further calls do nothing. Cost: O(waiters).
    void close() noexcept { core_.close(); }
    // Returns true if close() was called. Another thread may do so right afterwards.
    bool is_closed() const noexcept { return core_.is_closed(); }
    // Returns the number of items in the slots; waiting senders do not count. May be stale.
    std::size_t size() const noexcept { return core_.size(); }
    // Returns what the constructor was given.
    std::size_t capacity() const noexcept { return core_.capacity(); }

private:
    core_type core_;
};

}  // namespace coppice
