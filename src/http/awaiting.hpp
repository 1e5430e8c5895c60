// What the coroutines of a connection await.
#pragma once

#include "connection.hpp"

#include <coppice/exec/deadline.hpp>
#include <coppice/stop/inplace.hpp>

#include <coroutine>
#include <optional>
#include <system_error>
#include <utility>

namespace coppice::http {

using namespace internal;

// Gives the next buffer that has arrived or will arrive; empty at the end.
class connection::next_input {
public:
    next_input(connection& c, std::error_code& ec) noexcept : connection_(c), error_(ec) {}
    bool await_ready() const noexcept {
        connection& c = connection_;
        read_ahead& a = c.batch_->ahead;
        if (a.has_news()) return true;
        if (!c.socket_.is_open()) {
            a.ended = true;
            a.error = std::make_error_code(std::errc::operation_canceled);
            return true;
        }
        if (!c.start_receiving(&received_ahead)) return false;
        c.keep_received();
        return true;
    }
    void await_suspend(std::coroutine_handle<> h) const noexcept {
        connection_.batch_->ahead.waiter = h;
    }
    io::pooled_buffer await_resume() const noexcept {
        read_ahead& a = connection_.batch_->ahead;
        if (a.count != 0) return a.pop();
        error_ = a.error;
        return {};
    }

private:
    connection& connection_;
    std::error_code& error_;
};

// Ends a wait for input early, as if nothing had arrived, because the awaiter was stopped or its
// deadline has passed. It belongs to the loop, except for the callback. On another thread the
// callback posts this, which must then not be destroyed before it has arrived.
class connection::input_stop final : io::operation, io::timer_entry {
public:
    input_stop(connection& c, inplace_stop_token stop, execution::instant deadline) noexcept
        : operation(&arrive), timer_entry(&expire), connection_(c) {
        if (deadline != execution::instant::never()) {
            c.loop_.context.arm(*this, static_cast<time_point>(deadline));
        }
        callback_.emplace(stop, on_stop(*this));
    }
    ~input_stop() = default;

    // Called when the wait is over. The caller then awaits `settled`.
    void end() noexcept {
        callback_.reset();
        if (timer_entry::armed()) connection_.loop_.context.disarm(*this);
    }
    // Returns true if this has ended the wait.
    bool stopped() const noexcept { return stopped_; }

    // Returns true if the caller must await `settled` after end().
    bool must_settle() const noexcept { return posted_ && !arrived_; }

    // Awaited once the callback is gone: completes when what it may have posted has arrived.
    class settled {
    public:
        explicit settled(input_stop& of) noexcept : of_(of) {}
        bool await_ready() const noexcept { return !of_.must_settle(); }
        void await_suspend(std::coroutine_handle<> h) noexcept { of_.waiter_ = h; }
        void await_resume() const noexcept {}

    private:
        input_stop& of_;
    };

private:
    class on_stop {
    public:
        explicit on_stop(input_stop& of) noexcept : of_(&of) {}
        void operator()() const noexcept { of_->stop(); }

    private:
        input_stop* of_;
    };
    void stop() noexcept {
        io::context& loop = connection_.loop_.context;
        posted_ = true;
        if (loop.is_current()) {
            loop.defer(*this);
        } else {
            loop.post(*this);
        }
    }
    static void arrive(operation* op) noexcept {
        input_stop& self = *static_cast<input_stop*>(op);
        self.arrived_ = true;
        if (self.waiter_) {
            self.waiter_.resume();
        } else {
            self.end_wait();
        }
    }
    static void expire(timer_entry* entry) noexcept {
        input_stop& self = *static_cast<input_stop*>(entry);
        if (!self.connection_.loop_.context.ending()) self.end_wait();
    }
    // Called last: resumes the waiter.
    void end_wait() noexcept {
        read_ahead& a = connection_.batch_->ahead;
        if (!a.waiter) return;
        stopped_ = true;
        a.resume_waiter();
    }

    connection& connection_;
    std::optional<inplace_stop_callback<on_stop>> callback_;
    std::coroutine_handle<> waiter_;
    bool posted_ = false;  // written by the callback, read when the callback is gone
    bool arrived_ = false;
    bool stopped_ = false;
};

// Completes when the answer that give_up() sends has ended.
class connection::end_of_late_answer {
public:
    explicit end_of_late_answer(exchange& e) noexcept : exchange_(e) {}
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) const noexcept { exchange_.late_waiter = h; }
    void await_resume() const noexcept {}

private:
    exchange& exchange_;
};

}  // namespace coppice::http
