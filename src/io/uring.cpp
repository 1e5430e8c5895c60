// The io_uring ring: raw system calls, one issuer, deferred task work, provided receive buffers.
// Needs kernel 6.1 (SINGLE_ISSUER with DEFER_TASKRUN); make_uring_ring throws on less, or where the
// system forbids io_uring, and the context then takes epoll if it was free to choose. The kernel's
// ring starts disabled and belongs to the thread that enables it; for another thread a new one is
// made, and what was pending is submitted there. One enter call per turn submits what was started
// and collects what has completed.
#include <coppice/io/context.hpp>
#include <coppice/io/ring.hpp>

#include <coppice/base/check.hpp>

#include "uring_abi.hpp"
#include "uring_stream.hpp"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

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

// One ring of the kernel's: its memory and its calls.
class kernel_ring : immovable {
public:
    kernel_ring() {
        params p{};
        p.flags = setup_single_issuer | setup_defer_taskrun | setup_r_disabled | setup_clamp |
                  setup_submit_all | setup_cqsize;
        p.cq_entries = completion_entries;
        fd_.fd = static_cast<int>(::syscall(syscall_setup, submission_entries, &p));
        if (fd_.fd < 0) throw std::system_error(errno, std::system_category(), "io_uring_setup");
        constexpr std::uint32_t needed = feature_single_mmap | feature_nodrop | feature_ext_arg;
        if ((p.features & needed) != needed) {
            throw std::system_error(ENOSYS, std::system_category(), "io_uring is too old");
        }
        map(p);
    }

    // Makes the ring this thread's for ever.
    void enable() noexcept {
        const long outcome = ::syscall(syscall_register, fd_.fd, register_enable_rings, nullptr, 0);
        COPPICE_CHECK(outcome == 0, "io_uring could not be enabled");
    }
    bool provide(provided_buffer* ring, std::uint32_t count) noexcept {
        buffer_ring_registration registration{};
        registration.ring_addr = reinterpret_cast<std::uintptr_t>(ring);
        registration.ring_entries = count;
        return ::syscall(syscall_register, fd_.fd, register_pbuf_ring, &registration, 1) == 0;
    }

    // An entry to fill, all zero. Submitted by the next submit().
    sqe& next_entry() noexcept {
        // Relaxed: the kernel moves the head only inside enter, on this thread.
        if (tail_ - shared(sq_head_).load(relaxed) == sq_entries_) submit(0, nullptr);
        COPPICE_CHECK(tail_ - shared(sq_head_).load(relaxed) != sq_entries_,
                      "the kernel has no memory left for io_uring's requests");
        sqe& entry = entries_.at<sqe>(0)[tail_ & sq_mask_];
        std::memset(static_cast<void*>(&entry), 0, sizeof entry);
        ++tail_;
        return entry;
    }

    // Hands over what is queued, and waits for `least` completions, for `timeout` at most if it is
    // given. They stay in the completion ring.
    void submit(unsigned least, const kernel_timespec* timeout) noexcept {
        // edge kernel.submit (release): the kernel acquires the tail, then reads the entries
        shared(sq_tail_).store(tail_, release);
        const std::uint32_t queued = tail_ - shared(sq_head_).load(relaxed);
        getevents_arg arg{};
        arg.timespec = reinterpret_cast<std::uintptr_t>(timeout);
        ::syscall(syscall_enter, fd_.fd, queued, least, enter_getevents | enter_ext_arg, &arg,
                  sizeof arg);
        // ETIME and EINTR are ordinary ends of a wait; EBUSY and EAGAIN mean that completions must
        // be taken first, which is what the caller does next.
    }

    // Relaxed: only whether to sleep depends on it; take() acquires.
    bool has_completions() const noexcept { return shared(cq_tail_).load(relaxed) != *cq_head_; }

    // Calls visit with every completion that has come by now.
    template <class Visit>
    void take(Visit visit) {
        // edge kernel.complete (acquire): the kernel wrote the entries, then released the tail
        const std::uint32_t tail = shared(cq_tail_).load(acquire);
        // This thread alone writes the head; a visit that takes entries itself (block does) may
        // take it past the tail.
        for (std::uint32_t head = *cq_head_; static_cast<std::int32_t>(tail - head) > 0;
             head = *cq_head_) {
            const cqe entry = cqes_[head & cq_mask_];
            // edge kernel.taken (release): the entry has been read, the kernel may use its place
            shared(cq_head_).store(head + 1, release);
            visit(entry);
        }
    }

