// loop_wait: a task waits on its loop until another one wakes it, it is stopped, or time is up.
#pragma once

#include <coppice/base/intrusive.hpp>
#include <coppice/exec/deadline.hpp>
#include <coppice/io/context.hpp>
#include <coppice/stop/inplace.hpp>

#include <coroutine>
#include <optional>

namespace coppice::http {

using namespace internal;

struct loop_waiters;  // the tag of a list

// One wait. Everything belongs to the loop, except for the stop callback. On another thread the
// callback posts this, which must then not be destroyed before it has arrived: after the wait, the
// waiter calls end() and awaits `settled`.
class loop_wait final : io::operation, io::timer_entry, public list_hook<loop_waiters> {
public:
    using list = intrusive_list<loop_wait, loop_waiters>;

    loop_wait(io::context& loop, list& waiters, inplace_stop_token stop,
              execution::instant deadline) noexcept
        : operation(&arrive), timer_entry(&expire), loop_(loop), waiters_(waiters) {
        if (deadline != execution::instant::never()) {
            loop.arm(*this, static_cast<time_point>(deadline));
        }
        callback_.emplace(stop, on_stop(*this));
    }
    ~loop_wait() = default;

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) noexcept {
        waiter_ = h;
        waiters_.push_back(*this);
    }
    // Returns true if the waiter was woken, false if it was stopped or its time is up.
    bool await_resume() const noexcept { return woken_; }
    void end() noexcept {
        callback_.reset();
        if (timer_entry::armed()) loop_.disarm(*this);
    }

    // Wakes every waiter of the list, each of which may wait again. Called last: the waiters run.
    static void wake_all(list& waiters) noexcept {
        list now;
        now.append(waiters);
        while (loop_wait* const first = now.front()) {
            first->woken_ = true;
            first->resume();
        }
    }

    // Awaited once the callback is gone: completes when what it may have posted has arrived.
    class settled {
    public:
        explicit settled(loop_wait& of) noexcept : of_(of) {}
        bool await_ready() const noexcept { return !of_.posted_ || of_.arrived_; }
        void await_suspend(std::coroutine_handle<> h) noexcept { of_.settling_ = h; }
        void await_resume() const noexcept {}

    private:
        loop_wait& of_;
    };

private:
    class on_stop {
    public:
        explicit on_stop(loop_wait& of) noexcept : of_(&of) {}
        void operator()() const noexcept { of_->stop(); }

    private:
        loop_wait* of_;
    };
    void stop() noexcept {
        posted_ = true;
        if (loop_.is_current()) {
            loop_.defer(*this);
        } else {
            loop_.post(*this);
        }
    }
    static void arrive(operation* op) noexcept {
        loop_wait& self = *static_cast<loop_wait*>(op);
        self.arrived_ = true;
        if (self.settling_) {
            self.settling_.resume();
        } else {
            self.resume();
        }
    }
    static void expire(timer_entry* entry) noexcept {
        loop_wait& self = *static_cast<loop_wait*>(entry);
        if (!self.loop_.ending()) self.resume();
    }
    // Called last.
    void resume() noexcept {
        if (!coppice::list_hook<loop_waiters>::linked()) return;
        list::erase(*this);
        waiter_.resume();
    }

    io::context& loop_;
    list& waiters_;
    std::optional<inplace_stop_callback<on_stop>> callback_;
    std::coroutine_handle<> waiter_;
    std::coroutine_handle<> settling_;
    bool posted_ = false;  // written by the callback, read when the callback is gone
    bool arrived_ = false;
    bool woken_ = false;
};

}  // namespace coppice::http
