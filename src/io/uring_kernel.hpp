// One ring of the kernel and the buffers lent to it: memory, edges, and calls; for uring_ring.hpp.
#pragma once

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/io/buffer.hpp>
#include <coppice/io/internal/uring_calls.hpp>

#include "uring_abi.hpp"
#include "uring_stream.hpp"

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace coppice::io::uring {

using namespace internal;

// A mapping of the kernel's memory; unmapped by the destructor.
class mapping : immovable {
public:
    ~mapping() {
        if (data_ != nullptr) ::munmap(data_, size_);
    }
    void map(std::size_t size, int flags, int fd, std::uint64_t offset) {
        void* const data =
            ::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, fd, static_cast<off_t>(offset));
        if (data == MAP_FAILED) throw std::system_error(errno, std::system_category(), "mmap");
        data_ = static_cast<std::byte*>(data);
        size_ = size;
    }
    template <class T>
    T* at(std::size_t offset) const noexcept {
        return reinterpret_cast<T*>(data_ + offset);
    }

private:
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

class owned_file : immovable {
public:
    ~owned_file() {
        if (fd >= 0) ::close(fd);
    }
    int fd = -1;
};

// One ring of the kernel: its memory and its calls.
class kernel_ring : immovable {
public:
    // Errors: std::system_error if the kernel lacks or forbids what is needed.
    explicit kernel_ring(uring_calls& calls) : calls_(calls) {
        params p{};
        p.flags = setup_single_issuer | setup_defer_taskrun | setup_r_disabled | setup_clamp |
                  setup_submit_all | setup_cqsize;
        p.cq_entries = completion_entries;
        const int fd = calls_.setup(submission_entries, &p);
        if (fd < 0) throw std::system_error(-fd, std::system_category(), "io_uring_setup");
        fd_.fd = fd;
        constexpr std::uint32_t needed = feature_single_mmap | feature_nodrop | feature_ext_arg;
        if ((p.features & needed) != needed) {
            throw std::system_error(
                ENOSYS, std::system_category(),
                "the kernel's io_uring is too old: it lacks SINGLE_MMAP, NODROP, or EXT_ARG");
        }
        probe();
        map(p);
    }

    // Binds the ring to this thread permanently.
    void enable() noexcept {
        const int outcome = calls_.register_with(fd_.fd, register_enable_rings, nullptr, 0);
        COPPICE_CHECK(outcome == 0, "io_uring could not be enabled");
    }
    // Registers the ring of provided buffers. Returns 0, or a negative errno.
    int provide(provided_buffer* ring, std::uint32_t count) noexcept {
        buffer_ring_registration registration{};
        registration.ring_addr = reinterpret_cast<std::uintptr_t>(ring);
        registration.ring_entries = count;
        return calls_.register_with(fd_.fd, register_pbuf_ring, &registration, 1);
    }

    // Returns an entry to fill, all zero. The next submit() submits it.
    sqe& next_entry() noexcept {
        // Relaxed: the kernel moves the head only inside enter, on this thread. It may refuse to
        // (EAGAIN, EINTR) until it has memory for requests again.
        for (int tries = 0; tail_ - shared(sq_head_).load(relaxed) == sq_entries_; ++tries) {
            COPPICE_CHECK(tries != submit_tries_max,
                          "the kernel has no memory left for io_uring's requests");
            submit(0, nullptr);
        }
        sqe& entry = entries_.at<sqe>(0)[tail_ & sq_mask_];
        std::memset(static_cast<void*>(&entry), 0, sizeof entry);
        ++tail_;
        return entry;
    }

    // Submits the queued entries, and waits for `least` completions, for at most `timeout` if that
    // is given. The completions stay in the completion ring.
    void submit(unsigned least, const kernel_timespec* timeout) noexcept {
        // edge kernel.submit (release): the kernel acquires the tail, then reads the entries
        shared(sq_tail_).store(tail_, release);
        const std::uint32_t queued = tail_ - shared(sq_head_).load(relaxed);
        int outcome;
        if (timeout == nullptr) {
            outcome = calls_.enter(fd_.fd, queued, least, enter_getevents, nullptr, 0);
        } else {
            getevents_arg arg{};
            arg.timespec = reinterpret_cast<std::uintptr_t>(timeout);
            outcome = calls_.enter(fd_.fd, queued, least, enter_getevents | enter_ext_arg, &arg,
                                   sizeof arg);
        }
        if (outcome < 0) [[unlikely]]
            COPPICE_CHECK(is_passing(-outcome), "the kernel does not let io_uring be entered");
    }

    // Calls visit with every entry that has not been submitted.
    template <class Visit>
    void for_each_queued(Visit visit) const {
        // Relaxed: no thread is inside enter, and the loop's owner sees what the previous owner
        // did.
        for (std::uint32_t i = shared(sq_head_).load(relaxed); i != tail_; ++i) {
            visit(std::as_const(entries_.at<sqe>(0)[i & sq_mask_]));
        }
    }

    // Returns how many completions have come. Relaxed: only the decision what to do next depends on
    // it; take() acquires.
    std::uint32_t completions() const noexcept {
        return shared(cq_tail_).load(relaxed) - *cq_head_;
    }

    // Calls visit with every completion that has come by now.
    template <class Visit>
    void take(Visit visit) {
        // edge kernel.complete (acquire): the kernel wrote the entries, then released the tail
        const std::uint32_t tail = shared(cq_tail_).load(acquire);
        // Only this thread writes the head. A visit that takes entries itself (block does) may move
        // the head past `tail`.
        for (std::uint32_t head = *cq_head_; static_cast<std::int32_t>(tail - head) > 0;
             head = *cq_head_) {
            const cqe entry = cqes_[head & cq_mask_];
            // edge kernel.taken (release): the entry has been read, its place may be reused
            shared(cq_head_).store(head + 1, release);
            visit(entry);
        }
    }

    // Words shared with the kernel are ordinary atomics on both sides.
    template <class T>
    static atomic<T>& shared(T* word) noexcept {
        static_assert(sizeof(atomic<T>) == sizeof(T));
        return *reinterpret_cast<atomic<T>*>(word);
    }

private:
    static constexpr int submit_tries_max = 1000;
    static constexpr std::uint32_t submission_entries = 256;
    static constexpr std::uint32_t completion_entries = 4096;

    // Returns true for an error of enter that may not recur. ETIME and EINTR are ordinary ends of a
    // wait. EBUSY, EAGAIN, ENOMEM, and EBADR mean that completions must be taken first, which the
    // caller does next, or that memory is short.
    static bool is_passing(int error) noexcept {
        return error == ETIME || error == EINTR || error == EAGAIN || error == EBUSY ||
               error == ENOMEM || error == EBADR;
    }
    // Enters the ring once, because a sandbox may let a ring be made but not entered. While the
    // ring is not enabled, the kernel itself answers EBADFD.
    void probe() {
        const int outcome = calls_.enter(fd_.fd, 0, 0, enter_getevents, nullptr, 0);
        if (outcome == -EBADFD || (outcome < 0 && is_passing(-outcome))) return;
        throw std::system_error(outcome < 0 ? -outcome : ENOSYS, std::system_category(),
                                "io_uring_enter");
    }

    void map(const params& p) {
        const std::size_t sq_bytes = p.sq_off.array + p.sq_entries * sizeof(std::uint32_t);
        const std::size_t cq_bytes = p.cq_off.cqes + p.cq_entries * sizeof(cqe);
        rings_.map(std::max(sq_bytes, cq_bytes), MAP_SHARED | MAP_POPULATE, fd_.fd, offset_sq_ring);
        entries_.map(p.sq_entries * sizeof(sqe), MAP_SHARED | MAP_POPULATE, fd_.fd, offset_sqes);
        sq_head_ = rings_.at<std::uint32_t>(p.sq_off.head);
        sq_tail_ = rings_.at<std::uint32_t>(p.sq_off.tail);
        sq_mask_ = *rings_.at<std::uint32_t>(p.sq_off.ring_mask);
        sq_entries_ = p.sq_entries;
        cq_head_ = rings_.at<std::uint32_t>(p.cq_off.head);
        cq_tail_ = rings_.at<std::uint32_t>(p.cq_off.tail);
        cq_mask_ = *rings_.at<std::uint32_t>(p.cq_off.ring_mask);
        cqes_ = rings_.at<cqe>(p.cq_off.cqes);
        // Entry i is always submitted from place i.
        std::uint32_t* const array = rings_.at<std::uint32_t>(p.sq_off.array);
        for (std::uint32_t i = 0; i != p.sq_entries; ++i) array[i] = i;
    }

    uring_calls& calls_;
    mapping rings_;
    mapping entries_;
    std::uint32_t tail_ = 0;  // this side's copy of the submission tail
    std::uint32_t* sq_head_ = nullptr;
    std::uint32_t* sq_tail_ = nullptr;
    std::uint32_t sq_mask_ = 0;
    std::uint32_t sq_entries_ = 0;
    std::uint32_t* cq_head_ = nullptr;
    std::uint32_t* cq_tail_ = nullptr;
    std::uint32_t cq_mask_ = 0;
    cqe* cqes_ = nullptr;
    owned_file fd_;  // closed before the memory is unmapped
};

// The receive buffers of one kernel_ring that the kernel may fill. The kernel uses all of them in
// turn, however few it needs. It is therefore lent few buffers, which stay in the cache, and more
// of them when it has run out.
class lent_buffers : immovable {
public:
    static constexpr std::uint16_t count_min = 16;
    static constexpr std::uint16_t count_max = 256;  // a power of two

    lent_buffers(buffer_pool& pool, kernel_ring& ring) : pool_(pool) {
        places_.map(count_max * sizeof(provided_buffer), MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (const int error = -ring.provide(places_.at<provided_buffer>(0), count_max)) {
            throw std::system_error(error, std::system_category(), "io_uring buffer ring");
        }
        while (count_ != count_min) lend(count_++, pool_.take());
        publish();
    }
    ~lent_buffers() {
        for (std::byte* const buffer : lent_) {
            if (buffer != nullptr) pool_.give(buffer);
        }
    }
    // Called when the kernel has filled this buffer: hands it to the caller, and lends a fresh one
    // in its place. Without memory for a fresh one, returns nullptr and lends the filled buffer
    // again.
    std::byte* take(std::uint16_t id) noexcept {
        std::byte* const fresh = pool_.try_take();
        std::byte* const filled = fresh == nullptr ? nullptr : lent_[id];
        lend(id, fresh == nullptr ? lent_[id] : fresh);
        publish();
        return filled;
    }
    // Called when the kernel has run out of buffers: lends as many again, up to count_max and as
    // far as there is memory.
    void lend_more() noexcept {
        for (std::uint16_t more = std::min<std::uint16_t>(count_, count_max - count_); more != 0;
             --more) {
            std::byte* const buffer = pool_.try_take();
            if (buffer == nullptr) break;
            lend(count_++, buffer);
        }
        publish();
    }
    std::uint16_t count() const noexcept { return count_; }

private:
    void lend(std::uint16_t id, std::byte* buffer) noexcept {
        lent_[id] = buffer;
        provided_buffer& place = places_.at<provided_buffer>(0)[tail_ & (count_max - 1)];
        place.addr = reinterpret_cast<std::uintptr_t>(buffer);
        place.len = filled_buffer::capacity;
        place.bid = id;
        ++tail_;
    }
    void publish() noexcept {
        // edge kernel.buffers (release): the kernel acquires the tail, then reads the entries
        kernel_ring::shared(&places_.at<provided_buffer>(0)->resv).store(tail_, release);
    }

    buffer_pool& pool_;
    mapping places_;                            // outlives the ring's file, which is closed first
    std::array<std::byte*, count_max> lent_{};  // by buffer id, which is less than count_
    std::uint16_t count_ = 0;
    std::uint16_t tail_ = 0;
};

}  // namespace coppice::io::uring
