// channel_core: a channel whose senders never wait; and the requests of all channels.
#pragma once
// The state of the word: the number of items, and whether the channel is closed. While a receiver
// waits that can be claimed, there is no item, and the channel is open. A sender gives its item to
// the oldest receiver, if one waits, else to a slot. Bounded channels have cores of their own
// (ring_core.hpp, spsc_core.hpp).
//
// A waiter of a select that has ended is taken out of the queue, and nothing is moved for it.
// Model: tests/model/channel_model.cpp.

#include <coppice/sync/internal/waiter.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

namespace coppice::internal {

// What all channels require of their items.
template <class T>
struct channel_items {
    static_assert(std::is_object_v<T> && !std::is_const_v<T>, "channels carry objects, by value");
    static_assert(std::is_nothrow_move_constructible_v<T>,
                  "a channel moves items while it is locked, so a move must not throw");
    static_assert(std::is_nothrow_destructible_v<T>, "the destructor of an item must not throw");
};

// A sender in the queue. Both fields point into its request.
template <class T>
struct channel_sender : waiter {
    using waiter::waiter;
    T* item = nullptr;
    bool* refused = nullptr;  // set if the channel is closed before the item was taken
};

// A receiver in the queue. A receiver that is granted an empty place has seen the close.
template <class T>
struct channel_receiver : waiter {
    using waiter::waiter;
    std::optional<T>* place = nullptr;
};

enum class send_outcome : unsigned char { sent, full, closed };

template <class T, class Items>
class channel_core : channel_items<T>, immovable {
public:
    using value_type = T;
    using receiver = channel_receiver<T>;
    // A thread that blocks spins for a moment, in case the other side comes (blocked_pace.hpp).
    static constexpr bool looks_when_blocked = true;

    template <class... Args>
    explicit channel_core(Args... args) : items_(args...) {}

    // What the state says; may be stale.
    std::size_t size() const noexcept {
        return static_cast<std::size_t>(lock_.peek(relaxed) / item_unit);
    }
    bool is_closed() const noexcept { return (lock_.peek(relaxed) & closed_bit) != 0; }
    std::size_t capacity() const noexcept { return items_.capacity(); }

    // Sends without waiting. Moves from `item` only if the result is `sent`.
    send_outcome try_send(T& item) noexcept {
        if (looks_full()) return send_outcome::full;
        granted_waiters others;
        lock_.lock();
        const send_outcome outcome = offer(item, others);
        lock_.unlock();  // the channel may be gone
        if (planted("channel.look_after_unlock")) static_cast<void>(looks_full());
        others.call_all();
        return outcome;
    }
    // Sends the last item, and closes. Returns false if the channel is closed.
    bool send_last(T& item) noexcept {
        granted_waiters others;
        lock_.lock();
        const bool sent = offer(item, others) == send_outcome::sent;
        end(others);
        lock_.unlock();  // the channel may be gone
        others.call_all();
        return sent;
    }
    // Receives without waiting. Returns true if it moved an item into `place`, or if none can come.
    bool try_receive(std::optional<T>& place) noexcept {
        if (looks_empty()) return false;
        granted_waiters others;
        lock_.lock();
        const bool done = take(place, others);
        lock_.unlock();  // the channel may be gone
        others.call_all();
        return done;
    }
    void close() noexcept {
        granted_waiters others;
        lock_.lock();
        end(others);
        lock_.unlock();  // the channel may be gone
        others.call_all();
    }

    queue_lock& queue() noexcept { return lock_; }

    // The functions below require the lock of the queue.
    Items& items() noexcept { return items_; }
    send_outcome offer(T& item, granted_waiters& others) noexcept {
        if (closed_) return send_outcome::closed;
        if (receiver* const r = receivers_.claim_front()) {
            r->place->emplace(std::move(item));
            others.add(*r);
            return send_outcome::sent;
        }
        if (items_.full()) return send_outcome::full;
        items_.push(item);
        publish();
        return send_outcome::sent;
    }
    bool take(std::optional<T>& place, granted_waiters&) noexcept {
        if (items_.empty()) return closed_;
        items_.pop(place);
        publish();
        return true;
    }
    void link(receiver& w) noexcept { receivers_.push_back(w); }
    void unlink(receiver& w) noexcept { receivers_.erase(w); }

private:
    static constexpr std::uint64_t closed_bit = queue_lock::unit;
    static constexpr std::uint64_t item_unit = 2 * queue_lock::unit;

