// The part of io_uring's kernel interface that the ring uses; included by uring_ring.hpp.
#pragma once
// Written from the kernel's documentation, because the headers in Debian 12's packages lack parts
// of it. The layouts are the kernel's: 64-byte submission and 16-byte completion entries.

#include <cstdint>

namespace coppice::io::uring {

constexpr long syscall_setup = 425;
constexpr long syscall_enter = 426;
constexpr long syscall_register = 427;

// Flags of setup.
constexpr std::uint32_t setup_cqsize = 1u << 3;
constexpr std::uint32_t setup_clamp = 1u << 4;
constexpr std::uint32_t setup_r_disabled = 1u << 6;
constexpr std::uint32_t setup_submit_all = 1u << 7;
constexpr std::uint32_t setup_single_issuer = 1u << 12;
constexpr std::uint32_t setup_defer_taskrun = 1u << 13;

// Features that setup reports.
constexpr std::uint32_t feature_single_mmap = 1u << 0;
constexpr std::uint32_t feature_nodrop = 1u << 1;
constexpr std::uint32_t feature_ext_arg = 1u << 8;

// Flags of enter.
constexpr std::uint32_t enter_getevents = 1u << 0;
constexpr std::uint32_t enter_ext_arg = 1u << 3;

// Operations of register.
constexpr std::uint32_t register_enable_rings = 12;
constexpr std::uint32_t register_pbuf_ring = 22;

// Offsets of mmap.
constexpr std::uint64_t offset_sq_ring = 0;
constexpr std::uint64_t offset_sqes = 0x10000000;

enum class op : std::uint8_t {
    fsync = 3,
    poll_add = 6,
    sendmsg = 9,
    recvmsg = 10,
    timeout = 11,
    timeout_remove = 12,
    accept = 13,
    async_cancel = 14,
    connect = 16,
    read = 22,
    write = 23,
    send = 26,
    recv = 27,
};

constexpr std::uint32_t poll_in = 1;   // POLLIN
constexpr std::uint32_t poll_out = 4;  // POLLOUT

constexpr std::uint8_t sqe_buffer_select = 1u << 5;
constexpr std::uint8_t sqe_skip_success = 1u << 6;  // completes only on failure
// the time is one of CLOCK_MONOTONIC, not a duration
constexpr std::uint32_t timeout_abs = 1u << 0;
constexpr std::uint32_t timeout_update = 1u << 1;
constexpr std::uint32_t cqe_buffer = 1u << 0;
constexpr std::uint32_t cqe_more = 1u << 1;           // the multishot request continues
constexpr std::uint16_t accept_multishot = 1u << 0;   // in sqe::ioprio
constexpr std::uint16_t receive_multishot = 1u << 1;  // in sqe::ioprio
constexpr unsigned cqe_buffer_shift = 16;

struct sq_offsets {
    std::uint32_t head, tail, ring_mask, ring_entries, flags, dropped, array, resv1;
    std::uint64_t user_addr;
};
struct cq_offsets {
    std::uint32_t head, tail, ring_mask, ring_entries, overflow, cqes, flags, resv1;
    std::uint64_t user_addr;
};
struct params {
    std::uint32_t sq_entries, cq_entries, flags, sq_thread_cpu, sq_thread_idle, features, wq_fd;
    std::uint32_t resv[3];
    sq_offsets sq_off;
    cq_offsets cq_off;
};
static_assert(sizeof(params) == 120);

struct sqe {
    op opcode;
    std::uint8_t flags;
    std::uint16_t ioprio;
    std::int32_t fd;
    std::uint64_t off;  // or addr2: accept's address length, connect's length
    std::uint64_t addr;
    std::uint32_t len;
    std::uint32_t op_flags;
    std::uint64_t user_data;
    std::uint16_t buf_group;
    std::uint16_t personality;
    std::int32_t splice_fd;
    std::uint64_t pad[2];
};
static_assert(sizeof(sqe) == 64);

struct cqe {
    std::uint64_t user_data;
    std::int32_t result;
    std::uint32_t flags;
};
static_assert(sizeof(cqe) == 16);

// One provided buffer. The ring's tail overlays the `resv` of entry 0.
struct provided_buffer {
    std::uint64_t addr;
    std::uint32_t len;
    std::uint16_t bid;
    std::uint16_t resv;
};
static_assert(sizeof(provided_buffer) == 16);

struct buffer_ring_registration {
    std::uint64_t ring_addr;
    std::uint32_t ring_entries;
    std::uint16_t bgid;
    std::uint16_t flags;
    std::uint64_t resv[3];
};
static_assert(sizeof(buffer_ring_registration) == 40);

struct kernel_timespec {
    std::int64_t seconds;
    std::int64_t nanoseconds;
};
struct getevents_arg {
    std::uint64_t sigmask;
    std::uint32_t sigmask_size;
    std::uint32_t pad;
    std::uint64_t timespec;
};
static_assert(sizeof(getevents_arg) == 24);

}  // namespace coppice::io::uring
