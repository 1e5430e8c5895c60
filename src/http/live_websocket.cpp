// A WebSocket's input: from buffers to messages; and its end.
#include "live_websocket.hpp"
#include "awaiting.hpp"

#include <coppice/base/saturating.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/starts_on.hpp>

#include <new>
#include <span>
#include <stdexcept>
#include <utility>

namespace coppice::http {

using namespace internal;

namespace {

constexpr std::size_t uncounted_message_bytes = 4096;  // of a message, as of other requests
constexpr unsigned no_code = 1005;
constexpr unsigned abnormal_end = 1006;
constexpr unsigned try_again_later = 1013;

std::unique_ptr<message_inflater> inflater_for(const websocket_source& s) {
    if (!s.deflates) return nullptr;
    return std::make_unique<message_inflater>(s.client_window_bits, s.client_takes_over);
}

}  // namespace

live_websocket::live_websocket(connection& c, exchange& e, websocket_source& from,
                               std::string&& first)
    : timer_entry(&close_is_late),
      connection_(c),
      exchange_(e),
      source_(from),
      options_(*from.options),
      decoder_(websocket_decoder::sender::client,
               {options_.message_bytes_max, options_.fragments_max}, inflater_for(from)),
      first_(std::move(first)),
      heard_(c.loop_.context.turn_time()) {
    if (from.deflates) {
        deflater_ = std::make_unique<message_deflater>(
            from.server_window_bits, from.server_takes_over, options_.deflate_level);
    }
    drain_.emplace(c.loop_.drain_source.get_token(), on_drain(*this));
}

// Awaited when nothing is left to decode. take() then takes what has come.
class live_websocket::next_buffer : coppice::immovable {
public:
    next_buffer(live_websocket& of, inplace_stop_token stop, execution::instant deadline) noexcept
        : of_(of), stop_(stop), deadline_(deadline) {}
    ~next_buffer() = default;

