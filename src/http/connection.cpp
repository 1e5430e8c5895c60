// One connection: waiting for bytes, for handlers and for the client to read, within limits of
// time.
#include "serving.hpp"
#include "until_stopped.hpp"

#include <sys/socket.h>
#include <utility>

namespace coppice::http {

namespace {

// How long a closing connection still reads what the client had sent, so that the client sees the
// answer and not a reset.
constexpr duration linger_time = std::chrono::seconds(2);

constexpr std::string_view continue_line = "HTTP/1.1 100 Continue\r\n\r\n";

std::string_view text_of(const io::pooled_buffer& buffer) noexcept {
    return {reinterpret_cast<const char*>(buffer.bytes().data()), buffer.bytes().size()};
}

}  // namespace

connection::connection(serving_loop& l, io::tcp::socket s, address_counts::slot* from) noexcept
    : timer_entry(&expired), loop_(l), socket_(std::move(s)), from_(from) {
    loop_.connections.push_back(*this);
    loop_.counts.accepted.add();
}

connection::~connection() {
    if (timer_entry::armed()) loop_.context.disarm(*this);
    if (ahead_ != nullptr) loop_.give_read_ahead(std::move(ahead_));
    if (from_ != nullptr) loop_.shared.addresses.leave(*from_);
    loop_.connections.erase(*this);
    loop_.counts.closed.add();
    // Relaxed: a count.
    loop_.shared.open_connections.fetch_sub(1, relaxed);
    loop_.connection_ended();
}

// Gives the next buffer that receive_ahead() has, or will have; empty at the end.
class connection::next_input {
public:
    next_input(connection& c, std::error_code& ec) noexcept : connection_(c), error_(ec) {}
    bool await_ready() const noexcept {
        const read_ahead& a = *connection_.ahead_;
        return a.count != 0 || a.ended || !a.receiving;
    }
    void await_suspend(std::coroutine_handle<> h) noexcept { connection_.ahead_->waiter = h; }
    io::pooled_buffer await_resume() {
        read_ahead& a = *connection_.ahead_;
        if (a.count == 0) {
            error_ = a.error;
            return {};
        }
        io::pooled_buffer next = std::move(a.kept[a.first]);
        a.first = (a.first + 1) % read_ahead::buffers_max;
        --a.count;
        if (a.count == 0 && !a.receiving && !a.ended) {
            connection_.loop_.give_read_ahead(std::move(connection_.ahead_));
        }
        return next;
    }

private:
    connection& connection_;
    std::error_code& error_;
};

// Ends when receive_ahead() does.
class connection::end_of_receiving {
public:
    explicit end_of_receiving(read_ahead& a) noexcept : ahead_(a) {}
    bool await_ready() const noexcept { return !ahead_.receiving; }
    void await_suspend(std::coroutine_handle<> h) noexcept { ahead_.waiter = h; }
    void await_resume() const noexcept {}

private:
    read_ahead& ahead_;
};

session connection::serve(serving_loop& l, io::tcp::socket s, address_counts::slot* from) {
    connection c(l, std::move(s), from);
    for (bool more = true; more;) {
        c.enter(phase::idle, l.options.timeouts.idle);
        if (l.draining) break;
        std::error_code ec;
        io::pooled_buffer received;
        if (c.ahead_ == nullptr) {
            received = co_await c.socket_.receive_pooled(use_await[ec]);
            l.counts.bytes_received.add(received.bytes().size());
        } else {
            received = co_await next_input(c, ec);
        }
        if (ec || received.empty()) break;
        std::unique_ptr<exchange> e = l.take_exchange();
        c.begin_batch(*e, std::move(received));
        const step reached = c.advance(*e);
        if (reached == step::idle && !e->output.empty()) {
            // What most batches are, without a coroutine of its own.
            c.count(*e);
            c.enter(phase::writing, c.transfer_time(l.options.timeouts.write, e->output.size()));
            co_await c.socket_.send_all(std::as_bytes(std::span(e->output)), use_await[ec]);
            if (!ec) e->bytes_sent += e->output.size();
            more = !ec;
        } else {
            more = co_await c.converse(*e, reached);
        }
        c.end_batch(*e);
        l.give_exchange(std::move(e));
    }
    if (c.unread_ && c.socket_.is_open()) co_await c.linger();
    c.socket_.close();
    if (c.ahead_ != nullptr) co_await end_of_receiving(*c.ahead_);
}

void connection::begin_batch(exchange& e, io::pooled_buffer received) noexcept {
    batch_ = &e;
    batch_began_ = monotonic_clock().now();
    e.buffer = std::move(received);
    e.left = text_of(e.buffer);
    e.origin.loop = &loop_.context;
    e.origin.connection = socket_.native();
    e.origin.trailers = &e.trailers;
    const std::string_view date = loop_.date();
    date.copy(e.date.data(), e.date.size());
}

void connection::end_batch(exchange& e) noexcept {
    account(e);
    batch_ = nullptr;
}

// Counts what has been answered. Before the answers are written, so that whoever has read one finds
// it counted.
void connection::count(exchange& e) noexcept {
    loop_counts& counts = loop_.counts;
    for (const exchange::run& r : e.answered) {
        const auto index = static_cast<std::size_t>(r.status - 100);
        if (away_) {
            // Relaxed: a count.
            counts.by_status_away[index].fetch_add(r.count, relaxed);
        } else {
            counts.by_status[index].add(r.count);
        }
        e.written_requests += r.count;
    }
    e.answered.clear();
    if (away_) return;
    if (e.stops != 0) counts.stopped.add(std::exchange(e.stops, 0));
    if (e.exceptions != 0) counts.exceptions.add(std::exchange(e.exceptions, 0));
}

// On the loop, after a write.
void connection::account(exchange& e) noexcept {
    count(e);
    if (e.written_requests != 0) {
        const duration taken = monotonic_clock().now() - batch_began_;
        loop_.counts.latency.record(static_cast<std::uint64_t>(taken.count()), e.written_requests);
        e.written_requests = 0;
    }
    if (e.bytes_sent != 0) loop_.counts.bytes_sent.add(std::exchange(e.bytes_sent, 0));
    if (!e.log.empty()) loop_.log(e.log);
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
    io::pooled_buffer received;
    if (ahead_ == nullptr) {
        received = co_await socket_.receive_pooled(use_await[ec]);
        loop_.counts.bytes_received.add(received.bytes().size());
    } else {
        received = co_await next_input(*this, ec);
    }
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
            put(e, refusal(r.error, r.reason), nullptr);
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
    request r(e.parser.head(), e.body, e.match.parameters, &e.origin);
    std::optional<response> made;
    std::exception_ptr error;
    try {
        made = co_await result_of(e.origin.stop, h.start(r));
    } catch (...) {
        error = std::current_exception();
    }
    // The task may have ended anywhere.
    if (!away_ || !loop_.shared.pool->is_current()) co_await come_home();
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
        const bool late = monotonic_clock().now() >= e.origin.deadline;
        if (e.stop->stop_requested() && !late) return step::gone;
        made = response::status(503, "the answer took too long");
    }
    const step next = finish(e, std::move(*made), r);
    if (!away_ && next != step::stream) end_run(e);
    return next;
}