    // The words shared with the kernel are ordinary atomics on both sides.
    template <class T>
    static atomic<T>& shared(T* word) noexcept {
        static_assert(sizeof(atomic<T>) == sizeof(T));
        return *reinterpret_cast<atomic<T>*>(word);
    }

private:
    static constexpr std::uint32_t submission_entries = 256;
    static constexpr std::uint32_t completion_entries = 4096;

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

    mapping rings_;
    mapping entries_;
    std::uint32_t tail_ = 0;  // our copy of the submission tail
    std::uint32_t* sq_head_ = nullptr;
    std::uint32_t* sq_tail_ = nullptr;
    std::uint32_t sq_mask_ = 0;
    std::uint32_t sq_entries_ = 0;
    std::uint32_t* cq_head_ = nullptr;
    std::uint32_t* cq_tail_ = nullptr;
    std::uint32_t cq_mask_ = 0;
    cqe* cqes_ = nullptr;
    file fd_;  // closed before the memory is unmapped
};

// The receive buffers that the kernel may fill, on one kernel_ring.
class lent_buffers : immovable {
public:
    static constexpr std::uint16_t count = 256;  // a power of two

    lent_buffers(buffer_pool& pool, kernel_ring& ring) : pool_(pool) {
        places_.map(count * sizeof(provided_buffer), MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (!ring.provide(places_.at<provided_buffer>(0), count)) {
            throw std::system_error(errno, std::system_category(), "io_uring buffer ring");
        }
        for (std::uint16_t id = 0; id != count; ++id) lend(id, pool_.take());
        publish();
    }
    ~lent_buffers() {
        for (std::byte* const buffer : lent_) {
            if (buffer != nullptr) pool_.give(buffer);
        }
    }
    // The kernel has filled this one: it is the caller's now, and a fresh one takes its place.
    // Without memory for a fresh one, nullptr, and the kernel gets the filled one back.
    std::byte* take(std::uint16_t id) noexcept {
        std::byte* const fresh = pool_.try_take();
        std::byte* const filled = fresh == nullptr ? nullptr : lent_[id];
        lend(id, fresh == nullptr ? lent_[id] : fresh);
        publish();
        return filled;
    }

private:
    void lend(std::uint16_t id, std::byte* buffer) noexcept {
        lent_[id] = buffer;
        provided_buffer& place = places_.at<provided_buffer>(0)[tail_ & (count - 1)];
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
    mapping places_;                        // outlives the ring's file, which is closed first
    std::array<std::byte*, count> lent_{};  // by buffer id
    std::uint16_t tail_ = 0;
};

// Tells threads apart; numbers of threads that have ended are not used again.
std::uint64_t this_thread() noexcept {
    static atomic<std::uint64_t> last{0};
    std::uint64_t& mine = thread_slot<kernel_ring, std::uint64_t>();
    if (mine == 0) mine = last.fetch_add(1, relaxed) + 1;  // relaxed: only uniqueness matters
    return mine;
}

class uring_ring final : public ring {
public:
    explicit uring_ring(buffer_pool& buffers) : buffers_(buffers) {
        make_rings();
        wake_.fd = ::eventfd(0, EFD_CLOEXEC);
        if (wake_.fd < 0) throw std::system_error(errno, std::system_category(), "eventfd");
    }
    // Requests of a closing ring are cancelled, not run: with deferred task work only enter() moves
    // data, and no one can enter any more. So the memory of what is pending is left alone.
    ~uring_ring() override { drop_rings(); }

    backend kind() const noexcept override { return backend::uring; }
    system_calls& system() noexcept override { return kernel(); }
    const clock& time() const noexcept override { return clock_; }

    bool enter(context& loop) noexcept override {
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
            while (operation* const op = again_.pop_front()) {
                submit(*static_cast<ring_operation*>(op));
            }
        }
        return moves;
    }

    std::error_code attach(descriptor&, bool) noexcept override { return {}; }
    void detach(descriptor& d) noexcept override {
        receive_stream* const s = streams_.find(d.fd);
        if (s != nullptr) {
            s->drop(buffers_);
            s->end = receive_stream::open;
            ++s->generation;
        }
        if (s == nullptr || !std::exchange(s->armed, false)) {
            ::close(d.fd);
            return;
        }
        // The request holds the file: it ends now, and with it the connection.
        s->cancelling = false;
        if (issuer_ != this_thread()) ::shutdown(d.fd, SHUT_RDWR);
        ::close(d.fd);
        if (issuer_ != this_thread()) return;
        submit_cancel_of(stream_name(d.fd, s->generation - 1));
        ring_->submit(0, nullptr);
    }

    bool start(ring_operation& op) noexcept override {
        if (receive_stream* const s = stream_for(op)) {
            if (s->serve(op, buffers_)) return true;
            s->waiting = &op;
            if (!s->armed) arm(op.on->fd, *s);
        } else {
            submit(op);
        }
        return false;
    }

    void cancel(ring_operation& op) noexcept override {
        if (std::exchange(op.cancelled, true)) return;
        if (receive_stream* const s = streams_.find(op.on->fd); s != nullptr && s->waiting == &op) {
            s->waiting = nullptr;  // the stream goes on: what comes is for the next receive
            op.result = -ECANCELED;
            end_later(op);
            return;
        }
        if (issuer_ == this_thread()) {
            submit_cancel(op);
        } else {
            cancelled_.push_back(&op);  // while no thread runs the loop; poll() or enter() looks
        }
    }

    void poll(std::optional<time_point> until) noexcept override {
        while (operation* const op = cancelled_.pop_front()) {
            submit_cancel(*static_cast<ring_operation*>(op));
        }
        if (!over_.empty() || ring_->has_completions()) until.reset();
        kernel_timespec timeout{};
        const bool limited = until && *until != forever;
        if (limited) {
            const duration left = std::max(*until - clock_.now(), duration::zero());
            timeout.seconds = left.count() / 1'000'000'000;
            timeout.nanoseconds = left.count() % 1'000'000'000;
        }
        ring_->submit(until ? 1 : 0, limited ? &timeout : nullptr);
        while (operation* const op = over_.pop_front()) {
            ring_operation& ended = *static_cast<ring_operation*>(op);
            ended.on->owner->finish(ended);
        }
        ring_->take([this](const cqe& entry) { deliver(entry); });
    }

    void wake() noexcept override {
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t written = ::write(wake_.fd, &one, sizeof one);
    }

private:
    // user_data: the address of an operation with a mark in its low bits, or one of these.
    static constexpr std::uint64_t ignored = 1;
    static constexpr std::uint64_t woken = 2;
    static constexpr std::uint64_t connecting = 4;  // waits for a connect of an earlier ring
    static constexpr std::uint64_t streaming = 5;   // not an address: a file and its generation
    static constexpr std::uint64_t marks = 7;

    static std::uint64_t address(const void* p) noexcept {
        return reinterpret_cast<std::uintptr_t>(p);
    }
    static ring_operation& operation_of(const cqe& entry) noexcept {
        return *reinterpret_cast<ring_operation*>(entry.user_data & ~marks);
    }

    void make_rings() {
        ring_.emplace();
        lent_.emplace(buffers_, *ring_);
    }
    void drop_rings() noexcept {
        ring_.reset();
        lent_.reset();
    }
    // The kernel's ring is another thread's: takes its last results, and makes a new one. What was
    // pending in the old one is cancelled by the kernel without being run.
    void leave_thread() noexcept {
        while (cancelled_.pop_front() != nullptr) {
        }
        ring_->take([this](const cqe& entry) {
            if (entry.user_data == ignored || entry.user_data == woken) return;
            if ((entry.user_data & marks) == streaming) {
                (void)receive_into_stream(entry);
                return;
            }
            ring_operation& op = operation_of(entry);
            if (judge(op, entry)) end_later(op);
            // A thread that ends takes its file operations with it, wholly: they can move.
            else if (is_file_operation(op.code))
                begin_later(op);
        });
        drop_rings();
        streams_.disarm_all();
        try {
            make_rings();
        } catch (const std::exception&) {
            COPPICE_CHECK(false, "there is no memory to move an io_uring to another thread");
        }
    }
    void end_later(ring_operation& op) noexcept {
        op.ended = true;
        over_.push_back(&op);
    }
    void begin_later(ring_operation& op) noexcept {
        op.ended = true;  // in the old ring
        again_.push_back(&op);
    }
    // Starts an operation that an earlier ring had.
    void restart(ring_operation& op) noexcept {
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
        } else if (op.code == opcode::connect) {
            sqe& entry = ring_->next_entry();
            entry.opcode = uring::op::poll_add;
            entry.fd = op.on->fd;
            entry.op_flags = poll_out;
            entry.user_data = address(&op) | connecting;
        } else {
            submit(op);
        }
    }

