// One connection: waiting for bytes, for handlers and for the client to read, within limits of
// time.
#include "serving.hpp"
#include "until_stopped.hpp"

#include <sys/socket.h>
#include <algorithm>
#include <utility>

namespace coppice::http {

namespace {

// How long a closing connection still reads what the client had sent, so that the client sees the
// answer and not a reset.
constexpr duration linger_time = std::chrono::seconds(2);

constexpr const char* overdue_reason = "the answer took too long";

constexpr std::string_view continue_line = "HTTP/1.1 100 Continue\r\n\r\n";

std::string_view text_of(const io::pooled_buffer& buffer) noexcept {
    return {reinterpret_cast<const char*>(buffer.bytes().data()), buffer.bytes().size()};
}

// Ten thousand idle ones are to cost no more than 3 MB, with their slots in the loop's table.
static_assert(sizeof(connection) <= 160 || sizeof(void*) != 8);

}  // namespace

connection::connection(serving_loop& l, io::tcp::socket&& s, address_counts::slot* from) noexcept
    : ring_operation(&received, io::opcode::receive_pooled),
      loop_(l),
      socket_(std::move(s)),
      from_(from) {
    loop_.connections.push_back(*this);
    loop_.counts.accepted.add();
}

connection::~connection() {
    if (from_ != nullptr) loop_.shared.addresses.leave(*from_);
    loop_.connections.erase(*this);
    loop_.counts.closed.add();
    // Relaxed: a count.
    loop_.shared.open_connections.fetch_sub(1, relaxed);
    loop_.connection_ended();
}

void connection::open(serving_loop& l, io::tcp::socket s, address_counts::slot* from) {
    (new connection(l, std::move(s), from))->serve();
}

// Waits for requests and answers them, until something has to be waited for. May end the
// connection.
[[gnu::flatten]] void connection::serve() noexcept {
    while (await_input() && take_input()) {
    }
}

// True: something has come. False: it is awaited, or the connection has ended.
bool connection::await_input() noexcept {
    if (loop_.draining || !socket_.is_open()) [[unlikely]] {
        end();
        return false;
    }
    become_idle();
    return start_receiving(&received);
}

void connection::become_idle() noexcept {
    phase_ = phase::idle;
    const time_point now = loop_.context.turn_time();
    const duration time = loop_.options.timeouts.idle;
    idle_until_ = time < time_point::max() - now ? now + time : time_point::max();
    loop_.add_idle(*this);
}

void connection::become_busy() noexcept {
    loop_.idle.erase(*this);
    loop_.connections.push_back(*this);
}

// True: it has ended at once, and `then` will not be called.
bool connection::start_receiving(void (*then)(operation*) noexcept) noexcept {
    complete = then;
    if (receiving_) [[unlikely]]
        return false;  // as it has been since a handler was waited for
    on = socket_.slot();
    receiving_ = !loop_.context.start_here(*this);
    return !receiving_;
}

void connection::received(operation* op) noexcept {
    connection& c = *static_cast<connection*>(static_cast<ring_operation*>(op));
    c.receiving_ = false;
    if (c.take_input()) c.serve();
}

io::pooled_buffer connection::take_received() noexcept {
    if (result <= 0) return {};
    const auto bytes = static_cast<std::size_t>(result);
    loop_.counts.bytes_received.add(bytes);
    return {loop_.context.buffers(), data, bytes};
}

// True: it is answered, and the connection is as good as new.
[[gnu::flatten]] bool connection::take_input() noexcept {
    io::pooled_buffer input = take_received();
    if (input.empty() || !socket_.is_open()) [[unlikely]] {
        input.release();
        end();
        return false;
    }
    exchange& e = loop_.take_exchange(*this);
    begin_batch(e, std::move(input));
    const step reached = advance(e);
    if (reached != step::idle || e.output.empty()) [[unlikely]] {
        become_busy();
        attend(reached);
        return false;
    }
    count(e);
    if (!loop_.sends_in_groups) return send_answers(std::nullopt);
    loop_.send_soon(e);
    return false;
}

// `sent`: when, if it is known. True: all are sent, and the batch is over. False: they are being
// sent, or the connection has ended.
[[gnu::flatten]] bool connection::send_answers(std::optional<time_point> sent) noexcept {
    exchange& e = *batch_;
    bool at_once = false;
    while (e.sent != e.output.size() && socket_.is_open()) {
        if (!start_sending()) return false;
        if (!note_sent(e)) break;
        at_once = true;
    }
    const bool all = e.sent == e.output.size();
    if (!sent) sent = at_once ? loop_.context.now() : loop_.context.turn_time();
    end_batch(*sent);
    if (!all) [[unlikely]]
        end();
    return all;
}

void connection::wait_for_sending() noexcept {
    if (phase_ != phase::idle) return;
    become_busy();
    enter(phase::writing, transfer_time(loop_.options.timeouts.write, batch_->sender.size));
}

bool connection::note_sent(exchange& e) noexcept {
    if (e.sender.result <= 0) return false;
    e.sent += static_cast<std::size_t>(e.sender.result);
    e.bytes_sent += static_cast<std::size_t>(e.sender.result);
    return true;
}

void connection::answers_sent(operation* op) noexcept {
    connection& c = *static_cast<exchange::sending*>(op)->of.owner;
    // What the loop finds sent was sent by the time that it looked.
    c.go_on(c.loop_.context.turn_time());
}

[[gnu::flatten]] void connection::go_on(time_point sent) noexcept {
    if (!note_sent(*batch_)) [[unlikely]] {
        end_batch(sent);
        end();
    } else if (send_answers(sent)) {
        serve();
    }
}

// Gives the next buffer that has come, or will come; empty at the end.
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

// Ends when what give_up() sends does.
class connection::end_of_late_answer {
public:
    explicit end_of_late_answer(exchange& e) noexcept : exchange_(e) {}
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) const noexcept { exchange_.late_waiter = h; }
    void await_resume() const noexcept {}

private:
    exchange& exchange_;
};

