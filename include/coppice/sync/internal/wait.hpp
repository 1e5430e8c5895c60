// wait: one operation that waits for an object of this room, from its start to its end.
#pragma once
// A request says what the operation wants, and of which object. It is a small movable object:
//
//   using waiter_type               derived from waiter, with its constructors; what the object's
//                                   queue links
//   queue_lock& lock()              the lock of its object
//   bool try_now()                  takes it without waiting, if possible; outside the lock
//   bool attempt(granted_waiters&)  the same inside the lock; may grant others
//   void link(waiter_type&)         puts the waiter into the queue; inside the lock
//   void unlink(waiter_type&, granted_waiters&)
//                                   takes it out, because it gives up; may grant others
//   std::error_code error()         of an operation that was granted or completed at once
//   result take()                   its result; may throw, and then nothing was taken
//   result nothing()                the result that goes with an error
//
// A request may also have these members:
//
//   bool try_soon()                 as try_now(); if the object is not ready, also looks again
//                                   for a moment, because the other side may be about to come
//   void end_early()                called outside the lock if the wait ends before attempt(), by a
//                                   stop or a refusal: does what the operation does all the same
//   bool waits(waiter_type&)        inside the lock: the waiter is linked so that unlink() may take
//                                   it out; without this member, if it is linked
//   static constexpr bool returns_later = true
//                                   unlink() does not end the wait: it takes steps that end with a
//                                   call of the waiter's function
//
// The life of a wait:
//
//   begin()      attempts; else registers for a stop, arms the deadline, and attempts again, inside
//                the lock; then links the waiter
//   granted      called by the thread that granted it
//   withdrawn    called by a stop or a deadline that found it linked
//   finish()     deregisters both, and calls the owner's function: the end
//
// A stop between the registration and the linking only leaves a mark, which begin() finds inside
// the lock. So exactly one of begin(), granted, and withdrawn ends the wait. Once the waiter is
// linked and the lock is left, begin() does not touch the wait again: it may be gone.
// Model: tests/model/wait_model.cpp.

#include <coppice/stop/inplace.hpp>
#include <coppice/sync/internal/wait_limits.hpp>
#include <coppice/sync/internal/waiter.hpp>
#include <coppice/token/internal/completion_env.hpp>
#include <coppice/token/internal/inline_start.hpp>

#include <utility>

namespace coppice::internal {

// How a wait ended.
enum class wait_end : unsigned char {
    granted,    // the request has its result or its error
    withdrawn,  // by a stop or a deadline; nothing was moved
    refused,    // the deadline could not be armed; nothing was moved
};

// True if take() may throw, as that of a request that copies its result does.
template <class Request>
inline constexpr bool take_may_throw = !noexcept(std::declval<Request&>().take());

// Tries a request that would otherwise wait.
template <class Request>
bool try_before_wait(Request& request) noexcept {
    if constexpr (requires { request.try_soon(); }) {
        return request.try_soon();
    } else {
        return request.try_now();
    }
}

template <class Request>
constexpr bool returns_later() noexcept {
    if constexpr (requires { Request::returns_later; }) {
        return Request::returns_later;
    } else {
        return false;
    }
}

// As a waiting_callback, its owner may put its end behind what the thread is running.
template <class Request>
class wait : public Request::waiter_type, public waiting_callback {
public:
    // Called when the wait has ended, on the thread that ended it; not if begin() returns true.
    using function = void(wait&) noexcept;

    wait(Request&& wanted, function* ended) noexcept
        : Request::waiter_type(&wait::granted),
          request(static_cast<Request&&>(wanted)),
          ended_(ended) {}

    // Begins. Returns true if the wait has ended already. If it returns false, the wait ends later,
    // and may be gone. Precondition: try_now() has failed, or need not be tried.
    [[gnu::noinline]] bool begin(const completion_env& env) noexcept {
        if (env.query(get_stop_token).stop_requested()) return end_early(wait_end::withdrawn);
        if (!limits_.engage(*this, env)) return end_early(wait_end::refused);
        granted_waiters others;
        queue_lock& lock = request.lock();
        lock.lock();
        const bool gives_up = gives_up_ && !planted("wait.link_after_stop");
        const bool has_it = !gives_up && request.attempt(others);
        if (!gives_up && !has_it) request.link(*this);
        lock.unlock();
        others.call_all();
        if (!gives_up && !has_it) return false;  // this object may be gone
        limits_.reset();
        if (gives_up) return end_early(wait_end::withdrawn);
        return true;
    }

    wait_end end() const noexcept { return end_; }

    Request request;

private:
    friend class wait_limits<wait>;

    static void granted(waiter& w) noexcept {
        wait& self = static_cast<wait&>(w);
        self.finish();
    }
    // Called by a stop or a deadline, on any thread. finish() waits until it has returned.
    void withdraw() noexcept {
        granted_waiters others;
        queue_lock& lock = request.lock();
        lock.lock();
        const bool is_mine = is_waiting() || planted("wait.withdraw_granted");
        if (is_mine) {
            end_ = wait_end::withdrawn;
            request.unlink(*this, others);
        } else {
            gives_up_ = true;  // not linked yet; or it has ended, and the mark is not read
        }
        lock.unlock();
        if constexpr (returns_later<Request>()) {
            others.call_all();
        } else {
            others.call_all_after([this, is_mine] {
                if (is_mine) finish();  // this object may be gone
            });
        }
    }
    // Inside the lock.
    bool is_waiting() noexcept {
        if constexpr (requires(typename Request::waiter_type& w) { request.waits(w); }) {
            return request.waits(*this);
        } else {
            return this->linked();
        }
    }
    void finish() noexcept {
        limits_.reset();
        ended_(*this);  // this object may be gone
    }
    bool end_early(wait_end end) noexcept {
        end_ = end;
        if constexpr (requires { request.end_early(); }) request.end_early();
        return true;
    }

    function* const ended_;
    wait_end end_ = wait_end::granted;  // written by a withdrawal, inside the lock
    bool gives_up_ = false;  // inside the lock: a stop or a deadline came before the linking
    wait_limits<wait> limits_;
};

}  // namespace coppice::internal
