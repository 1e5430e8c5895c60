// How the io_uring ring, and what is pending in it, moves to another thread.
#include "uring_ring.hpp"

#include <coppice/base/internal/check.hpp>

#include "uring_entries.hpp"

#include <sys/socket.h>
#include <exception>

namespace coppice::io::uring {

bool uring_ring::enter(event_loop& loop) noexcept {
    const std::uint64_t thread = this_thread();
    if (issuer_ == thread) return false;
    const bool moves = issuer_ != 0;
    if (moves) leave_thread();
    issuer_ = thread;
    ring_->enable();
    listen_for_wakes();
    if (moves) {
        loop.restart_pending(
            [](ring_operation& op, void* self) { static_cast<uring_ring*>(self)->restart(op); },
            this);
        begin_again();
    }
    return moves;
}

void uring_ring::make_rings() {
    ring_.emplace(calls_);
    lent_.emplace(buffers_, *ring_);
}

void uring_ring::drop_rings() noexcept {
    ring_.reset();
    lent_.reset();
    alarm_.reset();
}

void uring_ring::leave_thread() noexcept {
    while (cancelled_.pop_front() != nullptr) {
    }
    ring_->take([this](const cqe& entry) {
        if ((entry.user_data & marks) == own) return;
        if ((entry.user_data & marks) == streaming) {
            (void)receive_into_stream(entry);
            return;
        }
        if (is_accept(entry)) {
            if (accept_stream* const a = stream_of_accept(entry)) {
                (void)accept_into_stream(*a, entry);
            }
            return;
        }
        ring_operation& op = operation_of(entry.user_data);
        if (judge(op, entry)) end_later(op);
        // A thread that ends undoes its file operations completely, so they can move.
        else if (is_file_operation(op.code))
            begin_later(op);
    });
    ring_->for_each_queued([this](const sqe& entry) {
        if ((entry.user_data & marks) == 0) begin_later(operation_of(entry.user_data));
    });
    drop_rings();
    streams_.disarm_all();
    accepts_.disarm_all();
    try {
        make_rings();
    } catch (const std::exception&) {
        COPPICE_CHECK(false, "there is no memory to move an io_uring to another thread");
    }
}

void uring_ring::begin_again() noexcept {
    while (operation* const next = again_.pop_front()) {
        ring_operation& op = *static_cast<ring_operation*>(next);
        op.ended = false;
        if (op.cancelled) {
            op.result = -ECANCELED;
            end_later(op);
        } else {
            submit(op);
        }
    }
}

void uring_ring::restart(ring_operation& op) noexcept {
    if (op.ended) return;
    COPPICE_CHECK(!is_file_operation(op.code),
                  "a context changed threads while a file operation was under way");
    if (op.cancelled) {
        op.result = -ECANCELED;
        end_later(op);
    } else if (receive_stream* const s = streams_.find(op.on->fd);
               s != nullptr && s->waiting == &op) {
        if (s->served || s->serve(op, buffers_)) {
            s->waiting = nullptr;
            s->served = false;
            end_later(op);
        } else if (!s->armed) {
            arm(op.on->fd, *s);
        }
    } else if (accept_stream* const a = accepts_.find(op.on->fd);
               a != nullptr && a->waiting == &op) {
        if (accept_from(*a, op)) {
            a->waiting = nullptr;
            end_later(op);
        }
    } else if (op.code == opcode::connect) {
        sqe& entry = ring_->next_entry();
        ask_poll(entry, op.on->fd, poll_out);
        entry.user_data = address(&op) | connecting;
    } else {
        submit(op);
    }
}

int uring_ring::connect_outcome(const ring_operation& op, int polled) noexcept {
    if (polled < 0) return polled;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(op.on->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return -error;
    // A socket that is not connecting at all is writable too.
    sockaddr_storage peer;
    socklen_t peer_size = sizeof peer;
    void* const where = &peer;
    const bool connected = ::getpeername(op.on->fd, static_cast<sockaddr*>(where), &peer_size) == 0;
    return connected || errno != ENOTCONN ? 0 : -EAGAIN;
}

}  // namespace coppice::io::uring
