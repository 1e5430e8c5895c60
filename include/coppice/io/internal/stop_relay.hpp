// stop_relay: carries a stop request from any thread to the loop that acts on it; for request.
#pragma once
// An operation of a loop ends on the loop's thread. A stop may be requested on any thread at any
// time, even while the operation is ending. On the loop's own thread, the stop callback interrupts
// the operation at once. On another thread, it posts the relay's item to the loop. The operation
// must then not complete, and so must not be destroyed, until that item has left the mailbox:
//
//   listening   nothing is posted; when the operation ends, it completes
//   posted      the item is in the mailbox; when it arrives, it interrupts the operation
//   settling    the operation ended while the item was in the mailbox; it completes on arrival
//
// settle() first deregisters the callback, and that waits for a callback that runs on another
// thread. What settle() then reads of posted_ is therefore final.
// Model: tests/model/stop_relay_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/inplace.hpp>

namespace coppice::io::internal {

// Loop has is_current() and post(Item&), which calls item.complete(&item) on the loop. An Item is
// constructed from such a function. Threads: the loop's; the callback runs on any thread.
template <class Loop, class Item>
class stop_relay : immovable {
public:
    // Both are called on the loop. interrupt() makes the operation end soon, but not before
    // interrupt() returns. completed() may destroy the relay.
    using function = void (*)(stop_relay&) noexcept;
    stop_relay() noexcept {}

    // Registers for a stop. May call interrupt() before it returns. Cost: none if no stop is
    // possible.
    void listen(Loop& loop, inplace_stop_token token, function interrupt,
                function completed) noexcept {
        if (!token.stop_possible()) return;
        loop_ = &loop;
        interrupt_ = interrupt;
        completed_ = completed;
        item_.construct(*this);
        callback_.construct(token, on_stop(*this));
    }
    // Called when the operation has ended, and required after listen(). Returns true if the
    // operation may complete now. Otherwise completed() will be called.
    [[nodiscard]] bool settle() noexcept {
        if (loop_ == nullptr) [[likely]]
            return true;
        callback_.destroy();
        if (!posted_.read() || planted("stop_relay.settle_early")) return true;
        settling_ = true;
        return false;
    }

private:
    struct posted_item : Item {
        explicit posted_item(stop_relay& r) noexcept : Item(&arrive), relay(r) {}
        stop_relay& relay;
    };
    class on_stop {
    public:
        explicit on_stop(stop_relay& relay) noexcept : relay_(&relay) {}
        void operator()() noexcept { relay_->stop(); }

    private:
        stop_relay* relay_;
    };

    void stop() noexcept {
        if (loop_->is_current()) {
            interrupt_(*this);
            return;
        }
        posted_.write(true);
        // the item may arrive before this returns, but settle() waits for this callback
        loop_->post(item_.get());
    }
    static void arrive(Item* item) noexcept {
        stop_relay& self = static_cast<posted_item*>(item)->relay;
        self.posted_.write(false);
        (self.settling_ ? self.completed_ : self.interrupt_)(self);
    }

    Loop* loop_ = nullptr;  // not null: it listens, and the members below are set
    function interrupt_;
    function completed_;
    manual_lifetime<posted_item> item_;  // constructed by listen()
    // constructed by listen(), destroyed by settle()
    manual_lifetime<inplace_stop_callback<on_stop>> callback_;
    // Written by the callback before the post, and by the loop when the item has arrived.
    plain<bool> posted_{false};
    bool settling_ = false;  // used by the loop only
};

}  // namespace coppice::io::internal
