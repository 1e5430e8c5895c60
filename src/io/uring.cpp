// What the io_uring ring does in every turn: starts operations, waits, and delivers results.
#include "uring_ring.hpp"

#include "uring_entries.hpp"

#include <sys/socket.h>
#include <algorithm>
#include <memory>

namespace coppice::io::uring {

bool uring_ring::start(ring_operation& op) noexcept {
    // The most frequent operations of a server come first; the rest is kept out of their way.
    if (op.code == opcode::send) [[likely]] {
        if (answers_at_once_ && send_at_once(op)) return true;
        submit_send(op);
        return false;
    }
    if (op.code != opcode::receive_pooled) [[unlikely]] {
        if (op.code == opcode::send_message && answers_at_once_ && send_at_once(op)) {
            return true;
        }
        if (op.code == opcode::accept) {
            if (accept_stream* const a = accepts_.find_or_make(op.on->fd)) {
                return accept_from(*a, op);
            }
        }
    }
    if (receive_stream* const s = stream_for(op)) [[likely]] {
        if (s->serve(op, buffers_)) return true;
        s->waiting = &op;
        if (!s->armed) arm(op.on->fd, *s);
    } else {
        submit(op);
    }
    return false;
}

void uring_ring::poll(std::optional<time_point> until) noexcept {
    while (operation* const op = cancelled_.pop_front()) {
        submit_cancel(*static_cast<ring_operation*>(op));
    }
    if (!over_.empty() || ring_->completions() != 0) until.reset();
    kernel_timespec timeout{};
    const bool limited = until && *until != forever && !alarm_.covers(*until, [this](auto at) {
        set_timer(at);
        return true;
    });
    if (limited) {
        const time_point now = clock_.now();
        alarm_.see(now);
        timeout = timespec_of(std::max(*until - now, duration::zero()));
    }
    ring_->submit(until ? 1 : 0, limited ? &timeout : nullptr);
    while (operation* const op = over_.pop_front()) {
        ring_operation& ended = *static_cast<ring_operation*>(op);
        ended.on->owner->finish(ended);
    }
    answers_at_once_ = ring_->completions() == 1;
    has_lent_more_ = false;
    ring_->take([this](const cqe& entry) { deliver(entry); });
    answers_at_once_ = false;
}

bool uring_ring::send_at_once(ring_operation& op) noexcept {
    answers_at_once_ = false;
    constexpr int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    const ssize_t sent = op.code == opcode::send ? ::send(op.on->fd, op.data, op.size, flags)
                                                 : ::sendmsg(op.on->fd, op.message, flags);
    op.result = sent < 0 ? -errno : static_cast<int>(sent);
    return op.result != -EAGAIN && op.result != -EINTR;
}

bool uring_ring::receive_at_once(ring_operation& op) noexcept {
    const receive_stream* const s = streams_.find(op.on->fd);
    if (op.code != opcode::receive || (s != nullptr && s->in_use())) return false;
    const ssize_t n = ::recv(op.on->fd, op.data, op.size, MSG_DONTWAIT);
    op.on->readable = n == static_cast<ssize_t>(op.size);
    op.result = n < 0 ? -errno : static_cast<int>(n);
    return op.result != -EAGAIN && op.result != -EINTR;
}

void uring_ring::receive_one_by_one(descriptor& d, bool on) noexcept {
    receive_stream* const s = streams_.find(d.fd);
    if (s == nullptr || s->one_by_one == on) return;
    s->one_by_one = on;
    d.readable = false;
    if (on) end_shot(d.fd, *s);
}

void uring_ring::submit_send(ring_operation& op) noexcept {
    sqe& entry = ring_->next_entry();
    ask_send(entry, op);
    entry.user_data = address(&op);
}

void uring_ring::submit(ring_operation& op) noexcept {
    sqe& entry = ring_->next_entry();
    ask(entry, op);
    entry.user_data = address(&op);
}

void uring_ring::submit_cancel(ring_operation& op) noexcept {
    submit_cancel_of(address(&op));
    if (op.code == opcode::connect) submit_cancel_of(address(&op) | connecting);
}

void uring_ring::submit_cancel_of(std::uint64_t request) noexcept {
    sqe& entry = ring_->next_entry();
    ask_end(entry, request);
    entry.user_data = ignored;
}

receive_stream* uring_ring::stream_for(const ring_operation& op) noexcept {
    if (op.code == opcode::receive_pooled) return streams_.find_or_make(op.on->fd);
    if (op.code != opcode::receive && op.code != opcode::receive_message) return nullptr;
    receive_stream* const s = streams_.find(op.on->fd);
    return s != nullptr && s->in_use() ? s : nullptr;
}

void uring_ring::arm(int fd, receive_stream& s) noexcept {
    sqe& entry = ring_->next_entry();
    if (s.one_by_one) [[unlikely]] {
        ask_one_buffer(entry, fd);
    } else {
        ask_all_bytes(entry, fd);
    }
    entry.user_data = stream_name(fd, s.generation);
    s.armed = true;
    s.cancelling = false;
}

receive_stream* uring_ring::receive_into_stream(const cqe& entry) noexcept {
    receive_stream* const s = streams_.find(stream_file(entry));
    const bool stale = s->generation != entry.user_data >> 32;
    int result = entry.result;
    if ((entry.flags & cqe_buffer) != 0) [[likely]] {
        std::byte* const data =
            lent_->take(static_cast<std::uint16_t>(entry.flags >> cqe_buffer_shift));
        if (data == nullptr) [[unlikely]] {
            result = -ENOMEM;
        } else if (stale || result <= 0 || s->end != receive_stream::open) [[unlikely]] {
            buffers_.give(data);
        } else {
            s->take(data, result);
        }
    }
    if (stale) [[unlikely]]
        return nullptr;
    s->armed = (entry.flags & cqe_more) != 0;
    if (result > 0) [[likely]]
        return s;
    if (result == -ENOBUFS) lend_more();
    // All lent buffers were full at once, or the ring canceled the request. It is armed again
    // when needed.
    const bool pause =
        result == -ENOBUFS || result == -ECANCELED || result == -EINTR || result == -EAGAIN;
    if (!pause) s->end = static_cast<std::int16_t>(result);  // 0, or a negative errno
    return s;
}

void uring_ring::deliver_stream(const cqe& entry) noexcept {
    receive_stream* const s = receive_into_stream(entry);
    if (s == nullptr) [[unlikely]]
        return;
    const int fd = stream_file(entry);
    if (s->armed && s->next_doubted == receive_stream::not_doubted) [[unlikely]]
        doubt(fd, *s);  // it has brought bytes and continues
    if (s->waiting != nullptr && (s->served || s->serve(*s->waiting, buffers_))) [[likely]] {
        ring_operation& op = *std::exchange(s->waiting, nullptr);
        s->served = false;
        if (s->one_by_one) [[unlikely]]
            op.on->readable = !s->in_use() && entry.result == filled_buffer::capacity;
        op.on->owner->finish(op);
    } else if (s->waiting != nullptr && !s->armed) {
        arm(fd, *s);
    } else if (s->count >= receive_stream::waiting_max) {
        end_shot(fd, *s);
    }
}

void uring_ring::deliver(const cqe& entry) noexcept {
    const std::uint64_t mark = entry.user_data & marks;
    if (mark == streaming) {
        deliver_stream(entry);
    } else if (mark == 0 && operation_of(entry.user_data).code == opcode::send &&
               entry.result > 0) {
        answers_at_once_ = false;  // what follows a send may have to wait
        ring_operation& op = operation_of(entry.user_data);
        op.result = entry.result;
        op.on->owner->finish(op);
    } else {
        deliver_other(entry);
    }
}

void uring_ring::deliver_other(const cqe& entry) noexcept {
    if ((entry.user_data & marks) == own) {
        deliver_own(entry.user_data);
        return;
    }
    if (is_accept(entry)) {
        deliver_accept(entry);
        return;
    }
    ring_operation& op = operation_of(entry.user_data);
    if (is_send(op)) answers_at_once_ = false;  // what follows a send may have to wait
    if (judge(op, entry)) {
        op.on->owner->finish(op);
    } else {
        submit(op);
    }
}

void uring_ring::deliver_own(std::uint64_t what) noexcept {
    switch (what) {
        case woken:
            listen_for_wakes();
            break;
        case alarmed:
            alarm_.rang();
            break;
        case looking:
            look();
            break;
        default:
            break;  // ignored
    }
}

bool uring_ring::judge(ring_operation& op, const cqe& entry) noexcept {
    op.result = entry.result;
    if ((entry.user_data & marks) == connecting) op.result = connect_outcome(op, entry.result);
    if (op.code == opcode::read && entry.result >= 0) {
        const ssize_t n = ::read(op.on->fd, op.data, op.size);
        op.result = n < 0 ? -errno : static_cast<int>(n);
    }
    if ((entry.flags & cqe_buffer) != 0) {
        op.data = lent_->take(static_cast<std::uint16_t>(entry.flags >> cqe_buffer_shift));
        if (op.data == nullptr) op.result = -ENOMEM;
        if (op.data != nullptr && op.result <= 0) buffers_.give(op.data);
    }
    // All lent buffers were full at once. They have been returned by now, so the operation
    // waits again.
    const bool full = op.result == -ENOBUFS && op.code == opcode::receive_pooled;
    if (full) lend_more();
    // Canceled, but not by cancel(): the thread that had the ring has ended.
    const bool orphaned = op.result == -ECANCELED;
    return op.cancelled || !(full || orphaned || op.result == -EINTR || op.result == -EAGAIN);
}

void uring_ring::set_timer(time_point at) noexcept {
    timer_spec_ = timespec_of(at.time_since_epoch());
    sqe& entry = ring_->next_entry();
    if (alarm_.is_set()) {
        ask_other_time(entry, alarmed, timer_spec_, timeout_abs);
        entry.user_data = ignored;
    } else {
        ask_time(entry, timer_spec_, timeout_abs);
        entry.user_data = alarmed;
    }
}

void uring_ring::listen_for_wakes() noexcept {
    sqe& entry = ring_->next_entry();
    ask_read(entry, wake_.fd, &wake_count_, sizeof wake_count_);
    entry.user_data = woken;
}

}  // namespace coppice::io::uring

namespace coppice::io::internal {

std::unique_ptr<ring> make_uring_ring(buffer_pool& buffers, uring_calls& calls) {
    return std::make_unique<uring::uring_ring>(buffers, calls);
}

}  // namespace coppice::io::internal
