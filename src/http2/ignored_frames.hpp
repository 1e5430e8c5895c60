// ignored_frames: counts the frames that nghttp2 drops without a word; for both engines.
#pragma once
// nghttp2 tells nothing of a frame of an unknown type, nor of DATA or a CONTINUATION for a stream
// that is closed (RFC 9113 sections 5.1 and 5.5 say to ignore them). A peer that sends millions of
// them costs time for each. So this follows the heads of the frames by itself, and leaves out those
// that nghttp2 has begun. DATA with bytes is left out too: a peer may have sent it before it knew
// that the stream was closed. nghttp2 also drops the acknowledgment of a PING that comes after a
// GOAWAY; this keeps it.

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

namespace coppice::http2 {

// Threads: those of its engine, one at a time. Cost: O(frames) of what arrives, no allocation.
class ignored_frames {
public:
    // Makes a count for a peer that sends `preface` bytes before its first frame.
    explicit ignored_frames(std::size_t preface) noexcept : left_(preface) {}

    // Called with what has arrived; `give` gives it to nghttp2, and returns false if the connection
    // must end, as this does then. nghttp2 1.52 counts one CONTINUATION for each piece of its head,
    // and soon refuses them. So what has come of a head is kept here until the rest has come.
    template <class Give>
    bool pass(std::span<const std::byte> bytes, Give give) noexcept {
        if (head_bytes_ != 0) {
            const auto rest = bytes.first(std::min(head_.size() - head_bytes_, bytes.size()));
            see(rest);
            bytes = bytes.subspan(rest.size());
            if (head_bytes_ != 0) return true;
            if (!give(std::span<const std::byte>(head_))) return false;
        }
        see(bytes);
        bytes = bytes.first(bytes.size() - head_bytes_);
        return bytes.empty() || give(bytes);
    }
    // Called when nghttp2 begins with a frame, so does not ignore it.
    void begun(const nghttp2_frame_hd& head) noexcept {
        if (is_counted(head.type, head.length) && count_ != 0) --count_;
    }
    // Called when nghttp2 has taken all. Returns how many frames of it were ignored.
    std::size_t take() noexcept { return std::exchange(count_, 0); }
    // Returns what the latest PING that the peer has acknowledged says; 0 if there is none.
    std::uint64_t acknowledged() const noexcept { return acknowledged_; }

private:
    // Follows the heads in what has arrived, before nghttp2 takes it.
    void see(std::span<const std::byte> bytes) noexcept {
        while (!bytes.empty()) {
            if (left_ != 0) {
                const std::size_t skipped = std::min(left_, bytes.size());
                if (at(3) == NGHTTP2_PING) keep_ping(bytes.first(skipped));
                bytes = bytes.subspan(skipped);
                left_ -= skipped;
                continue;
            }
            const std::size_t taken = std::min(head_.size() - head_bytes_, bytes.size());
            std::ranges::copy(bytes.first(taken), head_.data() + head_bytes_);
            bytes = bytes.subspan(taken);
            head_bytes_ += taken;
            if (head_bytes_ != head_.size()) return;
            head_bytes_ = 0;
            left_ = at(0) << 16 | at(1) << 8 | at(2);
            if (is_counted(static_cast<std::uint8_t>(at(3)), left_)) ++count_;
        }
    }
    // Called with the next bytes of a PING, before they are skipped.
    void keep_ping(std::span<const std::byte> bytes) noexcept {
        if ((at(4) & NGHTTP2_FLAG_ACK) == 0 || left_ > ping_.size()) return;
        std::ranges::copy(bytes, ping_.end() - left_);
        if (bytes.size() == left_) std::memcpy(&acknowledged_, ping_.data(), ping_.size());
    }
    static bool is_counted(std::uint8_t type, std::size_t length) noexcept {
        return type >= NGHTTP2_CONTINUATION || (type == NGHTTP2_DATA && length == 0);
    }
    std::size_t at(std::size_t i) const noexcept { return std::to_integer<std::size_t>(head_[i]); }

    std::array<std::byte, 9> head_{};
    std::size_t head_bytes_ = 0;  // of head_ that have arrived
    std::size_t left_;            // bytes until the next head
    std::size_t count_ = 0;
    std::array<std::byte, 8> ping_{};  // what has come of an acknowledgment
    std::uint64_t acknowledged_ = 0;
};

}  // namespace coppice::http2
