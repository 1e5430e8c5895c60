// ring_core: the slots of a bounded channel, and its two queues; one locked instruction per item.
#pragma once
// Two words, on lines of their own: `tail` is where the next item goes, `head` where the oldest one
// is. A place counts slots in its low part and laps above. Each slot has a stamp, which says for
// which place it is free or full:
//
//   free for a sender that claims `place`     stamp == place
//   full for a receiver that claims `place`   stamp == place | full
//   emptied                                   stamp == place + lap
//
// A sender that finds its slot free claims the place by a compare-and-swap of `tail`, moves the
// item in, and stores the stamp: its last access. A receiver does the same at `head`. So without
// waiters the two sides share only slots.
//
// Waiters are linked inside the queue_lock. Before a thread links one, it sets `slow` in a word, by
// a compare-and-swap that fails if that side has moved since it was seen:
//
//   receivers wait   `tail` is slow, and the ring is empty: senders enter the lock, and give their
//                    items to receivers
//   senders wait     both are slow, and every slot is claimed: receivers enter the lock, and move
//                    the item of the oldest sender in
//
// While a word is slow, only a thread inside the lock changes it. `slow` may be set without a
// waiter: after an operation that did not wait in the end, and at the head after a sender has sent
// from inside the lock. The next thread inside clears it.
//
// The receiver of the last item may destroy the channel. So a sender's last access is the stamp, or
// the exchange that leaves the lock; and a receiver that finds the channel closed enters the lock.
//
// A thread may find a place that is claimed by a thread that has not stored the stamp yet. It waits
// until it has: for a move of T, or until a preempted thread goes on. Otherwise a try_receive()
// could miss an item that this thread has sent itself, behind the claimed place.
//
// With capacity 0 there is no slot, and both words are always slow: a receiver takes the item from
// the sender itself.
//
// Source: the stamps are D. Vyukov's bounded queue; the rest is ours.
// Model: tests/model/channel_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/sync/internal/channel_core.hpp>
#include <coppice/sync/internal/waiter.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <utility>

namespace coppice::internal {

template <class T>
class ring_core : channel_items<T>, immovable {
public:
    using value_type = T;
    using sender = channel_sender<T>;
    using receiver = channel_receiver<T>;
    // A thread that blocks spins for a moment, in case the other side comes (blocked_pace.hpp).
    static constexpr bool looks_when_blocked = true;

    // Errors: std::bad_alloc.
    explicit ring_core(std::size_t capacity)
        : tail_(capacity == 0 ? slow : 0),
          head_(capacity == 0 ? slow : 0),
          slots_(capacity == 0 ? nullptr : new slot[capacity]),
          end_(capacity * unit),
          lap_(std::bit_ceil(capacity) * unit) {
        for (std::size_t i = 0; i != capacity; ++i) slots_[i].stamp.store(i * unit, relaxed);
    }
    ~ring_core() {
        for (std::optional<T> item; end_ != 0 && pop_left(item); item.reset()) {
        }
    }

    // What the words say; may be stale.
    std::size_t size() const noexcept {
        const std::uint64_t head = place_of(head_.load(relaxed));
        const std::uint64_t tail = place_of(tail_.load(relaxed));
        if (tail <= head) return 0;
        const std::uint64_t laps = (tail / lap_ - head / lap_) * end_;
        const std::uint64_t count = laps + tail % lap_ - head % lap_;
        return static_cast<std::size_t>(count < end_ ? count : end_) / unit;
    }
    bool is_closed() const noexcept { return (tail_.load(relaxed) & closed) != 0; }
    std::size_t capacity() const noexcept { return static_cast<std::size_t>(end_ / unit); }

    // Sends without waiting. Moves from `item` only if the result is `sent`.
    send_outcome try_send(T& item) noexcept {
        // edge channel.tail (acquire): what its movers did at `head` before
        std::uint64_t tail = tail_.load(acquire);
        for (unsigned tries = 1; (tail & (slow | closed)) == 0;) {
            slot& s = slot_of(tail);
            // edge channel.emptied (acquire): the slot is empty
            if (s.stamp.load(acquire) == tail) {
                // edge channel.tail (acq_rel): what this thread did at `head` before
                if (tail_.compare_exchange_weak(tail, after(tail), acq_rel, acquire)) {
                    fill(s, tail, item);
                    return send_outcome::sent;
                }
            } else {
                if (is_full_at(tail)) return send_outcome::full;
                wait_a_little(tries++);      // a receiver is emptying the slot, or `tail` was old
                tail = tail_.load(acquire);  // edge channel.tail (acquire): as above
            }
        }
        return send_inside(tail, item);
    }
    // Receives without waiting. Returns true if it moved an item into `place`, or if none can come.
    bool try_receive(std::optional<T>& place) noexcept {
        // edge channel.head (acquire): what its movers did at `tail` before
        std::uint64_t head = head_.load(acquire);
        for (unsigned tries = 1; (head & slow) == 0;) {
            slot& s = slot_of(head);
            // edge channel.filled (acquire): the item
            if (s.stamp.load(acquire) == (head | full)) {
                // edge channel.head (acq_rel): what this thread did at `tail` before
                if (head_.compare_exchange_weak(head, after(head), acq_rel, acquire)) {
                    empty(s, head, place);
                    return true;
                }
            } else {
                const std::uint64_t tail = tail_.load(relaxed);
                if (place_of(tail) == head) {
                    // The thread that closes must have left the lock before this one says so.
                    if ((tail & closed) != 0) break;
                    return false;
                }
                wait_a_little(tries++);      // a sender is filling the slot, or `head` was old
                head = head_.load(acquire);  // edge channel.head (acquire): as above
            }
        }
        return receive_inside(place);
    }
    void close() noexcept {
        granted_waiters others;
        lock_.lock();
        end(others);
        lock_.unlock();  // the channel may be gone
        others.call_all();
    }

