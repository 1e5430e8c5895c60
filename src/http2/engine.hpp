// engine: the server's side of an HTTP/2 connection over nghttp2; for the sources of http2.
#pragma once
// nghttp2 has the frames, HPACK, the states of streams, the windows, and what RFC 9113 says of the
// fields. Ours are the translation to HTTP/1.1's heads, the bounds on what a client may waste, and
// when a window opens again.

#include <coppice/http2/server.hpp>

#include "head_text.hpp"
#include "ignored_frames.hpp"
#include "receipts.hpp"

#include <nghttp2/nghttp2.h>

#include <memory>
#include <string>
#include <vector>

namespace coppice::http2 {

class engine final : public http::multiplexer, immovable {
public:
    // Errors: std::bad_alloc.
    engine(const server_limits& most, http::multiplexed_streams& streams, bool secure,
           const http::limits& limit);
    ~engine() override;

    bool receive(std::span<const std::byte> bytes) noexcept override;
    bool write(std::string& out) noexcept override;
    bool is_finished() const noexcept override;
    bool answer(std::int32_t number, std::string_view head, bool ended) noexcept override;
    void wake(std::int32_t number) noexcept override {
        (void)nghttp2_session_resume_data(session_, number);
    }
    void consumed(std::int32_t number, std::size_t bytes) noexcept override {
        (void)nghttp2_session_consume_stream(session_, number, bytes);
    }
    void reset(std::int32_t number, http::stream_reset why) noexcept override;
    void shut_down() noexcept override;
    bool ask_for_receipt() noexcept override {
        if (!is_terminated_) receipts_.ask();
        return !is_terminated_;
    }
    bool has_receipt() const noexcept override {
        return is_terminated_ || receipts_.is_answered(ignored_.acknowledged());
    }

private:
    struct stream {
        std::int32_t number = 0;
        http::multiplexed_stream* user = nullptr;  // nullptr: not begun, or closed
        bool refused = false;                      // its request was malformed
        bool is_tunnel = false;                    // its request is an extended CONNECT
        head_text head;
    };
    struct callbacks;
    friend callbacks;

    stream* find(std::int32_t number) noexcept;
    stream* open(std::int32_t number) noexcept;
    stream* take_spare(std::int32_t number) noexcept;
    void close(stream& s, bool reset) noexcept;
    int head_ended(const nghttp2_frame& frame, stream& s);
    void note_frame(const nghttp2_frame_hd& head) noexcept;
    void note_data(const nghttp2_frame& frame, bool ended) noexcept;
    void note_sent(const nghttp2_frame& frame) noexcept;
    void waste(std::size_t& left) noexcept;
    void be_calm() noexcept;
    void announce_streams(char* frame) const noexcept;
    bool collect(std::string_view head, int& status);
    bool collect_fields(std::size_t from);
    void open_tunnel(int& status) noexcept;
    bool submit_trailers(const stream& s);
    void give_up(const stream& s) noexcept;

    const server_limits most_;
    const http::limits limits_;
    http::multiplexed_streams& streams_;
    const bool secure_;
    nghttp2_session* session_ = nullptr;
    std::vector<std::unique_ptr<stream>> all_;  // as many as were open at once
    std::vector<stream*> spare_;                // those that are not in use; has room for all
    std::string names_;                         // the fields of an answer, with names in lower case
    std::vector<nghttp2_nv> pairs_;             // views of them
    std::string_view unwritten_;                // what nghttp2 has given, and write() could not
    std::size_t resets_left_;
    std::size_t frames_left_;
    ignored_frames ignored_;
    receipts receipts_;
    unsigned continuations_ = 0;   // of the present head
    std::int32_t begun_ = 0;       // the highest stream that has a user, or had one
    std::int32_t newest_ = 0;      // the highest stream that a client has opened
    std::int32_t skipped_ = 0;     // the lowest of the last streams that it left out, up to
    std::int32_t skipped_to_ = 0;  // the one that it opened instead
    bool calmed_ = false;
    bool is_shut_down_ = false;   // shut_down() was called
    bool is_terminated_ = false;  // a GOAWAY with an error was sent
};

}  // namespace coppice::http2
