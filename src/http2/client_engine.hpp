// client_engine: the client's side of an HTTP/2 connection over nghttp2; for the sources of http2.
#pragma once
// nghttp2 has the frames, HPACK, the states of streams, the windows, and what RFC 9113 says of the
// fields of an answer. Ours are the translation from and to HTTP/1.1's heads, the bounds on what a
// server may waste, and when a window opens again.

#include <coppice/http2/client.hpp>

#include <nghttp2/nghttp2.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ignored_frames.hpp"

namespace coppice::http2 {

class client_engine final : public http::client_multiplexer, immovable {
public:
    // Errors: std::bad_alloc.
    client_engine(const client_limits& most, bool secure, const http::limits& limit);
    ~client_engine() override;

    bool receive(std::span<const std::byte> bytes) noexcept override;
    bool write(std::string& out) noexcept override;
    bool is_finished() const noexcept override;
    std::size_t streams_max() const noexcept override;
    bool is_accepting() const noexcept override;
    std::int32_t request(http::requesting_stream& s, std::string_view head,
                         bool ended) noexcept override;
    void wake(std::int32_t number) noexcept override;
    void consumed(std::int32_t number, std::size_t bytes) noexcept override;
    void cancel(std::int32_t number) noexcept override;
    void shut_down() noexcept override;

private:
    struct stream {
        std::int32_t number = 0;
        http::requesting_stream* user = nullptr;  // nullptr: closed, and spare
        int status = 0;
        bool is_answered = false;  // the final head has come
        std::size_t fields = 0;    // of the present head, as are these
        std::size_t bytes = 0;     // of all that has come, also of what was not kept
        std::string lines;
    };
    struct callbacks;
    friend callbacks;

    stream* find(std::int32_t number) noexcept;
    stream& spare_stream();
    void close(stream& s, std::uint32_t code) noexcept;
    bool add(stream& s, std::string_view name, std::string_view value);
    void head_ended(const nghttp2_frame& frame, stream& s);
    void give_up(stream& s, http::answer_loss why) noexcept;
    void note_frame(const nghttp2_frame_hd& head) noexcept;
    void note_data(const nghttp2_frame& frame) noexcept;
    void note_sent(const nghttp2_frame& frame) noexcept;
    void waste_frame() noexcept;
    void be_calm() noexcept;
    bool collect_request(std::string_view head);
    bool collect_fields(std::string& text, std::size_t from);
    bool submit_trailers(stream& s);

    const client_limits most_;
    const http::limits limits_;
    const bool secure_;
    nghttp2_session* session_ = nullptr;
    std::vector<std::unique_ptr<stream>> all_;  // as many as were open at once
    std::vector<stream*> spare_;                // those that are not in use; has room for all
    std::string names_;                         // a request's fields, with names in lower case
    std::string target_;                        // of a request whose target is in absolute form
    std::vector<nghttp2_nv> pairs_;             // views of them
    std::size_t frames_left_;
    ignored_frames ignored_;
    unsigned continuations_ = 0;  // of the present head
    bool calmed_ = false;
    bool is_wrong_ = false;   // the server has broken the protocol
    bool is_broken_ = false;  // there was no memory: what is to be sent is lost
};

}  // namespace coppice::http2