    queue_lock& queue() noexcept { return lock_; }

    // The functions below require the lock of the queue. A waiter is linked before the lock is left
    // in which offer() or take() has failed: they made the words slow. A select calls offer() and
    // take() before it links its waiters, so its branches never meet each other in a rendezvous.
    send_outcome offer(T& item, granted_waiters& others) noexcept {
        if (is_closed()) return send_outcome::closed;
        if (receiver* const r = receivers_.claim_front()) {
            r->place->emplace(std::move(item));
            others.add(*r);
            settle();
            return send_outcome::sent;
        }
        if (!push(item)) return send_outcome::full;
        // `head` stays slow until a receiver has been inside.
        make_fast(tail_);  // nothing waits: no receiver could be claimed, and there was a slot
        return send_outcome::sent;
    }
    bool take(std::optional<T>& place, granted_waiters& others) noexcept {
        if (end_ == 0) {
            sender* const s = senders_.claim_front();
            if (s == nullptr) return is_closed();
            place.emplace(std::move(*s->item));
            others.add(*s);
            return true;
        }
        if (!pop(place)) return false;
        if ((head_.load(relaxed) & slow) != 0) {
            if (sender* const s = senders_.claim_front()) {
                if (!planted("channel.forget_item_of_sender")) push(*s->item);
                others.add(*s);
            }
            settle();
        }
        return true;
    }
    void link(sender& w) noexcept { senders_.push_back(w); }
    void link(receiver& w) noexcept { receivers_.push_back(w); }
    void unlink(sender& w) noexcept {
        senders_.erase(w);
        settle();
    }
    void unlink(receiver& w) noexcept {
        receivers_.erase(w);
        settle();
    }

private:
    static constexpr std::uint64_t full = 1;    // of a stamp
    static constexpr std::uint64_t closed = 1;  // of `tail`
    static constexpr std::uint64_t slow = 2;    // of both words
    static constexpr std::uint64_t unit = 4;    // from one place to the next
    static constexpr std::size_t line_bytes = 64;

    struct slot {
        atomic<std::uint64_t> stamp{0};
        manual_lifetime<T> item;
    };

