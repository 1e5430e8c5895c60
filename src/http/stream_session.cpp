// The session of stream_session.hpp: moves bytes between its engine and its transport.
#include "stream_session.hpp"

#include <coppice/base/saturating.hpp>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>

namespace coppice::http {

using namespace internal;

namespace {

constexpr std::size_t out_bytes_max = 64 * 1024;  // of frames, sent together
constexpr unsigned rounds_max = 16;               // of receives, before others get their turn
// The client is asked for a receipt before the connection becomes idle with so many bytes unread.
// It reads fewer while the connection is idle.
constexpr std::uint64_t unread_bytes_idle = 16 * 1024;
// At most so many are in the buffers of both kernels.
constexpr std::uint64_t unread_bytes_max = 16 * 1024 * 1024;
constexpr duration closing_time = std::chrono::seconds(2);
constexpr duration closing_time_drain = std::chrono::milliseconds(500);

io::endpoint remote_of(serving_loop& l, int socket) {
    const auto client = l.context.system().remote(socket);
    return client ? client.value() : io::endpoint();
}

// The link of a connection that is no stream encrypts.
std::shared_ptr<const io::agreed_security> agreed_with(const link* encrypting) noexcept {
    if (encrypting == nullptr) return nullptr;
    return static_cast<const secure_link*>(encrypting)->agreed();
}

}  // namespace

stream_session* stream_session::make(connection& transport) noexcept {
    try {
        return new stream_session(transport);
    } catch (const std::exception&) {
        return nullptr;
    }
}

stream_session::stream_session(connection& transport)
    : timer_entry(&expire),
      transport_(&transport),
      loop_(transport.loop_),
      engine_(loop_.options.http2->accept(*this, transport.is_secure(), loop_.options.limits)),
      security_(agreed_with(transport.link_.get())),
      peer_(transport.told_client() != nullptr ? *transport.told_client()
                                               : remote_of(loop_, transport.socket_.native())),
      input_(*this, &input_ended, io::opcode::receive_pooled),
      output_(*this, &output_ended, io::opcode::send),
      turn_(*this) {}

stream_session::~stream_session() {
    if (timer_entry::armed()) loop_.context.disarm(*this);
}

void stream_session::begin(std::string_view first) noexcept {
    ++depth_;
    give(std::as_bytes(std::span(first)));
    --depth_;
    run();
}

void stream_session::drain() noexcept {
    if (is_closing_) limit(closing_time_drain);
    if (std::exchange(is_draining_, true) || engine_ == nullptr) return;
    engine_->shut_down();
    run_later();  // not now: a stream that ends is another member of the list that is drained
}

void stream_session::end_idle() noexcept {
    is_counted_ = true;
    drain();
}

void stream_session::cut_off() noexcept {
    is_broken_ = true;
    run();
}

multiplexed_stream* stream_session::begin(std::int32_t number, std::string_view head,
                                          bool ended) noexcept {
    if (begun_ >= loop_.options.requests_per_connection_max) return nullptr;
    stream_link* const made = try_new<stream_link>(*this, number, head, ended);
    if (made == nullptr) return nullptr;
    streams_.push_back(*made);
    ready_.push_back(*made);
    become_busy();
    ++begun_;
    is_served_ = true;
    return made;
}

void stream_session::note_ready(stream_link& l) noexcept {
    if (!l.list_hook<session_ready>::linked()) ready_.push_back(l);
}

void stream_session::run_later() noexcept {
    if (!std::exchange(turn_.pending, true)) loop_.context.defer(turn_);
}

void stream_session::turn::came(operation* op) noexcept {
    stream_session& s = static_cast<turn*>(op)->of;
    s.turn_.pending = false;
    s.run();
}

// Does what can be done without waiting. Handlers that run inside may run turns of the loop, and so
// call this again. May end the session.
void stream_session::run() noexcept {
    ++depth_;
    for (unsigned round = 0;; ++round) {
        pump_links();
        while (flush()) pump_links();
        if (transport_ == nullptr || is_broken_ || input_.pending || output_.pending) break;
        if (round == rounds_max) {
            run_later();
            break;
        }
        if (!start(input_)) break;
        came(input_.result);
    }
    if (--depth_ == 0) settle();
}

void stream_session::pump_links() noexcept {
    while (stream_link* const l = ready_.pop_front()) {
        l->pump();
        if (!l->is_over()) continue;
        if (l->list_hook<session_ready>::linked()) {
            intrusive_list<stream_link, session_ready>::erase(*l);
        }
        intrusive_list<stream_link, session_streams>::erase(*l);
        delete l;
    }
}

// Returns true if something was sent, so that there may be more to do.
bool stream_session::flush() noexcept {
    if (transport_ == nullptr || is_broken_ || output_.pending || has_told_) return false;
    for (;;) {
        while (out_.size() < out_bytes_max && engine_->write(out_)) {
        }
        if (ready_.empty() || out_.size() >= out_bytes_max) break;
        pump_links();
        if (transport_ == nullptr || output_.pending || is_broken_) return false;
    }
    if (out_.empty()) return false;
    output_.data = reinterpret_cast<std::byte*>(out_.data()) + sent_;
    output_.size = out_.size() - sent_;
    if (!start(output_)) {
        const auto more = time_at_rate<duration>(out_.size(), loop_.options.timeouts.rate_min);
        limit(saturating_add(loop_.options.timeouts.write, more));
        return false;
    }
    went(output_.result);
    return true;
}

bool stream_session::start(own_operation& op) noexcept {
    op.pending = !transport_->start(op);
    return !op.pending;
}

void stream_session::input_ended(io::operation* op) noexcept {
    auto* const started = static_cast<io::internal::ring_operation*>(op);
    own_operation& own = *static_cast<own_operation*>(started);
    own.pending = false;
    own.of.came(own.result);
    own.of.run();
}

void stream_session::output_ended(io::operation* op) noexcept {
    auto* const started = static_cast<io::internal::ring_operation*>(op);
    own_operation& own = *static_cast<own_operation*>(started);
    own.pending = false;
    own.of.went(own.result);
    own.of.run();
}

void stream_session::came(int result) noexcept {
    if (result <= 0) {
        is_broken_ = true;
        return;
    }
    const auto bytes = static_cast<std::size_t>(result);
    const io::pooled_buffer received(loop_.context.buffers(), input_.data, bytes);
    loop_.counts.bytes_received.add(bytes);
    if (engine_ == nullptr || is_closing_) return;
    give(received.bytes());
}

void stream_session::give(std::span<const std::byte> bytes) noexcept {
    if (!engine_->receive(bytes)) is_broken_ = true;
    if (begun_ >= loop_.options.requests_per_connection_max && !std::exchange(is_draining_, true)) {
        engine_->shut_down();
    }
}

void stream_session::went(int result) noexcept {
    if (result <= 0) {
        is_broken_ = true;
        return;
    }
    const auto bytes = static_cast<std::size_t>(result);
    loop_.counts.bytes_sent.add(bytes);
    unread_ += bytes;
    later_ += bytes;
    sent_ += bytes;
    if (sent_ != out_.size()) return;
    out_.clear();
    sent_ = 0;
    if (out_.capacity() > 2 * out_bytes_max) std::string().swap(out_);
    if (timer_entry::armed()) loop_.context.disarm(*this);
}

// Called last: looks what the session waits for now, and ends it if that is nothing.
void stream_session::settle() noexcept {
    if (transport_ != nullptr && is_broken_) leave();
    if (transport_ == nullptr) {
        const bool waits = input_.pending || output_.pending || turn_.pending;
        if (!waits && streams_.empty()) delete this;
        return;
    }
    if (is_closing_ || output_.pending) return;
    if (is_asking_ && engine_->has_receipt()) {
        is_asking_ = false;
        unread_ = later_;
        if (timer_entry::armed()) loop_.context.disarm(*this);
    }
    if (has_told_ || engine_->is_finished() || (is_draining_ && streams_.empty())) {
        part();
        return;
    }
    is_parting_ = false;
    if (streams_.empty()) {
        rest();
    } else if (timer_entry::armed()) {
        loop_.context.disarm(*this);
    }
}

// Called when no stream is open. A client that has not read its answers is not idle: the end of an
// idle connection destroys what is in the buffers of both kernels.
void stream_session::rest() noexcept {
    const bool is_new = is_served_ || !is_idle_;
    note_answers();
    if (is_new && !is_asking_ && unread_ >= unread_bytes_idle) ask_for_receipt();
    if (is_asking_) {
        await_receipt();
    } else if (is_new) {
        is_idle_ = true;
        transport_->become_idle();
    }
}

// Called when no stream is open, and none will be: says the end, and ends the connection once the
// client has read everything. A client that closes its side has, too. Some hear no question after
// a GOAWAY, but all hear the end.
void stream_session::part() noexcept {
    note_answers();
    const bool begins = !std::exchange(is_parting_, true);
    if (begins) ask_for_receipt();
    if (!is_asking_) {
        begin_closing();
        return;
    }
    if (!begins) say_end();  // the question was sent
    await_receipt();
}

void stream_session::say_end() noexcept {
    if (!std::exchange(has_told_, true)) transport_->say_end();
}

// Notes when the answers were sent that a receipt is still wanted for.
void stream_session::note_answers() noexcept {
    if (!std::exchange(is_served_, false)) return;
    answered_ = loop_.context.turn_time();
    if (is_asking_) limit_receipt();
}

void stream_session::ask_for_receipt() noexcept {
    is_asking_ = engine_->ask_for_receipt();
    if (!is_asking_) return;
    later_ = 0;
    limit_receipt();
    run_later();
}

// A client has the time for its answers that a client of HTTP/1.1 has. An idle one has had it.
void stream_session::limit_receipt() noexcept {
    const timeouts& times = loop_.options.timeouts;
    const auto more = time_at_rate<duration>(std::min(unread_, unread_bytes_max), times.rate_min);
    const duration time = unread_ < unread_bytes_idle ? std::min(times.write, times.idle)
                                                      : saturating_add(times.write, more);
    receipt_until_ = std::max(saturating_add(answered_, time),
                              saturating_add(loop_.context.turn_time(), time_to_close()));
    if (timer_entry::armed()) loop_.context.disarm(*this);
}

void stream_session::await_receipt() noexcept {
    become_busy();
    if (timer_entry::armed() || receipt_until_ == time_point::max()) return;
    loop_.context.arm(*this, receipt_until_);
}

void stream_session::become_busy() noexcept {
    if (!std::exchange(is_idle_, false)) return;
    transport_->become_busy();
    transport_->state_ = connection::state::multiplexing;
}

duration stream_session::time_to_close() const noexcept {
    return loop_.draining ? closing_time_drain : closing_time;
}

// Says the end, and reads on for a moment, so that what was sent is not lost in a reset.
void stream_session::begin_closing() noexcept {
    is_closing_ = true;
    engine_.reset();
    become_busy();
    say_end();
    limit(time_to_close());
    run_later();
}

// Ends the connection. The streams hear of it from the engine; those that have handlers go on until
// these have ended.
void stream_session::leave() noexcept {
    engine_.reset();
    connection& c = *std::exchange(transport_, nullptr);
    c.session_ = nullptr;
    if (timer_entry::armed()) loop_.context.disarm(*this);
    // The socket ends what is pending, but what encrypts it may end before.
    if (c.link_ != nullptr) {
        if (input_.pending) c.link_->cancel(input_);
        if (output_.pending) c.link_->cancel(output_);
    }
    c.close_socket();
    c.end();
    if (!ready_.empty()) run_later();
}

void stream_session::limit(duration time) noexcept {
    if (timer_entry::armed()) loop_.context.disarm(*this);
    const time_point when = saturating_add(loop_.context.turn_time(), time);
    if (when != time_point::max()) loop_.context.arm(*this, when);
}

void stream_session::expire(io::timer_entry* entry) noexcept {
    stream_session& s = *static_cast<stream_session*>(entry);
    if (s.loop_.context.ending()) return;
    // A handler blocks, and began after settle() had armed this. settle() will be called again.
    if (!s.streams_.empty() && !s.output_.pending) return;
    const bool has_read = s.is_closing_ || (s.is_parting_ && s.unread_ < unread_bytes_idle);
    if (!has_read && !std::exchange(s.is_counted_, true)) s.loop_.counts.timed_out.add();
    if (s.is_asking_ && !s.is_parting_ && !s.output_.pending) {
        s.drain();  // the client may have kept the connection, and read nothing since its answers
        return;
    }
    s.is_broken_ = true;
    s.run();
}

}  // namespace coppice::http
