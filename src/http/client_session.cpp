// The session of client_session.hpp: moves bytes between its engine and its socket.
#include "client_session.hpp"

#include <cerrno>
#include <new>
#include <utility>

#include "client_origins.hpp"

namespace coppice::http {

using namespace internal;

namespace {

constexpr std::size_t request_bytes_max = 64 * 1024;  // of frames, sent together
constexpr unsigned receives_max = 16;                 // before others get their turn

}  // namespace

client_session* client_session::make(client_connection& from, client_origin& of,
                                     std::unique_ptr<client_multiplexer> engine) {
    return new client_session(from, of, std::move(engine));
}

client_session::client_session(client_connection& from, client_origin& of,
                               std::unique_ptr<client_multiplexer>&& engine) noexcept
    : loop_(of.all->client.loop),
      origin_(&of),
      hosts_(of.all->client.hosts),
      socket_(std::move(from.socket)),
      link_(std::move(from.link)),
      engine_(std::move(engine)),
      input_(*this, &input_ended, io::opcode::receive_pooled),
      output_(*this, &output_ended, io::opcode::send),
      turn_(*this) {}

client_session::~client_session() = default;

// ---- What calls ask ----------------------------------------------------------------------------

bool client_session::is_usable() const noexcept {
    return engine_ != nullptr && !is_ending_ && !is_broken_ && !engine_->is_finished() &&
           engine_->is_accepting();
}

bool client_session::has_room() const noexcept {
    return open_ < engine_->streams_max();
}

std::unique_ptr<client_connection> client_session::open(const client_target& target) {
    auto made = std::make_unique<client_connection>(loop_, target);
    made->stream.reset(new client_stream(*this));
    made->socket.stand_for_stream();
    made->fresh = false;
    streams_.push_back(*made->stream);
    ++open_;
    ++owned_;
    return made;
}

void client_session::end_use() noexcept {
    is_ending_ = true;
    run_later();
}

// ---- What streams ask --------------------------------------------------------------------------

std::int32_t client_session::request(client_stream& s, std::string_view head, bool ended) noexcept {
    if (engine_ == nullptr) return 0;
    run_later();
    return engine_->request(s, head, ended);
}

void client_session::wake(std::int32_t number) noexcept {
    if (engine_ == nullptr) return;
    engine_->wake(number);
    run_later();
}

void client_session::consumed(std::int32_t number, std::size_t bytes) noexcept {
    if (engine_ == nullptr) return;
    engine_->consumed(number, bytes);
    run_later();
}

void client_session::cancel(std::int32_t number) noexcept {
    if (engine_ == nullptr) return;
    engine_->cancel(number);
    run_later();
}

void client_session::note_ready(client_stream& s) noexcept {
    if (!s.list_hook<client_ready>::linked()) ready_.push_back(s);
}

void client_session::run_later() noexcept {
    if (!std::exchange(turn_.pending, true)) loop_.defer(turn_);
}

void client_session::turn::came(operation* op) noexcept {
    client_session& s = static_cast<turn*>(op)->of;
    s.turn_.pending = false;
    s.run();
}

// ---- The bytes ---------------------------------------------------------------------------------

// Does what can be done without waiting. Calls that run inside may call this again. May end the
// session.
void client_session::run() noexcept {
    ++depth_;
    for (unsigned round = 0;; ++round) {
        pump_streams();
        while (flush()) pump_streams();
        if (engine_ == nullptr || is_broken_ || input_.pending) break;
        if (round == receives_max) {
            run_later();
            break;
        }
        if (!start(input_)) break;
        came(input_.result);
    }
    if (--depth_ == 0) settle();
}

void client_session::pump_streams() noexcept {
    while (client_stream* const s = ready_.pop_front()) {
        s->pump();
        if (!s->is_over()) continue;
        if (s->list_hook<client_ready>::linked()) {
            intrusive_list<client_stream, client_ready>::erase(*s);
        }
        intrusive_list<client_stream, client_streams>::erase(*s);
        delete s;
        --open_;
        if (streams_.empty()) used = loop_.now();
    }
}

// Returns true if something was sent, so that there may be more to do.
bool client_session::flush() noexcept {
    if (engine_ == nullptr || is_broken_ || is_deaf_ || output_.pending) return false;
    while (out_.size() < request_bytes_max && engine_->write(out_)) {
    }
    if (out_.empty()) return false;
    output_.data = reinterpret_cast<std::byte*>(out_.data()) + sent_;
    output_.size = out_.size() - sent_;
    if (!start(output_)) return false;
    went(output_.result);
    return true;
}

// Returns true if the operation has ended.
bool client_session::start(own_operation& op) noexcept {
    if (link_ != nullptr) {
        op.pending = !link_->start(op);
    } else {
        op.on = socket_.slot();
        op.pending = !loop_.start_here(op);
    }
    return !op.pending;
}

void client_session::input_ended(io::operation* op) noexcept {
    auto* const started = static_cast<io::internal::ring_operation*>(op);
    own_operation& own = *static_cast<own_operation*>(started);
    own.pending = false;
    own.of.came(own.result);
    own.of.run();
}

void client_session::output_ended(io::operation* op) noexcept {
    auto* const started = static_cast<io::internal::ring_operation*>(op);
    own_operation& own = *static_cast<own_operation*>(started);
    own.pending = false;
    own.of.went(own.result);
    own.of.run();
}

void client_session::came(int result) noexcept {
    if (result <= 0) {
        is_broken_ = true;
        return;
    }
    const io::pooled_buffer received(loop_.buffers(), input_.data,
                                     static_cast<std::size_t>(result));
    ++heard_;
    if (engine_ == nullptr) return;
    if (link_ != nullptr) {
        origin_->all->client.keep_session(origin_->proven, origin_->port, link_->take_session());
    }
    if (engine_->receive(received.bytes())) return;
    say_end();
    is_broken_ = true;
}

// A server that has closed may have answered before. What has come tells, and then its end.
void client_session::went(int result) noexcept {
    if (result <= 0) {
        is_deaf_ = is_ending_ = true;
        is_broken_ = is_broken_ || (result != -EPIPE && result != -ECONNRESET);
        return;
    }
    sent_ += static_cast<std::size_t>(result);
    if (sent_ != out_.size()) return;
    out_.clear();
    sent_ = 0;
    if (out_.capacity() > 2 * request_bytes_max) std::string().swap(out_);
}

// ---- The end -----------------------------------------------------------------------------------

// Called last: looks what the session waits for now, and ends it if that is nothing.
void client_session::settle() noexcept {
    if (engine_ != nullptr) {
        const bool done = owned_ == 0 && (!is_usable() || is_wanted());
        const bool finished = engine_->is_finished() && !output_.pending;
        if (is_broken_ || finished || done) leave_now();
    }
    if (engine_ == nullptr) {
        end_if_over();
        return;
    }
    ++depth_;
    origin_->grant();
    --depth_;
    rest();
}

void client_session::end_if_over() noexcept {
    const bool waits = input_.pending || output_.pending || turn_.pending;
    if (!waits && streams_.empty()) delete this;
}

void client_session::rest() noexcept {
    receive_in_background(is_idle() && input_.pending && !output_.pending);
    if (!std::exchange(was_idle_, is_idle()) && was_idle_) origin_->all->client.close_surplus();
}

void client_session::receive_in_background(bool on) noexcept {
    if (std::exchange(is_in_background_, on) != on) loop_.note_background(on);
}

void client_session::leave() noexcept {
    leave_now();
    if (depth_ == 0) end_if_over();
}

void client_session::leave_now() noexcept {
    if (engine_ == nullptr) return;
    ++depth_;
    if (!is_broken_) say_end();
    engine_.reset();
    client_origin& origin = *std::exchange(origin_, nullptr);
    receive_in_background(false);
    socket_.close();  // ends what is pending
    if (host != nullptr) std::exchange(host, nullptr)->give_back();
    origin.left(*this);
    --depth_;
    if (!ready_.empty()) run_later();
}

// As far as the socket takes it at once.
void client_session::say_end() noexcept {
    if (output_.pending || is_deaf_ || !socket_.is_open()) return;
    engine_->shut_down();
    while (engine_->write(out_)) {
    }
    output_.data = reinterpret_cast<std::byte*>(out_.data()) + sent_;
    output_.size = out_.size() - sent_;
    if (output_.size != 0) (void)start(output_);
    if (link_ != nullptr && !output_.pending) link_->say_end();
}

}  // namespace coppice::http
