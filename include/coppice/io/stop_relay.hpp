// stop_relay: carries a stop request from any thread to the loop that can act on it; for request.
#pragma once
// An operation of a loop ends on the loop's thread. A stop is requested anywhere, at any time, also
// while the operation is just ending. On the loop's own thread the callback interrupts at once. On
// another one it posts the relay's item to the loop, and then the operation may not complete, and
// so not be destroyed, before that item has come back out of the mailbox:
//
//   listening   nothing posted; the operation ends: complete it
//   posted      the item is in the mailbox; it arrives: interrupt the operation
//   settling    the operation ended while the item was in the mailbox; it arrives: complete it
//
// settle() first withdraws the callback, which waits for one that is running elsewhere; so what it
// then reads of posted_ is final. Model: tests/model/stop_relay_model.cpp.

#include <coppice/base/atomic.hpp>
#include <coppice/base/internal.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/inplace.hpp>

namespace coppice::io::internal {

// Loop has is_current() and post(Item&), which calls item.complete(&item) on the loop; Item is
// constructed from that function. Threads: the loop's; the callback runs on any.
template <class Loop, class Item>
class stop_relay : immovable {
public:
    // Both are called on the loop. interrupt() makes the operation end soon, but not before it
    // returns; completed() may destroy the relay.
    using function = void (*)(stop_relay&) noexcept;
    stop_relay() noexcept {}

    // May interrupt before it returns. Cost: none if the token can never be stopped.
    void listen(Loop& loop, inplace_stop_token token, function interrupt,
                function completed) noexcept {
        if (!token.stop_possible()) return;
        loop_ = &loop;
        interrupt_ = interrupt;
        completed_ = completed;
        item_.construct(*this);
        callback_.construct(token, on_stop(*this));
    }
    // The operation has ended; called before the end of one that listens. True: it may complete
    // now. False: completed() will be called.
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
        loop_->post(item_.get());  // it may arrive before this returns, but settle() waits for that
    }
    static void arrive(Item* item) noexcept {
        stop_relay& self = static_cast<posted_item*>(item)->relay;
        self.posted_.write(false);
        (self.settling_ ? self.completed_ : self.interrupt_)(self);
    }

    Loop* loop_ = nullptr;  // not null: it listens, and has what follows
    function interrupt_;
    function completed_;
    manual_lifetime<posted_item> item_;                         // from listen() on
    manual_lifetime<inplace_stop_callback<on_stop>> callback_;  // from listen() to settle()
    // Written by the callback before the post, then by the loop when the item has arrived.
    plain<bool> posted_{false};
    bool settling_ = false;  // the loop's
};

}  // namespace coppice::io::internal
