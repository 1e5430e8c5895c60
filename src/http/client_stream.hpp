// client_stream: one stream of a client's connection that carries many, as a link of one request.
#pragma once
// A request is sent and answered as if it had an HTTP/1.1 connection of its own. The stream is
// between its call and the engine:
//
//   call   send            ->  held_, writer_  ->  take()           engine
//          receive_pooled  <-  input_          <-  head(), input()
//
// The head of the request is sent at once. Its body has no framing here, and ends with end_body().
// The answer gets the framing of HTTP/1.1: the length that it has said, or chunks. The last byte of
// a body with a length is given when the server has said the end.

#include <coppice/base/intrusive.hpp>
#include <coppice/http/multiplexer.hpp>

#include "link.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

namespace coppice::http {

using namespace internal;

class client_session;
struct client_streams;  // the tags of a session's lists
struct client_ready;

// Threads: its loop's. Lifetime: it belongs to its session, and ends when neither the call nor the
// engine knows it.
class client_stream final : public link,
                            public requesting_stream,
                            public list_hook<client_streams>,
                            public list_hook<client_ready> {
public:
    using owned = std::unique_ptr<client_stream, let_go>;

    explicit client_stream(client_session& s) noexcept;
    ~client_stream() = default;

    bool start(io::internal::ring_operation& op) noexcept override;
    void cancel(io::internal::ring_operation& op) noexcept override;
    void say_end() noexcept override { end_body({}); }
    std::error_code failure() const noexcept override { return failure_; }
    bool is_secure() const noexcept override;
    // Resets the stream. What is pending ends in a later turn.
    void close(bool reset) noexcept override;
    // Says that the request's body is whole. The trailers follow it. Errors: std::bad_alloc.
    void end_body(std::string_view trailers);
    // Says that the request's time is up: a connection on which nothing has come since the request
    // began is not used further.
    void note_timeout() noexcept;
    // Returns true if the server has said that it did not act on the request.
    bool is_unprocessed() const noexcept { return is_unprocessed_; }
    // Returns true if the connection has brought something before the request, and nothing since:
    // the server may have closed it before the request came.
    bool was_closed_unheard() const noexcept;
    // Returns how many bytes at the end of the answer's field lines are not the server's.
    std::size_t added_bytes() const noexcept { return added_; }

    bool head(int status, std::string_view lines, bool ended) noexcept override;
    bool input(std::string_view bytes) noexcept override;
    bool end_input(std::string_view trailers) noexcept override;
    void closed(bool reset) noexcept override;
    void lost(answer_loss why) noexcept override;
    taken take(std::span<std::byte> room) noexcept override;
    std::string_view trailers() noexcept override { return trailers_; }

    // Called by the session, outside of the engine: does what has become possible. May end the
    // call, and run anything.
    void pump() noexcept;
    // Returns true if nothing knows the stream any longer. The session then deletes it.
    bool is_over() const noexcept { return !is_owned_ && (is_closed_ || number_ == 0); }

private:
    using ring_operation = io::internal::ring_operation;

    void owner_is_gone() noexcept override;
    bool receive_now(ring_operation& op) noexcept;
    bool send_now(ring_operation& op) noexcept;
    bool put_head(std::string_view head) noexcept;
    void finish_later(ring_operation*& pending, int result) noexcept;
    void give_up() noexcept;
    std::size_t give_text(std::byte* into) noexcept;
    std::size_t give_body(std::byte* into) noexcept;
    // Returns how many bytes of body_ the call may have.
    std::size_t readable() const noexcept;
    bool is_whole() const noexcept { return has_length_ ? left_ == 0 : is_body_ended_; }
    bool is_given() const noexcept {
        return held_.size() == held_at_ && (writer_ == nullptr || taken_ == writer_->size);
    }

    client_session& session_;
    const std::uint64_t begun_;  // what the session had heard when this began
    std::int32_t number_ = 0;    // 0: the request is not sent
    std::string input_;          // of the answer: its head, or what follows the body
    std::size_t at_ = 0;
    std::string body_;  // of the answer, without framing
    std::size_t body_at_ = 0;
    std::string end_;  // what follows the body
    std::size_t added_ = 0;
    ring_operation* reader_ = nullptr;
    ring_operation* writer_ = nullptr;
    std::size_t taken_ = 0;  // bytes of the writer's
    std::string held_;       // of the request's body
    std::size_t held_at_ = 0;
    std::string trailers_;          // of the request
    std::uint64_t left_ = 0;        // bytes that the request's body still needs
    std::uint64_t left_input_ = 0;  // bytes that the answer's body still needs
    std::error_code failure_;
    bool is_head_ = false;           // the request is HEAD
    bool has_length_ = false;        // the request has a length, which may be 0
    bool is_body_ended_ = false;     // the request's body is whole
    bool is_chunked_ = false;        // the answer's body is given in chunks
    bool has_input_length_ = false;  // the answer has a length
    bool is_ended_ = false;          // the server has said the end of the answer
    bool is_held_ = false;           // the call gets the answer when it has ended
    bool is_unprocessed_ = false;
    bool is_given_up_ = false;  // the call wants no answer, and the stream is reset
    bool is_owned_ = true;      // the call has it
    bool is_closed_ = false;    // the engine does not know the stream any longer
};

}  // namespace coppice::http