    // Return true if an operation must wait.
    bool looks_full() const noexcept { return lock_.peek(relaxed) == capacity() * item_unit; }
    bool looks_empty() const noexcept { return lock_.peek(relaxed) == 0; }
    void publish() noexcept {
        lock_.set_state(items_.size() * item_unit + (closed_ ? closed_bit : 0));
    }
    // Closes: waiting receivers have nothing to wait for.
    void end(granted_waiters& others) noexcept {
        closed_ = true;
        publish();
        if (planted("channel.close_forgets_waiters")) return;
        while (receiver* const r = receivers_.claim_front()) others.add(*r);
    }

    queue_lock lock_{0};
    bool closed_ = false;
    Items items_;
    waiter_queue<receiver> receivers_;
};

// Returns the error of an operation on a closed channel.
inline std::error_code channel_is_closed() noexcept {
    return std::make_error_code(std::errc::broken_pipe);
}

// An item that wants to be sent.
template <class Core>
struct send_request {
    using waiter_type = typename Core::sender;
    using item_type = typename Core::value_type;
    using result = void;
    static constexpr const char* name = "channel::send";

    send_request(Core& channel, item_type&& value) noexcept
        : core(&channel), item(std::move(value)) {}

    queue_lock& lock() noexcept { return core->queue(); }
    bool try_now() noexcept { return ended(core->try_send(item)); }
    bool try_soon() noexcept
        requires requires(Core& c, item_type& i) { c.send_soon(i); }
    {
        return ended(core->send_soon(item));
    }
    bool attempt(granted_waiters& others) noexcept { return ended(core->offer(item, others)); }
    void link(waiter_type& w) noexcept {
        w.item = std::addressof(item);
        w.refused = &refused;
        core->link(w);
    }
    void unlink(waiter_type& w, granted_waiters&) noexcept { core->unlink(w); }
    std::error_code error() const noexcept {
        return refused ? channel_is_closed() : std::error_code();
    }
    void take() noexcept {}
    void nothing() noexcept {}

    Core* core;
    item_type item;
    bool refused = false;

private:
    bool ended(send_outcome outcome) noexcept {
        refused = outcome == send_outcome::closed;
        return outcome != send_outcome::full;
    }
};

// What the requests to receive have in common. An empty place: closed and drained.
template <class Core>
struct receive_request_base {
    using waiter_type = typename Core::receiver;
    using item_type = typename Core::value_type;

    explicit receive_request_base(Core& channel) noexcept : core(&channel) {}

    queue_lock& lock() noexcept { return core->queue(); }
    bool try_now() noexcept { return core->try_receive(place); }
    bool try_soon() noexcept
        requires requires(Core& c, std::optional<item_type>& p) { c.receive_soon(p); }
    {
        return core->receive_soon(place);
    }
    bool attempt(granted_waiters& others) noexcept { return core->take(place, others); }
    void link(waiter_type& w) noexcept {
        w.place = &place;
        core->link(w);
    }
    void unlink(waiter_type& w, granted_waiters&) noexcept { core->unlink(w); }

    Core* core;
    std::optional<item_type> place;
};

// The result is an optional, empty if the channel is closed and drained.
template <class Core>
struct receive_request : receive_request_base<Core> {
    using result = std::optional<typename Core::value_type>;
    static constexpr const char* name = "channel::receive";
    using receive_request_base<Core>::receive_request_base;

    static std::error_code error() noexcept { return {}; }
    result take() noexcept { return std::move(this->place); }
    static result nothing() noexcept { return std::nullopt; }
};

}  // namespace coppice::internal
