// The ring over edge-triggered readiness. Included by epoll.cpp and sim.cpp, each with its kernel.
#pragma once
// A descriptor is registered once, for all events. Its flags remember what the edges have said. An
// operation tries its system call while its flag is set. EAGAIN clears the flag, and so does a read
// that got less than it asked for: until the end of the stream is announced, a short read means
// that the socket was empty (epoll(7)). A request therefore costs one read and one write.
//
// Of a batch of events, up to receive_at_once reads make their calls one after the other before the
// first of them completes. The kernel's code for a receive then stays in the caches.
//
// The Kernel parameter makes the calls. Calls that may have to wait return bytes, a descriptor, or
// 0, or a negative errno. wait() returns how many events it wrote. hear() gets the events that do
// not belong to an open descriptor. mark() makes an event like that of a wake-up, which comes after
// all those that are ready. Files have no readiness: the kernel parameter runs their operations in
// its own way, and ends them with context::finish().

#include <coppice/io/context.hpp>
#include <coppice/io/internal/ring.hpp>

#include <sys/epoll.h>
#include <algorithm>
#include <cerrno>
#include <utility>

namespace coppice::io {

using namespace internal;

using ready_event = epoll_event;  // data.ptr: the descriptor; nullptr: a wake-up

template <class Kernel>
class readiness_ring final : public ring {
public:
    template <class... Args>
    explicit readiness_ring(buffer_pool& buffers, Args&&... args)
        : buffers_(buffers), kernel_(std::forward<Args>(args)...) {}

    backend kind() const noexcept override { return Kernel::kind; }
    system_calls& system() noexcept override { return kernel_.system(); }
    const clock& time() const noexcept override { return kernel_.time(); }
    bool enter(event_loop&) noexcept override { return false; }

    std::error_code attach(descriptor& d, bool waits) noexcept override {
        if (!waits) return {};
        const int error = kernel_.watch(d);
        return error == 0 ? std::error_code() : std::error_code(error, std::system_category());
    }

    bool start(ring_operation& op) noexcept override {
        if (is_file_operation(op.code)) [[unlikely]] {
            // 0: a worker now has op, and writes its result
            const int error = kernel_.start_file_operation(op);
            if (error != 0) op.result = error;
            return error != 0;
        }
        descriptor& d = *op.on;
        if (op.code == opcode::connect) [[unlikely]]
            return start_connect(op);
        return (is_writing(op.code) ? d.writable : d.readable) && attempt(op);
    }

    bool try_now(ring_operation& op) noexcept override { return attempt(op); }

    void cancel(ring_operation& op) noexcept override {
        if (op.ended || std::exchange(op.cancelled, true)) return;
        if (is_file_operation(op.code)) {
            kernel_.cancel_file_operation(op);
        } else {
            cancelled_.push_back(&op);  // no event of this batch will end it
        }
    }

    // The kernel stops watching a file when its last reference is closed.
    void detach(descriptor& d) noexcept override { kernel_.system().close(d.fd); }

    void poll(std::optional<time_point> until) noexcept override {
        if (!cancelled_.empty()) until.reset();
        // If a completion polls (block does), that poll continues with the same batch.
        if (next_ == count_) {
            count_ = std::max(0, kernel_.wait(events_, until));
            next_ = received_ = 0;
            note_backlog();
        }
        while (next_ != count_) {
            if (next_ == received_) receive();
            auto* const d = static_cast<descriptor*>(events_[next_].data.ptr);
            ring_operation* const op = results_[next_++ % receive_at_once];
            if (op != nullptr) end(*op);
            // The completion may have closed the descriptor, and the slot may even be in use again.
            // Both are harmless: flags and operations are then those of the new file.
            if (d != nullptr && d->writable && d->writing != nullptr) try_again(*d->writing);
        }
        while (operation* const op = cancelled_.pop_front()) {
            ring_operation& cancelled = *static_cast<ring_operation*>(op);
            cancelled.result = -ECANCELED;
            end(cancelled);
        }
    }

    void wake() noexcept override { kernel_.wake(); }

private:
    static constexpr int receive_at_once = 16;

    // A full batch may have left events behind. A mark then goes behind them, into the kernel's
    // list of what is ready, which is first in, first out. What comes before the mark has been
    // ready for longer than the mark has been on its way, and what comes behind it for less. A
    // wake-up in between counts as the mark.
    void note_backlog() noexcept {
        const bool full = count_ == Kernel::events_max;
        if (!full && !is_marked_) [[likely]] {
            backlog_ = duration::zero();
            return;
        }
        const time_point now = kernel_.time().now();
        if (is_marked_) {
            const auto is_mark = [](const ready_event& e) { return e.data.ptr == nullptr; };
            is_marked_ = std::none_of(events_, events_ + count_, is_mark);
            const duration way = now - marked_;
            backlog_ = is_marked_ ? std::max(backlog_, way) : full ? way : way / 2;
        }
        if (full && !is_marked_) {
            kernel_.mark();
            is_marked_ = true;
            marked_ = now;
        }
    }

