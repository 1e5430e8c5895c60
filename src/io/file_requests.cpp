// The repeated reads and writes of io/internal/file_requests.hpp.
#include <coppice/io/internal/file_requests.hpp>

#include <coppice/base/saturating.hpp>

#include <algorithm>
#include <cerrno>
#include <limits>

namespace coppice::io::internal {

namespace {

constexpr std::size_t piece_max = std::size_t{1} << 20;  // bytes in one read or write
constexpr std::size_t room_min = 4096;                   // bytes, for a file that reports no size
constexpr std::uint64_t offset_max = std::numeric_limits<std::int64_t>::max();

}  // namespace

// Rejects the last offset, which to io_uring would mean the file's own position.
bool long_transfer::submit() noexcept {
    if (offset <= offset_max) return descriptor_request<file_operation>::submit();
    set_outcome(-EINVAL);
    return true;
}

void long_transfer::go_on_at(std::byte* at, std::size_t left) noexcept {
    data = at;
    size = std::min(left, piece_max);
}

bool long_transfer::is_interruption(int returned) noexcept {
    return returned == -EINTR;
}

bool growing_read::submit() noexcept {
    if (!is_open()) return long_transfer::submit();  // which reports that
    std::size_t room = room_min;
    const coppice::internal::result<std::uint64_t> whole = owner().system().file_size(on->fd);
    if (whole && whole.value() > offset) {
        const std::uint64_t left = whole.value() - offset;
        if (left > left_max_) {
            set_outcome(-EFBIG);
            return true;
        }
        // One byte more reveals that the file has grown since.
        room = static_cast<std::size_t>(left) + 1;
    }
    if (!reserve(room)) {
        set_outcome(-ENOMEM);
        return true;
    }
    return long_transfer::submit();
}

// Limits the memory to one byte more than left_max_: that byte reveals that the file is too large.
bool growing_read::reserve(std::size_t room) noexcept {
    room_ = std::min(room, saturating_add(left_max_, std::size_t{1}));
    memory_ = resize(room_);
    if (memory_ == nullptr) return false;
    go_on_at(memory_ + read_, room_ - read_);
    return true;
}

int growing_read::judge(int returned) noexcept {
    if (is_interruption(returned)) return -EAGAIN;
    if (returned < 0) return returned;
    if (returned == 0) {
        resize(read_);
        return 0;
    }
    read_ += static_cast<std::size_t>(returned);
    offset += static_cast<std::size_t>(returned);
    if (read_ > left_max_) return -EFBIG;
    if (read_ != room_) {
        go_on_at(memory_ + read_, room_ - read_);
        return -EAGAIN;
    }
    return reserve(saturating_mul(std::max(room_, room_min), std::size_t{2})) ? -EAGAIN : -ENOMEM;
}

int fill_request::judge(int returned) noexcept {
    if (is_interruption(returned)) return -EAGAIN;
    if (returned < 0) return returned;
    read_ += static_cast<std::size_t>(returned);
    offset += static_cast<std::size_t>(returned);
    if (returned == 0 || read_ == into_.size()) return 0;
    const std::span<std::byte> left = into_.subspan(read_);
    go_on_at(left.data(), left.size());
    return -EAGAIN;
}

int write_all_request::judge(int returned) noexcept {
    if (is_interruption(returned)) return -EAGAIN;
    if (returned < 0) return returned;
    left_ = left_.subspan(static_cast<std::size_t>(returned));
    offset += static_cast<std::size_t>(returned);
    if (left_.empty()) return written();
    if (returned == 0) return -EIO;  // no known system does so
    go_on_at(const_cast<std::byte*>(left_.data()), left_.size());
    return -EAGAIN;
}

}  // namespace coppice::io::internal
