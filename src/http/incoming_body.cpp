// How a handler reads a body while it arrives.
#include "incoming_body.hpp"
#include "awaiting.hpp"

#include <coppice/base/saturating.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/starts_on.hpp>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace coppice::http {

using namespace internal;

namespace {

limits limits_of(const server_options& o) noexcept {
    limits l = o.limits;
    l.body_bytes_max = saturating_cast<std::size_t>(o.streamed_body_bytes_max);
    return l;
}

}  // namespace

incoming_body::incoming_body(connection& c, exchange& e) noexcept
    : connection_(c), exchange_(e), decoder_(limits_of(c.loop_.options)) {
    const request_head& head = e.parser.head();
    chunked_ = head.chunked();
    left_ = head.content_length().value_or(0);
    ended_ = !chunked_ && left_ == 0;
    bytes_.swap(e.rest);
    asked_ = !head.expects_continue() || !bytes_.empty();
    decoder_.keep_trailers(e.trailers);
}

incoming_body::~incoming_body() {
    if (kept_ != 0) exchange_.budget.give(kept_);
}

void incoming_body::keep(std::size_t bytes) {
    if (!exchange_.budget.reserve(bytes)) throw refused{503, no_room_reason};
    kept_ += bytes;
}

incoming_body::turn_to_read::turn_to_read(incoming_body& body) : body_(&body) {
    const std::lock_guard lock(body.turns_);  // an incorrect program may read on two threads
    if (body.reading_) {
        throw std::logic_error(
            "a body is read twice at the same time: await one read() before the next");
    }
    body.reading_ = true;
}

void incoming_body::turn_to_read::end() noexcept {
    if (body_ == nullptr) return;
    const std::lock_guard lock(body_->turns_);
    std::exchange(body_, nullptr)->reading_ = false;
}

task<std::string_view> incoming_body::read() {
    serving_loop& loop = connection_.loop_;
    turn_to_read turn(*this);
    if (refusal_) throw *refusal_;  // some of the body is lost
    for (;;) {
        if (const std::string_view piece = next_piece(); ended_ || !piece.empty()) {
            begun_ = true;
            co_return piece;
        }
        const inplace_stop_token stop = co_await execution::read_env(get_stop_token);
        const execution::instant deadline = co_await execution::read_env(execution::get_deadline);
        bool received = false;
        if (loop.context.is_current()) {
            received = co_await receive(stop, deadline);
        } else {  // the handler is on another thread; its task may belong there
            received = co_await execution::starts_on(loop.context.get_scheduler(),
                                                     receive(stop, deadline));
            thread_pool* const pool = loop.shared.pool;
            if (pool != nullptr && !pool->is_current()) {
                co_await pool->get_scheduler().schedule();
            }
        }
        // What has arrived nevertheless is for the next call.
        if (!received || stop.stop_requested()) {
            turn.end();  // the frame may outlive the stop
            co_await execution::just_stopped();
        }
    }
}

// Refuses this and every later read.
void incoming_body::refuse(int status, const char* reason) {
    refusal_ = refused{status, reason};
    throw *refusal_;
}

// Returns the next piece that has arrived; "" if nothing has, or at the end.
std::string_view incoming_body::next_piece() {
    if (ended_) return {};
    char* const begin = bytes_.data() + at_;
    const std::size_t size = bytes_.size() - at_;
    if (!chunked_) {
        const std::size_t taken = static_cast<std::size_t>(std::min<std::uint64_t>(size, left_));
        at_ += taken;
        left_ -= taken;
        received_ += taken;
        ended_ = left_ == 0;
        return {begin, taken};
    }
    const chunk_decoder::result r = decoder_.decode(std::span(begin, size));
    if (r.status == parse_status::error) refuse(r.error, r.reason);
    at_ += r.consumed;
    received_ += r.produced;
    ended_ = r.status == parse_status::complete;
    return {begin, r.produced};
}

// Limits the time of the client in a drain, of which it has used `taken_`, and what has passed of a
// wait since `began`.
void incoming_body::note_drain(time_point began) noexcept {
    const serving_loop& loop = connection_.loop_;
    if (!loop.draining || taken_max_ != duration::max()) return;
    const duration before = std::max(loop.drain_began - began, duration(0));
    taken_max_ = saturating_add(taken_ + before, loop.options.timeouts.drain_request);
}

// Called on the loop. Gives false if the client is gone, or the awaiter was stopped.
task<bool> incoming_body::receive(inplace_stop_token stop, execution::instant deadline) {
    connection& c = connection_;
    broken_ = !c.socket_.is_open() || exchange_.given_up;
    if (broken_) co_return false;
    if (!std::exchange(asked_, true)) exchange_.output += continue_line;
    if (!exchange_.output.empty()) {
        const bool written = co_await c.write(exchange_);
        broken_ = !c.socket_.is_open();
        if (!written) co_return false;
    }
    // The client's time does not count as the handler's, nor the handler's as the client's.
    const time_point began = c.loop_.context.turn_time();
    note_drain(began);
    c.await_piece(received_, taken_, taken_max_);
    exchange_.input.clear();
    exchange_.left = {};
    connection::input_stop listening(c, stop, deadline);
    const bool more = co_await c.receive_more(exchange_);
    listening.end();
    co_await connection::input_stop::settled(listening);
    const bool full = std::exchange(exchange_.out_of_room, false);
    broken_ = !more && !full && !listening.stopped();
    if (broken_) co_return false;
    const duration waited = c.loop_.context.turn_time() - began;
    note_drain(began);  // it may have begun during the wait
    taken_ += waited;
    received_ += exchange_.input.size();
    exchange_.origin.deadline = saturating_add(exchange_.origin.deadline, waited);
    c.resume_run(exchange_);
    if (c.socket_.is_open()) c.watch();
    if (full) refuse(503, no_room_reason);
    if (!more) co_return false;
    bytes_.assign(exchange_.input);
    at_ = 0;
    co_return true;
}

}  // namespace coppice::http
