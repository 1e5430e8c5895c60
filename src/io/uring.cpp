// The io_uring ring: raw system calls, one issuer, deferred task work, provided receive buffers.
// Needs kernel 6.1 (SINGLE_ISSUER with DEFER_TASKRUN); make_uring_ring throws on less, or where the
// system forbids io_uring, and the context then takes epoll if it was free to choose. The ring
// starts disabled and belongs to the thread that enters it first. One enter call per turn submits
// what was started and collects what has completed.
#include <coppice/io/context.hpp>
#include <coppice/io/ring.hpp>

#include <coppice/base/check.hpp>

#include "uring_abi.hpp"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace coppice::io {

namespace {

using namespace uring;

// A mapping of the kernel's; unmapped at the end.
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

class file : immovable {
public:
    ~file() {
        if (fd >= 0) ::close(fd);
    }
    int fd = -1;
};

class uring_ring final : public ring {
public:
    explicit uring_ring(buffer_pool& buffers) : buffers_(buffers) {
        params p{};
        p.flags = setup_single_issuer | setup_defer_taskrun | setup_r_disabled | setup_clamp |
                  setup_submit_all | setup_cqsize;
        p.cq_entries = completion_entries;
        ring_.fd = static_cast<int>(::syscall(syscall_setup, submission_entries, &p));
        if (ring_.fd < 0) throw std::system_error(errno, std::system_category(), "io_uring_setup");
        constexpr std::uint32_t needed = feature_single_mmap | feature_nodrop | feature_ext_arg;
        if ((p.features & needed) != needed) {
            throw std::system_error(ENOSYS, std::system_category(), "io_uring is too old");
        }
        map_rings(p);
        provide_buffers();
        wake_.fd = ::eventfd(0, EFD_CLOEXEC);
        if (wake_.fd < 0) throw std::system_error(errno, std::system_category(), "eventfd");
    }

    // Requests of a closing ring are cancelled, not run: with deferred task work only enter() moves
    // data, and no one can enter any more. So the memory of what is pending is left alone.
    ~uring_ring() override {
        for (std::byte* const buffer : lent_) {
            if (buffer != nullptr) buffers_.give(buffer);
        }
    }

    backend kind() const noexcept override { return backend::uring; }

    bool enter() noexcept override {
        const long thread = ::syscall(SYS_gettid);
        if (issuer_ == 0) {
            issuer_ = thread;
            const long outcome =
                ::syscall(syscall_register, ring_.fd, register_enable_rings, nullptr, 0);
            COPPICE_CHECK(outcome == 0, "io_uring could not be enabled");
            listen_for_wakes();
        }
        return issuer_ == thread;
    }

    std::error_code attach(descriptor&) noexcept override { return {}; }
    void detach(descriptor& d) noexcept override { ::close(d.fd); }

    bool start(ring_operation& op) noexcept override {
        if (issuer_ == 0) {
            waiting_.push_back(&op);
        } else {
            submit(op);
        }
        return false;
    }

    void cancel(ring_operation& op) noexcept override {
        if (op.cancelled) return;
        op.cancelled = true;
        if (issuer_ == 0) return;  // it waits, and start_waiting() will look
        sqe& entry = next_entry();
        entry.opcode = uring::op::async_cancel;
        entry.fd = -1;
        entry.addr = address(&op);
        entry.user_data = ignored;
    }

    void poll(std::optional<time_point> until) noexcept override {
        if (!waiting_.empty()) {
            start_waiting();
            until.reset();
        }
        // Relaxed: only whether to sleep depends on it; deliver() acquires.
        if (shared(cq_tail_).load(relaxed) != *cq_head_) until.reset();
        submit_and_wait(until);
        deliver();
    }

    void wake() noexcept override {
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t written = ::write(wake_.fd, &one, sizeof one);
    }

private:
    static constexpr std::uint32_t submission_entries = 256;
    static constexpr std::uint32_t completion_entries = 4096;
    static constexpr std::uint16_t lent_max = 256;  // buffers that the kernel holds; a power of two
    // user_data of completions that are not an operation's; operations are aligned addresses.
    static constexpr std::uint64_t ignored = 1;
    static constexpr std::uint64_t woken = 2;

