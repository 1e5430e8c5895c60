// Sends what a client asks, and a body beside the receiving of the answer.
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/stop_when.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/http/internal/client_call.hpp>
#include <coppice/http/message.hpp>
#include <coppice/token/use_await.hpp>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>

#include "client_connection.hpp"
#include "client_pieces.hpp"

namespace coppice::http::internal {

// Writes a streamed request body: in chunks, or unchanged if its length is declared.
class client_writer final : public body_writer {
public:
    client_writer(client_call& call, std::optional<std::uint64_t> length,
                  inplace_stop_token stop) noexcept
        : call_(call),
          stop_(stop),
          left_(length),
          chunked_(!length),
          framed_(call.connection_->stream == nullptr) {}
    task<> write(std::string_view bytes) override {
        if (left_) {
            if (bytes.size() > *left_) {
                throw std::length_error("a body is longer than its declared length");
            }
        }
        while (!bytes.empty()) {
            const std::size_t taken = std::min(bytes.size(), piece_bytes - piece_.size());
            piece_.append(bytes.substr(0, taken));
            bytes.remove_prefix(taken);
            if (left_) *left_ -= taken;  // only now: a stop leaves the rest out
            written_ += taken;
            if (piece_.size() == piece_bytes) co_await flush();
        }
    }
    // Stops the source if the connection is gone; what has arrived of an answer tells why.
    task<> flush() override {
        if (!unsent_) put_piece();
        bool sent = false;
        if (call_.loop_.is_current()) {
            sent = co_await call_.send_output();
        } else {  // the source is on another thread
            sent = co_await execution::starts_on(call_.loop_.get_scheduler(), call_.send_output());
        }
        const bool behind = std::exchange(unsent_, !sent);
        if (!sent) co_await execution::just_stopped();
        if (behind) co_await flush();  // the rest of a stopped call was sent first
    }
    std::uint64_t written() const noexcept override { return written_; }
    void trailer(std::string_view name, std::string_view value) override {
        if (chunked_) trailers_.add(name, value);
    }
    inplace_stop_token stop_token() const noexcept override { return stop_; }
    task<> finish() {
        if (left_.value_or(0) != 0) {
            throw std::length_error("a body is shorter than its declared length");
        }
        if (unsent_) co_await flush();
        put_piece();
        if (chunked_ && framed_) {
            call_.output_.append("0\r\n").append(trailers_.fields()).append("\r\n");
        }
        co_await flush();
        if (chunked_ && !framed_) call_.connection_->stream->end_body(trailers_.fields());
    }

private:
    void put_piece() {
        if (piece_.empty()) return;
        if (chunked_ && framed_) {
            append_number(call_.output_, piece_.size(), 16);
            call_.output_.append("\r\n").append(piece_).append("\r\n");
        } else {
            call_.output_ += piece_;
        }
        piece_.clear();
    }
    client_call& call_;
    const inplace_stop_token stop_;
    std::string piece_;
    response trailers_;                  // only its fields
    std::optional<std::uint64_t> left_;  // of the declared length
    std::uint64_t written_ = 0;
    bool chunked_;
    bool framed_;          // by HTTP/1.1
    bool unsent_ = false;  // the output holds the rest of a stopped call
};

// Gives false if the server does not want the rest of the body, or the connection is gone.
task<bool> client_call::send_body(inplace_stop_token enough) {
    const std::optional<bool> sent =
        co_await (execution::stop_when(send_pieces(), enough) | execution::stopped_as_optional());
    const bool given_up = enough.stop_requested() || send_error_;
    if (!sent && !given_up) co_await execution::just_stopped();
    sending_ = false;
    if (!given_up) limit(state_ == state::asking ? client_.options.answer : client_.options.body);
    co_return sent.value_or(false);
}

task<bool> client_call::send_pieces() {
    if (request_.source != nullptr) {
        client_writer writer(*this, request_.source->length(),
                             co_await execution::read_env(get_stop_token));
        co_await request_.source->write_to(writer);
        co_await writer.finish();
        co_return true;
    }
    if (!co_await send_piece(output_)) co_return false;
    for (std::string_view left = request_.body; !left.empty();) {
        const std::string_view piece = left.substr(0, piece_bytes);
        left.remove_prefix(piece.size());
        if (!co_await send_piece(piece)) co_return false;
    }
    co_return true;
}

// Gives false if the connection is gone; send_error_ says why.
task<bool> client_call::send_piece(std::string_view piece) {
    sent_ = 0;
    if (send_error_ || !connection_->socket.is_open()) {
        send_error_ = std::make_error_code(std::errc::connection_aborted);
        co_return false;
    }
    if (body_apart()) limit(client_.options.body);
    while (sent_ != piece.size() && !send_error_) {
        const auto left = std::as_bytes(std::span(piece)).subspan(sent_);
        if (connection_->through() == nullptr) {
            sent_ += co_await connection_->socket.send(left, use_await[send_error_]);
        } else {
            co_await send_encrypted(left);
        }
    }
    co_return !send_error_;
}

// Also to a stream. Adds to sent_. Apart from send_piece(), whose frame would be larger.
task<> client_call::send_encrypted(std::span<const std::byte> bytes) {
    const std::size_t sent = co_await connection_->through()->send(bytes, use_await[send_error_]);
    sent_ += sent;
}

// Sends output_. Gives false if the connection is gone, and also if the awaiter was stopped; the
// next call then sends the rest.
task<bool> client_call::send_output() {
    const bool sent = co_await send_piece(output_);
    output_.erase(0, sent_);
    if (send_error_ == std::errc::operation_canceled && connection_->socket.is_open()) {
        send_error_.clear();
    }
    co_return sent;
}

}  // namespace coppice::http::internal
