// The bounds of engine.hpp on what a client may waste.
#include <utility>

#include "engine.hpp"
#include "fields.hpp"

namespace coppice::http2 {

void engine::note_frame(const nghttp2_frame_hd& head) noexcept {
    ignored_.begun(head);
    if (head.type == NGHTTP2_CONTINUATION) {
        if (++continuations_ > continuations_most) be_calm();
        return;
    }
    continuations_ = 0;
    if (head.type == NGHTTP2_HEADERS) {
        // nghttp2 treats a stream that was never opened as closed, and ignores it.
        if (head.stream_id >= skipped_ && head.stream_id < skipped_to_) {
            (void)nghttp2_session_terminate_session(session_, NGHTTP2_PROTOCOL_ERROR);
        } else if (head.stream_id <= newest_ && find(head.stream_id) == nullptr) {
            waste(frames_left_);  // nghttp2 reads the fields of a closed stream, and drops them
        }
        return;
    }
    if (head.type == NGHTTP2_DATA) {  // see note_data(), too
        if (head.length == 0 && (head.flags & NGHTTP2_FLAG_END_STREAM) == 0) waste(frames_left_);
        return;
    }
    if (head.type == NGHTTP2_RST_STREAM) waste(resets_left_);
    waste(frames_left_);
}

// Called for a frame of an open stream when all of it has come. Padding carries nothing.
void engine::note_data(const nghttp2_frame& frame, bool ended) noexcept {
    if (frame.hd.length != frame.data.padlen) {
        earn(frames_left_, 1, most_.idle_frames_max);
    } else if (!ended && frame.hd.length != 0) {
        waste(frames_left_);
    }
}

// An answer that ended is good for one more reset, and for more frames. A stream that was answered
// before its request ended is closed after the answer (RFC 9113 section 8.1). A frame of the
// client's that made the server reset a stream is as good as a reset.
void engine::note_sent(const nghttp2_frame& frame) noexcept {
    if (frame.hd.type == NGHTTP2_GOAWAY && frame.goaway.error_code != 0) is_terminated_ = true;
    if (frame.hd.type == NGHTTP2_RST_STREAM) {
        const std::uint32_t code = frame.rst_stream.error_code;
        if (code == NGHTTP2_PROTOCOL_ERROR || code == NGHTTP2_FLOW_CONTROL_ERROR ||
            code == NGHTTP2_STREAM_CLOSED || code == NGHTTP2_FRAME_SIZE_ERROR) {
            waste(resets_left_);
        }
        return;
    }
    if (frame.hd.type != NGHTTP2_DATA && frame.hd.type != NGHTTP2_HEADERS) return;
    earn(frames_left_, 2, most_.idle_frames_max);
    if ((frame.hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return;
    earn(resets_left_, 1, most_.resets_max);
    if (nghttp2_session_get_stream_remote_close(session_, frame.hd.stream_id) == 0) {
        reset(frame.hd.stream_id, http::stream_reset::no_error);
    }
}

void engine::waste(std::size_t& left) noexcept {
    if (left == 0) {
        be_calm();
    } else {
        --left;
    }
}

void engine::be_calm() noexcept {
    if (std::exchange(calmed_, true)) return;
    (void)nghttp2_session_terminate_session(session_, NGHTTP2_ENHANCE_YOUR_CALM);
}

}  // namespace coppice::http2
