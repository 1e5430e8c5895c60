// Answers that need waiting: for the rest of a request, for handlers, for clients that read slowly.
#include "serving.hpp"
#include "until_stopped.hpp"

#include <coppice/base/saturating.hpp>

#include <sys/socket.h>
#include <algorithm>
#include <stdexcept>
#include <utility>

namespace coppice::http {

using namespace internal;

namespace {

// How long a closing connection still reads what the client sends, so that the client sees the
// answer and not a reset; and how many bytes it reads from a client that has said that it sends
// nothing more.
constexpr duration linger_time = std::chrono::seconds(2);
constexpr std::size_t linger_bytes_max = 64 * 1024;

constexpr const char* overdue_reason = "the answer took too long";

constexpr std::string_view continue_line = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

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

// Answers what needs waiting: the rest of the batch, and what arrives meanwhile.
session connection::attend(step s, bool& began) {
    began = true;
    exchange& e = *batch_;
    e.more = true;
    bool more = false;
    bool failed = false;
    try {
        more = co_await converse(e, s);
        while (more && e.ahead.has_news()) {
            std::error_code ec;
            io::pooled_buffer more_input = co_await next_input(*this, ec);
            more = !ec && !more_input.empty();
            if (!more) break;
            account(e, loop_.context.now());
            e.clear();
            begin_batch(e, std::move(more_input));
            const step reached = advance(e);
            more = co_await converse(e, reached);
        }
        const bool lingers = !more && (e.closing || e.given_up) && socket_.is_open();
        if (lingers) co_await linger(e);
    } catch (...) {
        failed = true;  // there was no memory
    }
    if (failed) {
        more = false;
        if (!loop_.context.is_current()) co_await loop_.context.get_scheduler().schedule();
        at_home();
        end_run(e);
        abort();
    }
    if (more && !loop_.draining && socket_.is_open()) {
        end_batch(loop_.context.now());
        rest();
        co_return;
    }
    socket_.close();
    if (e.sending_late) co_await end_of_late_answer(e);
    end_batch(loop_.context.now());
    end();
}

// Answers the rest of a batch. Gives true if everything was answered and the connection is idle.
task<bool> connection::converse(exchange& e, step s) {
    for (;;) {
        switch (s) {
            case step::admitted:  // never seen here: advance() handles it
            case step::answered:
                // The next request must not see the stop or the time of the one before. On the
                // pool, a source that was not asked to stop is used again.
                if (away_ && e.right.was_told()) {
                    co_await come_home();
                    if (!socket_.is_open() || e.given_up) {
                        s = step::gone;
                        break;
                    }
                }
                if (!away_) end_run(e);
                s = advance(e);
                break;
            case step::drop:
                s = co_await drop_body(e);
                break;
            case step::input:
                s = co_await receive_head(e);
                break;
            case step::body:
                s = co_await receive_body(e);
                if (s == step::answered) s = settle(e, respond(e));
                break;
            case step::flush: {
                const bool written = co_await write(e);
                s = written ? step::answered : step::gone;
                break;
            }
            case step::depart:
                prepare_departure(e);
                co_await loop_.shared.pool->get_scheduler().schedule();
                s = settle(e, respond(e));
                break;
            case step::handler:
                // Answers that are ready should not wait for a handler that may take long.
                if (!co_await write(e)) {
                    s = step::gone;
                    break;
                }
                // A frame is given back to the thread that allocated it, so the hop comes before
                // run_handler() has its frame.
                if (!away_ && loop_.on_pool(*e.match.handler)) {
                    prepare_departure(e);
                    co_await loop_.shared.pool->get_scheduler().schedule();
                }
                s = settle(e, co_await run_handler(e));
                break;
            case step::stream:
                s = settle(e, co_await send_stream(e));
                break;
            case step::idle:
            case step::last:
            case step::gone: {
                bool more = false;
                if (s != step::gone) more = co_await write(e);
                if (!loop_.context.is_current()) co_await loop_.context.get_scheduler().schedule();
                at_home();
                end_run(e);
                more = more && s == step::idle && socket_.is_open();
                co_return more;
            }
        }
    }
}

// Moves the rest of the batch into e.input, and gives the buffer back. Returns false if there is no
// room.
bool connection::keep(exchange& e) {
    if (e.buffer.empty()) {
        e.input.erase(0, static_cast<std::size_t>(e.left.data() - e.input.data()));
    } else {
        e.input.clear();
        if (!make_room(e, e.left.size())) return false;
        e.input.assign(e.left);
        e.buffer.release();
    }
    e.left = e.input;
    return true;
}

// Gives false if the client is gone in the middle of a request, or there is no room for it.
task<bool> connection::receive_more(exchange& e, std::size_t whole) {
    std::error_code ec;
    const io::pooled_buffer received = co_await next_input(*this, ec);
    if (ec || received.empty()) co_return false;
    if (!make_room(e, received.bytes().size(), whole)) co_return false;
    e.input += text_of(received);
    e.left = e.input;
    co_return true;
}

task<connection::step> connection::receive_head(exchange& e) {
    if (!co_await write(e)) co_return step::gone;
    if (away_) co_await come_home();
    if (!keep(e)) co_return give_way(e);
    if (!e.in_head) enter(phase::header, loop_.options.timeouts.header);
    e.in_head = true;
    // A statement of its own: GCC 12 resumes at the wrong place in a conditional expression.
    const bool more = co_await receive_more(e);
    if (!more) co_return give_way(e);
    co_return step::answered;
}

// Receives the rest of a body; e.body is then all of it.
task<connection::step> connection::receive_body(exchange& e) {
    const bool chunked = e.parser.head().chunked();
    const std::uint64_t length = e.parser.head().content_length().value_or(0);
    if (!chunked && !has_room_for(e, length)) co_return give_way(e);
    if (e.parser.head().expects_continue() && e.left.size() == e.head_bytes) {
        e.output += continue_line;
    }
    if (!co_await write(e)) co_return step::gone;
    if (away_) co_await come_home();
    if (!keep(e)) co_return give_way(e);
    enter(phase::body, loop_.options.timeouts.body);
    if (chunked) {
        const step s = co_await receive_chunked(e);
        if (s != step::answered) co_return s;
    } else {
        e.body_bytes = static_cast<std::size_t>(length);  // within body_bytes_max
        const std::size_t end = e.head_bytes + e.body_bytes;
        const std::size_t before = e.left.size();
        const time_point began = loop_.context.turn_time();
        while (e.left.size() < end) {
            if (!co_await receive_more(e, end)) co_return give_way(e);
            allow_time_for(began, e.left.size() - before);
        }
        e.end.found(end);
    }
    // The input has moved, so the views of it are made again.
    e.parser.reset();
    (void)e.parser.parse(e.left.substr(0, e.head_bytes));
    const request_head& head = e.parser.head();
    e.match = loop_.routes.match(head.verb(), head.path());
    e.body = e.left.substr(e.head_bytes, e.body_bytes);
    phase_ = phase::handling;
    co_return step::answered;
}

// Extends the time for a body of which `received` bytes have arrived since `began`, by the time
// that they take at the lowest permitted rate. A declared length extends nothing, and a drain's
// limit is not extended.
void connection::allow_time_for(time_point began, std::uint64_t received) noexcept {
    if (loop_.draining) return;
    set_deadline(saturating_add(began, transfer_time(loop_.options.timeouts.body, received)));
}

// Receives a chunked body, removes its framing in place, and finds e.body_bytes and the end.
task<connection::step> connection::receive_chunked(exchange& e) {
    chunk_decoder decoder(loop_.options.limits);
    decoder.keep_trailers(e.trailers);
    const time_point began = loop_.context.turn_time();
    std::uint64_t received = 0;
    for (std::size_t decoded = e.head_bytes;
         ;) {  // the body so far ends at `decoded`; framed bytes follow
        const std::size_t framed = e.input.size() - decoded;
        const chunk_decoder::result r = decoder.decode(std::span(e.input.data() + decoded, framed));
        decoded += r.produced;
        if (r.status == parse_status::complete) {
            // The next request follows the body.
            e.body_bytes = decoded - e.head_bytes;
            e.end.found(decoded - r.produced + r.consumed);
            co_return step::answered;
        }
        if (r.status == parse_status::error) {
            put(e, refusal(e, r.error, r.reason), nullptr);
            co_return step::last;
        }
        e.input.resize(decoded);
        if (!co_await receive_more(e)) co_return give_way(e);
        received += e.input.size() - decoded;
        allow_time_for(began, received);
    }
}

// Called when the request was answered before its body: receives the rest of the body and drops it.
task<connection::step> connection::drop_body(exchange& e) {
    const bool chunked = e.parser.head().chunked();
    std::uint64_t length = e.parser.head().content_length().value_or(0);
    if (!co_await write(e)) co_return step::gone;
    if (away_) co_await come_home();
    e.left.remove_prefix(e.head_bytes);
    if (!keep(e)) co_return step::gone;
    enter(phase::body, loop_.options.timeouts.body);
    step s = step::answered;
    if (chunked) {
        s = co_await drop_chunked(e);
    } else {
        while (length > e.left.size()) {
            length -= e.left.size();
            e.input.clear();
            if (!co_await receive_more(e)) co_return step::gone;
        }
        e.left.remove_prefix(static_cast<std::size_t>(length));
        e.end.dropped();
    }
    phase_ = phase::handling;
    co_return s;
}

// Drops a chunked body. One that is malformed or too long ends the connection; the answer has been
// sent.
task<connection::step> connection::drop_chunked(exchange& e) {
    limits limit = loop_.options.limits;
    limit.body_bytes_max = loop_.options.dropped_body_bytes_max;
    chunk_decoder decoder(limit);
    for (;;) {
        const chunk_decoder::result r = decoder.decode(std::span(e.input));
        if (r.status == parse_status::error) {
            e.closing = e.unread = true;
            co_return step::last;
        }
        if (r.status == parse_status::complete) {
            e.left = std::string_view(e.input).substr(r.consumed);
            e.end.dropped();
            co_return step::answered;
        }
        e.input.clear();
        if (!co_await receive_more(e)) co_return step::gone;
    }
}

// Waits for an asynchronous handler.
task<connection::step> connection::run_handler(exchange& e) {
    const handler& h = *e.match.handler;
    if (h.needs().body) co_return co_await run_reading_handler(e);
    if (!loop_.on_pool(h)) {
        if (away_) co_await come_home();
        begin_run(e);
    }
    const bool departed = away_;
    if (departed && !begin_away(e)) co_return step::gone;
    e.origin.pool = loop_.on_pool(h) ? loop_.shared.pool : nullptr;
    step reached = step::gone;
    {
        request r(e.parser.head(), e.body, e.match.parameters, &e.origin);
        std::optional<response> made;
        std::exception_ptr error;
        try {
            made = co_await result_of({e.origin.stop, loop_.context, loop_.team_of(h)}, h.start(r));
        } catch (...) {
            error = std::current_exception();
        }
        const bool may_answer = !departed || e.right.end();
        // The task may have ended on any thread.
        if (!away_ || !loop_.shared.pool->is_current()) co_await come_home();
        const bool answers = may_answer && (away_ || !e.given_up);
        if (answers) {
            reached = conclude(e, std::move(made), error, r);
        } else if (error) {
            (void)answer_to(e, error);  // no client gets it; on_exception is told
        }
    }
    // Comes after everything that may refer to the stop source is gone: the request's values, the
    // answer, the error.
    if (!away_ && reached != step::stream) end_run(e);
    co_return reached;
}

// Continues after a handler that was awaited, with its answer or one in its place. The caller ends
// the run, once the request is gone.
connection::step connection::conclude(exchange& e, std::optional<response> made,
                                      const std::exception_ptr& error, const request& r) {
    if (error) made = answer_to(e, error);
    if (!away_ && !socket_.is_open()) return step::gone;  // cut off in the meantime
    if (!made) made = answer_to_stopped(e);
    if (!made) return step::gone;
    return finish(e, std::move(*made), r);
}

// Makes the answer to the request of a handler that was stopped; nothing if its client has gone.
std::optional<response> connection::answer_to_stopped(exchange& e) {
    const bool late = loop_.context.now() >= e.origin.deadline;
    if (!late && !e.stop->stop_requested()) {  // by something of its own
        report_exception(e, std::make_exception_ptr(std::logic_error(
                                "a handler was stopped by something of its own, though its client "
                                "waits and its time is not up: handle the stop of what it awaits, "
                                "for example with stopped_as_optional")));
        return response::status(500);
    }
    ++e.stops;
    if (!late) return std::nullopt;
    return response::status(503, static_text::promised(overdue_reason));
}

// Engages the stop source, and starts to watch for the client's end and its next requests.
void connection::begin_run(exchange& e) {
    end_run(e);
    e.stop.emplace();
    e.origin.stop = e.stop->get_token();
    enter(phase::handling, loop_.options.timeouts.handler);
    e.origin.deadline = e.deadline;
    watch();
}

void connection::end_run(exchange& e) noexcept {
    e.streamed.reset();  // its body may refer to the source
    e.origin.stop = {};
    e.origin.deadline = time_point::max();
    e.stop.reset();
}

// Requests a stop. The caller must not touch the connection afterwards: what is stopped may end it.
void connection::request_stop() noexcept {
    if (batch_ != nullptr && batch_->stop) batch_->stop->request_stop();
}

// Prepares the batch to go to a thread of the pool.
void connection::prepare_departure(exchange& e) {
    begin_run(e);
    loop_.date().copy(e.date.data(), e.date.size());
    e.right.depart(e.output.empty(), e.deadline);
    e.departing = true;
    away_ = true;
}

// Called on the pool when a handler starts. The first handler's time began with the departure, so
// it includes the wait for a thread. Returns false if the loop has given the connection up
// meanwhile.
bool connection::begin_away(exchange& e) noexcept {
    if (std::exchange(e.departing, false)) return e.right.begin_first();
    e.origin.deadline = saturating_add(loop_.context.now(), loop_.options.timeouts.handler);
    return e.right.begin(e.output.empty(), e.origin.deadline);
}

// Returns the connection to its loop.
task<> connection::come_home() {
    if (!loop_.context.is_current()) co_await loop_.context.get_scheduler().schedule();
    at_home();
}

void connection::at_home() noexcept {
    away_ = false;
    if (cut_) break_off();
}

// Receives while a handler runs: the next requests, within bounds, and the client's end. A client
// that resets its connection stops its handler. A client that only ends its sending side does not,
// unless end_of_input_stops is set, since it may still read. May end the connection.
void connection::watch() noexcept {
    read_ahead& a = batch_->ahead;
    while (!a.ended && !a.is_full()) {
        if (!start_receiving(&received_ahead)) return;
        keep_received();
    }
    if (a.error || (a.ended && loop_.options.end_of_input_stops)) request_stop();
}

void connection::keep_received() noexcept {
    read_ahead& a = batch_->ahead;
    io::pooled_buffer received = take_received();
    if (!received.empty()) {
        a.push(std::move(received));
        if (!a.waiter) reserve_ahead(*batch_);
        return;
    }
    a.ended = true;
    if (result < 0) a.error = std::error_code(-result, std::system_category());
}

void connection::received_ahead(operation* op) noexcept {
    connection& c = *static_cast<connection*>(static_cast<ring_operation*>(op));
    c.receiving_ = false;
    c.keep_received();
    // Either call may end the connection.
    if (c.batch_->ahead.waiter) {
        std::exchange(c.batch_->ahead.waiter, {}).resume();
    } else {
        c.watch();
    }
}

// Writes e.output. Gives false if the connection has ended, or if the awaiter was stopped; in the
// second case the socket is still open, and the next call writes the rest. Afterwards the
// connection is on its loop, unless everything was written from the pool.
task<bool> connection::write(exchange& e) {
    if (e.output.empty()) co_return true;
    count(e);
    if (away_) {
        if (send_directly(e)) co_return true;
        co_await come_home();
        if (!socket_.is_open()) co_return false;
    }
    if (!reserve_output(e)) {
        abort();
        co_return false;
    }
    enter(phase::writing, transfer_time(loop_.options.timeouts.write, e.output.size() - e.sent));
    std::error_code ec;
    while (e.sent != e.output.size() && !ec) {
        const auto left = std::as_bytes(std::span(e.output)).subspan(e.sent);
        const std::size_t n = co_await socket_.send(left, use_await[ec]);
        e.sent += n;
        e.bytes_sent += n;
    }
    give_output_back(e);
    const bool stopped = ec == std::errc::operation_canceled && socket_.is_open();
    if (!stopped) {
        e.output.clear();
        e.sent = 0;
    }
    phase_ = phase::handling;
    account(e, loop_.context.now());
    co_return !ec;
}

// Sends from a thread of the pool. Returns true if the kernel has taken everything.
bool connection::send_directly(exchange& e) noexcept {
    const std::span left = std::span(e.output).subspan(e.sent);
    const ssize_t n =
        ::send(e.origin.connection, left.data(), left.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n <= 0) return false;  // the loop will wait, or find the error
    e.sent += static_cast<std::size_t>(n);
    e.bytes_sent += static_cast<std::size_t>(n);
    if (e.sent != e.output.size()) return false;
    e.output.clear();
    e.sent = 0;
    return true;
}

// Reads for a moment after the last answer, until the client ends the connection. Closing with
// unread bytes, or before bytes that still arrive, would cause a reset, which may destroy the
// answer.
task<> connection::linger(exchange& e) {
    socket_.shutdown_send();
    std::size_t left = e.unread || e.given_up ? ~std::size_t{0} : linger_bytes_max;
    if (!e.sending_late) {  // others can use what the exchange holds
        account(e, loop_.context.now());
        e.clear();
    }
    enter(phase::lingering, loop_.draining ? linger_time_drain : linger_time);
    for (std::error_code ec; !ec;) {
        const io::pooled_buffer dropped = co_await next_input(*this, ec);
        const std::size_t bytes = dropped.bytes().size();
        if (bytes == 0 || bytes >= left) break;
        left -= bytes;
    }
}

// Called when a stopped handler does not end: answers the client in its place, and the connection
// ends. The handler runs on, and the exchange waits for it.
void connection::give_up() noexcept {
    exchange& e = *batch_;
    e.given_up = true;
    loop_.counts.stopped.add();
    enter(phase::lingering, linger_time);
    if (away_ && !e.right.give_up()) {
        // Earlier answers of the batch wait for this one, and it is unknown which of the output is
        // whose.
        socket_.shutdown_send();
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
    e.sender.on = socket_.slot();
    e.sender.complete = &late_answer_sent;
    e.sender.data = reinterpret_cast<std::byte*>(e.output.data()) + e.sent;
    e.sender.size = e.output.size() - e.sent;
    e.sending_late = true;
    if (socket_.is_open() && !loop_.context.start(e.sender)) return;
    late_answer_sent(&e.sender);
}

void connection::late_answer_sent(operation* op) noexcept {
    exchange& e = static_cast<exchange::sending*>(op)->of;
    e.sending_late = false;
    if (e.owner->socket_.is_open()) e.owner->socket_.shutdown_send();
    if (e.late_waiter) std::exchange(e.late_waiter, {}).resume();
}

}  // namespace coppice::http
