// stop_list: any number of stop callbacks behind a lock; for the in-place and the shared source.
#pragma once
// One word is both the lock and the flag:
//
//   bit locked     a thread works on the list; the list belongs to that thread
//   bit stopped    a stop was requested, and nothing is added from now on; never cleared
//   bit orphaned   shared source only: the last handle is gone, callbacks keep the list alive
//   bit away       in-place source only: the requester runs a callback that has removed itself;
//                  the head then points to the requester, which has the list (running.hpp)
//
// Taking the lock is a compare-exchange. Releasing it is a plain store, because no other thread
// writes the word while it is locked; sleepers.hpp tells how waiting threads are woken. Critical
// sections are a few instructions long and run no user code.
//
// The life of a callback, as its node shows it:
//
//   link != nullptr                in the list; its destructor or the requester removes it
//   link == nullptr, phase = open  taken by the requester, which is running it
//   phase = done                   returned; the requester's last access to the node
//
// The lock guards link. The destructor of a callback that was taken waits for `done`, unless it
// runs inside the callback; then it tells the requester not to touch the node again.
//
// The removal of the last callback of an in-place source must not return while the requester may
// still touch the source. As with slots (way_back.hpp), the requester takes the next callback
// before it marks the previous one as done. If the previous one has removed itself, the list is
// handed over to the callbacks in it, and bit `away` is set. The thread that removes the last of
// them then tells the requester not to return to the source. If the requester is returning already,
// the remover waits until the bit is cleared. Clearing it is the requester's last access, or comes
// before the requester's next callback.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/internal/running.hpp>
#include <coppice/stop/internal/sleepers.hpp>

#include <cstdint>

namespace coppice::internal {

// The common part of every callback in a list.
struct stop_node : immovable {
    using execute_function = void(stop_node*) noexcept;
    explicit stop_node(execute_function* run, std::uint32_t start = open) noexcept
        : execute(run), phase(start) {}

    static constexpr std::uint32_t open = 0;
    static constexpr std::uint32_t pooled = 1;  // open, and the source owns the node
    static constexpr std::uint32_t done = 2;

    execute_function* execute;                // written before the node is added
    plain<stop_node*> next{nullptr};          // guarded by the list's lock, as is link
    plain<plain<stop_node*>*> link{nullptr};  // the pointer that points here; nullptr: in no list
    atomic<std::uint32_t> phase;              // written by the requester; read by the destructor
};

class stop_list {  // immovable because its atomic is; not a base, to keep sources small
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

    // Takes the lock and returns the other bits, of which `likely` is the caller's guess. Blocks:
    // while another thread holds the lock.
    flags lock(flags likely = 0) noexcept { return lock_unless(0, likely); }

    // Takes the lock, unless one of the bits in `refused` is set; then returns those.
    flags lock_unless(flags refused, flags likely = 0) noexcept {
        flags seen = likely;
        if (try_lock(seen)) [[likely]]
            return likely;
        return lock_contended(seen, refused);
    }

    // Takes the lock if it is free and the other bits are as in `seen`. Otherwise sets `seen` to
    // what the bits are.
    [[nodiscard]] bool try_lock(flags& seen) noexcept {
        // edge stop.list (acquire): the list as the last holder left it
        return word_.compare_exchange_strong(seen, seen | locked, acquire, acquire);
    }

    // Does what lock_unless() does, after try_lock() has failed with `seen`.
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

    // Releases the lock and leaves `bits` in the word. Lifetime: touches nothing after its store.
    void unlock(flags bits) noexcept {
        // edge stop.list (release), edge stop.requested (release): all before this is visible
        word_.store(bits, release);
        lock_sleepers().wake(word_);
    }

    // The other members require the lock, except wait_for_requester().
    bool empty() const noexcept { return head_.read() == nullptr; }
    void push(stop_node& node) noexcept {
        stop_node* const first = head_.read();
        node.next.write(first);
        node.link.write(&head_);
        if (first != nullptr) first->link.write(&node.next);
        head_.write(&node);
    }
    // Removes a callback. Returns false if the requester has taken it.
    bool unlink(stop_node& node) noexcept {
        plain<stop_node*>* const link = node.link.read();
        if (link == nullptr) return false;
        stop_node* const next = node.next.read();
        link->write(next);
        if (next != nullptr) next->link.write(link);
        return true;
    }
    // Takes the newest callback, to run it. Returns nullptr if there is none.
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

    // hand_over() lets a requester go away and take the list along; take_over() puts the list back.
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
    // Call it with bit `away` set. Returns the requester if none of its callbacks is left,
    // otherwise nullptr.
    running_request* abandoned() noexcept {
        running_request* const request = reinterpret_cast<running_request*>(head_.read());
        return request->rest().read() == nullptr ? request : nullptr;
    }
    void clear() noexcept { head_.write(nullptr); }
    // Call it without the lock. Blocks: until the requester has come back.
    [[gnu::noinline, gnu::cold]] void wait_for_requester() noexcept {
        // edge stop.list (acquire): all that the requester did to the source
        flags seen = word_.load(acquire);
        while ((seen & away) != 0) seen = lock_sleepers().wait_while(word_, seen);
    }

private:
    // Bits as listed above; 32 of them, so that a futex covers the word.
    atomic<flags> word_{0};
    plain<stop_node*> head_{nullptr};  // guarded by the lock; the newest callback
};

// Marks a callback as returned, and wakes a destructor that waits for it. Touches nothing after its
// store.
inline void finish(stop_node& node) noexcept {
    // edge stop.done (release): the callback has returned
    node.phase.store(stop_node::done, release);
    callback_sleepers().wake(node.phase);
}

// Called by the destructor of a callback that was taken and does not run on this thread. Blocks:
// until this callback returns, and never for another one.
inline void wait_done(stop_node& node) noexcept {
    if (planted("stop.do_not_wait")) return;
    callback_sleepers().wait_while(node.phase, stop_node::open);
}

}  // namespace coppice::internal
