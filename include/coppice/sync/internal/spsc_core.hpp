// spsc_core: the ring of an spsc_channel, and the sleep of its two sides.
#pragma once
// The sender writes slots and then its index; the receiver empties slots and then moves its own.
// Each side keeps the other's index as it last saw it, and looks again only if the ring then seems
// full or empty. So the common path reads and writes only lines that this side owns, and its slot.
//
// A side that must wait links its waiter inside the queue_lock, after it has announced that on its
// bell and looked again. The other side, when it finds the bell announced, enters the lock and
// completes the operation for the waiter: while a waiter is linked, its side does not run, and the
// thread inside the lock owns what that side owns. Index and caches pass to it and back by the
// lock.
//
// A waiter of a select that has ended is taken out, and its item stays.
// Models: tests/model/spsc_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/sync/internal/channel_core.hpp>
#include <coppice/sync/internal/spsc_bell.hpp>
#include <coppice/sync/internal/waiter.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <utility>

namespace coppice::internal {

template <class T>
class spsc_core : channel_items<T>, immovable {
public:
    using value_type = T;
    using sender = channel_sender<T>;
    using receiver = channel_receiver<T>;

    // `capacity` is at least 1. Errors: std::bad_alloc.
    explicit spsc_core(std::size_t capacity)
        : capacity_(capacity),
          mask_(slot_count(capacity) - 1),
          slots_(new manual_lifetime<T>[slot_count(capacity)]) {}
    ~spsc_core() {
        for (std::optional<T> item; pop(item); item.reset()) {
        }
    }

    // What the indices say; may be stale.
    std::size_t size() const noexcept {
        // First, so that the back is not less.
        // edge spsc.freed (acquire): the index of the sender
        const std::uint64_t front = receiver_.index.load(acquire);
        const std::uint64_t count = sender_.index.load(relaxed) - front;
        return count > capacity_ ? capacity_ : static_cast<std::size_t>(count);
    }
    std::size_t capacity() const noexcept { return capacity_; }
    bool is_closed() const noexcept { return closed_.load(relaxed); }

    // Threads: the sender.
    send_outcome try_send(T& item) noexcept {
        // Relaxed: a close on another thread may come too late in any case.
        if (closed_.load(relaxed)) [[unlikely]]
            return send_outcome::closed;
        const std::uint64_t back = sender_.index.load(relaxed);
        if (back - sender_.seen.read() == capacity_) [[unlikely]] {
            if (!look_for_slot(back)) return send_outcome::full;
        }
        fill(back, item);
        if (receiver_bell_.must_ring(sender_.is_full)) [[unlikely]]
            serve();
        return send_outcome::sent;
    }
    // Threads: the receiver. Returns true if it has an item, or if none can come.
    bool try_receive(std::optional<T>& place) noexcept {
        const std::uint64_t front = receiver_.index.load(relaxed);
        if (front == receiver_.seen.read()) [[unlikely]] {
            if (!look_for_item(front)) {
                // edge spsc.closed (acquire): what was sent before the close
                if (!closed_.load(acquire)) return false;
                if (!look_for_item(front)) return true;
            }
        }
        empty(front, place);
        if (sender_bell_.must_ring(receiver_.is_full)) [[unlikely]]
            serve();
        return true;
    }
    // The same for an operation that would otherwise wait: they give the other side a moment.
    send_outcome send_soon(T& item) noexcept {
        const send_outcome outcome = try_send(item);
        if (outcome != send_outcome::full) [[likely]]
            return outcome;
        return send_by_looks(item);
    }
    bool receive_soon(std::optional<T>& place) noexcept {
        if (try_receive(place)) [[likely]]
            return true;
        return receive_by_looks(place);
    }
    // Threads: any.
    void close() noexcept {
        granted_waiters others;
        lock_.lock();
        // edge spsc.closed (release): what was sent before the close
        closed_.store(true, release);
        serve_receiver(others);
        serve_sender(others);
        lock_.unlock();
        others.call_all();
    }

    queue_lock& queue() noexcept { return lock_; }

    // The functions below require the lock of the queue.
    send_outcome offer(T& item, granted_waiters& others) noexcept {
        if (closed_.load(relaxed)) return send_outcome::closed;
        if (!push(item)) {
            sender_bell_.announce(receiver_.is_full, waits_often(sender_));
            if (!push(item)) return send_outcome::full;
            sender_bell_.retract();
        }
        serve_receiver(others);
        return send_outcome::sent;
    }
    bool take(std::optional<T>& place, granted_waiters& others) noexcept {
        if (!pop(place)) {
            if (!closed_.load(relaxed)) {
                receiver_bell_.announce(sender_.is_full, waits_often(receiver_));
                if (!pop(place)) return false;
                receiver_bell_.retract();
            } else if (!pop(place)) {
                return true;
            }
        }
        serve_sender(others);
        return true;
    }
    void link(sender& w) noexcept { senders_.push_back(w); }
    void link(receiver& w) noexcept { receivers_.push_back(w); }
    void unlink(sender& w) noexcept {
        senders_.erase(w);
        sender_bell_.retract();
    }
    void unlink(receiver& w) noexcept {
        receivers_.erase(w);
        receiver_bell_.retract();
    }

private:
    static constexpr std::size_t line_bytes = 64;
    static constexpr std::uint64_t often = 64;        // items between waits: pays for a heavy fence
    static constexpr std::uint64_t calm = 1024;       // items without a wait
    static constexpr std::uint32_t first_probe = 64;  // waits without a look
    static constexpr std::uint32_t pauses_min = 16;   // between two looks
    static constexpr std::uint32_t pauses_max = 128;
    static constexpr std::uint32_t short_looks_min = 64;  // before longer pauses
    // Pauses; together about as long as a thread takes to wake.
    static constexpr std::uint32_t patience_max = 1024;