    static std::uint64_t address(const void* p) noexcept {
        return reinterpret_cast<std::uintptr_t>(p);
    }
    // The words shared with the kernel are ordinary atomics on both sides.
    template <class T>
    static atomic<T>& shared(T* word) noexcept {
        static_assert(sizeof(atomic<T>) == sizeof(T));
        return *reinterpret_cast<atomic<T>*>(word);
    }

    // Operations that were started before the ring had a thread.
    void start_waiting() noexcept {
        while (operation* const next = waiting_.pop_front()) {
            ring_operation& op = *static_cast<ring_operation*>(next);
            if (op.cancelled) {
                op.result = -ECANCELED;
                op.on->owner->finish(op);
            } else {
                submit(op);
            }
        }
    }

    void submit(ring_operation& op) noexcept {
        sqe& entry = next_entry();
        entry.fd = op.on->fd;
        entry.addr = address(op.data);
        entry.len = static_cast<std::uint32_t>(op.size);
        entry.user_data = address(&op);
        switch (op.code) {
            case opcode::accept:
                entry.opcode = uring::op::accept;
                op.peer_size = op.peer == nullptr ? 0 : sizeof *op.peer;
                entry.addr = address(op.peer);
                entry.off = op.peer == nullptr ? 0 : address(&op.peer_size);
                entry.len = 0;
                entry.op_flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
                break;
            case opcode::connect:
                entry.opcode = uring::op::connect;
                entry.addr = address(op.peer);
                entry.off = op.peer_size;
                entry.len = 0;
                break;
            case opcode::receive:
                entry.opcode = uring::op::recv;
                break;
            case opcode::receive_pooled:
                entry.opcode = uring::op::recv;
                entry.flags = sqe_buffer_select;
                entry.addr = 0;
                entry.len = buffer_pool::buffer_bytes;
                entry.buf_group = 0;
                break;
            case opcode::send:
                entry.opcode = uring::op::send;
                entry.op_flags = MSG_NOSIGNAL;
                break;
            case opcode::read:
                entry.opcode = uring::op::read;
                entry.off = ~std::uint64_t{0};  // at the file's position
                break;
        }
    }