    // Waits for a thread that has claimed a place, unless that has lost its processor.
    static void wait_a_little(unsigned tries) noexcept {
        if (tries % 32 != 0) {
            spin_hint();
        } else {
            thread_yield();
        }
    }
    static std::uint64_t place_of(std::uint64_t word) noexcept { return word & ~(unit - 1); }
    slot& slot_of(std::uint64_t place) noexcept { return slots_[(place & (lap_ - 1)) / unit]; }
    std::uint64_t after(std::uint64_t place) const noexcept {
        const std::uint64_t next = place + unit;
        return (next & (lap_ - 1)) == end_ ? next - end_ + lap_ : next;
    }
    void fill(slot& s, std::uint64_t place, T& item) noexcept {
        s.item.construct(std::move(item));
        // edge channel.filled (release): the item
        s.stamp.store(place | full, release);  // the channel may be gone
        if (planted("channel.look_after_fill")) static_cast<void>(tail_.load(relaxed));
    }
    void empty(slot& s, std::uint64_t place, std::optional<T>& into) noexcept {
        into.emplace(std::move(s.item.get()));
        s.item.destroy();
        // edge channel.emptied (release): the slot is empty
        s.stamp.store(place + lap_, release);
    }
    // Returns true if every slot below `tail` is claimed by a sender and by no receiver.
    bool is_full_at(std::uint64_t tail) const noexcept {
        return place_of(head_.load(relaxed)) + lap_ == place_of(tail);
    }
    [[gnu::noinline]] send_outcome send_inside(std::uint64_t tail, T& item) noexcept {
        if (end_ != 0 && (tail & closed) == 0 && is_full_at(tail)) return send_outcome::full;
        granted_waiters others;
        lock_.lock();
        const send_outcome outcome = offer(item, others);
        lock_.unlock();  // the channel may be gone
        others.call_all();
        return outcome;
    }
    [[gnu::noinline]] bool receive_inside(std::optional<T>& place) noexcept {
        granted_waiters others;
        lock_.lock();
        const bool done = take(place, others);
        lock_.unlock();  // the channel may be gone
        others.call_all();
        return done;
    }
    // Inside the lock. Returns false if every slot is claimed; then both words are slow.
    bool push(T& item) noexcept {
        if (end_ == 0) return false;
        for (unsigned tries = 1;; wait_a_little(tries++)) {
            // edge channel.tail (acquire): what its movers did at `head` before
            const std::uint64_t tail = tail_.load(acquire);
            const std::uint64_t place = place_of(tail);
            slot& s = slot_of(place);
            // edge channel.emptied (acquire): the slot is empty
            if (s.stamp.load(acquire) == place) {
                if (!move_on(tail_, tail)) continue;
                keep_receivers_out();
                fill(s, place, item);
                return true;
            }
            // Only then no other sender claims the slot that a receiver empties.
            if (!planted("channel.tail_stays_fast") && !make_slow(tail_, tail)) continue;
            const std::uint64_t head = head_.load(relaxed);
            if (place_of(head) + lap_ != place) continue;  // a receiver is emptying the slot
            if (planted("channel.head_stays_fast") || make_slow(head_, head)) return false;
        }
    }
    // Inside the lock. Returns false if there is no item; then `tail` is slow. Returns true without
    // an item if none can come.
    bool pop(std::optional<T>& into) noexcept {
        for (unsigned tries = 1;; wait_a_little(tries++)) {
            // edge channel.head (acquire): what its movers did at `tail` before
            const std::uint64_t head = head_.load(acquire);
            const std::uint64_t place = place_of(head);
            slot& s = slot_of(place);
            // edge channel.filled (acquire): the item
            if (s.stamp.load(acquire) == (place | full)) {
                if (!move_on(head_, head)) continue;
                empty(s, place, into);
                return true;
            }
            const std::uint64_t tail = tail_.load(relaxed);
            if (place_of(tail) != place) continue;  // a sender is filling the slot
            if ((tail & closed) != 0) return true;
            if (planted("channel.wait_in_silence") || make_slow(tail_, tail)) return false;
        }
    }
    // Claims the place of `word`. While the word is slow, no other thread changes it.
    bool move_on(atomic<std::uint64_t>& word, std::uint64_t seen) noexcept {
        const std::uint64_t next = after(place_of(seen)) | (seen & (slow | closed));
        // edge channel.tail (acq_rel), edge channel.head (acq_rel): what this thread did before
        if ((seen & slow) == 0) return word.compare_exchange_strong(seen, next, acq_rel, relaxed);
        // edge channel.tail (release), edge channel.head (release): the same
        word.store(next, release);
        return true;
    }
    static bool make_slow(atomic<std::uint64_t>& word, std::uint64_t seen) noexcept {
        if ((seen & slow) != 0) return true;
        return word.compare_exchange_strong(seen, seen | slow, relaxed, relaxed);
    }
    static void make_fast(atomic<std::uint64_t>& word) noexcept {
        // edge channel.tail (acquire), edge channel.head (acquire): what the last mover did before
        const std::uint64_t seen = word.load(acquire);
        // edge channel.tail (release), edge channel.head (release): passes it on
        if ((seen & slow) != 0) word.store(seen & ~slow, release);
    }
    // Inside the lock: a receiver that gets the item may destroy the channel, so it must wait until
    // the sender has left.
    void keep_receivers_out() noexcept {
        if (planted("channel.fill_with_fast_head")) return;
        while (!make_slow(head_, head_.load(relaxed))) spin_hint();
    }
    // Inside the lock: lets threads pass again if nothing waits.
    void settle() noexcept {
        if (end_ == 0) return;
        const bool forget = planted("channel.settle_with_waiters");
        if (!senders_.empty() && !forget) return;
        make_fast(head_);
        if (receivers_.empty() || forget) make_fast(tail_);
    }
    // Closes: waiting receivers have nothing to wait for, and the items of waiting senders stay.
    void end(granted_waiters& others) noexcept {
        tail_.fetch_or(closed, relaxed);
        if (planted("channel.close_forgets_waiters")) return;
        while (receiver* const r = receivers_.claim_front()) others.add(*r);
        while (sender* const s = senders_.claim_front()) {
            *s->refused = true;
            others.add(*s);
        }
        settle();
    }
    bool pop_left(std::optional<T>& item) noexcept {
        const std::uint64_t head = place_of(head_.load(relaxed));
        if (head == place_of(tail_.load(relaxed))) return false;
        empty(slot_of(head), head, item);
        head_.store(after(head), relaxed);
        return true;
    }

    // Apart without an alignment: a channel may lie in the frame of a coroutine, for which g++ 12
    // allocates memory that is aligned to 16 bytes only.
    using apart = char[line_bytes];
    atomic<std::uint64_t> tail_;
    [[maybe_unused]] apart behind_tail_;
    atomic<std::uint64_t> head_;
    [[maybe_unused]] apart behind_head_;
    const std::unique_ptr<slot[]> slots_;
    const std::uint64_t end_;  // the capacity, in units
    const std::uint64_t lap_;  // from a place to the same slot in the next lap
    [[maybe_unused]] apart behind_lap_;
    queue_lock lock_{0};
    waiter_queue<sender> senders_;
    waiter_queue<receiver> receivers_;
};

}  // namespace coppice::internal