// Answers what takes waiting: the rest of the batch, and what comes meanwhile.
session connection::attend(step s) {
    exchange& e = *batch_;
    e.more = true;
    bool more = co_await converse(e, s);
    while (more && e.ahead.has_news()) {
        std::error_code ec;
        io::pooled_buffer more_input = co_await next_input(*this, ec);
        if (ec || more_input.empty()) {
            more = false;
            break;
        }
        account(e, loop_.context.now());
        e.clear();
        begin_batch(e, std::move(more_input));
        const step reached = advance(e);
        more = co_await converse(e, reached);
    }
    if (more && !loop_.draining && socket_.is_open()) {
        end_batch(loop_.context.now());
        rest();
        co_return;
    }
    if ((e.unread || e.given_up) && socket_.is_open()) co_await linger();
    socket_.close();
    if (e.sending_late) co_await end_of_late_answer(e);
    end_batch(loop_.context.now());
    end();
}

// Goes on as serve() does, in a coming turn at the earliest.
void connection::rest() noexcept {
    become_idle();
    if (!start_receiving(&received)) return;
    receiving_ = true;
    loop_.context.defer(*this);
}

// Nothing of this may be touched afterwards.
void connection::end() noexcept {
    socket_.close();
    if (receiving_) {
        complete = &received_last;
    } else {
        delete this;
    }
}

void connection::received_last(operation* op) noexcept {
    connection& c = *static_cast<connection*>(static_cast<ring_operation*>(op));
    c.take_received().release();
    delete &c;
}

void connection::begin_batch(exchange& e, io::pooled_buffer received) noexcept {
    batch_ = &e;
    // One reading of the clock per batch: where the one before it has ended in this turn.
    e.began = std::max(loop_.context.turn_time(), loop_.batch_ended);
    e.buffer = std::move(received);
    e.left = text_of(e.buffer);
    e.origin.loop = &loop_.context;
    e.origin.connection = socket_.native();
    e.origin.trailers = &e.trailers;
}

void connection::end_batch(time_point sent) noexcept {
    exchange& e = *batch_;
    account(e, sent);
    batch_ = nullptr;
    loop_.give_exchange(e);
}

