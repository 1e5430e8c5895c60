// spsc_channel: a bounded queue from one sender to one receiver, on two threads.
#pragma once

#include <coppice/sync/internal/channel_core.hpp>
#include <coppice/sync/internal/spsc_core.hpp>
#include <coppice/sync/internal/wait_initiation.hpp>

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <utility>

namespace coppice {

// A channel for one sender and one receiver: at any time, at most one thread is in an operation
// that sends, or one such operation waits; likewise for receiving. The sender may be a task that
// moves between threads. Waits, stops, and the close are those of channel.
//
// Threads: one sends, one receives, any closes and observes. Blocks: never; an operation that must
// wait, or ends a wait, may wait for the few instructions that another thread needs to change a
// queue. Cost: an operation that need not wait has no locked instruction, reads the other side's
// index only if the ring seems full or empty, and moves T twice; no allocation after the
// constructor. If one side waits for nearly every item, the other side executes a full fence for
// each. The first of many waits in a row, and each of few, costs a system call of some
// microseconds (membarrier).
// Spins: an operation that would wait looks again for some tens of microseconds, about as long as a
// thread takes to wake, if such looks paid lately; the other tasks of its loop wait meanwhile. Two
// threads that keep pace never sleep.
// T: moving and destroying it must not throw. Lifetime: outlives its operations. Unlike a channel,
// it may be destroyed only when the last send has returned: the sender looks for a waiting receiver
// after the item can be seen. Misuse: two senders or two receivers at a time are undefined;
// destroying it while an operation waits stops the process.
// Source: ours; each side caches the other's index, as in MCRingBuffer.
template <class T>
class spsc_channel : immovable {
    using core_type = internal::spsc_core<T>;

public:
    using value_type = T;

    // Allocates slots. Errors: std::invalid_argument if `capacity` is 0, because a rendezvous needs
    // a channel; std::bad_alloc.
    explicit spsc_channel(std::size_t capacity) : core_(checked(capacity)) {}

    // Waits for a slot, and sends. Result: none. Errors: std::errc::broken_pipe if the channel is
    // closed before. Threads: the sender.
    template <class Token = use_await_t>
    [[nodiscard]] auto send(T value, Token&& token = Token()) {
        return internal::initiate_wait(internal::send_request<core_type>(core_, std::move(value)),
                                       static_cast<Token&&>(token));
    }
    // Waits for an item. Result: std::optional<T>, empty if the channel is closed and drained.
    // Errors: a stop, and nothing else. Threads: the receiver.
    template <class Token = use_await_t>
    [[nodiscard]] auto receive(Token&& token = Token()) {
        return internal::initiate_wait(internal::receive_request<core_type>(core_),
                                       static_cast<Token&&>(token));
    }
    // Sends if that needs no wait. Returns false if the channel is full or closed; then `value` is
    // untouched. Threads: the sender.
    bool try_send(T&& value) noexcept {
        return core_.try_send(value) == internal::send_outcome::sent;
    }
    // Returns the oldest item, or nothing if there is none now. Threads: the receiver.
    std::optional<T> try_receive() noexcept {
        std::optional<T> item;
        core_.try_receive(item);
        return item;
    }
    // Ends sending: what was sent before is still received, and then receive() gives an empty
    // optional. Threads: any; an item that is being sent at that moment by another thread may be
    // sent without being received. Then it is destroyed with the channel.
    void close() noexcept { core_.close(); }
    // Returns true if close() was called. Another thread may do so right afterwards.
    bool is_closed() const noexcept { return core_.is_closed(); }
    // Returns the number of items in the slots. May be stale.
    std::size_t size() const noexcept { return core_.size(); }
    // Returns what the constructor was given.
    std::size_t capacity() const noexcept { return core_.capacity(); }

private:
    static std::size_t checked(std::size_t capacity) {
        if (capacity == 0)
            throw std::invalid_argument("spsc_channel: capacity must be at least 1, got 0");
        return capacity;
    }

    core_type core_;
};

}  // namespace coppice
