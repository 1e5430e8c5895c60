// lingering and the end: how a connection is closed, orderly or not.
#include "awaiting.hpp"
#include "connection.hpp"
#include "stream_session.hpp"

#include <coppice/base/saturating.hpp>
#include <coppice/io/option.hpp>

#include <algorithm>
#include <utility>

namespace coppice::http {

using namespace internal;

namespace {

// How long a closing connection still reads what the client sends, so that the client sees the
// answer and not a reset; and how many bytes it reads from a client that has said that it sends
// nothing more.
constexpr duration linger_time = std::chrono::seconds(2);
constexpr duration linger_time_drain = std::chrono::milliseconds(500);
constexpr std::size_t linger_bytes_max = 64 * 1024;

}  // namespace

void connection::drain() noexcept {
    if (session_ != nullptr) {
        session_->drain();
    } else if (state_ == state::idle && may_wait_in_drain()) {
        const duration time = loop_.options.timeouts.drain_first_request;
        idle_until_ = std::min(idle_until_, saturating_add(loop_.context.turn_time(), time));
    } else if (state_ == state::reading_head || state_ == state::reading_body) {
        end_within(loop_.options.timeouts.drain_request);
    } else if (state_ == state::lingering) {
        end_within(linger_time_drain);
    }
}

void connection::end_idle_in_drain() noexcept {
    if (session_ == nullptr && state_ == state::idle && !may_wait_in_drain()) end_wait();
}

void connection::end_wait() noexcept {
    if (batch_ == nullptr) close_socket();  // otherwise its answers are about to be sent
}

void connection::cut_off() noexcept {
    cut_ = true;
    if (session_ != nullptr) {
        session_->cut_off();
        return;
    }
    if (!away_ || batch_->given_up) break_off();  // otherwise at_home() does it
    request_stop();
}

// Enters `lingering`: reads for a moment after the last answer, until the client ends the
// connection. Closing with unread bytes, or before bytes that still arrive, would cause a reset,
// which may destroy the answer.
task<> connection::linger(exchange& e) {
    say_end();
    std::size_t left = e.unread || e.given_up ? ~std::size_t{0} : linger_bytes_max;
    if (!e.sending_late) {  // others can use what the exchange holds
        account(e, loop_.context.now());
        e.clear();
    }
    enter(state::lingering, loop_.draining ? linger_time_drain : linger_time);
    for (std::error_code ec; !ec;) {
        const io::pooled_buffer dropped = co_await next_input(*this, ec);
        const std::size_t bytes = dropped.bytes().size();
        if (bytes == 0 || bytes >= left) break;
        left -= bytes;
    }
}

// Enters `lingering` when a stopped handler does not end: answers the client in its place, and the
// connection ends. The handler runs on, and the exchange waits for it.
void connection::give_up() noexcept {
    exchange& e = *batch_;
    e.given_up = true;
    loop_.counts.stopped.add();
    enter(state::lingering, linger_time);
    if (away_ && !e.right.give_up()) {
        // Earlier answers of the batch wait for this one, and it is unknown which of the output is
        // whose.
        say_end();
        return;
    }
    try {
        put(e, refusal(e, 503, overdue_reason), &e.parser.head());
    } catch (...) {  // there is no memory for the answer
        e.output.clear();
        abort();
        return;
    }
    count(e);
    e.sender.complete = &late_answer_sent;
    e.sender.data = reinterpret_cast<std::byte*>(e.output.data()) + e.sent;
    e.sender.size = e.output.size() - e.sent;
    e.sending_late = true;
    if (socket_.is_open() && !start(e.sender)) return;
    late_answer_sent(&e.sender);
}

void connection::late_answer_sent(operation* op) noexcept {
    exchange& e = static_cast<exchange::sending*>(op)->of;
    e.sending_late = false;
    if (e.owner->socket_.is_open()) e.owner->say_end();
    if (e.late_waiter) std::exchange(e.late_waiter, {}).resume();
}

// Ends the connection, whatever it is doing: with a reset if a part of an answer may have been
// sent, so that the client does not take the part for the whole (RFC 9112 section 8).
void connection::break_off() noexcept {
    const bool begun =
        batch_ != nullptr && (batch_->streaming || batch_->sent != 0 || state_ == state::writing);
    if (begun) {
        abort();
    } else {
        close_socket();
    }
}

// Ends the connection with a reset.
void connection::abort() noexcept {
    if (!socket_.is_open()) return;
    (void)socket_.set(io::linger(std::chrono::seconds(0)));
    if (batch_ != nullptr) {
        batch_->unread = false;
        if (batch_->stop) (void)batch_->address.get();
    }
    socket_.close();
    if (link_ != nullptr) link_->close(true);
}

// Tells the client that nothing more is sent.
void connection::say_end() noexcept {
    if (link_ != nullptr) {
        link_->say_end();
    } else {
        socket_.shutdown_send();
    }
}

// Closes the socket, after close_notify if it is encrypted. First takes the client's address if a
// handler may be running, which may still ask for it.
void connection::close_socket() noexcept {
    if (batch_ != nullptr && batch_->stop) (void)batch_->address.get();
    if (link_ != nullptr && socket_.is_open()) link_->say_end();
    socket_.close();
    if (link_ != nullptr) link_->close(false);
}

// Called when the batch cannot be answered for lack of memory. The client gets a reset, since what
// it has received so far may be only a part.
void connection::run_out_of_memory() noexcept {
    abort();
    if (batch_ != nullptr) end_batch(loop_.context.turn_time());
    end();
}

// Ends the connection. The caller must not touch it afterwards.
void connection::end() noexcept {
    if (link_ != nullptr && socket_.is_open()) link_->say_end();
    socket_.close();
    if (link_ != nullptr) link_->close(false);
    if (receiving_) {
        complete = &received_last;
    } else {
        delete this;
    }
}

void connection::received_last(operation* op) noexcept {
    connection& c = receive_ended(op);
    c.take_received().release();
    delete &c;
}

}  // namespace coppice::http