// Counts what has been answered. Before the answers are written, so that whoever has read one finds
// it counted.
void connection::count(exchange& e) noexcept {
    loop_counts& counts = loop_.counts;
    const auto count_run = [&](const exchange::run& r) noexcept {
        const auto index = static_cast<std::size_t>(r.status - 100);
        if (away_) [[unlikely]] {
            // Relaxed: a count.
            counts.by_status_away[index].fetch_add(r.count, relaxed);
        } else {
            counts.by_status[index].add(r.count);
        }
        e.written_requests += r.count;
    };
    if (!e.earlier.empty()) [[unlikely]] {
        for (const exchange::run& r : e.earlier) count_run(r);
        e.earlier.clear();
    }
    if (e.latest.count != 0) {  // not exchanged: its halves were written apart, and not long ago
        count_run(e.latest);
        e.latest.count = 0;
    }
    if (away_) return;
    if (e.stops != 0) [[unlikely]]
        counts.stopped.add(std::exchange(e.stops, 0));
    if (e.exceptions != 0) [[unlikely]]
        counts.exceptions.add(std::exchange(e.exceptions, 0));
}

// On the loop, after a write that had ended by `sent`.
void connection::account(exchange& e, time_point sent) noexcept {
    count(e);
    if (e.written_requests != 0) {
        loop_.batch_ended = std::max(loop_.batch_ended, sent);
        const duration taken = std::max(sent, e.began) - e.began;
        loop_.counts.latency.record(static_cast<std::uint64_t>(taken.count()), e.written_requests);
        e.written_requests = 0;
    }
    if (e.bytes_sent != 0) loop_.counts.bytes_sent.add(std::exchange(e.bytes_sent, 0));
    if (e.more && !e.log.empty()) [[unlikely]]
        loop_.log(e.log);
}