    void submit(ring_operation& op) noexcept {
        sqe& entry = ring_->next_entry();
        entry.fd = op.on->fd;
        entry.addr = address(op.data);
        entry.len = static_cast<std::uint32_t>(std::min(op.size, transfer_max));
        entry.user_data = address(&op);
        switch (op.code) {
            case opcode::accept:
                entry.opcode = uring::op::accept;
                entry.op_flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
                break;
            case opcode::connect:
                entry.opcode = uring::op::connect;
                entry.addr = address(op.peer);
                entry.off = op.peer_size;
                break;
            case opcode::receive:
                entry.opcode = uring::op::recv;
                break;
            case opcode::receive_pooled:
                entry.opcode = uring::op::recv;
                entry.flags = sqe_buffer_select;
                entry.len = filled_buffer::capacity;
                break;
            case opcode::receive_message:
            case opcode::send_message:
                entry.opcode =
                    op.code == opcode::send_message ? uring::op::sendmsg : uring::op::recvmsg;
                entry.addr = address(op.message);
                entry.len = 1;
                entry.op_flags = op.code == opcode::send_message ? MSG_NOSIGNAL : 0;
                break;
            case opcode::send:
                entry.opcode = uring::op::send;
                entry.op_flags = MSG_NOSIGNAL;
                break;
            case opcode::read:
                // A read of a non-blocking file would not wait.
                entry.opcode = uring::op::poll_add;
                entry.addr = 0;
                entry.len = 0;
                entry.op_flags = poll_in;
                break;
            case opcode::read_at:
                entry.opcode = uring::op::read;
                entry.off = op.offset;
                break;
            case opcode::write_at:
                entry.opcode = uring::op::write;
                entry.off = op.offset;
                break;
            case opcode::sync:
                entry.opcode = uring::op::fsync;
                break;
        }
    }
    void submit_cancel(ring_operation& op) noexcept {
        submit_cancel_of(address(&op));
        if (op.code == opcode::connect) submit_cancel_of(address(&op) | connecting);
    }
    void submit_cancel_of(std::uint64_t request) noexcept {
        sqe& entry = ring_->next_entry();
        entry.opcode = uring::op::async_cancel;
        entry.fd = -1;
        entry.addr = request;
        entry.user_data = ignored;
    }

