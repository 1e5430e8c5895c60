// A locked list of stop callbacks of any number; used by the inplace and the shared source.
#pragma once
// The word is the lock and the flag in one:
//
//   bit locked     somebody works on the list; what is in it belongs to the holder
//   bit stopped    a stop was requested: nothing is added any more; never cleared
//   bit orphaned   the shared source's: the last handle is gone, callbacks keep the list alive
//   bit away       the inplace source's: the requester runs a callback that has removed itself; the
//                  head is the requester then, which has the list (running.hpp)
//
// Taking the lock is a compare-exchange. Releasing it is a plain store, because nobody else writes
// the word while it is locked; who waits is found as sleepers.hpp says. Critical sections are a few
// instructions long and run no foreign code.
//
// A callback's life, seen from its node:
//
//   link != nullptr                in the list; removed by its destructor or by the requester
//   link == nullptr, phase = open  taken by the requester, which is running it
//   phase = done                   it has returned; the requester's last touch of the node
//
// link is guarded by the lock. The destructor of a callback that was taken waits for `done`, unless
// it runs inside the callback: then the requester is told not to touch the node again.
//
// The last removal ends only when the requester of an inplace source touches the source no more. As
// with slots (way_back.hpp): the requester takes the next callback before it marks the former as
// done. If the former has removed itself, the list is handed over to the callbacks that are in it,
// and the bit `away` is set: who removes the last of them then cuts the requester off. If that one
// is on its way back already, the remover waits until the bit is cleared, which is the requester's
// last touch or comes before its next callback.

#include <coppice/base/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/running.hpp>
#include <coppice/stop/sleepers.hpp>

#include <cstdint>

namespace coppice::internal {

// What every callback of a list starts with.
struct stop_node : immovable {
    using execute_function = void(stop_node*) noexcept;
    explicit stop_node(execute_function* run, std::uint32_t start = open) noexcept
        : execute(run), phase(start) {}

    static constexpr std::uint32_t open = 0;
    static constexpr std::uint32_t pooled = 1;  // open, and the node belongs to its source
    static constexpr std::uint32_t done = 2;

    execute_function* execute;                // written before the node is added
    plain<stop_node*> next{nullptr};          // guarded by the list's lock, as is link
    plain<plain<stop_node*>*> link{nullptr};  // what points here; nullptr: in no list
    atomic<std::uint32_t> phase;              // written by the requester; read by the destructor
};

class stop_list {  // immovable as its atomic is; no base, for its size in a source
public:
    using flags = std::uint32_t;
    static constexpr flags locked = 1;
    static constexpr flags stopped = 2;
    static constexpr flags orphaned = 4;
    static constexpr flags away = 8;

    bool stop_requested() const noexcept {
        // edge stop.requested (acquire): what came before the request is visible
        return (word_.load(acquire) & stopped) != 0;
    }

    // Takes the lock; returns the other bits, of which the caller guesses `likely`.
    // Blocks: while another thread holds it.
    flags lock(flags likely = 0) noexcept { return lock_unless(0, likely); }

    // Takes the lock, unless one of the bits in `refused` is set: then those are in the result.
    flags lock_unless(flags refused, flags likely = 0) noexcept {
        flags seen = likely;
        if (try_lock(seen)) [[likely]]
            return likely;
        return lock_contended(seen, refused);
    }

    // Takes the lock if it is free and the other bits are as in `seen`; else says what they are.
    [[nodiscard]] bool try_lock(flags& seen) noexcept {
        // edge stop.list (acquire): the list as the last holder left it
        return word_.compare_exchange_strong(seen, seen | locked, acquire, acquire);
    }

    // The same as lock_unless, after try_lock has failed with `seen`.
    [[gnu::noinline, gnu::cold]] flags lock_contended(flags seen, flags refused) noexcept {
        for (int pauses = 1;;) {
            if ((seen & refused) != 0) return seen & refused;
            if ((seen & locked) == 0) {
                // edge stop.list (acquire): the list as the last holder left it
                if (word_.compare_exchange_weak(seen, seen | locked, acquire, acquire)) return seen;
            } else if (pauses > sleepers::pauses_most) {
                seen = lock_sleepers().sleep_while(word_, seen);
            } else {
                for (int i = 0; i != pauses; ++i) spin_hint();
                pauses *= 2;
                // edge stop.requested (acquire): what came before the request is visible
                seen = word_.load(acquire);
            }
        }
    }

    // Releases the lock and leaves `bits`. Lifetime: touches nothing after its store.
    void unlock(flags bits) noexcept {
        // edge stop.list (release), edge stop.requested (release): all before this is visible
        word_.store(bits, release);
        lock_sleepers().wake(word_);
    }

    // The rest of the members is for the holder of the lock.
    bool empty() const noexcept { return head_.read() == nullptr; }
    void push(stop_node& node) noexcept {
        stop_node* const first = head_.read();
        node.next.write(first);
        node.link.write(&head_);
        if (first != nullptr) first->link.write(&node.next);
        head_.write(&node);
    }
    // False: the requester has taken it.
    bool unlink(stop_node& node) noexcept {
        plain<stop_node*>* const link = node.link.read();
        if (link == nullptr) return false;
        stop_node* const next = node.next.read();
        link->write(next);
        if (next != nullptr) next->link.write(link);
        return true;
    }
    // Takes the newest callback to run it; nullptr if there is none.
    stop_node* pop() noexcept {
        stop_node* const first = head_.read();
        if (first != nullptr) {
            stop_node* const next = first->next.read();
            head_.write(next);
            if (next != nullptr) next->link.write(&head_);
            first->link.write(nullptr);
        }
        return first;
    }

    // The requester goes away: it takes the list with it. And comes back.
    void hand_over(running_request& request) noexcept {
        request.go_away();
        stop_node* const first = head_.read();
        request.rest().write(first);
        first->link.write(&request.rest());
        head_.write(reinterpret_cast<stop_node*>(&request));
    }
    void take_over(running_request& request) noexcept {
        stop_node* const first = request.rest().read();
        head_.write(first);
        if (first != nullptr) first->link.write(&head_);
    }
    // With the bit `away`: the requester, if none of its callbacks is left; else nullptr.
    running_request* abandoned() noexcept {
        running_request* const request = reinterpret_cast<running_request*>(head_.read());
        return request->rest().read() == nullptr ? request : nullptr;
    }
    void clear() noexcept { head_.write(nullptr); }
    // Not for the holder: returns when the requester has come back. Blocks: until then.
    [[gnu::noinline, gnu::cold]] void wait_for_requester() noexcept {
        // edge stop.list (acquire): all that the requester did to the source
        flags seen = word_.load(acquire);
        while ((seen & away) != 0) seen = lock_sleepers().wait_while(word_, seen);
    }

private:
    // See the table on top. 32 bits, so that a futex sees all of it.
    atomic<flags> word_{0};
    plain<stop_node*> head_{nullptr};  // guarded by the lock; the newest callback
};

// The callback has returned: frees its destructor, if it waits. Touches nothing after its store.
inline void finish(stop_node& node) noexcept {
    // edge stop.done (release): the callback has returned
    node.phase.store(stop_node::done, release);
    callback_sleepers().wake(node.phase);
}

// For the destructor of a callback that was taken and does not run on this thread. Blocks: until
// this callback returns; never for another one.
inline void wait_done(stop_node& node) noexcept {
    if (planted("stop.do_not_wait")) return;
    callback_sleepers().wait_while(node.phase, stop_node::open);
}

}  // namespace coppice::internal
