// connection, idle and on its short way: what arrives is answered and sent without a coroutine.
#include "connection.hpp"

#include <coppice/base/saturating.hpp>

#include <algorithm>
#include <exception>
#include <utility>

namespace coppice::http {

using namespace internal;

namespace {

// Ten thousand idle connections must cost at most 3 MB, with their slots in the loop's table.
static_assert(sizeof(connection) <= 184 || sizeof(void*) != 8);

}  // namespace

connection::connection(serving_loop& l, io::tcp::socket&& s, address_counts::slot* from) noexcept
    : ring_operation(&received, io::opcode::receive_pooled),
      loop_(l),
      socket_(std::move(s)),
      from_(from) {
    loop_.connections.push_back(*this);
    loop_.counts.accepted.add();
}

// A stream is not counted as a connection.
connection::connection(serving_loop& l, link& stream) noexcept
    : ring_operation(&received, io::opcode::receive_pooled),
      loop_(l),
      socket_(l.context),
      link_(&stream),
      from_(nullptr),
      is_stream_(true) {
    socket_.stand_for_stream();
    loop_.connections.push_back(*this);
}

connection::~connection() {
    if (is_stream_) {
        link_.reset();
        loop_.connections.erase(*this);
        loop_.connection_ended();
        return;
    }
    if (from_.counted() != nullptr) loop_.shared.addresses.leave(*from_.counted());
    loop_.connections.erase(*this);
    // Relaxed: a count. First, so that a client that sees the count of open connections fall, and
    // then connects, finds room.
    loop_.shared.open_connections.fetch_sub(1, relaxed);
    loop_.counts.closed.add();
    loop_.connection_ended();
}

bool connection::open(serving_loop& l, io::tcp::socket&& s, address_counts::slot* from,
                      const io::server_security* security, bool proxied) noexcept {
    connection* const c = try_new<connection>(l, std::move(s), from);
    if (c == nullptr) return false;
    if (proxied) [[unlikely]] {
        c->await_proxy_header(security);
    } else if (security == nullptr) [[likely]] {
        c->serve();
    } else if (c->secure_by(*security)) {
        c->begin_handshake();
    } else {
        c->end();
    }
    return true;
}

bool connection::open_stream(serving_loop& l, link& stream) noexcept {
    connection* const c = try_new<connection>(l, stream);
    if (c != nullptr) c->serve();
    return c != nullptr;
}

// Returns false if there is no memory, or no randomness.
bool connection::secure_by(const io::server_security& security) noexcept {
    try {
        const multiplexing* const other = loop_.options.http2.get();
        link_ = secure_link::make(loop_.context, *socket_.slot(), security.accept(),
                                  other == nullptr ? std::string_view() : other->protocol(),
                                  loop_.options.handshake_pool);
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

// Waits for the first bytes of a request, as in idle, but no longer than for a request's head. The
// wait drives the handshake.
void connection::begin_handshake() noexcept {
    idle_until_ = saturating_add(loop_.context.turn_time(), loop_.options.timeouts.header);
    loop_.add_handshake(*this);
    if (start_receiving(&greeted)) greeted(this);
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
    if ((loop_.draining && !may_wait_in_drain()) || !socket_.is_open()) [[unlikely]] {
        end();
        return false;
    }
    become_idle();
    return start_receiving(&received);
}

void connection::become_idle() noexcept {
    state_ = state::idle;
    const timeouts& times = loop_.options.timeouts;
    const duration time = loop_.draining ? times.drain_first_request : times.idle;
    idle_until_ = saturating_add(loop_.context.turn_time(), time);
    loop_.add_idle(*this);
}

// Returns true if the first request of the connection may still arrive while the server drains.
bool connection::may_wait_in_drain() const noexcept {
    return served_ == 0 && loop_.options.timeouts.drain_first_request != duration::zero();
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
    receiving_ = !start(*this);
    return !receiving_;
}

void connection::received(operation* op) noexcept {
    connection& c = receive_ended(op);
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
        if (reached == step::preface) {
            multiplex_rest(e);
            return false;
        }
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
    if (link_ != nullptr) link_->rest();
    if (!start_receiving(&received)) return;
    receiving_ = true;
    loop_.context.defer(*this);
}

void connection::begin_batch(exchange& e, io::pooled_buffer received) noexcept {
    batch_ = &e;
    // One reading of the clock per batch: a batch begins when the turn did, or when the batch
    // before it in this turn ended.
    e.origin.arrived = loop_.context.ready_time();
    e.origin.followed = false;
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

}  // namespace coppice::http
