// The floor of a server on io_uring, for the benchmarks of echo and http.
#pragma once
// One issuer, deferred task work, multishot accept and receive into a ring of buffers, one enter
// per batch. Ignores errors that do not occur on loopback.

#include "../src/io/uring_abi.hpp"

#include <coppice/base/internal/atomic.hpp>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace raw_uring {

namespace abi = coppice::io::uring;
using coppice::internal::acquire;
using coppice::internal::atomic;
using coppice::internal::release;

constexpr std::uint32_t buffers = 256;
constexpr std::uint32_t buffer_bytes = 4096;
constexpr std::uint16_t multishot_accept = 1u << 0;
constexpr std::uint16_t multishot_receive = 1u << 1;
constexpr std::uint32_t more_to_come = 1u << 1;

// The operation that a completion belongs to.
enum class kind : std::uint64_t { accept, receive, send };
inline std::uint64_t name(kind what, std::uint64_t fd, std::uint64_t buffer = 0) {
    return static_cast<std::uint64_t>(what) | fd << 8 | buffer << 32;
}

template <class T>
atomic<T>& shared(void* at) {
    return *static_cast<atomic<T>*>(at);
}

class loop {
public:
    loop() {
        abi::params p{};
        p.flags = abi::setup_single_issuer | abi::setup_defer_taskrun | abi::setup_cqsize |
                  abi::setup_submit_all;
        p.cq_entries = 4096;
        fd_ = static_cast<int>(::syscall(abi::syscall_setup, 256, &p));
        if (fd_ < 0) {
            std::perror("io_uring_setup");
            std::exit(1);
        }
        const std::size_t size = p.cq_off.cqes + p.cq_entries * sizeof(abi::cqe);
        ring_ = static_cast<char*>(map(size, MAP_SHARED, fd_, abi::offset_sq_ring));
        sqes_ = static_cast<abi::sqe*>(
            map(p.sq_entries * sizeof(abi::sqe), MAP_SHARED, fd_, abi::offset_sqes));
        p_ = p;
        auto* const array = reinterpret_cast<std::uint32_t*>(ring_ + p.sq_off.array);
        for (std::uint32_t i = 0; i != p.sq_entries; ++i) array[i] = i;
        places_ = static_cast<abi::provided_buffer*>(
            map(buffers * sizeof(abi::provided_buffer), MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        abi::buffer_ring_registration registration{};
        registration.ring_addr = reinterpret_cast<std::uint64_t>(places_);
        registration.ring_entries = buffers;
        ::syscall(abi::syscall_register, fd_, abi::register_pbuf_ring, &registration, 1);
        for (std::uint16_t id = 0; id != buffers; ++id) lend(id);
    }

    abi::sqe& next() {
        if (tail_ - shared<std::uint32_t>(ring_ + p_.sq_off.head).load(acquire) == p_.sq_entries) {
            enter(0);
        }
        abi::sqe& entry = sqes_[tail_++ & (p_.sq_entries - 1)];
        std::memset(&entry, 0, sizeof entry);
        return entry;
    }
    void enter(unsigned least) {
        shared<std::uint32_t>(ring_ + p_.sq_off.tail).store(tail_, release);
        const std::uint32_t queued =
            tail_ - shared<std::uint32_t>(ring_ + p_.sq_off.head).load(acquire);
        ::syscall(abi::syscall_enter, fd_, queued, least, abi::enter_getevents, nullptr, 0);
    }
    void lend(std::uint16_t id) {
        abi::provided_buffer& place = places_[lent_++ & (buffers - 1)];
        place.addr = reinterpret_cast<std::uint64_t>(buffer(id));
        place.len = buffer_bytes;
        place.bid = id;
        shared<std::uint16_t>(&places_->resv).store(lent_, release);
    }
    char* buffer(std::uint64_t id) { return memory_.data() + id * buffer_bytes; }

    template <class Visit>
    void take(Visit visit) {
        auto& head = shared<std::uint32_t>(ring_ + p_.cq_off.head);
        const std::uint32_t tail = shared<std::uint32_t>(ring_ + p_.cq_off.tail).load(acquire);
        auto* const cqes = reinterpret_cast<abi::cqe*>(ring_ + p_.cq_off.cqes);
        std::uint32_t at = head.load(coppice::internal::relaxed);
        for (; at != tail; ++at) visit(cqes[at & (p_.cq_entries - 1)]);
        head.store(at, release);
    }

private:
    static void* map(std::size_t size, int flags, int fd, std::uint64_t offset) {
        return ::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, fd, static_cast<off_t>(offset));
    }
    int fd_ = -1;
    char* ring_ = nullptr;
    abi::sqe* sqes_ = nullptr;
    abi::params p_{};
    std::uint32_t tail_ = 0;
    abi::provided_buffer* places_ = nullptr;
    std::uint16_t lent_ = 0;
    std::vector<char> memory_ = std::vector<char>(buffers * buffer_bytes);
};

inline void accept(loop& ring, int listener) {
    abi::sqe& entry = ring.next();
    entry.opcode = abi::op::accept;
    entry.fd = listener;
    entry.ioprio = multishot_accept;
    entry.user_data = name(kind::accept, 0);
}
inline void receive(loop& ring, int fd) {
    abi::sqe& entry = ring.next();
    entry.opcode = abi::op::recv;
    entry.fd = fd;
    entry.ioprio = multishot_receive;
    entry.flags = abi::sqe_buffer_select;
    entry.user_data = name(kind::receive, static_cast<std::uint64_t>(fd));
}
// `rest` is the last part of the name, for the caller's use.
inline void send(loop& ring, int fd, std::string_view bytes, std::uint64_t rest) {
    abi::sqe& entry = ring.next();
    entry.opcode = abi::op::send;
    entry.fd = fd;
    entry.addr = reinterpret_cast<std::uint64_t>(bytes.data());
    entry.len = static_cast<std::uint32_t>(bytes.size());
    entry.op_flags = MSG_NOSIGNAL;
    entry.user_data = name(kind::send, static_cast<std::uint64_t>(fd), rest);
}

}  // namespace raw_uring
