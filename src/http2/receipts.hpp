// receipts: asks a client whether it has read what was sent, with PING frames; for the engine.
#pragma once
// nghttp2 sends no PING after a GOAWAY once the last stream has ended, and that is when the server
// asks. So the frame is made here; ignored_frames finds its acknowledgment.

#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>

namespace coppice::http2 {

// Threads: those of its engine, one at a time. Cost: 17 bytes each way for a question.
class receipts {
public:
    // Has the next write() ask. Only the latest question counts.
    void ask() noexcept {
        ++asked_;
        is_due_ = true;
    }
    // Appends the question, if there is one. Returns false if there is none, or no memory.
    bool write(std::string& out) noexcept {
        if (!is_due_) return false;
        char frame[head_bytes + sizeof asked_] = {0, 0, sizeof asked_, NGHTTP2_PING};
        std::memcpy(frame + head_bytes, &asked_, sizeof asked_);
        try {
            out.append(frame, sizeof frame);
        } catch (const std::bad_alloc&) {
            return false;
        }
        is_due_ = false;
        return true;
    }
    // Returns true if `acknowledged` is the latest question, or none was asked.
    bool is_answered(std::uint64_t acknowledged) const noexcept {
        return !is_due_ && acknowledged == asked_;
    }

private:
    static constexpr std::size_t head_bytes = 9;

    std::uint64_t asked_ = 0;  // the number of the latest question, which its frame carries
    bool is_due_ = false;
};

}  // namespace coppice::http2
