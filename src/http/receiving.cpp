// reading_head and reading_body: receiving a request in pieces; and reading ahead meanwhile.
#include "awaiting.hpp"
#include "connection.hpp"

#include <coppice/base/saturating.hpp>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace coppice::http {

using namespace internal;

// Enters `reading_head`, unless the request's time has begun already.
void connection::await_head(exchange& e) noexcept {
    if (!std::exchange(e.in_head, true)) {
        enter(state::reading_head, time_in_drain(loop_.options.timeouts.header));
    }
}

// Enters `reading_body`, for a body that is received or dropped as a whole.
void connection::await_body() noexcept {
    enter(state::reading_body, time_in_drain(loop_.options.timeouts.body));
}

// Enters `reading_body`, for the next piece of a body of which the client has taken the time
// `taken` to send `received` bytes. `most`: the time that it may take for all.
void connection::await_piece(std::uint64_t received, duration taken, duration most) noexcept {
    const duration allowed = transfer_time(loop_.options.timeouts.body, received);
    enter(state::reading_body, saturating_sub(std::min(allowed, most), taken));
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
    if (ec == std::errc::no_buffer_space && is_stream_) {  // what has come does not fit
        e.out_of_room = true;
        e.ahead.error.clear();  // the client is there
    }
    if (ec || received.empty()) co_return false;
    if (!make_room(e, received.bytes().size(), whole)) co_return false;
    e.input += text_of(received);
    e.left = e.input;
    e.origin.arrived = loop_.context.ready_time();
    e.origin.followed = false;
    co_return true;
}

task<connection::step> connection::receive_head(exchange& e) {
    if (!write_at_once(e)) {
        if (!co_await write(e)) co_return step::gone;
    }
    if (away_) co_await come_home();
    if (!keep(e)) co_return give_way(e);
    await_head(e);
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
    if (!write_at_once(e)) {
        if (!co_await write(e)) co_return step::gone;
    }
    if (away_) co_await come_home();
    if (!keep(e)) co_return give_way(e);
    await_body();
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
    read_again(e, e.left.substr(0, e.head_bytes));
    e.body = e.left.substr(e.head_bytes, e.body_bytes);
    back_to_batch();
    co_return step::answered;
}

// Parses a head again, because its bytes have moved and the views of them with it.
void connection::read_again(exchange& e, std::string_view moved) {
    e.parser.reset();
    (void)e.parser.parse(moved);
    const request_head& head = e.parser.head();
    e.match = loop_.routes.match(head.verb(), head.path());
}

// Receives a chunked body, removes its framing in place, and finds e.body_bytes and the end.
task<connection::step> connection::receive_chunked(exchange& e) {
    chunk_decoder decoder(loop_.options.limits);
    decoder.keep_trailers(e.trailers);
    const time_point began = loop_.context.turn_time();
    std::uint64_t received = 0;
    // The body so far ends at `decoded`; framed bytes follow.
    for (std::size_t decoded = e.head_bytes;;) {
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
    if (!write_at_once(e)) {
        if (!co_await write(e)) co_return step::gone;
    }
    if (away_) co_await come_home();
    e.left.remove_prefix(e.head_bytes);
    if (!keep(e)) co_return step::gone;
    await_body();
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
    back_to_batch();
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

// Tells whether receive_now() may find something.
bool connection::may_receive_now() const noexcept {
    return link_ == nullptr && !receiving_ && !batch_->ahead.has_news() && socket_.is_open() &&
           loop_.context.may_try(*socket_.slot(), io::opcode::receive);
}

// Receives what is here already into the caller's memory; gives 0 if that is nothing. Called only
// if may_receive_now().
std::size_t connection::receive_now(std::span<char> into) noexcept {
    ring_operation direct(nullptr, io::opcode::receive);
    direct.on = socket_.slot();
    direct.data = reinterpret_cast<std::byte*>(into.data());
    direct.size = into.size();
    if (!loop_.context.try_here(direct)) return 0;
    if (direct.result > 0) {
        const auto bytes = static_cast<std::size_t>(direct.result);
        loop_.counts.bytes_received.add(bytes);
        return bytes;
    }
    note_end(direct.result);
    return 0;
}

// Prepares for receive_now() of what follows a buffer, or (false) for none.
void connection::receive_one_by_one(bool wanted) noexcept {
    if (link_ != nullptr || !socket_.is_open()) return;
    loop_.context.receive_one_by_one(*socket_.slot(), wanted);
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
    note_end(result);
}

// Called when a receive has ended without bytes. Encrypted or not, the end of a client's sending is
// no error: HTTP itself tells whether a request is whole.
void connection::note_end(int outcome) noexcept {
    read_ahead& a = batch_->ahead;
    a.ended = true;
    if (outcome == -EPROTO && link_ != nullptr && link_->is_cut_off()) return;
    if (outcome < 0) a.error = std::error_code(-outcome, std::system_category());
}

void connection::received_ahead(operation* op) noexcept {
    connection& c = receive_ended(op);
    c.keep_received();
    // Either call may end the connection.
    if (c.batch_->ahead.waiter) {
        c.batch_->ahead.resume_waiter();
    } else {
        c.watch();
    }
}

}  // namespace coppice::http