    static std::uint64_t stream_name(int fd, std::uint32_t generation) noexcept {
        return std::uint64_t{generation} << 32 | static_cast<std::uint64_t>(fd) << 3 | streaming;
    }
    // The stream that serves this operation; nullptr if the kernel does.
    receive_stream* stream_for(const ring_operation& op) noexcept {
        if (op.code == opcode::receive_pooled) return streams_.find_or_make(op.on->fd);
        if (op.code != opcode::receive && op.code != opcode::receive_message) return nullptr;
        receive_stream* const s = streams_.find(op.on->fd);
        return s != nullptr && s->in_use() ? s : nullptr;
    }
    void arm(int fd, receive_stream& s) noexcept {
        sqe& entry = ring_->next_entry();
        entry.opcode = uring::op::recv;
        entry.fd = fd;
        entry.ioprio = receive_multishot;
        entry.flags = sqe_buffer_select;
        entry.user_data = stream_name(fd, s.generation);
        s.armed = true;
        s.cancelling = false;
    }
    // Takes over what a multishot receive has brought. nullptr: its file has been closed.
    receive_stream* receive_into_stream(const cqe& entry) noexcept {
        receive_stream* const s = streams_.find(stream_file(entry));
        const bool stale = s->generation != entry.user_data >> 32;
        int result = entry.result;
        if ((entry.flags & cqe_buffer) != 0) {
            std::byte* const data =
                lent_->take(static_cast<std::uint16_t>(entry.flags >> cqe_buffer_shift));
            if (data == nullptr) {
                result = -ENOMEM;
            } else if (stale || result <= 0 || s->end != receive_stream::open) {
                buffers_.give(data);
            } else {
                s->take(data, result);
            }
        }
        if (stale) return nullptr;
        s->armed = (entry.flags & cqe_more) != 0;
        // All lent buffers were full at once, or we cancelled it: it is armed again when needed.
        const bool pause =
            result == -ENOBUFS || result == -ECANCELED || result == -EINTR || result == -EAGAIN;
        if (result <= 0 && !pause) s->end = result;
        return s;
    }
    void deliver_stream(const cqe& entry) noexcept {
        receive_stream* const s = receive_into_stream(entry);
        if (s == nullptr) return;
        const int fd = stream_file(entry);
        if (s->waiting != nullptr && (s->served || s->serve(*s->waiting, buffers_))) {
            ring_operation& op = *std::exchange(s->waiting, nullptr);
            s->served = false;
            op.on->owner->finish(op);
        } else if (s->waiting != nullptr && !s->armed) {
            arm(fd, *s);
        } else if (s->armed && s->count >= receive_stream::waiting_max &&
                   !std::exchange(s->cancelling, true)) {
            submit_cancel_of(stream_name(fd, s->generation));
        }
    }
    static int stream_file(const cqe& entry) noexcept {
        return static_cast<int>(entry.user_data >> 3 & 0x1fffffff);
    }

