// Fills the entries that the ring submits to the kernel; the ring sets user_data.
#pragma once

#include <coppice/io/internal/operation.hpp>

#include "uring_abi.hpp"
#include "uring_stream.hpp"

#include <sys/socket.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace coppice::io::uring {

inline std::uint64_t address(const void* p) noexcept {
    return reinterpret_cast<std::uintptr_t>(p);
}

// Returns the size of a transfer, limited to the most bytes of one call, as for read(2).
inline std::uint32_t transfer_size(const ring_operation& o) noexcept {
    constexpr std::size_t most = 0x7ffff000;
    return static_cast<std::uint32_t>(std::min(o.size, most));
}

// Each function fills an entry that is all zero.

inline void ask_send(sqe& entry, const ring_operation& o) noexcept {
    entry.opcode = op::send;
    entry.fd = o.on->fd;
    entry.addr = address(o.data);
    entry.len = transfer_size(o);
    entry.op_flags = MSG_NOSIGNAL;
}

inline void ask_poll(sqe& entry, int fd, std::uint32_t events) noexcept {
    entry.opcode = op::poll_add;
    entry.fd = fd;
    entry.op_flags = events;
}

// Asks for everything that a socket brings, into lent buffers.
inline void ask_all_bytes(sqe& entry, int fd) noexcept {
    entry.opcode = op::recv;
    entry.fd = fd;
    entry.ioprio = receive_multishot;
    entry.flags = sqe_buffer_select;
}

// Asks for what fits into one of them.
inline void ask_one_buffer(sqe& entry, int fd) noexcept {
    entry.opcode = op::recv;
    entry.fd = fd;
    entry.flags = sqe_buffer_select;
    entry.len = filled_buffer::capacity;
}

inline void ask(sqe& entry, const ring_operation& o) noexcept {
    const auto transfer = [&](op what) {
        entry.opcode = what;
        entry.fd = o.on->fd;
        entry.addr = address(o.data);
        entry.len = transfer_size(o);
    };
    const auto message = [&](op what, std::uint32_t flags) {
        entry.opcode = what;
        entry.fd = o.on->fd;
        entry.addr = address(o.message);
        entry.len = 1;
        entry.op_flags = flags;
    };
    switch (o.code) {
        case opcode::accept:
            entry.opcode = op::accept;
            entry.fd = o.on->fd;
            entry.op_flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
            break;
        case opcode::connect:
            entry.opcode = op::connect;
            entry.fd = o.on->fd;
            entry.addr = address(o.peer);
            entry.off = o.peer_size;
            break;
        case opcode::receive:
            transfer(op::recv);
            break;
        case opcode::receive_pooled:
            ask_one_buffer(entry, o.on->fd);
            break;
        case opcode::receive_message:
            message(op::recvmsg, 0);
            break;
        case opcode::send:
            ask_send(entry, o);
            break;
        case opcode::send_message:
            message(op::sendmsg, MSG_NOSIGNAL);
            break;
        case opcode::read:
            ask_poll(entry, o.on->fd, poll_in);  // a read of a non-blocking file would not wait
            break;
        case opcode::read_at:
            transfer(op::read);
            entry.off = o.offset;
            break;
        case opcode::write_at:
            transfer(op::write);
            entry.off = o.offset;
            break;
        case opcode::sync:
            entry.opcode = op::fsync;
            entry.fd = o.on->fd;
            break;
    }
}

// Asks for every connection that comes to a listener.
inline void ask_all_connections(sqe& entry, int fd) noexcept {
    entry.opcode = op::accept;
    entry.fd = fd;
    entry.ioprio = accept_multishot;
    entry.op_flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
}

// Asks for the end of a request, named by its user_data.
inline void ask_end(sqe& entry, std::uint64_t request) noexcept {
    entry.opcode = op::async_cancel;
    entry.fd = -1;
    entry.addr = request;
}

// Asks for a completion when that time has passed; with timeout_abs, when that time has come.
// `time` is read when the entry is submitted.
inline void ask_time(sqe& entry, const kernel_timespec& time, std::uint32_t flags) noexcept {
    entry.opcode = op::timeout;
    entry.fd = -1;
    entry.op_flags = flags;
    entry.addr = address(&time);
    entry.len = 1;
}

// Changes the time of the timeout whose user_data is `request`. Completes only if there is none.
inline void ask_other_time(sqe& entry, std::uint64_t request, const kernel_timespec& time,
                           std::uint32_t flags) noexcept {
    entry.opcode = op::timeout_remove;
    entry.fd = -1;
    entry.op_flags = flags | timeout_update;
    entry.addr = request;
    entry.off = address(&time);
    entry.flags = sqe_skip_success;
}

inline void ask_read(sqe& entry, int fd, void* into, std::size_t bytes) noexcept {
    entry.opcode = op::read;
    entry.fd = fd;
    entry.addr = address(into);
    entry.len = static_cast<std::uint32_t>(bytes);
}

}  // namespace coppice::io::uring