    void map_rings(const params& p) {
        const std::size_t sq_bytes = p.sq_off.array + p.sq_entries * sizeof(std::uint32_t);
        const std::size_t cq_bytes = p.cq_off.cqes + p.cq_entries * sizeof(cqe);
        rings_.map(std::max(sq_bytes, cq_bytes), MAP_SHARED | MAP_POPULATE, ring_.fd,
                   offset_sq_ring);
        entries_.map(p.sq_entries * sizeof(sqe), MAP_SHARED | MAP_POPULATE, ring_.fd, offset_sqes);
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

    void provide_buffers() {
        lendable_.map(lent_max * sizeof(provided_buffer), MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        buffer_ring_registration registration{};
        registration.ring_addr = address(lendable_.at<void>(0));
        registration.ring_entries = lent_max;
        if (::syscall(syscall_register, ring_.fd, register_pbuf_ring, &registration, 1) != 0) {
            throw std::system_error(errno, std::system_category(), "io_uring buffer ring");
        }
        for (std::uint16_t id = 0; id != lent_max; ++id) lend(id);
        publish_lent();
    }
    // Puts a fresh buffer under the id into the kernel's ring; publish_lent() makes it visible.
    void lend(std::uint16_t id) {
        lent_[id] = buffers_.take();
        provided_buffer& place = lendable_.at<provided_buffer>(0)[lent_tail_ & (lent_max - 1)];
        place.addr = address(lent_[id]);
        place.len = buffer_pool::buffer_bytes;
        place.bid = id;
        ++lent_tail_;
    }
    void publish_lent() noexcept {
        // edge kernel.buffers (release): the kernel acquires the tail, then reads the entries
        shared(&lendable_.at<provided_buffer>(0)->resv).store(lent_tail_, release);
    }

    sqe& next_entry() noexcept {
        // Relaxed: the kernel moves the head only inside enter, on this thread.
        if (tail_ - shared(sq_head_).load(relaxed) == sq_entries_) submit_and_wait(std::nullopt);
        COPPICE_CHECK(tail_ - shared(sq_head_).load(relaxed) != sq_entries_,
                      "the kernel has no memory left for io_uring's requests");
        sqe& entry = entries_.at<sqe>(0)[tail_ & sq_mask_];
        std::memset(static_cast<void*>(&entry), 0, sizeof entry);
        ++tail_;
        return entry;
    }

    // Hands over what is queued, and waits if asked. Results stay in the completion ring.
    void submit_and_wait(std::optional<time_point> until) noexcept {
        // edge kernel.submit (release): the kernel acquires the tail, then reads the entries
        shared(sq_tail_).store(tail_, release);
        const std::uint32_t queued = tail_ - shared(sq_head_).load(relaxed);
        kernel_timespec timeout{};
        getevents_arg arg{};
        if (until && *until != forever) {
            const duration left = std::max(*until - clock_.now(), duration::zero());
            timeout.seconds = left.count() / 1'000'000'000;
            timeout.nanoseconds = left.count() % 1'000'000'000;
            arg.timespec = address(&timeout);
        }
        ::syscall(syscall_enter, ring_.fd, queued, until ? 1 : 0, enter_getevents | enter_ext_arg,
                  &arg, sizeof arg);
        // ETIME and EINTR are ordinary ends of a wait; EBUSY and EAGAIN mean that completions must
        // be taken first, which is what the caller does next.
    }

    void deliver() noexcept {
        std::uint32_t head = *cq_head_;  // this thread alone writes it
        // edge kernel.complete (acquire): the kernel wrote the entries, then released the tail
        const std::uint32_t tail = shared(cq_tail_).load(acquire);
        while (head != tail) {
            const cqe entry = cqes_[head & cq_mask_];
            ++head;
            // edge kernel.taken (release): the entry has been read, the kernel may use its place
            shared(cq_head_).store(head, release);
            if (entry.user_data == ignored) continue;
            if (entry.user_data == woken) {
                listen_for_wakes();
                continue;
            }
            end(*reinterpret_cast<ring_operation*>(entry.user_data), entry);
        }
    }

    void end(ring_operation& op, const cqe& entry) noexcept {
        op.result = entry.result;
        if ((entry.flags & cqe_buffer) != 0) {
            const auto id = static_cast<std::uint16_t>(entry.flags >> cqe_buffer_shift);
            op.data = lent_[id];
            lend(id);
            publish_lent();
            if (entry.result <= 0) buffers_.give(op.data);
        }
        // All lent buffers were full at once: they are back by now, so wait again.
        const bool again = op.result == -ENOBUFS && op.code == opcode::receive_pooled;
        if ((again || op.result == -EINTR || op.result == -EAGAIN) && !op.cancelled) {
            submit(op);
            return;
        }
        op.on->owner->finish(op);
    }

    void listen_for_wakes() noexcept {
        sqe& entry = next_entry();
        entry.opcode = uring::op::read;
        entry.fd = wake_.fd;
        entry.addr = address(&wake_count_);
        entry.len = sizeof wake_count_;
        entry.user_data = woken;
    }

    buffer_pool& buffers_;
    monotonic_clock clock_;
    file wake_;
    std::uint64_t wake_count_ = 0;
    mapping lendable_;  // outlives the ring's file, which is closed first
    mapping rings_;
    mapping entries_;
    std::array<std::byte*, lent_max> lent_{};  // by buffer id
    std::uint16_t lent_tail_ = 0;
    long issuer_ = 0;          // the thread that enabled the ring; 0: none yet
    operation_queue waiting_;  // started before that

    std::uint32_t tail_ = 0;  // our copy of the submission tail
    std::uint32_t* sq_head_ = nullptr;
    std::uint32_t* sq_tail_ = nullptr;
    std::uint32_t sq_mask_ = 0;
    std::uint32_t sq_entries_ = 0;
    std::uint32_t* cq_head_ = nullptr;
    std::uint32_t* cq_tail_ = nullptr;
    std::uint32_t cq_mask_ = 0;
    cqe* cqes_ = nullptr;
    file ring_;
};

}  // namespace

std::unique_ptr<ring> make_uring_ring(buffer_pool& buffers) {
    return std::make_unique<uring_ring>(buffers);
}

}  // namespace coppice::io