    // Takes over the flags of the next events, and makes the calls of waiting reads.
    void receive() noexcept {
        const int end = std::min(count_, received_ + receive_at_once);
        for (; received_ != end; ++received_) {
            const ready_event& event = events_[received_];
            auto* const d = static_cast<descriptor*>(event.data.ptr);
            ring_operation*& result = results_[received_ % receive_at_once];
            result = nullptr;
            if (d == nullptr || d->fd < 0) [[unlikely]] {
                kernel_.hear(d);  // a wake-up; or the file was closed earlier in this batch
                continue;
            }
            const std::uint32_t events = event.events;
            if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) d->hung_up = true;
            if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) d->readable = true;
            if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) d->writable = true;
            ring_operation* const op = d->reading;
            if (!d->readable || op == nullptr || op->cancelled || !attempt(*op)) continue;
            op->ended = true;
            result = op;
        }
    }
    void try_again(ring_operation& op) noexcept {
        if (!op.cancelled && attempt(op)) end(op);
    }

    void end(ring_operation& op) noexcept { op.on->owner->finish(op); }

    bool start_connect(ring_operation& op) noexcept {
        descriptor& d = *op.on;
        const long outcome = kernel_.connect(d.fd, op.peer, op.peer_size);
        // A connect that gets EAGAIN fails: the queue of a Unix listener is full, and no event
        // would say when that changes.
        if (outcome == -EINPROGRESS || outcome == -EINTR) {
            d.writable = false;
            return false;
        }
        op.result = static_cast<int>(outcome);
        return true;
    }

    // Tries the system call. Returns true if the operation has its result.
    bool attempt(ring_operation& op) noexcept {
        long outcome = 0;
        do {
            outcome = call(op);
        } while (outcome == -EINTR || (outcome == -ECONNABORTED && op.code == opcode::accept));
        descriptor& d = *op.on;
        if (outcome == -EAGAIN || outcome == -EWOULDBLOCK) [[unlikely]] {
            (is_writing(op.code) ? d.writable : d.readable) = false;
            return false;
        }
        op.result = static_cast<int>(outcome);
        const bool stream = op.code == opcode::receive || op.code == opcode::receive_pooled;
        if (stream && outcome >= 0 && static_cast<std::size_t>(outcome) < op.size && !d.hung_up) {
            d.readable = false;
        }
        return true;
    }

    // Inline, as is receive_pooled(), because processors mispredict a return that follows a system
    // call. Everything that is not a server's request or answer is kept out of line.
    [[gnu::always_inline]] long call(ring_operation& op) noexcept {
        if (op.code == opcode::receive_pooled) return receive_pooled(op);
        if (op.code == opcode::send) return kernel_.send(op.on->fd, op.data, op.size);
        return call_other(op);
    }
    [[gnu::noinline]] long call_other(ring_operation& op) noexcept {
        const int fd = op.on->fd;
        switch (op.code) {
            case opcode::accept:
                return kernel_.accept(fd);
            case opcode::connect:
                return kernel_.connect_outcome(fd);
            case opcode::receive:
                return kernel_.receive(fd, op.data, op.size);
            case opcode::receive_message:
                return kernel_.receive_message(fd, *op.message);
            case opcode::send_message:
                return kernel_.send_message(fd, *op.message);
            case opcode::read:
                return kernel_.read(fd, op.data, op.size);
            case opcode::receive_pooled:
            case opcode::send:
                break;  // see above
            case opcode::read_at:
            case opcode::write_at:
            case opcode::sync:
                break;  // handled by start()
        }
        return -EINVAL;
    }

    [[gnu::always_inline]] long receive_pooled(ring_operation& op) noexcept {
        std::byte* const buffer = buffers_.try_take();
        if (buffer == nullptr) [[unlikely]]
            return -ENOMEM;
        op.size = buffer_pool::buffer_bytes;
        const long n = kernel_.receive(op.on->fd, buffer, op.size);
        if (n > 0) [[likely]] {
            op.data = buffer;
        } else {
            buffers_.give(buffer);
        }
        return n;
    }

    buffer_pool& buffers_;
    Kernel kernel_;
    operation_queue cancelled_;
    ready_event events_[Kernel::events_max];  // the batch under way; [next_, count_) is still to do
    int next_ = 0;
    int received_ = 0;  // receive() has seen the events before this one
    int count_ = 0;
    bool is_marked_ = false;  // a mark is on its way
    time_point marked_{};     // since when
    // For each event that receive() saw last: the operation to complete, or nullptr.
    ring_operation* results_[receive_at_once];
};

}  // namespace coppice::io