    void deliver(const cqe& entry) noexcept {
        if (entry.user_data == ignored) return;
        if ((entry.user_data & marks) == streaming) {
            deliver_stream(entry);
            return;
        }
        if (entry.user_data == woken) {
            listen_for_wakes();
            return;
        }
        ring_operation& op = operation_of(entry);
        if (judge(op, entry)) {
            op.on->owner->finish(op);
        } else {
            submit(op);
        }
    }
    // Takes the result over. False: the operation must be started again.
    bool judge(ring_operation& op, const cqe& entry) noexcept {
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
        // All lent buffers were full at once: they are back by now, so wait again.
        const bool full = op.result == -ENOBUFS && op.code == opcode::receive_pooled;
        // Cancelled, but not by us: the thread that had the ring has ended.
        const bool orphaned = op.result == -ECANCELED;
        return op.cancelled || !(full || orphaned || op.result == -EINTR || op.result == -EAGAIN);
    }
    static int connect_outcome(const ring_operation& op, int polled) noexcept {
        if (polled < 0) return polled;
        int error = 0;
        socklen_t size = sizeof error;
        ::getsockopt(op.on->fd, SOL_SOCKET, SO_ERROR, &error, &size);
        return -error;
    }

    void listen_for_wakes() noexcept {
        sqe& entry = ring_->next_entry();
        entry.opcode = uring::op::read;
        entry.fd = wake_.fd;
        entry.addr = address(&wake_count_);
        entry.len = sizeof wake_count_;
        entry.user_data = woken;
    }

    static constexpr std::size_t transfer_max = 0x7ffff000;  // of one call, as for read(2)

    buffer_pool& buffers_;
    monotonic_clock clock_;
    file wake_;
    std::uint64_t wake_count_ = 0;
    std::optional<kernel_ring> ring_;
    std::optional<lent_buffers> lent_;
    std::uint64_t issuer_ = 0;   // the thread that enabled the ring; 0: none yet
    operation_queue cancelled_;  // off the issuer's thread
    receive_streams streams_;
    operation_queue over_;   // ended when the ring changed threads
    operation_queue again_;  // the same, but to be begun anew
};

}  // namespace

std::unique_ptr<ring> make_uring_ring(buffer_pool& buffers) {
    return std::make_unique<uring_ring>(buffers);
}

}  // namespace coppice::io