    // What one side owns; the other side reads `index` and `is_full`.
    struct alignas(line_bytes) side {
        atomic<std::uint64_t> index{0};           // items sent; items received
        plain<std::uint64_t> seen{0};             // the other side's index, as last seen
        plain<std::uint64_t> index_at_wait{0};    // its own index when it last announced a wait
        plain<std::uint64_t> gathered{0};         // by the last pause, if this one is longer
        plain<std::uint32_t> patience{64};        // how many pauses it makes before it waits
        plain<std::uint32_t> pauses{pauses_min};  // how many between two looks
        plain<std::uint32_t> short_looks{0};      // how many such looks succeeded
        plain<std::uint32_t> waits{0};            // how often it waited since its looks paid
        typename spsc_bell::fence_form is_full{false};  // of this side as a ringer
    };

    // Returns the least power of two that is not below `capacity`. Errors: std::bad_alloc if there
    // is none in a std::size_t.
    static std::size_t slot_count(std::size_t capacity) {
        if (capacity > ~(~std::size_t{0} >> 1)) throw std::bad_array_new_length();
        return std::bit_ceil(capacity);
    }
    // Inside the lock, or the side itself.
    bool push(T& item) noexcept {
        const std::uint64_t back = sender_.index.load(relaxed);
        if (back - sender_.seen.read() == capacity_ && !sees_slot(back)) return false;
        fill(back, item);
        return true;
    }
    bool pop(std::optional<T>& place) noexcept {
        const std::uint64_t front = receiver_.index.load(relaxed);
        if (front == receiver_.seen.read() && !sees_item(front)) return false;
        empty(front, place);
        return true;
    }
    // Look at the other side's index. Return true if there is a slot, an item.
    bool sees_slot(std::uint64_t back) noexcept {
        // edge spsc.freed (acquire): the slot is empty
        sender_.seen.write(receiver_.index.load(acquire));
        return back - sender_.seen.read() != capacity_;
    }
    bool sees_item(std::uint64_t front) noexcept {
        // edge spsc.sent (acquire): the slot is full
        receiver_.seen.write(sender_.index.load(acquire));
        return front != receiver_.seen.read();
    }
    void fill(std::uint64_t back, T& item) noexcept {
        slots_[back & mask_].construct(std::move(item));
        // edge spsc.sent (release): the slot is full
        sender_.index.store(back + 1, release);
    }
    void empty(std::uint64_t front, std::optional<T>& place) noexcept {
        manual_lifetime<T>& slot = slots_[front & mask_];
        place.emplace(std::move(slot.get()));
        slot.destroy();
        // edge spsc.freed (release): the slot is empty
        receiver_.index.store(front + 1, release);
    }
    // The same outside the lock, out of the common path.
    [[gnu::noinline]] bool look_for_slot(std::uint64_t back) noexcept {
        if (!sees_slot(back)) return false;
        calm_down(sender_, sender_bell_);
        return true;
    }
    [[gnu::noinline]] bool look_for_item(std::uint64_t front) noexcept {
        if (!sees_item(front)) return false;
        calm_down(receiver_, receiver_bell_);
        return true;
    }
    [[gnu::noinline]] send_outcome send_by_looks(T& item) noexcept {
        send_outcome outcome = send_outcome::full;
        const bool found = look_again(sender_, [this, &item, &outcome]() noexcept {
            outcome = try_send(item);
            return outcome != send_outcome::full;
        });
        if (found) {
            const std::uint64_t kept = sender_.index.load(relaxed) - sender_.seen.read();
            adapt_pauses(sender_, capacity_ - kept);
        }
        return outcome;
    }
    [[gnu::noinline]] bool receive_by_looks(std::optional<T>& place) noexcept {
        const bool found =
            look_again(receiver_, [this, &place]() noexcept { return try_receive(place); });
        if (found) adapt_pauses(receiver_, receiver_.seen.read() - receiver_.index.load(relaxed));
        return found;
    }
    // Looks again a few times, for a side that is about to wait. Returns true if a look succeeded.
    //
    // A wait and its end cost each side a microsecond or more, and a side that is woken for one
    // item waits again at once. So two threads that keep pace must not wait. Between two looks some
    // items gather: then each look moves the other side's line only once for all of them. A side
    // whose looks do not pay, because the other side is slow or on the same thread, soon stops
    // looking; it tries again after ever more waits.
    template <class Look>
    static bool look_again(side& own, Look look) noexcept {
        std::uint32_t patience = own.patience.read();
        if (patience == 0) {
            const std::uint32_t waits = own.waits.read() + 1;
            own.waits.write(waits);
            if (waits < first_probe || !std::has_single_bit(waits)) return false;
            patience = patience_max;
        }
        const std::uint32_t pauses = own.pauses.read();
        for (std::uint32_t spent = 0; spent < patience; spent += pauses) {
            for (std::uint32_t i = 0; i != pauses; ++i) spin_hint();
            if (look()) {
                own.patience.write(std::min(2 * patience, patience_max));
                own.waits.write(0);
                return true;
            }
        }
        const std::uint32_t less = own.patience.read() / 2;
        own.patience.write(less < pauses_min ? 0 : less);
        return false;
    }
    // Called when a look has succeeded, and the side can go on `more` times without another look.
    //
    // If an item comes with every second pause, longer pauses let more of them gather. Pauses must
    // be short if few come, as between a question and its answer, or if the other side soon has to
    // wait, because it has used half of the ring. If a longer pause gathers no more than a shorter
    // one, the other side waits for this one somewhere else: short pauses for a while.
    void adapt_pauses(side& own, std::uint64_t more) noexcept {
        const std::uint32_t pauses = own.pauses.read();
        const std::uint64_t before = own.gathered.read();
        own.gathered.write(0);
        if (more < before + before / 4) {
            own.pauses.write(pauses_min);
            own.short_looks.write(0);
        } else if (more < pauses / 4 || more > capacity_ / 2) {
            own.pauses.write(std::max(pauses / 2, pauses_min));
        } else if (own.short_looks.read() < short_looks_min) {
            own.short_looks.write(own.short_looks.read() + 1);
        } else if (more >= pauses / 2 && more < capacity_ / 4 && pauses != pauses_max) {
            own.pauses.write(2 * pauses);
            own.gathered.write(more);
        }
    }
    // Returns true if `waiting` has waited not many items ago.
    static bool waits_often(side& waiting) noexcept {
        const std::uint64_t now = waiting.index.load(relaxed);
        const bool result = now - waiting.index_at_wait.read() < often;
        waiting.index_at_wait.write(now);
        return result;
    }
    // Called now and then: `running` has not waited for long, so the other side's fence may be
    // free.
    void calm_down(side& running, spsc_bell& bell) noexcept {
        if (!bell.is_alert()) [[likely]]
            return;
        if (running.index.load(relaxed) - running.index_at_wait.read() < calm) return;
        lock_.lock();
        bell.calm_down();
        lock_.unlock();
    }
    // Completes what the other side waits for, if it can be completed.
    [[gnu::noinline]] void serve() noexcept {
        granted_waiters others;
        lock_.lock();
        serve_receiver(others);
        serve_sender(others);
        lock_.unlock();
        others.call_all();
    }
    void serve_receiver(granted_waiters& others) noexcept {
        receiver* const first = receivers_.front();
        if (first == nullptr) {
            receiver_bell_.retract();
            return;
        }
        const bool is_empty = sender_.index.load(relaxed) == receiver_.index.load(relaxed);
        if (is_empty && !closed_.load(relaxed)) return;
        receiver* const r = receivers_.claim_front();
        receiver_bell_.retract();
        if (r == nullptr) return;  // its select has ended
        if (!planted("spsc.grant_nothing")) pop(*r->place);
        others.add(*r);
    }
    void serve_sender(granted_waiters& others) noexcept {
        sender* const first = senders_.front();
        if (first == nullptr) {
            sender_bell_.retract();
            return;
        }
        const bool closed = closed_.load(relaxed);
        const std::uint64_t count = sender_.index.load(relaxed) - receiver_.index.load(relaxed);
        if (count == capacity_ && !closed) return;
        sender* const s = senders_.claim_front();
        sender_bell_.retract();
        if (s == nullptr) return;  // its select has ended
        if (closed) {
            *s->refused = true;
        } else {
            push(*s->item);
        }
        others.add(*s);
    }

    side sender_;
    side receiver_;
    alignas(line_bytes) const std::size_t capacity_;
    const std::uint64_t mask_;
    const std::unique_ptr<manual_lifetime<T>[]> slots_;
    atomic<bool> closed_{false};  // written inside the lock, once
    spsc_bell receiver_bell_;     // the sender rings
    spsc_bell sender_bell_;       // the receiver rings
    queue_lock lock_{0};
    waiter_queue<sender> senders_;      // at most one
    waiter_queue<receiver> receivers_;  // at most one
};

}  // namespace coppice::internal