    bool await_ready() noexcept {
        is_refused_ = stop_.stop_requested() || of_.is_late_;
        return is_refused_ || input_.await_ready();
    }
    void await_suspend(std::coroutine_handle<> h) noexcept {
        input_.await_suspend(h);
        of_.limit_silence();
        listening_.emplace(of_.connection_, stop_, deadline_);
    }
    void await_resume() noexcept {
        if (listening_) listening_->end();
    }
    // Returns true if the caller must await settled() before take().
    bool must_settle() const noexcept { return listening_ && listening_->must_settle(); }
    connection::input_stop::settled settled() noexcept {
        return connection::input_stop::settled(*listening_);
    }
    // Returns false if it has set outcome_ because nothing came.
    bool take() noexcept;

private:
    live_websocket& of_;
    const inplace_stop_token stop_;
    const execution::instant deadline_;
    std::error_code error_;  // the decoder ends either way
    connection::next_input input_{of_.connection_, error_};
    std::optional<connection::input_stop> listening_;
    bool is_refused_ = false;
};

bool live_websocket::next_buffer::take() noexcept {
    if (is_refused_ && stop_.stop_requested()) {
        of_.outcome_ = outcome::stopped;
    } else if (is_refused_) {
        of_.fail();
        of_.ended_without_close();
    } else if (io::pooled_buffer got = input_.await_resume(); !got.empty()) {
        of_.is_silent_ = false;  // the timer and the bytes came in one turn
        of_.input_ = std::move(got);
        of_.at_ = 0;
        of_.note_heard();
    } else if (std::exchange(of_.is_silent_, false)) {
        of_.note_silence();
    } else if (listening_ && listening_->stopped()) {
        of_.outcome_ = outcome::stopped;
    } else {
        of_.ended_without_close();
    }
    return of_.outcome_ == outcome::none;
}

live_websocket::turn_to_receive::turn_to_receive(live_websocket& of) : of_(&of) {
    // Relaxed: publishes nothing. An incorrect program may receive on two threads.
    if (of.receiving_.exchange(true, relaxed)) {
        throw std::logic_error(
            "a websocket is received from twice at the same time: await one receive() before the "
            "next");
    }
}

void live_websocket::turn_to_receive::end() noexcept {
    if (of_ == nullptr) return;
    std::exchange(of_, nullptr)->receiving_.store(false, relaxed);  // as above
}

task<std::optional<websocket_message>> live_websocket::receive() {
    turn_to_receive turn(*this);
    const inplace_stop_token stop = co_await execution::read_env(get_stop_token);
    const execution::instant deadline = co_await execution::read_env(execution::get_deadline);
    if (loop().is_current()) {  // as receive_here() does, without its frame
        outcome_ = outcome::none;
        while (!decode()) {
            next_buffer next(*this, stop, deadline);
            co_await next;
            if (next.must_settle()) co_await next.settled();
            if (!next.take()) break;
        }
        look_ahead();
    } else {  // the handler is on another thread; its task may belong there
        thread_pool* const pool = connection_.loop_.shared.pool;
        const bool from_pool = pool != nullptr && pool->is_current();
        co_await execution::starts_on(loop().get_scheduler(), receive_here(stop, deadline));
        if (from_pool && !pool->is_current()) co_await pool->get_scheduler().schedule();
    }
    if (outcome_ == outcome::stopped) {
        turn.end();  // the frame may outlive the stop
        co_await execution::just_stopped();
    }
    if (outcome_ != outcome::message) co_return std::nullopt;
    co_return websocket_message{decoder_.message(), !decoder_.is_text()};
}

// Called on the loop. Sets outcome_.
task<> live_websocket::receive_here(inplace_stop_token stop, execution::instant deadline) {
    outcome_ = outcome::none;
    while (!decode()) {
        next_buffer next(*this, stop, deadline);
        co_await next;
        if (next.must_settle()) co_await next.settled();
        if (!next.take()) break;
    }
    look_ahead();
}

// Sees a reset while the handler does something else, and reads ahead.
void live_websocket::look_ahead() noexcept {
    if (outcome_ != outcome::ended && is_open()) connection_.watch();
}

// Decodes what has arrived, until outcome_ is set. Returns false if more has to arrive.
bool live_websocket::decode() {
    if (is_over_) outcome_ = outcome::ended;
    while (outcome_ == outcome::none) {
        const std::string_view bytes = unread();
        if (bytes.empty()) {
            if (!decode_directly()) return false;
            continue;
        }
        const websocket_decoder::result r = decoder_.decode(bytes);
        consume(r.consumed);
        found(r.what);
    }
    return true;
}

// Receives the rest of a long frame into the message itself, as far as it is here already. Returns
// false if nothing is.
bool live_websocket::decode_directly() {
    connection& c = connection_;
    if (!decoder_.wants_room()) return false;
    expect_long();
    if (!c.may_receive_now()) return false;
    const std::size_t size = c.receive_now(decoder_.room());
    const websocket_decoder::found what = decoder_.filled(size, first_);
    if (size == 0) return false;
    note_heard();
    found(what);
    return true;
}

// Called when a long frame comes: the next may be long too.
void live_websocket::expect_long() noexcept {
    if (std::exchange(short_left_, short_messages) == 0) connection_.receive_one_by_one(true);
}

// Called for a message: after some short ones in a row, short ones are expected.
void live_websocket::note_size() noexcept {
    if (short_left_ == 0 || decoder_.message().size() > io::buffer_pool::buffer_bytes) return;
    if (--short_left_ == 0) connection_.receive_one_by_one(false);
}

void live_websocket::found(websocket_decoder::found what) {
    const bool ends =
        what == websocket_decoder::found::close || what == websocket_decoder::found::error;
    if (!ends && !keep_message()) {
        begin_close(try_again_later, {});
        is_over_ = true;
        close_code_ = abnormal_end;
        outcome_ = outcome::ended;
        return;
    }
    switch (what) {
        case websocket_decoder::found::message:
            note_size();
            outcome_ = outcome::message;
            return;
        case websocket_decoder::found::ping:
            if (close_sent_) return;
            if (unsent() > options_.unsent_bytes_max) {  // a client that pings and does not read
                late_pong_.emplace(decoder_.control());
            } else {
                put_control(websocket_opcode::pong, decoder_.control());
            }
            return;
        case websocket_decoder::found::close:
            close_code_ = decoder_.code();
            close_reason_.assign(decoder_.control());
            begin_close(close_code_ == no_code ? 0 : close_code_, {});
            is_over_ = true;
            outcome_ = outcome::ended;
            return;
        case websocket_decoder::found::error:
            begin_close(decoder_.code(), decoder_.reason());
            close_code_ = abnormal_end;
            is_over_ = true;
            outcome_ = outcome::ended;
            return;
        default:
            return;
    }
}

// Counts a long message, or what has come of one, among what is kept for clients. Returns false if
// there is no room.
bool live_websocket::keep_message() noexcept {
    const std::size_t bytes = decoder_.message().size();
    const std::size_t now = bytes > uncounted_message_bytes ? bytes : 0;
    if (now > kept_ && !exchange_.budget.reserve(now - kept_)) return false;
    if (now < kept_) exchange_.budget.give(kept_ - now);
    kept_ = now;
    return true;
}

std::string_view live_websocket::unread() const noexcept {
    const std::string_view all = first_.empty() ? text_of(input_) : std::string_view(first_);
    return all.substr(at_);
}

void live_websocket::consume(std::size_t bytes) noexcept {
    at_ += bytes;
    if (!unread().empty()) return;
    at_ = 0;
    if (first_.empty()) {
        input_.release();
    } else {
        std::string().swap(first_);
    }
}

time_point live_websocket::silence_limit() const noexcept {
    if (close_sent_) return time_point::max();  // the close has a limit of its own
    return saturating_add(heard_, pinged_ ? options_.pong_timeout : options_.ping_interval);
}

// Called when a wait begins. Moves the timer only if it would fire too late; silence_is_over() arms
// again a timer that fires too early.
void live_websocket::limit_silence() noexcept {
    const time_point limit = silence_limit();
    if (limit == time_point::max()) return;
    if (silence_.armed()) {
        if (silence_.armed_for <= limit) return;
        loop().disarm(silence_);
    }
    silence_.armed_for = limit;
    loop().arm(silence_, limit);
}

// Called when the client may have been silent for too long. Without a wait, nothing happens.
void live_websocket::silence_is_over(timer_entry* entry) noexcept {
    live_websocket& self = static_cast<silence*>(entry)->of;
    read_ahead& ahead = self.exchange_.ahead;
    if (self.loop().ending() || !ahead.waiter) return;
    if (self.loop().turn_time() < self.silence_limit()) {
        self.limit_silence();
        return;
    }
    self.is_silent_ = true;
    ahead.resume_waiter();
}

void live_websocket::note_heard() noexcept {
    heard_ = loop().turn_time();
    pinged_ = false;
}

void live_websocket::ended_without_close() noexcept {
    is_over_ = true;
    close_code_ = abnormal_end;
    outcome_ = outcome::ended;
}

// Called when nothing has come for a while: asks the client, or ends the connection.
void live_websocket::note_silence() noexcept {
    if (close_sent_ || connection_.loop_.context.turn_time() < silence_limit()) return;
    if (!std::exchange(pinged_, true)) {
        heard_ = loop().turn_time();
        put_control(websocket_opcode::ping, {});
        return;
    }
    connection_.loop_.counts.timed_out.add();
    fail();
    ended_without_close();
}

task<> live_websocket::finish(unsigned code) {
    begin_close(code, {});
    try {
        while (is_open() && !is_over_) {
            // What the client still sends is dropped; the timer of begin_close() limits it.
            co_await receive_here({}, execution::instant::never());
        }
    } catch (const std::bad_alloc&) {
        fail();
    }
    co_await sending_ended();
    drain_.reset();
    if (timer_entry::armed()) loop().disarm(*this);
    if (silence_.armed()) loop().disarm(silence_);
    if (kept_ != 0) exchange_.budget.give(std::exchange(kept_, 0));
    if (reserved_ != 0) exchange_.budget.give(std::exchange(reserved_, 0));  // was not sent
    input_.release();
}

}  // namespace coppice::http
