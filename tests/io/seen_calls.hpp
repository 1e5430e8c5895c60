// The kernel's calls of a ring, whose queues a test can read and change around each enter.
#pragma once

#include <coppice/io/internal/uring_calls.hpp>

#include "../../src/io/uring_abi.hpp"

#include <sys/mman.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace coppice::test {

namespace uring = coppice::io::uring;

inline bool receives_shots(const uring::sqe& entry) {
    return entry.opcode == uring::op::recv && (entry.ioprio & uring::receive_multishot) != 0;
}
inline bool accepts_shots(const uring::sqe& entry) {
    return entry.opcode == uring::op::accept && (entry.ioprio & uring::accept_multishot) != 0;
}

class seen_calls : public io::internal::uring_calls {
public:
    int setup(std::uint32_t entries, void* parameters) noexcept override {
        const int fd = uring_calls::setup(entries, parameters);
        if (fd < 0) return fd;
        unmap();
        seen_ = 0;
        p_ = *static_cast<uring::params*>(parameters);
        queue_bytes_ =
            std::max<std::size_t>(p_.sq_off.array + p_.sq_entries * sizeof(std::uint32_t),
                                  p_.cq_off.cqes + p_.cq_entries * sizeof(uring::cqe));
        entry_bytes_ = p_.sq_entries * sizeof(uring::sqe);
        queues_ = map(fd, queue_bytes_, uring::offset_sq_ring);
        entries_ = map(fd, entry_bytes_, uring::offset_sqes);
        return fd;
    }
    int enter(int ring, std::uint32_t submit, std::uint32_t least, std::uint32_t flags,
              const void* argument, std::size_t size) noexcept override {
        const std::uint32_t head = word(p_.sq_off.head);
        for (std::uint32_t i = 0; i != submit; ++i) {
            see(reinterpret_cast<uring::sqe*>(entries_)[(head + i) & word(p_.sq_off.ring_mask)]);
        }
        const int entered = uring_calls::enter(ring, submit, least, flags, argument, size);
        for (const std::uint32_t tail = word(p_.cq_off.tail); seen_ != tail; ++seen_) {
            see(ring, reinterpret_cast<uring::cqe*>(
                          queues_ + p_.cq_off.cqes)[seen_ & word(p_.cq_off.ring_mask)]);
        }
        return entered;
    }

protected:
    seen_calls() = default;
    ~seen_calls() { unmap(); }

    // Called before the kernel takes an entry, and before the ring takes a completion.
    virtual void see(uring::sqe&) noexcept {}
    virtual void see(int /*ring*/, uring::cqe&) noexcept {}

private:
    static std::byte* map(int fd, std::size_t bytes, std::uint64_t offset) noexcept {
        void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                                static_cast<off_t>(offset));
        return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
    }
    void unmap() noexcept {
        if (queues_ != nullptr) ::munmap(queues_, queue_bytes_);
        if (entries_ != nullptr) ::munmap(entries_, entry_bytes_);
    }
    // Read on this thread while the kernel is not in a call, so no other writer exists.
    std::uint32_t word(std::uint32_t offset) const noexcept {
        return *reinterpret_cast<const volatile std::uint32_t*>(queues_ + offset);
    }

    uring::params p_{};
    std::size_t queue_bytes_ = 0;
    std::size_t entry_bytes_ = 0;
    std::byte* queues_ = nullptr;
    std::byte* entries_ = nullptr;
    std::uint32_t seen_ = 0;  // how many completions were shown to see()
};

}  // namespace coppice::test
