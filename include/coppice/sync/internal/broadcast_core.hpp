// broadcast_core: the newest items of a broadcast_channel, and the receivers that wait for more.
#pragma once
// Items are numbered. The ring keeps the last `capacity` of them, item n in slot n % capacity. Each
// receiver has a cursor: the number of the item that it takes next. The queue_lock guards all of
// it. A receiver waits only if its cursor is at the end, so a new item is for every waiter.
//
// What falls out of the ring is destroyed outside the lock.
// Model: tests/model/broadcast_model.cpp.

#include <coppice/base/lifetime.hpp>
#include <coppice/sync/internal/shared_value.hpp>
#include <coppice/sync/internal/waiter.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

namespace coppice::internal {

// Where a receiver is. Guarded by the lock of its channel.
struct broadcast_cursor {
    std::uint64_t next = 0;    // the number of the item that it takes next
    std::uint64_t missed = 0;  // items that it has lost
};

template <class Value>
struct broadcast_waiter : waiter {
    using waiter::waiter;
    std::optional<Value>* place = nullptr;  // stays empty: closed and drained
    broadcast_cursor* cursor = nullptr;
};

// Value is copied and moved inside the lock, without exceptions.
template <class Value>
class broadcast_core : immovable {
public:
    using waiter_type = broadcast_waiter<Value>;

    // `capacity` is at least 1. Errors: std::bad_alloc.
    explicit broadcast_core(std::size_t capacity)
        : capacity_(capacity), slots_(new std::optional<Value>[capacity]) {}

    bool is_closed() const noexcept { return (lock_.peek(relaxed) & closed_state) != 0; }
    std::size_t capacity() const noexcept { return capacity_; }

    bool send(Value&& value) noexcept {
        std::optional<Value> oldest;  // destroyed when the lock is left
        granted_waiters others;
        lock_.lock();
        const bool is_open = lock_.state() == open_state;
        if (is_open && subscribers_ != 0) publish(std::move(value), oldest, others);
        lock_.unlock();  // the channel may be gone
        others.call_all();
        return is_open;
    }
    void close() noexcept {
        granted_waiters others;
        lock_.lock();
        lock_.set_state(closed_state);
        while (waiter_type* const w = waiters_.claim_front()) others.add(*w);
        lock_.unlock();  // the channel may be gone
        others.call_all();
    }
    broadcast_cursor subscribe() noexcept {
        lock_.lock();
        ++subscribers_;
        const broadcast_cursor cursor{end_, 0};
        lock_.unlock();
        return cursor;
    }
    void unsubscribe() noexcept {
        lock_.lock();
        --subscribers_;
        lock_.unlock();
    }
    bool try_receive(broadcast_cursor& cursor, std::optional<Value>& place) noexcept {
        lock_.lock();
        const bool done = take(cursor, place);
        lock_.unlock();
        return done;
    }

    queue_lock& queue() noexcept { return lock_; }
    // The functions below require the lock of the queue. Returns true if it copied an item into
    // `place`, or if none can come.
    bool take(broadcast_cursor& cursor, std::optional<Value>& place) noexcept {
        if (cursor.next == end_) return lock_.state() == closed_state;
        const std::uint64_t kept = end_ < capacity_ ? end_ : capacity_;
        if (end_ - cursor.next > kept) {
            cursor.missed += end_ - cursor.next - kept;
            cursor.next = end_ - kept;
        }
        place.emplace(*slots_[cursor.next % capacity_]);
        ++cursor.next;
        return true;
    }
    // Takes back the last take(), whose item could not be copied: the receiver gets it again,
    // unless it falls out of the ring before. Called outside the lock, while no operation waits.
    void give_back(broadcast_cursor& cursor) noexcept {
        lock_.lock();
        --cursor.next;
        lock_.unlock();
    }
    void link(waiter_type& w) noexcept { waiters_.push_back(w); }
    void unlink(waiter_type& w) noexcept { waiters_.erase(w); }

private:
    static constexpr std::uint64_t open_state = 0;
    static constexpr std::uint64_t closed_state = queue_lock::unit;

    void publish(Value&& value, std::optional<Value>& oldest, granted_waiters& others) noexcept {
        std::optional<Value>& slot = slots_[end_ % capacity_];
        if (slot) oldest.emplace(std::move(*slot));
        slot.emplace(std::move(value));
        ++end_;
        while (waiter_type* const w = waiters_.claim_front()) {
            w->place->emplace(*slot);
            w->cursor->next = planted("broadcast.keep_cursor") ? end_ - 1 : end_;
            others.add(*w);
        }
    }

    queue_lock lock_{open_state};
    std::size_t subscribers_ = 0;
    std::uint64_t end_ = 0;  // the number of the next item
    const std::size_t capacity_;
    const std::unique_ptr<std::optional<Value>[]> slots_;
    waiter_queue<waiter_type> waiters_;
};

template <class T>
struct broadcast_request {
    using value_type = shared_value<T>;
    using waiter_type = broadcast_waiter<value_type>;
    using result = std::optional<T>;
    static constexpr const char* name = "broadcast_channel::receive";

    broadcast_request(broadcast_core<value_type>& channel, broadcast_cursor& where) noexcept
        : core(&channel), cursor(&where) {}

    queue_lock& lock() noexcept { return core->queue(); }
    bool try_now() noexcept { return core->try_receive(*cursor, place); }
    bool attempt(granted_waiters&) noexcept { return core->take(*cursor, place); }
    void link(waiter_type& w) noexcept {
        w.place = &place;
        w.cursor = cursor;
        core->link(w);
    }
    void unlink(waiter_type& w, granted_waiters&) noexcept { core->unlink(w); }
    static std::error_code error() noexcept { return {}; }
    result take() noexcept(is_copied_inside<T>) {
        if (!place) return std::nullopt;
        scope_exit undo([this] { core->give_back(*cursor); });
        result copy(copy_of_value<T>(std::move(*place)));
        undo.dismiss();
        return copy;
    }
    static result nothing() noexcept { return std::nullopt; }

    broadcast_core<value_type>* core;
    broadcast_cursor* cursor;
    std::optional<value_type> place;
};

}  // namespace coppice::internal
