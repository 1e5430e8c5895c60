// broadcast_channel: every receiver gets every item, unless it is too slow.
#pragma once

#include <coppice/sync/internal/broadcast_core.hpp>
#include <coppice/sync/internal/wait_initiation.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>

namespace coppice {

// Keeps the last `capacity` items for all its receivers. A receiver gets a copy of each item that
// was sent after it subscribed, in order. Senders never wait: a receiver that is more than
// `capacity` items behind loses the oldest ones, and missed() counts them. A receive that is
// stopped, or ends with an error, has taken nothing. A receiver that waited continues on its own
// scheduler, as after async_mutex::lock().
//
// Threads: any; each receiver belongs to one thread at a time. Blocks: never, except for the few
// instructions that another thread needs to change the queue. Cost: send is two locked instructions
// and O(receivers that wait); receive is two. If copying T may throw, an item lies in shared memory
// that is used again, and receivers copy it outside the lock; otherwise they copy it inside. No
// allocation in steady state, besides those of T. T: copyable; moving and destroying it must not
// throw. It is moved, and copied if that cannot throw, while the channel is locked, so neither may
// use the same channel. If copying it throws, a receive fails with that exception, and has taken
// nothing; tokens that know only codes are given the code of a std::system_error, not_enough_memory
// for std::bad_alloc, and state_not_recoverable for any other exception. Lifetime: outlives its
// receivers and their operations. Misuse: destroying it while an operation waits stops the process.
// Source: ours; tokio's broadcast.
template <class T>
class broadcast_channel : immovable {
    static_assert(internal::can_be_shared<T>,
                  "items are copied to each receiver, and a move must not throw");
    using core_type = internal::broadcast_core<internal::shared_value<T>>;

public:
    using value_type = T;
    class receiver;

    // Allocates slots. Errors: std::invalid_argument if `capacity` is 0; std::bad_alloc.
    explicit broadcast_channel(std::size_t capacity) : core_(checked(capacity)) {}

    // Sends to all receivers. Returns false if the channel is closed. Errors: std::bad_alloc, if
    // copying T may throw; then nothing was sent. May resume receivers in place.
    bool send(T value) { return core_.send(internal::share_value<T>(std::move(value))); }
    // Returns a receiver of what is sent from now on.
    [[nodiscard]] receiver subscribe() noexcept;
    // Ends sending: receivers get what is left, and then an empty optional.
    void close() noexcept { core_.close(); }
    // Returns true if close() was called. Another thread may do so right afterwards.
    bool is_closed() const noexcept { return core_.is_closed(); }
    // Returns what the constructor was given.
    std::size_t capacity() const noexcept { return core_.capacity(); }

private:
    static std::size_t checked(std::size_t capacity) {
        if (capacity == 0)
            throw std::invalid_argument("broadcast_channel: capacity must be at least 1, got 0");
        return capacity;
    }

    core_type core_;
};

// A place in the sequence of items, or nothing after a move. Threads: one at a time. Lifetime:
// until its operation has ended; do not move it while one waits. Misuse: two operations at a time
// are undefined, and so is using it after a move.
template <class T>
class broadcast_channel<T>::receiver {
public:
    receiver(receiver&& other) noexcept
        : core_(std::exchange(other.core_, nullptr)), cursor_(other.cursor_) {}
    receiver& operator=(receiver&& other) noexcept {
        if (this != &other) {
            leave();
            core_ = std::exchange(other.core_, nullptr);
            cursor_ = other.cursor_;
        }
        return *this;
    }
    ~receiver() { leave(); }

    // Waits for the next item. Result: std::optional<T>, empty if the channel is closed and this
    // receiver has all the rest. Errors: a stop, and what copying T throws.
    template <class Token = use_await_t>
    [[nodiscard]] auto receive(Token&& token = Token()) {
        return internal::initiate_wait(internal::broadcast_request<T>(*core_, cursor_),
                                       static_cast<Token&&>(token));
    }
    // Returns the next item, or nothing if there is none now. Errors: what copying T throws.
    std::optional<T> try_receive() {
        internal::broadcast_request<T> wanted(*core_, cursor_);
        wanted.try_now();
        return wanted.take();
    }
    // Returns the number of items that this receiver has lost so far. Grows in a receive.
    std::uint64_t missed() const noexcept { return cursor_.missed; }

private:
    friend class broadcast_channel;
    explicit receiver(core_type& core) noexcept : core_(&core), cursor_(core.subscribe()) {}
    void leave() noexcept {
        if (core_ != nullptr) core_->unsubscribe();
    }

    core_type* core_;
    internal::broadcast_cursor cursor_;
};

template <class T>
auto broadcast_channel<T>::subscribe() noexcept -> receiver {
    return receiver(core_);
}

}  // namespace coppice
