// A locked list of stop callbacks of any number; used by the inplace and the shared source.
#pragma once
// The word is the lock and the flag in one:
//
//   bit locked     somebody works on the list; what is in it belongs to the holder
//   bit stopped    a stop was requested: nothing is added any more; never cleared
//   bit orphaned   the shared source's: the last handle is gone, callbacks keep the list alive
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

#include <coppice/base/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/running.hpp>
#include <coppice/stop/sleepers.hpp>

#include <cstdint>

namespace coppice {

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

// For the destructor of a callback that was taken: returns when it has returned, or at once inside
// it. Blocks: until this callback returns; never for another one.
inline void wait_done(stop_node& node) noexcept {
    // edge stop.done (acquire): the callback has returned
    if (node.phase.load(acquire) == stop_node::done) return;
    if (running_request::forget_callback(&node)) return;
    if (planted("stop.do_not_wait")) return;
    callback_sleepers().wait_while(node.phase, stop_node::open);
}

}  // namespace coppice
