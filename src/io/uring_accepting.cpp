// The accepts of the io_uring ring; uring_accept.hpp describes their states.
#include "uring_ring.hpp"

#include "uring_entries.hpp"

#include <sys/socket.h>
#include <unistd.h>

namespace coppice::io::uring {

bool uring_ring::accept_from(accept_stream& a, ring_operation& op) noexcept {
    if (!a.empty()) {
        op.result = a.pop();
        return true;
    }
    a.waiting = &op;
    if (!a.armed) arm(a);
    return false;
}

void uring_ring::arm(accept_stream& a) noexcept {
    sqe& entry = ring_->next_entry();
    if (a.moved) {
        ask_poll(entry, a.fd, poll_in);
    } else {
        ask_all_connections(entry, a.fd);
    }
    entry.user_data = accept_name(a);
    a.armed = true;
    a.cancelling = false;
}

void uring_ring::end_shot(accept_stream& a) noexcept {
    if (a.armed && !std::exchange(a.cancelling, true)) submit_cancel_of(accept_name(a));
}

int uring_ring::accept_into_stream(accept_stream& a, const cqe& entry) noexcept {
    a.armed = (entry.flags & cqe_more) != 0;
    int result = entry.result;
    if ((entry.user_data & marks) == listening && result >= 0) {
        result = ::accept4(a.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (result < 0) result = -errno;
    }
    if (result >= 0) a.push(result);
    return result;
}

accept_stream* uring_ring::stream_of_accept(const cqe& entry) noexcept {
    accept_stream* const a = accepts_.find_id(entry.user_data >> 3);
    const bool brought = (entry.user_data & marks) == accepting && entry.result >= 0;
    if (a == nullptr && brought) ::close(entry.result);
    return a;
}

void uring_ring::deliver_accept(const cqe& entry) noexcept {
    accept_stream* const a = stream_of_accept(entry);
    if (a == nullptr) return;
    const int result = accept_into_stream(*a, entry);
    // The ring canceled the request, the thread of an earlier ring has ended, or the peer has
    // gone.
    const bool pause =
        result == -ECANCELED || result == -EINTR || result == -EAGAIN || result == -ECONNABORTED;
    if (a->waiting == nullptr) {
        if (a->full()) end_shot(*a);
    } else if (!a->empty() || (result < 0 && !pause)) {
        ring_operation& op = *std::exchange(a->waiting, nullptr);
        op.result = a->empty() ? result : a->pop();
        op.on->owner->finish(op);  // may destroy a
    } else if (!a->armed) {
        arm(*a);
    }
}

}  // namespace coppice::io::uring
