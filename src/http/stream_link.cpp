// The link of stream_link.hpp: between the engine and the connection of one request.
#include "stream_link.hpp"

#include <coppice/base/internal/check.hpp>
#include <coppice/base/saturating.hpp>

#include "stream_session.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <new>

namespace coppice::http {

using namespace internal;

namespace {

constexpr std::size_t held_bytes_max = 16 * 1024;  // of an answer's body
constexpr std::string_view last_line = "\r\n\r\n";
constexpr std::string_view length_name = "\r\nContent-Length: ";  // as serialize() writes it

}  // namespace

stream_link::stream_link(stream_session& s, std::int32_t number, std::string_view head, bool ended)
    : link(s.loop().context),
      timer_entry(&expire),
      session_(s),
      number_(number),
      input_(head),
      is_chunked_(!ended && head.ends_with("\r\ntransfer-encoding: chunked\r\n\r\n")),
      is_head_(head.starts_with("HEAD ")),
      is_tunnel_(head.ends_with("\r\nconnection: upgrade\r\n\r\n")),
      is_ended_(ended) {
    if (is_tunnel_) most_ = head.size();
}

stream_link::~stream_link() {
    const std::size_t bytes = reserved_ + reserved_held_;
    if (bytes != 0) session_.budget().give(bytes);
}

const io::agreed_security* stream_link::security() const noexcept {
    return session_.security();
}
const io::endpoint* stream_link::peer() const noexcept {
    return &session_.peer();
}

// ---- The calls of the connection ---------------------------------------------------------------

bool stream_link::start(ring_operation& op) noexcept {
    if (op.code == io::opcode::send) {
        COPPICE_CHECK(writer_ == nullptr, "two sends on one stream");
        if (send_now(op)) return true;
        writer_ = &op;
        if (!is_closed_) session_.engine().wake(number_);
    } else {
        COPPICE_CHECK(reader_ == nullptr, "two receives on one stream");
        if (receive_now(op)) return true;
        reader_ = &op;
    }
    return false;
}

void stream_link::cancel(ring_operation& op) noexcept {
    if (&op == reader_) finish_later(reader_, -ECANCELED);
    if (&op == writer_) finish_later(writer_, taken_ == 0 ? -ECANCELED : static_cast<int>(taken_));
}

void stream_link::finish_later(ring_operation*& pending, int result) noexcept {
    if (pending == nullptr) return;
    pending->result = result;
    loop_.defer(*std::exchange(pending, nullptr));
}

// Returns true if the operation has its result. After the answer nothing more is received, even if
// the request goes on.
bool stream_link::receive_now(ring_operation& op) noexcept {
    if (!has_input() || is_whole()) {
        op.result = 0;
        if (is_whole() || (is_open_ && is_ended_)) return true;
        op.result = is_closed_ ? -ECONNRESET : -ENOBUFS;
        return is_closed_ || is_full_;
    }
    std::byte* const into = loop_.buffers().try_take();
    if (into == nullptr) {
        op.result = -ENOMEM;
        return true;
    }
    is_begun_ = true;
    const std::size_t n = std::min(readable(), io::buffer_pool::buffer_bytes);
    std::memcpy(into, input_.data() + at_, n);
    at_ += n;
    const bool all = at_ == input_.size();
    if (all) {
        input_.clear();
        at_ = 0;
        if (is_tunnel_ && !is_open_) most_ = 0;
        if (reserved_ != 0) session_.budget().give(std::exchange(reserved_, 0));
    } else if (at_ > input_.size() / 2 && (!is_tunnel_ || is_open_)) {
        drop_received();
    }
    const std::size_t used = all ? unconsumed_ : std::min(n, unconsumed_);
    if (used != 0 && !is_closed_) {
        unconsumed_ -= used;
        session_.engine().consumed(number_, used);
        session_.run_later();
    }
    op.data = into;
    op.result = static_cast<int>(n);
    return true;
}

// A connection that is always behind never empties the input, so what it has received goes early.
void stream_link::drop_received() noexcept {
    const std::size_t gone = std::min(reserved_, at_);
    input_.erase(0, std::exchange(at_, 0));
    reserved_ -= gone;
    session_.budget().give(gone);
}

// Returns true if the operation has its result.
bool stream_link::send_now(ring_operation& op) noexcept {
    taken_ = 0;
    op.result = -EPIPE;
    if (is_closed_) return true;
    session_.run_later();
    while (!is_answered_ && taken_ != op.size) {
        const std::string_view text(reinterpret_cast<const char*>(op.data) + taken_,
                                    op.size - taken_);
        const std::size_t end = text.find(last_line);
        COPPICE_CHECK(end != text.npos, "an answer's head is not sent at once");
        const std::string_view head = text.substr(0, end + last_line.size());
        op.result = -ENOMEM;
        if (!put_head(head)) return true;
        taken_ += head.size();
    }
    const std::size_t bytes = op.size - taken_;
    op.result = static_cast<int>(op.size);
    if (bytes == 0) return true;
    if (held_.size() != held_at_ || bytes > held_bytes_max) return false;
    if (!session_.budget().reserve(bytes)) return false;
    try {
        held_.assign(reinterpret_cast<const char*>(op.data) + taken_, bytes);
    } catch (const std::bad_alloc&) {
        session_.budget().give(bytes);
        return false;
    }
    held_at_ = 0;
    reserved_held_ += bytes;
    left_ -= std::min<std::uint64_t>(left_, bytes);
    session_.engine().wake(number_);
    return true;
}

// Gives a head to the engine, and notes how long the body is.
bool stream_link::put_head(std::string_view head) noexcept {
    const std::string_view status = head.substr(std::string_view("HTTP/1.1 ").size(), 3);
    if (is_tunnel_ && status == "101") {
        if (!session_.engine().answer(number_, head, false)) return false;
        is_answered_ = is_open_ = true;
        most_ = ~std::size_t{0};
        session_.note_ready(*this);  // a receive may wait for what was withheld
        return true;
    }
    if (status.starts_with('1')) return session_.engine().answer(number_, head, false);
    is_answered_ = true;
    const std::size_t field = head.find(length_name);
    const bool empty = is_head_ || status == "204" || status == "304";
    has_length_ = empty || field != head.npos;
    if (!empty && has_length_) {
        const char* const digits = head.data() + field + length_name.size();
        (void)std::from_chars(digits, head.data() + head.size(), left_);
    }
    is_answered_ = session_.engine().answer(number_, head, is_whole());
    return is_answered_;
}

void stream_link::say_end() noexcept {
    if (is_closed_ || has_end_) return;
    has_end_ = true;
    session_.run_later();
    if (is_whole()) {
        session_.engine().wake(number_);
    } else {
        session_.engine().reset(number_, is_begun_ ? why_cut() : stream_reset::refused);
    }
    rest();
}

stream_reset stream_link::why_cut() const noexcept {
    return is_client_late_ ? stream_reset::cancel : stream_reset::internal_error;
}

void stream_link::rest() noexcept {
    if (is_whole()) finish_later(reader_, 0);
}

bool stream_link::keep_trailers(std::string_view lines) noexcept {
    try {
        trailers_ = lines;
    } catch (const std::bad_alloc&) {
        return false;
    }
    return true;
}

void stream_link::close(bool reset) noexcept {
    if (reset && !is_closed_) {
        session_.engine().reset(number_, is_tunnel_ ? stream_reset::cancel : why_cut());
        session_.run_later();
    }
    finish_later(reader_, -ECANCELED);
    finish_later(writer_, -ECANCELED);
}

void stream_link::owner_is_gone() noexcept {
    say_end();
    is_owned_ = false;
    if (!is_closed_) limit_rest();
    session_.note_ready(*this);
    session_.run_later();
}

// The time limits of the connection have gone with it.
void stream_link::limit_rest() noexcept {
    const auto& limit = session_.loop().options.timeouts;
    const auto more = time_at_rate<duration>(held_.size() - held_at_, limit.rate_min);
    const time_point until = saturating_add(loop_.turn_time(), saturating_add(limit.write, more));
    if (until != time_point::max()) loop_.arm(*this, until);
}

void stream_link::expire(io::timer_entry* entry) noexcept {
    stream_link& l = *static_cast<stream_link*>(entry);
    if (l.loop_.ending()) return;
    if (l.is_whole()) l.session_.loop().counts.timed_out.add();  // otherwise it is reset already
    l.session_.engine().reset(l.number_, stream_reset::cancel);
    l.session_.run_later();
}

// ---- The calls of the engine -------------------------------------------------------------------

bool stream_link::input(std::string_view bytes) noexcept {
    if (!is_fresh_ && !is_owned_) return true;  // the stream is about to be reset
    if (is_full_ || keep(bytes)) return true;
    // A connection that waits for this, or is yet to be made, answers 503.
    is_full_ = (reader_ != nullptr || is_fresh_) && !is_tunnel_;
    if (is_full_) session_.note_ready(*this);
    return is_full_;
}

// Returns false if there is no room.
bool stream_link::keep(std::string_view bytes) noexcept {
    const std::size_t more = bytes.size() + (is_chunked_ ? 16 : 0);
    if (!session_.budget().reserve(more)) return false;
    reserved_ += more;
    try {
        if (is_chunked_) {
            char size[16];
            const auto end = std::to_chars(size, size + sizeof size, bytes.size(), 16).ptr;
            input_.append(size, static_cast<std::size_t>(end - size)).append("\r\n");
        }
        input_.append(bytes);
        if (is_chunked_) input_.append("\r\n");
    } catch (const std::bad_alloc&) {
        return false;
    }
    unconsumed_ += bytes.size();
    session_.note_ready(*this);
    return true;
}

bool stream_link::end_input(std::string_view trailers) noexcept {
    if (is_tunnel_) {
        is_ended_ = true;
        session_.note_ready(*this);
        return true;
    }
    if (!is_chunked_ || is_full_ || (!is_fresh_ && !is_owned_)) return true;
    try {
        input_.append("0\r\n").append(trailers).append("\r\n");
    } catch (const std::bad_alloc&) {
        return false;
    }
    session_.note_ready(*this);
    return true;
}

void stream_link::closed(bool reset) noexcept {
    is_closed_ = true;
    if (timer_entry::armed()) loop_.disarm(*this);
    was_reset_ = reset || !is_whole();
    session_.note_ready(*this);
}

multiplexed_stream::taken stream_link::take(std::span<std::byte> room) noexcept {
    const std::size_t from_held = std::min(held_.size() - held_at_, room.size());
    std::memcpy(room.data(), held_.data() + held_at_, from_held);
    held_at_ += from_held;
    if (held_at_ == held_.size() && reserved_held_ != 0) {
        session_.budget().give(std::exchange(reserved_held_, 0));
    }
    std::size_t n = from_held;
    if (writer_ != nullptr && n != room.size()) {
        const std::size_t more = std::min(writer_->size - taken_, room.size() - n);
        std::memcpy(room.data() + n, writer_->data + taken_, more);
        taken_ += more;
        left_ -= std::min<std::uint64_t>(left_, more);
        n += more;
        if (taken_ == writer_->size) session_.note_ready(*this);
    }
    return {n, is_whole() && is_given()};
}

// ---- The calls of the session ------------------------------------------------------------------

void stream_link::pump() noexcept {
    if (std::exchange(is_fresh_, false)) {
        if (is_closed_) return;  // reset in the same moment
        is_owned_ = true;
        if (!connection::open_stream(session_.loop(), *this)) {
            is_owned_ = false;
            session_.engine().reset(number_, stream_reset::refused);
        }
        return;
    }
    if (!is_owned_) return;
    const auto finish = [](ring_operation*& pending) {
        ring_operation* const op = std::exchange(pending, nullptr);
        op->complete(op);
    };
    // The order matters: what is resumed may end the connection, and then nothing is pending.
    if (writer_ != nullptr && (is_closed_ || taken_ == writer_->size)) {
        writer_->result = taken_ == writer_->size ? static_cast<int>(taken_) : -EPIPE;
        finish(writer_);
    }
    if (reader_ != nullptr && was_reset_ && !is_whole()) {
        reader_->result = -ECONNRESET;
        finish(reader_);
    } else if (reader_ != nullptr && !is_whole() && receive_now(*reader_)) {
        finish(reader_);
    }
}

}  // namespace coppice::http
