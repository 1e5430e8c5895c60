// A WebSocket's output, and the way from an answer 101 to the end of its connection.
#include "live_websocket.hpp"
#include "until_stopped.hpp"

#include <coppice/base/saturating.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/io/buffer.hpp>

#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <new>
#include <span>
#include <stdexcept>
#include <utility>

namespace coppice::http {

using namespace internal;

namespace {

constexpr std::size_t reason_bytes_max = 123;
constexpr std::size_t spare_frames_max = 64 * 1024;  // a larger buffer is not kept
// A longer payload is sent from the caller's memory. Shorter ones are cheaper to copy, and share a
// system call.
constexpr std::size_t copied_bytes_max = 8 * 1024;

}  // namespace

// Completes when nothing is pending, and everything is sent or cannot be sent.
class live_websocket::all_sent {
public:
    explicit all_sent(live_websocket& of) noexcept : of_(of) {}
    bool await_ready() const noexcept { return of_.is_idle(); }
    void await_suspend(std::coroutine_handle<> h) const noexcept { of_.ending_ = h; }
    void await_resume() const noexcept {}

private:
    live_websocket& of_;
};

task<> live_websocket::sending_ended() {
    co_await all_sent(*this);
}

task<std::error_code> live_websocket::send(websocket_message message) {
    if (!message.binary && !is_utf8(message.data)) {
        throw std::invalid_argument("websocket::send: the text is not UTF-8; send it as binary");
    }
    if (loop().is_current() && !must_wait()) co_return put_now(message);
    const inplace_stop_token stop = co_await execution::read_env(get_stop_token);
    const execution::instant deadline = co_await execution::read_env(execution::get_deadline);
    std::optional<std::error_code> result;
    if (loop().is_current()) {
        co_await send_here(message, stop, deadline, result);
    } else {
        thread_pool* const pool = connection_.loop_.shared.pool;
        const bool from_pool = pool != nullptr && pool->is_current();
        co_await execution::starts_on(loop().get_scheduler(),
                                      send_here(message, stop, deadline, result));
        if (from_pool && !pool->is_current()) co_await pool->get_scheduler().schedule();
    }
    if (!result) co_await execution::just_stopped();
    co_return *result;
}

// Called on the loop. Sets no result if the caller was stopped.
task<> live_websocket::send_here(websocket_message message, inplace_stop_token stop,
                                 execution::instant deadline,
                                 std::optional<std::error_code>& result) {
    while (must_wait()) {
        if (stop.stop_requested()) co_return;
        loop_wait wait(loop(), waiters_, stop, deadline);
        const bool woken = co_await wait;
        wait.end();
        co_await loop_wait::settled(wait);
        if (!woken) co_return;
        if (unsent() <= options_.unsent_bytes_max) break;
    }
    result = put_now(message);
}

// A sender that comes later waits behind those that wait already.
bool live_websocket::must_wait() const noexcept {
    return (unsent() > options_.unsent_bytes_max || !waiters_.empty()) && !why_not();
}

// Called on the loop when there is room. Returns why the message was not sent, if it was not.
std::error_code live_websocket::put_now(const websocket_message& message) {
    if (const std::error_code error = why_not()) return error;
    try {
        put(message);
    } catch (const std::bad_alloc&) {
        fail();  // a part may be sent, or the client's decompressor may miss something
        throw;
    }
    if (unsent() != 0) send_soon();
    return {};
}

// Returns why nothing can be sent; no error if something can.
std::error_code live_websocket::why_not() const noexcept {
    if (!is_open()) return std::make_error_code(std::errc::connection_reset);
    if (close_sent_) return std::make_error_code(std::errc::connection_aborted);
    return {};
}

task<> live_websocket::close(unsigned code, std::string_view reason) {
    if (!is_close_code(code)) {
        throw std::invalid_argument("websocket::close: a close frame cannot have the code " +
                                    std::to_string(code));
    }
    if (reason.size() > reason_bytes_max || !is_utf8(reason)) {
        throw std::invalid_argument(
            "websocket::close: the reason must be UTF-8 of at most 123 bytes");
    }
    if (!loop().is_current()) {
        thread_pool* const pool = connection_.loop_.shared.pool;
        const bool from_pool = pool != nullptr && pool->is_current();
        co_await loop().get_scheduler().schedule();
        begin_close(code, reason);
        if (from_pool) co_await pool->get_scheduler().schedule();
        co_return;
    }
    begin_close(code, reason);
}

void live_websocket::put(const websocket_message& message) {
    const auto opcode = message.binary ? websocket_opcode::binary : websocket_opcode::text;
    if (deflater_ == nullptr || message.data.size() < options_.deflate_bytes_min) {
        put_frame(opcode, message.data, false);
        return;
    }
    packed_.clear();
    deflater_->deflate(message.data, packed_);
    put_frame(opcode, packed_, true);
}

// Sends a long frame at once if nothing is before it, and puts what is left behind what is pending.
void live_websocket::put_frame(websocket_opcode opcode, std::string_view payload, bool compressed) {
    const websocket_head head(opcode, payload.size(), compressed);
    const bool is_first = payload.size() > copied_bytes_max && unsent() == 0;
    const std::size_t sent = is_first ? send_now(head.bytes(), payload) : 0;
    if (!is_open()) return;
    if (sent == 0) {
        append_frame(pending_, opcode, payload, compressed);
        return;
    }
    const std::size_t of_head = std::min(sent, head.bytes().size());
    pending_.append(head.bytes().substr(of_head)).append(payload.substr(sent - of_head));
}

// Sends what the socket takes without waiting. Returns how many bytes that was.
std::size_t live_websocket::send_now(std::string_view head, std::string_view payload) noexcept {
    connection& c = connection_;
    if (c.link_ != nullptr) return 0;
    std::array pieces = {io::const_buffer(std::as_bytes(std::span(head))).kernels(),
                         io::const_buffer(std::as_bytes(std::span(payload))).kernels()};
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = pieces.size();
    io::internal::ring_operation direct(nullptr, io::opcode::send_message);
    direct.on = c.socket_.slot();
    direct.message = &message;
    if (!loop().try_here(direct)) return 0;
    if (direct.result <= 0) {
        fail();
        return 0;
    }
    const auto sent = static_cast<std::size_t>(direct.result);
    exchange_.bytes_sent += sent;
    c.account(exchange_, loop().turn_time());
    return sent;
}

void live_websocket::put_control(websocket_opcode opcode, std::string_view payload) noexcept {
    if (!is_open()) return;
    try {
        append_frame(pending_, opcode, payload);
        send_soon();
    } catch (const std::bad_alloc&) {
        fail();
    }
}

// Sends a close frame, unless one was sent. `code`: 0 for a frame without one.
void live_websocket::begin_close(unsigned code, std::string_view reason) noexcept {
    if (std::exchange(close_sent_, true) || !is_open()) return;
    char payload[2 + reason_bytes_max];
    payload[0] = static_cast<char>(code >> 8);
    payload[1] = static_cast<char>(code);
    const std::size_t size = code == 0 ? 0 : 2 + reason.copy(payload + 2, reason_bytes_max);
    late_pong_.reset();
    put_control(websocket_opcode::close, {payload, size});
    loop().arm(*this, saturating_add(loop().turn_time(), options_.close_timeout));
}

// Called when the client should have answered a close frame.
void live_websocket::close_is_late(timer_entry* entry) noexcept {
    live_websocket& self = *static_cast<live_websocket*>(entry);
    if (self.loop().ending() || self.is_over_ || !self.is_open()) return;
    self.is_late_ = true;
    // Otherwise the answer may be here already, for the next receive().
    if (self.exchange_.ahead.waiter) self.fail();
}

void live_websocket::send_soon() noexcept {
    if (is_sending_ || std::exchange(is_deferred_, true)) return;
    loop().defer(flush_);
}

void live_websocket::flush_now(io::operation* op) noexcept {
    live_websocket& self = static_cast<flush*>(op)->of;
    self.is_deferred_ = false;
    self.is_called_ = true;
    self.pump();
    self.end_of_call();
}

void live_websocket::sent(io::operation* op) noexcept {
    live_websocket& self = static_cast<sending*>(op)->of;
    self.is_sending_ = false;
    self.is_called_ = true;
    if (self.note_sent()) self.pump();
    self.end_of_call();
}

// Sends until the socket is full, or nothing is left.
void live_websocket::pump() noexcept {
    connection& c = connection_;
    while (is_open()) {
        if (sent_ == output_.size()) {
            if (reserved_ != 0) exchange_.budget.give(std::exchange(reserved_, 0));
            output_.clear();
            if (output_.capacity() > spare_frames_max) std::string().swap(output_);
            sent_ = 0;
            if (pending_.empty()) break;
            output_.swap(pending_);
        }
        sender_.data = reinterpret_cast<std::byte*>(output_.data()) + sent_;
        sender_.size = output_.size() - sent_;
        is_sending_ = !c.start(sender_);
        if (is_sending_) {
            wait_for_sending();
            return;
        }
        if (!note_sent()) break;
    }
    if (!is_open()) return;
    c.run_untimed();
    c.account(exchange_, loop().turn_time());
}

// Called when a send has to wait: limits its memory, and the time for all of output_.
void live_websocket::wait_for_sending() noexcept {
    if (reserved_ != 0) return;  // a part has been sent
    if (!exchange_.budget.reserve_last(output_.size())) {
        fail();
        return;
    }
    reserved_ = output_.size();
    connection_.begin_writing(output_.size());
}

bool live_websocket::note_sent() noexcept {
    if (sender_.result <= 0) {
        fail();
        return false;
    }
    sent_ += static_cast<std::size_t>(sender_.result);
    exchange_.bytes_sent += static_cast<std::size_t>(sender_.result);
    return true;
}

// Called last by what the loop calls: wakes what waits for it, which may end this.
void live_websocket::end_of_call() noexcept {
    if (is_open() && unsent() <= options_.unsent_bytes_max && late_pong_) {
        const std::string payload = std::move(*late_pong_);
        late_pong_.reset();
        put_control(websocket_opcode::pong, payload);
    }
    if (!is_open() || close_sent_ || unsent() <= options_.unsent_bytes_max) {
        loop_wait::wake_all(waiters_);
    }
    // Without a pending receive, nothing else tells what the handler waits for.
    if (!is_open() && !connection_.receiving_ && !ending_) connection_.request_stop();
    is_called_ = false;
    if (ending_ && is_idle()) std::exchange(ending_, {}).resume();
}

// Ends the connection with a reset. What the handler awaits is told when the pending receive ends,
// or here if there is none.
void live_websocket::fail() noexcept {
    connection_.abort();
    send_soon();  // wakes those that wait for room
}

// Makes the connection a WebSocket, and runs its handler.
task<connection::step> connection::serve_websocket(exchange& e, std::optional<response> answer) {
    const std::shared_ptr<body_source> kept = answer->source();
    websocket_source& source = *kept->upgrade();
    if (std::exchange(source.used, true) || !e.end.is_known()) {
        abort();
        co_return step::gone;
    }
    e.closing = e.streaming = true;
    e.output.append("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n");
    e.output.append(answer->fields()).append("\r\n");
    note(e, 101, 0, &e.parser.head());
    answer.reset();
    std::string first =
        e.end.is_in_rest() ? std::exchange(e.rest, {}) : std::string(e.left.substr(e.end.bytes()));
    e.buffer.release();  // the request is gone
    e.left = {};
    std::string().swap(e.input);
    e.more = true;
    if (!co_await write(e)) co_return step::gone;
    if (!e.stop) begin_run(e);
    e.origin.deadline = time_point::max();
    run_untimed();
    live_websocket socket(*this, e, source, std::move(first));
    std::exception_ptr error;
    std::optional<bool> whole;
    try {
        whole = co_await end_of({e.origin.stop, loop_.context}, source.run(socket));
    } catch (...) {
        error = std::current_exception();
    }
    if (!loop_.context.is_current()) co_await loop_.context.get_scheduler().schedule();
    if (error) report_exception(e, std::exchange(error, nullptr));
    if (!whole) ++e.stops;
    const unsigned reason = whole ? 1000 : loop_.draining ? 1001 : 1011;
    co_await socket.finish(reason);
    end_run(e);
    e.streaming = false;
    co_return step::last;
}

}  // namespace coppice::http
