// The stream of client_stream.hpp: between the engine and the call of one request.
#include "client_stream.hpp"

#include <coppice/base/internal/check.hpp>
#include <coppice/http/uri.hpp>

#include "client_session.hpp"
#include "lines.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <new>
#include <optional>

namespace coppice::http {

using namespace internal;

namespace {

constexpr std::size_t held_request_bytes_max = 16 * 1024;  // of a request's body
constexpr std::size_t chunk_framing_max = 16;              // around a piece of a body
constexpr std::string_view empty_line = "\r\n\r\n";
constexpr std::string_view chunked_line = "transfer-encoding: chunked\r\n";
constexpr std::string_view no_length_line = "content-length: 0\r\n";

}  // namespace

client_stream::client_stream(client_session& s) noexcept
    : link(s.loop()), session_(s), begun_(s.heard()) {}

bool client_stream::is_secure() const noexcept {
    return session_.is_secure();
}

// ---- The calls of the request ------------------------------------------------------------------

bool client_stream::start(ring_operation& op) noexcept {
    if (op.code == io::opcode::send) {
        COPPICE_CHECK(writer_ == nullptr, "two sends on one stream of a client");
        if (send_now(op)) return true;
        writer_ = &op;
        session_.wake(number_);
    } else {
        COPPICE_CHECK(reader_ == nullptr, "two receives on one stream of a client");
        if (receive_now(op)) return true;
        reader_ = &op;
    }
    return false;
}

void client_stream::cancel(ring_operation& op) noexcept {
    if (&op == reader_) finish_later(reader_, -ECANCELED);
    if (&op == writer_) finish_later(writer_, taken_ == 0 ? -ECANCELED : static_cast<int>(taken_));
}

void client_stream::finish_later(ring_operation*& pending, int result) noexcept {
    if (pending == nullptr) return;
    pending->result = result;
    loop_.defer(*std::exchange(pending, nullptr));
}

std::size_t client_stream::readable() const noexcept {
    const bool waits = has_input_length_ && left_input_ == 0 && !is_ended_;
    const std::size_t all = body_.size() - body_at_;
    return waits && all != 0 ? all - 1 : all;
}

// Returns true if the operation has its result.
bool client_stream::receive_now(ring_operation& op) noexcept {
    if (input_.empty() && body_.empty()) input_.swap(end_);
    if ((is_held_ && !is_ended_) || (input_.empty() && readable() == 0)) {
        op.result = failure_ ? -EPROTO : is_ended_ ? 0 : -ECONNABORTED;
        return is_closed_ || is_ended_ || is_given_up_;
    }
    std::byte* const into = loop_.buffers().try_take();
    op.data = into;
    op.result = -ENOMEM;
    if (into == nullptr) return true;
    const std::size_t n = input_.empty() ? give_body(into) : give_text(into);
    op.result = static_cast<int>(n);
    return true;
}

std::size_t client_stream::give_text(std::byte* into) noexcept {
    const std::size_t n = std::min(input_.size() - at_, io::buffer_pool::buffer_bytes);
    std::memcpy(into, input_.data() + at_, n);
    at_ += n;
    if (at_ == input_.size()) {
        input_.clear();
        at_ = 0;
    }
    return n;
}

// Gives a piece of the body, as a chunk if it needs framing. The server may send as much again.
std::size_t client_stream::give_body(std::byte* into) noexcept {
    const std::size_t room = io::buffer_pool::buffer_bytes - (is_chunked_ ? chunk_framing_max : 0);
    const std::size_t n = std::min(readable(), room);
    char* at = reinterpret_cast<char*>(into);
    if (is_chunked_) {
        at = std::to_chars(at, at + chunk_framing_max, n, 16).ptr;
        at = std::copy_n("\r\n", 2, at);
    }
    at = std::copy_n(body_.data() + body_at_, n, at);
    if (is_chunked_) at = std::copy_n("\r\n", 2, at);
    body_at_ += n;
    if (body_at_ > body_.size() / 2) {  // moves each byte once at most, on average
        body_.erase(0, body_at_);
        body_at_ = 0;
    }
    if (!is_closed_) session_.consumed(number_, n);
    return static_cast<std::size_t>(at - reinterpret_cast<char*>(into));
}

// Returns true if the operation has its result.
bool client_stream::send_now(ring_operation& op) noexcept {
    taken_ = 0;
    op.result = -EPIPE;
    if (is_closed_ || is_given_up_) return true;
    const std::string_view text(reinterpret_cast<const char*>(op.data), op.size);
    if (number_ == 0) {
        const std::size_t end = text.find(empty_line);
        COPPICE_CHECK(end != text.npos, "a request's head is not sent at once");
        taken_ = end + empty_line.size();
        op.result = -ENOMEM;
        if (!put_head(text.substr(0, taken_))) return true;
    }
    const std::size_t bytes = op.size - taken_;
    op.result = static_cast<int>(op.size);
    if (bytes == 0) return true;
    if (held_.size() != held_at_ || bytes > held_request_bytes_max) return false;
    try {
        held_.assign(text.substr(taken_));
    } catch (const std::bad_alloc&) {
        return false;  // taken from the operation
    }
    held_at_ = 0;
    left_ -= std::min<std::uint64_t>(left_, bytes);
    session_.wake(number_);
    return true;
}

// Gives the head to the engine, and notes how long the body is.
bool client_stream::put_head(std::string_view head) noexcept {
    is_head_ = head.starts_with("HEAD ");
    const std::string_view fields = head.substr(head.find("\r\n") + 2);
    const std::optional<std::string_view> length = find_line(fields, "content-length");
    has_length_ = length || !find_line(fields, "transfer-encoding");
    if (length) left_ = parse_integer<std::uint64_t>(*length).value_or(0);
    number_ = session_.request(*this, head, is_whole());
    if (number_ > 0) return true;
    is_unprocessed_ = session_.has_left();
    if (!is_unprocessed_) {
        failure_ = std::make_error_code(number_ == 0 ? std::errc::not_enough_memory
                                                     : std::errc::invalid_argument);
    }
    number_ = 0;
    is_given_up_ = true;  // nothing will come
    return false;
}

void client_stream::end_body(std::string_view lines) {
    if (is_closed_ || is_given_up_ || std::exchange(is_body_ended_, true)) return;
    trailers_ = lines;
    session_.wake(number_);
}

void client_stream::close(bool reset) noexcept {
    if (reset) give_up();
    finish_later(reader_, -ECANCELED);
    finish_later(writer_, -ECANCELED);
}

void client_stream::give_up() noexcept {
    if (std::exchange(is_given_up_, true) || is_closed_ || number_ == 0) return;
    session_.cancel(number_);
}

void client_stream::note_timeout() noexcept {
    if (begun_ == session_.heard()) session_.end_use();
}

bool client_stream::was_closed_unheard() const noexcept {
    return begun_ != 0 && begun_ == session_.heard();
}

void client_stream::owner_is_gone() noexcept {
    // A connection that takes nothing, and on which nothing comes, is not used further.
    if (!is_ended_ && begun_ == session_.heard() && session_.is_sending()) session_.end_use();
    if (!is_ended_ || !is_whole() || !is_given()) give_up();
    is_owned_ = false;
    session_.owner_is_gone();
    session_.note_ready(*this);
    session_.run_later();
}

// ---- The calls of the engine -------------------------------------------------------------------

bool client_stream::head(int status, std::string_view lines, bool ended) noexcept {
    if (is_given_up_) return true;
    bool has_body = !is_head_ && status != 204 && status != 304;
    try {
        char code[4];
        input_.append("HTTP/1.1 ")
            .append(code, std::to_chars(code, code + sizeof code, status).ptr)
            .append(" \r\n")
            .append(lines);
        const std::optional<std::string_view> length = find_line(lines, "content-length");
        if (has_body && length) {
            has_input_length_ = true;
            left_input_ = parse_integer<std::uint64_t>(*length).value_or(0);
            has_body = left_input_ != 0;
        } else if (has_body) {
            is_chunked_ = !ended;
            const std::string_view line = ended ? no_length_line : chunked_line;
            input_.append(line);
            added_ = line.size();
        }
        input_.append("\r\n");
    } catch (const std::bad_alloc&) {
        return false;
    }
    is_ended_ = ended;
    is_held_ = !has_body;
    session_.note_ready(*this);
    return true;
}

bool client_stream::input(std::string_view bytes) noexcept {
    if (is_given_up_) return true;
    try {
        body_.append(bytes);
    } catch (const std::bad_alloc&) {
        return false;
    }
    left_input_ -= std::min<std::uint64_t>(left_input_, bytes.size());
    session_.note_ready(*this);
    return true;
}

bool client_stream::end_input(std::string_view lines) noexcept {
    if (is_given_up_) return true;
    try {
        if (is_chunked_) end_.append("0\r\n").append(lines).append("\r\n");
    } catch (const std::bad_alloc&) {
        return false;
    }
    is_ended_ = true;
    session_.note_ready(*this);
    return true;
}

void client_stream::lost(answer_loss why) noexcept {
    if (why == answer_loss::unprocessed) is_unprocessed_ = true;
    if (why == answer_loss::malformed) failure_ = std::make_error_code(std::errc::bad_message);
    if (why == answer_loss::too_large) failure_ = std::make_error_code(std::errc::message_size);
    if (why == answer_loss::needs_http1) {
        failure_ = std::make_error_code(std::errc::protocol_not_supported);
    }
}

void client_stream::closed(bool) noexcept {
    is_closed_ = true;
    session_.note_ready(*this);
}

multiplexed_stream::taken client_stream::take(std::span<std::byte> room) noexcept {
    const std::size_t from_held = std::min(held_.size() - held_at_, room.size());
    std::memcpy(room.data(), held_.data() + held_at_, from_held);
    held_at_ += from_held;
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

void client_stream::pump() noexcept {
    const auto finish = [](ring_operation*& pending) {
        ring_operation* const op = std::exchange(pending, nullptr);
        op->complete(op);
    };
    // The order matters: what is resumed may end the call, and then nothing is pending.
    if (writer_ != nullptr && (is_closed_ || taken_ == writer_->size)) {
        writer_->result = taken_ == writer_->size ? static_cast<int>(taken_) : -EPIPE;
        finish(writer_);
    }
    if (reader_ != nullptr && receive_now(*reader_)) finish(reader_);
}

}  // namespace coppice::http
