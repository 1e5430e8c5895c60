// One connection: receives its requests and sends its answers, within limits of time.
#include "serving.hpp"

#include <coppice/base/saturating.hpp>

#include <algorithm>
#include <utility>

namespace coppice::http {

using namespace internal;

namespace {

// Ten thousand idle connections must cost at most 3 MB, with their slots in the loop's table.
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

bool connection::open(serving_loop& l, io::tcp::socket&& s, address_counts::slot* from) noexcept {
    connection* const c = try_new<connection>(l, std::move(s), from);
    if (c == nullptr) return false;
    c->serve();
    return true;
}

// Waits for requests and answers them, until it has to wait for something else. May end the
// connection.
[[gnu::flatten]] void connection::serve() noexcept {
    while (await_input() && take_input()) {
    }
}

// Returns true if something has arrived; false if it is being waited for, or the connection has
// ended.
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
    idle_until_ = saturating_add(loop_.context.turn_time(), loop_.options.timeouts.idle);
    loop_.add_idle(*this);
}

void connection::become_busy() noexcept {
    loop_.idle.erase(*this);
    loop_.connections.push_back(*this);
}

// Returns true if the receive completed at once; `then` is not called in that case.
bool connection::start_receiving(void (*then)(operation*) noexcept) noexcept {
    complete = then;
    if (receiving_) [[unlikely]]
        return false;  // pending since a handler was waited for
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

// Returns true if the input has been answered and the connection is ready for the next request.
[[gnu::flatten]] bool connection::take_input() noexcept {
    io::pooled_buffer input = take_received();
    if (input.empty() || !socket_.is_open()) [[unlikely]] {
        input.release();
        end();
        return false;
    }
    exchange* const lent = loop_.take_exchange(*this);
    if (lent == nullptr) [[unlikely]] {
        input.release();
        run_out_of_memory();
        return false;
    }
    exchange& e = *lent;
    begin_batch(e, std::move(input));
    step reached;
    try {
        reached = advance(e);
    } catch (...) {
        run_out_of_memory();
        return false;
    }
    if (reached != step::idle || e.output.empty()) [[unlikely]] {
        become_busy();
        bool began = false;
        attend(reached, began);
        if (!began) run_out_of_memory();
        return false;
    }
    count(e);
    if (!loop_.sends_in_groups) return send_answers(std::nullopt);
    loop_.send_soon(e);
    return false;
}

// `sent`: when the last send ended, if that is known. Returns true if all answers are sent and the
// batch is over; false if they are being sent, or the connection has ended.
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
    if (!reserve_output(*batch_)) {
        abort();
        return;
    }
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
    // What the loop finds sent was sent by the time of its turn.
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

// Continues as serve() does, in a later turn at the earliest.
void connection::rest() noexcept {
    become_idle();
    if (!start_receiving(&received)) return;
    receiving_ = true;
    loop_.context.defer(*this);
}

// Ends the connection. The caller must not touch it afterwards.
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
    // One reading of the clock per batch: a batch begins when the turn did, or when the batch
    // before it in this turn ended.
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

// Counts the answers before they are written, so that a client that has read one finds it counted.
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
    if (e.latest.count != 0) {  // no std::exchange: the two halves were written separately just now
        count_run(e.latest);
        e.latest.count = 0;
    }
    if (away_) return;
    if (e.stops != 0) [[unlikely]]
        counts.stopped.add(std::exchange(e.stops, 0));
    if (e.exceptions != 0) [[unlikely]]
        counts.exceptions.add(std::exchange(e.exceptions, 0));
}

// Called on the loop, after a write that had ended by `sent`.
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

// Starts a phase that must end within `time`. Moves the timer only if it would fire too late;
// expired() arms again a timer that fires too early.
void connection::enter(phase p, duration time) noexcept {
    phase_ = p;
    set_deadline(saturating_add(loop_.context.turn_time(), time));
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
    // The exchange is free, or its context is ending.
    if (e.owner == nullptr || e.owner->loop_.context.ending()) return;
    connection& c = *e.owner;
    if (c.loop_.context.turn_time() < e.deadline) {
        c.set_deadline(e.deadline);
    } else {
        c.run_out_of_time();
    }
}

// Called last: it may end the connection.
void connection::run_out_of_time() noexcept {
    if (phase_ == phase::overdue) {
        give_up();
        return;
    }
    if (phase_ == phase::handling) {
        if (away_) {  // each handler of the batch has its own time limit
            const time_point now = loop_.context.turn_time();
            time_point due{};
            if (!batch_->right.tell_if_late(now, due)) {
                const duration limit = loop_.options.timeouts.handler;
                set_deadline(std::min(due, saturating_add(now, limit)));
                return;
            }
        }
        loop_.counts.timed_out.add();
        enter(phase::overdue, loop_.options.timeouts.handler_stop);
        request_stop();
        return;
    }
    if (phase_ != phase::lingering) loop_.counts.timed_out.add();
    break_off();  // pending operations end, and the session with them
}

// Closes the socket. First takes the client's address if a handler may be running, which may still
// ask for it.
void connection::close_socket() noexcept {
    if (batch_ != nullptr && batch_->stop) (void)batch_->address.get();
    socket_.close();
}

duration connection::transfer_time(duration base, std::uint64_t bytes) const noexcept {
    return saturating_add(base, time_at_rate<duration>(bytes, loop_.options.timeouts.rate_min));
}

void connection::drain() noexcept {
    if (phase_ == phase::idle) {
        if (batch_ == nullptr) socket_.close();  // otherwise its answers are about to be sent
    } else if (phase_ == phase::header || phase_ == phase::body) {
        end_within(loop_.options.timeouts.drain_request);
    } else if (phase_ == phase::lingering) {
        end_within(linger_time_drain);
    }
}

// Limits the current phase to `time` from now.
void connection::end_within(duration time) noexcept {
    const time_point latest = saturating_add(loop_.context.turn_time(), time);
    if (latest < batch_->deadline) set_deadline(latest);
}

void connection::cut_off() noexcept {
    cut_ = true;
    if (!away_ || batch_->given_up) break_off();  // otherwise at_home() does it
    request_stop();
}

}  // namespace coppice::http