// Answers the rest of a batch. True: everything was answered and the connection is idle.
task<bool> connection::converse(exchange& e, step s) {
    for (;;) {
        switch (s) {
            case step::answered:
                s = advance(e);
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
                // What is ready should not wait for what may take long.
                if (!co_await write(e)) {
                    s = step::gone;
                    break;
                }
                // Frames go back to the thread that they are of: so this is not run_handler()'s.
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

// Moves what is left of the batch into e.input, and gives the buffer back.
void connection::keep(exchange& e) {
    if (e.buffer.empty()) {
        e.input.erase(0, static_cast<std::size_t>(e.left.data() - e.input.data()));
    } else {
        e.input.assign(e.left);
        e.buffer.release();
    }
    e.left = e.input;
}

// False: the client is gone in the middle of a request.
task<bool> connection::receive_more(exchange& e) {
    std::error_code ec;
    const io::pooled_buffer received = co_await next_input(*this, ec);
    if (ec || received.empty()) co_return false;
    e.input += text_of(received);
    e.left = e.input;
    co_return true;
}

task<connection::step> connection::receive_head(exchange& e) {
    if (!co_await write(e)) co_return step::gone;
    if (away_) co_await come_home();
    keep(e);
    if (!e.in_head) enter(phase::header, loop_.options.timeouts.header);
    e.in_head = true;
    // In a statement of its own: GCC 12 resumes the wrong place in a conditional expression.
    const bool more = co_await receive_more(e);
    co_return more ? step::answered : step::gone;
}

// Receives the rest of a body, so that e.body is all of it.
task<connection::step> connection::receive_body(exchange& e) {
    const bool chunked = e.parser.head().chunked();
    const std::uint64_t length = e.parser.head().content_length().value_or(0);
    if (e.parser.head().expects_continue() && e.left.size() == e.head_bytes) {
        e.output += continue_line;
    }
    if (!co_await write(e)) co_return step::gone;
    if (away_) co_await come_home();
    keep(e);
    const limits& limit = loop_.options.limits;
    enter(phase::body,
          transfer_time(loop_.options.timeouts.body, chunked ? limit.body_bytes_max : length));
    if (chunked) {
        const step s = co_await receive_chunked(e);
        if (s != step::answered) co_return s;
    } else {
        e.body_bytes = static_cast<std::size_t>(length);  // within body_bytes_max
        e.end = e.head_bytes + e.body_bytes;
        while (e.left.size() < e.end) {
            if (!co_await receive_more(e)) co_return step::gone;
        }
    }
    // The input has moved: views of it are made again.
    e.parser.reset();
    (void)e.parser.parse(e.left.substr(0, e.head_bytes));
    const request_head& head = e.parser.head();
    e.match = loop_.routes.match(head.verb(), head.path());
    e.body = e.left.substr(e.head_bytes, e.body_bytes);
    phase_ = phase::handling;
    co_return step::answered;
}

// Sets e.body_bytes and e.end of a chunked body, which loses its framing in place.
task<connection::step> connection::receive_chunked(exchange& e) {
    chunk_decoder decoder(loop_.options.limits);
    decoder.keep_trailers(e.trailers);
    for (std::size_t decoded = e.head_bytes;;) {  // the body so far ends here; framed bytes follow
        const std::size_t framed = e.input.size() - decoded;
        const chunk_decoder::result r = decoder.decode(std::span(e.input.data() + decoded, framed));
        decoded += r.produced;
        if (r.status == parse_status::complete) {
            // What follows the body is the next request.
            e.body_bytes = decoded - e.head_bytes;
            e.end = decoded - r.produced + r.consumed;
            co_return step::answered;
        }
        if (r.status == parse_status::error) {
            put(e, refusal(e, r.error, r.reason), nullptr);
            co_return step::last;
        }
        e.input.resize(decoded);
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
    if (departed) e.right.begin(true);  // all that was ready has been sent
    request r(e.parser.head(), e.body, e.match.parameters, &e.origin);
    std::optional<response> made;
    std::exception_ptr error;
    try {
        made = co_await result_of({e.origin.stop, loop_.context}, h.start(r));
    } catch (...) {
        error = std::current_exception();
    }
    const bool may_answer = !departed || e.right.end();
    // The task may have ended anywhere.
    if (!away_ || !loop_.shared.pool->is_current()) co_await come_home();
    if (!may_answer || (!away_ && e.given_up)) co_return step::gone;
    co_return conclude(e, std::move(made), error, r);
}

// What comes after a handler that was awaited: its answer, or one in its place.
connection::step connection::conclude(exchange& e, std::optional<response> made,
                                      const std::exception_ptr& error, const request& r) {
    if (!away_ && !socket_.is_open()) return step::gone;  // cut off meanwhile
    if (error) {
        report_exception(e, error);
        made = response::status(500);
    } else if (!made) {
        ++e.stops;
        const bool late = loop_.context.now() >= e.origin.deadline;
        if (e.stop->stop_requested() && !late) return step::gone;
        made = response::status(503, static_text::promised(overdue_reason));
    }
    const step reached = finish(e, std::move(*made), r);
    if (!away_ && reached != step::stream) end_run(e);
    return reached;
}

// Engages the stop source and starts to look for the client's end, or for its next requests.
void connection::begin_run(exchange& e) {
    end_run(e);
    e.stop.emplace();
    e.origin.stop = e.stop->get_token();
    enter(phase::handling, loop_.options.timeouts.handler);
    e.origin.deadline = e.deadline;
    watch();
}

void connection::end_run(exchange& e) noexcept {
    e.origin.stop = {};
    e.stop.reset();
}

// Nothing of this connection may be touched afterwards: what is stopped may end it.
void connection::request_stop() noexcept {
    if (batch_ != nullptr && batch_->stop) batch_->stop->request_stop();
}

// The batch is about to go to a thread of the pool.
void connection::prepare_departure(exchange& e) {
    begin_run(e);
    loop_.date().copy(e.date.data(), e.date.size());
    away_ = true;
}

// Takes the connection back to its loop.
task<> connection::come_home() {
    if (!loop_.context.is_current()) co_await loop_.context.get_scheduler().schedule();
    at_home();
}

void connection::at_home() noexcept {
    away_ = false;
    if (cut_) socket_.close();
}

// Receives while a handler runs: the next requests, within bounds, and the client's end. A client
// that resets its connection stops its handler; one that only says that it will send no more does
// not, unless that is what its end means here, since it may still read. May end the connection.
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

// Writes e.output. False: the connection is over. Afterwards it is at home, unless all was written
// from where it was.
task<bool> connection::write(exchange& e) {
    if (e.output.empty()) co_return true;
    count(e);
    if (away_) {
        if (send_directly(e)) co_return true;
        co_await come_home();
        if (!socket_.is_open()) co_return false;
    }
    const std::span left = std::span(e.output).subspan(e.sent);
    enter(phase::writing, transfer_time(loop_.options.timeouts.write, left.size()));
    std::error_code ec;
    co_await socket_.send_all(std::as_bytes(left), use_await[ec]);
    if (!ec) e.bytes_sent += left.size();
    e.output.clear();
    e.sent = 0;
    phase_ = phase::handling;
    account(e, loop_.context.now());
    co_return !ec;
}

// From a thread of the pool. True: the kernel has taken everything.
bool connection::send_directly(exchange& e) noexcept {
    const std::span left = std::span(e.output).subspan(e.sent);
    const ssize_t n =
        ::send(e.origin.connection, left.data(), left.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n <= 0) return false;  // the loop will wait, or find out what is wrong
    e.sent += static_cast<std::size_t>(n);
    e.bytes_sent += static_cast<std::size_t>(n);
    if (e.sent != e.output.size()) return false;
    e.output.clear();
    e.sent = 0;
    return true;
}

// Reads on for a moment after the last answer.
task<> connection::linger() {
    socket_.shutdown_send();
    enter(phase::lingering, linger_time);
    for (std::error_code ec; !ec;) {
        const io::pooled_buffer dropped = co_await next_input(*this, ec);
        if (dropped.empty()) break;
    }
}

// Starts a phase that must end within `time`. The timer is only moved if it would fire too late;
// one that fires too early is armed again by expired().
void connection::enter(phase p, duration time) noexcept {
    phase_ = p;
    const time_point now = loop_.context.turn_time();
    set_deadline(time < time_point::max() - now ? now + time : time_point::max());
}

void connection::set_deadline(time_point when) noexcept {
    exchange& e = *batch_;
    e.deadline = when;
    if (when == time_point::max()) return;
    if (e.armed()) {
        if (e.armed_for <= when) return;
        loop_.context.disarm(e);
    }
    e.armed_for = when;
    loop_.context.arm(e, when);
}

void connection::expired(io::timer_entry* entry) noexcept {
    exchange& e = *static_cast<exchange*>(entry);
    // Free, or ended with its context anyway.
    if (e.owner == nullptr || e.owner->loop_.context.ending()) return;
    connection& c = *e.owner;
    if (c.loop_.context.turn_time() < e.deadline) {
        c.set_deadline(e.deadline);
    } else {
        c.run_out_of_time();
    }
}

// Last of all.
void connection::run_out_of_time() noexcept {
    if (phase_ == phase::overdue) {
        give_up();
        return;
    }
    if (phase_ == phase::handling) {
        loop_.counts.timed_out.add();
        enter(phase::overdue, loop_.options.timeouts.handler_stop);
        request_stop();
        return;
    }
    if (!batch_->given_up) loop_.counts.timed_out.add();
    socket_.close();  // what is pending ends, and the session with it
}

// The handler has been stopped and does not end: the client is answered in its place, and the
// connection ends. The handler goes on; the exchange waits for it.
void connection::give_up() noexcept {
    exchange& e = *batch_;
    e.given_up = true;
    loop_.counts.stopped.add();
    enter(phase::lingering, linger_time);
    if (away_ && !e.right.give_up()) {
        // Earlier answers of the batch wait for this one: nobody can say any more what is whose.
        socket_.shutdown_send();
        return;
    }
    put(e, refusal(e, 503, overdue_reason), &e.parser.head());
    count(e);
    e.sender.on = socket_.slot();
    e.sender.complete = &late_answer_sent;
    e.sender.data = reinterpret_cast<std::byte*>(e.output.data());
    e.sender.size = e.output.size();
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

duration connection::transfer_time(duration base, std::uint64_t bytes) const noexcept {
    return base + std::chrono::seconds(bytes / loop_.options.timeouts.rate_min);
}

void connection::drain() noexcept {
    if (phase_ == phase::idle) {
        if (batch_ == nullptr) socket_.close();  // else it has answers that are about to be sent
    } else if (phase_ == phase::header || phase_ == phase::body) {
        const time_point latest = loop_.context.turn_time() + loop_.options.timeouts.drain_request;
        if (latest < batch_->deadline) set_deadline(latest);
    }
}

void connection::cut_off() noexcept {
    cut_ = true;
    if (!away_ || batch_->given_up) socket_.close();  // otherwise when it comes back
    request_stop();
}

}  // namespace coppice::http