// Engages the stop source and starts to look for the client's end, or for its next requests.
void connection::begin_run(exchange& e) {
    end_run(e);
    e.stop.emplace();
    e.origin.stop = e.stop->get_token();
    enter(phase::handling, loop_.options.timeouts.handler);
    e.origin.deadline = deadline_;
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

void connection::watch() {
    if (ahead_ == nullptr) ahead_ = loop_.take_read_ahead();
    if (!ahead_->receiving && !ahead_->ended && ahead_->count != read_ahead::buffers_max) {
        receive_ahead();
    }
}

// Receives while a handler runs: the next requests, within bounds, and the client's end. A client
// that resets its connection stops its handler; one that only says that it will send no more does
// not, since it may still read.
session connection::receive_ahead() {
    read_ahead& a = *ahead_;
    a.receiving = true;
    while (a.count != read_ahead::buffers_max) {
        std::error_code ec;
        io::pooled_buffer received = co_await socket_.receive_pooled(use_await[ec]);
        if (ec || received.empty()) {
            a.ended = true;
            a.error = ec;
            break;
        }
        loop_.counts.bytes_received.add(received.bytes().size());
        a.kept[(a.first + a.count++) % read_ahead::buffers_max] = std::move(received);
        if (a.waiter) break;
    }
    a.receiving = false;
    // Either call may end the connection.
    if (a.waiter) {
        std::exchange(a.waiter, {}).resume();
    } else if (a.error) {
        request_stop();
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
    account(e);
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
    if (socket_.is_open()) ::shutdown(socket_.native(), SHUT_WR);
    enter(phase::lingering, linger_time);
    for (std::error_code ec; !ec;) {
        io::pooled_buffer dropped;
        if (ahead_ == nullptr) {
            dropped = co_await socket_.receive_pooled(use_await[ec]);
        } else {
            dropped = co_await next_input(*this, ec);
        }
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
    deadline_ = when;
    if (timer_entry::armed()) {
        if (armed_for_ <= deadline_) return;
        loop_.context.disarm(*this);
    }
    armed_for_ = deadline_;
    loop_.context.arm(*this, deadline_);
}

void connection::expired(timer_entry* entry) noexcept {
    connection& c = *static_cast<connection*>(entry);
    if (c.loop_.context.ending()) return;  // whatever waits is being ended already
    if (c.loop_.context.turn_time() < c.deadline_) {
        c.set_deadline(c.deadline_);
        return;
    }
    c.loop_.counts.timed_out.add();
    if (c.phase_ == phase::handling) {
        c.request_stop();
    } else {
        c.socket_.close();  // what is pending ends, and the session with it
    }
}

duration connection::transfer_time(duration base, std::uint64_t bytes) const noexcept {
    return base + std::chrono::seconds(bytes / loop_.options.timeouts.rate_min);
}

void connection::drain() noexcept {
    if (phase_ == phase::idle) {
        socket_.close();
    } else if (phase_ == phase::header || phase_ == phase::body) {
        const time_point latest = loop_.context.turn_time() + loop_.options.timeouts.drain_request;
        if (latest < deadline_) set_deadline(latest);
    }
}

void connection::cut_off() noexcept {
    cut_ = true;
    if (!away_) socket_.close();  // otherwise when it comes back
    request_stop();
}

}  // namespace coppice::http
