// stream_link: one stream of a connection that carries many, as the connection of one request.
#pragma once
// The server serves a stream as if it were an HTTP/1.1 connection with one request. The link is
// between that connection and the engine:
//
//   connection   receive_pooled  <-  input_          <-  input()   engine
//                send             ->  held_, writer_   ->  take()
//
// A short body of an answer is copied, and its send ends at once. The bytes of a longer one are
// taken from the operation, which ends when they are gone: a window that is closed thus makes a
// producer wait. When the connection has ended, the client has the time of a send for what was
// copied; then the stream is reset.
//
// A stream that is to become a WebSocket is a tunnel. Its request has the form of an upgrade, and
// no body. What the client sends behind it is withheld until the answer 101, so that the parser
// never takes it for another request. Without that answer it is dropped with the stream.

#include <coppice/base/intrusive.hpp>
#include <coppice/http/multiplexer.hpp>

#include "link.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

namespace coppice::http {

using namespace internal;

class stream_session;
struct session_streams;  // the tags of a session's lists
struct session_ready;

// Threads: its loop's. Lifetime: it belongs to its session, and ends when neither the connection
// nor the engine knows it.
class stream_link final : public link,
                          public multiplexed_stream,
                          public list_hook<session_streams>,
                          public list_hook<session_ready>,
                          public io::timer_entry {
public:
    stream_link(stream_session& s, std::int32_t number, std::string_view head, bool ended);
    ~stream_link();

    bool start(io::internal::ring_operation& op) noexcept override;
    void cancel(io::internal::ring_operation& op) noexcept override;
    void say_end() noexcept override;
    bool is_secure() const noexcept override { return security() != nullptr; }
    const io::agreed_security* security() const noexcept override;
    void close(bool reset) noexcept override;
    void blame_client() noexcept override { is_client_late_ = true; }
    void rest() noexcept override;
    bool keep_trailers(std::string_view lines) noexcept override;
    bool is_tunnel() const noexcept override { return is_tunnel_; }
    const io::endpoint* peer() const noexcept override;

    bool input(std::string_view bytes) noexcept override;
    bool end_input(std::string_view trailers) noexcept override;
    void closed(bool reset) noexcept override;
    taken take(std::span<std::byte> room) noexcept override;
    std::string_view trailers() noexcept override { return trailers_; }

    // Called by the session, outside of the engine: does what has become possible. May end the
    // connection, and run anything.
    void pump() noexcept;
    // Returns true if nothing knows the link any longer. The session then deletes it.
    bool is_over() const noexcept { return !is_owned_ && is_closed_ && !is_fresh_; }

private:
    using ring_operation = io::internal::ring_operation;

    void owner_is_gone() noexcept override;
    void limit_rest() noexcept;
    static void expire(io::timer_entry* entry) noexcept;
    void drop_received() noexcept;
    bool keep(std::string_view bytes) noexcept;
    stream_reset why_cut() const noexcept;
    bool receive_now(ring_operation& op) noexcept;
    bool send_now(ring_operation& op) noexcept;
    bool put_head(std::string_view head) noexcept;
    void finish_later(ring_operation*& pending, int result) noexcept;
    std::size_t readable() const noexcept { return std::min(input_.size(), most_) - at_; }
    bool has_input() const noexcept { return readable() != 0; }
    // Returns true if the answer is whole, though it may not have been sent.
    bool is_whole() const noexcept { return is_answered_ && (has_length_ ? left_ == 0 : has_end_); }
    bool is_given() const noexcept {
        return held_.size() == held_at_ && (writer_ == nullptr || taken_ == writer_->size);
    }

    stream_session& session_;
    const std::int32_t number_;
    std::string input_;  // of the request, in the form of HTTP/1.1
    std::size_t at_ = 0;
    std::size_t most_ = ~std::size_t{0};  // bytes of input_ that are not withheld
    std::size_t unconsumed_ = 0;          // bytes of the window that are in input_
    std::size_t reserved_ = 0;            // of the budget, for input_
    ring_operation* reader_ = nullptr;
    ring_operation* writer_ = nullptr;
    std::size_t taken_ = 0;  // bytes of the writer's
    std::string held_;       // of the answer's body
    std::size_t held_at_ = 0;
    std::string trailers_;           // of the answer
    std::size_t reserved_held_ = 0;  // of the budget, for held_
    std::uint64_t left_ = 0;         // bytes that the answer's body still needs
    bool is_chunked_;                // the request's body is given in chunks
    bool is_head_;                   // the request is HEAD
    const bool is_tunnel_;           // the request is for a WebSocket, or another protocol
    bool is_ended_;                  // the client has ended its side of a tunnel
    bool is_open_ = false;           // the tunnel was answered with 101
    bool is_answered_ = false;       // the final head was given to the engine
    bool has_length_ = false;        // the answer has a length
    bool has_end_ = false;           // the connection has said the end of the answer
    bool is_begun_ = false;          // the connection has received something
    bool is_full_ = false;           // a part of the request had no room, and was dropped
    bool is_client_late_ = false;    // blame_client() was called
    bool is_fresh_ = true;           // the connection does not exist yet
    bool is_owned_ = false;          // it exists
    bool is_closed_ = false;         // the engine does not know the stream any longer
    bool was_reset_ = false;         // before its proper end
};

}  // namespace coppice::http
