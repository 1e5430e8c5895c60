// The io_uring ring: raw system calls, one issuer, deferred task work, provided receive buffers.
// Needs kernel 6.1 (SINGLE_ISSUER with DEFER_TASKRUN). make_uring_ring throws on older kernels, and
// where the system forbids io_uring; a context with backend::automatic then takes epoll. The
// kernel's ring starts disabled and belongs to the thread that enables it. For another thread a new
// ring is made, and pending operations are submitted there. One enter call per turn submits what
// was started and collects what has completed. Only the answer to a turn's single completion is
// sent without it.
#include <coppice/io/context.hpp>
#include <coppice/io/internal/ring.hpp>

#include <coppice/base/internal/check.hpp>

#include "alarm.hpp"
#include "uring_abi.hpp"
#include "uring_accept.hpp"
#include "uring_entries.hpp"
#include "uring_kernel.hpp"
#include "uring_stream.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <span>
#include <utility>

namespace coppice::io {

using namespace internal;

namespace {

using namespace uring;

// Returns a number for this thread. Numbers of threads that have ended are not used again.
std::uint64_t this_thread() noexcept {
    static atomic<std::uint64_t> last{0};
    std::uint64_t& mine = thread_slot<kernel_ring, std::uint64_t>();
    if (mine == 0) mine = last.fetch_add(1, relaxed) + 1;  // relaxed: only uniqueness matters
    return mine;
}

class uring_ring final : public ring {
public:
    uring_ring(buffer_pool& buffers, uring_calls& calls) : buffers_(buffers), calls_(calls) {
        make_rings();
        wake_.fd = ::eventfd(0, EFD_CLOEXEC);
        if (wake_.fd < 0) throw std::system_error(errno, std::system_category(), "eventfd");
    }
    // The kernel cancels the requests of a closing ring without running them: with deferred task
    // work, only enter() moves data, and no thread can enter any longer. The memory of pending
    // operations is therefore left alone.
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
            begin_again();
        }
        return moves;
    }

    std::error_code attach(descriptor&, bool) noexcept override { return {}; }
    bool has_received(int fd) const noexcept override {
        const receive_stream* const s = streams_.find(fd);
        return s != nullptr && (s->first != nullptr || s->end != receive_stream::open);
    }
    void detach(descriptor& d) noexcept override {
        if (accept_stream* const a = accepts_.find(d.fd)) {
            const std::uint64_t request = accept_name(*a);
            close_file(d.fd, accepts_.end(*a), request);
            return;
        }
        receive_stream* const s = streams_.find(d.fd);
        if (s != nullptr) {
            s->drop(buffers_);
            s->end = receive_stream::open;
            ++s->generation;
        }
        const bool armed = s != nullptr && std::exchange(s->armed, false);
        if (armed) s->cancelling = false;
        close_file(d.fd, armed, armed ? stream_name(d.fd, s->generation - 1) : ignored);
    }

    bool start(ring_operation& op) noexcept override {
        // The most frequent operations of a server come first; the rest is kept out of their way.
        if (op.code == opcode::send) [[likely]] {
            if (answers_at_once_ && send_at_once(op)) return true;
            submit_send(op);
            return false;
        }
        if (op.code != opcode::receive_pooled) [[unlikely]] {
            if (op.code == opcode::send_message && answers_at_once_ && send_at_once(op)) {
                return true;
            }
            if (op.code == opcode::accept) {
                if (accept_stream* const a = accepts_.find_or_make(op.on->fd)) {
                    return accept_from(*a, op);
                }
            }
        }
        if (receive_stream* const s = stream_for(op)) [[likely]] {
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
            s->waiting = nullptr;  // the stream continues: its bytes are for the next receive
            op.result = -ECANCELED;
            end_later(op);
            return;
        }
        if (accept_stream* const a = accepts_.find(op.on->fd); a != nullptr && a->waiting == &op) {
            a->waiting = nullptr;
            op.result = -ECANCELED;
            end_later(op);
            if (issuer_ == this_thread()) end_shot(*a);
            return;
        }
        if (issuer_ == this_thread()) {
            submit_cancel(op);
        } else {
            cancelled_.push_back(&op);  // no thread runs the loop now; poll() or enter() will look
        }
    }

    void poll(std::optional<time_point> until) noexcept override {
        while (operation* const op = cancelled_.pop_front()) {
            submit_cancel(*static_cast<ring_operation*>(op));
        }
        if (!over_.empty() || ring_->completions() != 0) until.reset();
        kernel_timespec timeout{};
        const bool limited = until && *until != forever && !alarm_.covers(*until, [this](auto at) {
            set_timer(at);
            return true;
        });
        if (limited) {
            const time_point now = clock_.now();
            alarm_.see(now);
            timeout = timespec_of(std::max(*until - now, duration::zero()));
        }
        ring_->submit(until ? 1 : 0, limited ? &timeout : nullptr);
        while (operation* const op = over_.pop_front()) {
            ring_operation& ended = *static_cast<ring_operation*>(op);
            ended.on->owner->finish(ended);
        }
        answers_at_once_ = ring_->completions() == 1;
        has_lent_more_ = false;
        ring_->take([this](const cqe& entry) { deliver(entry); });
        answers_at_once_ = false;
    }

    void wake() noexcept override {
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t written = ::write(wake_.fd, &one, sizeof one);
    }

private:
    // Values of user_data: the address of an operation with a mark in its low bits, or as said
    // below.
    static constexpr std::uint64_t own = 1;  // the ring's own: one of the last four below
    // a poll that waits for a connect of an earlier ring
    static constexpr std::uint64_t connecting = 4;
    // not an address: a descriptor number and its generation
    static constexpr std::uint64_t streaming = 5;
    static constexpr std::uint64_t accepting = 6;  // not an address: an accept_stream's number
    static constexpr std::uint64_t listening = 7;  // as accepting, for a stream that has moved
    static constexpr std::uint64_t marks = 7;
    static constexpr std::uint64_t ignored = 0 << 3 | own;
    static constexpr std::uint64_t woken = 1 << 3 | own;
    static constexpr std::uint64_t alarmed = 2 << 3 | own;
    static constexpr std::uint64_t looking = 3 << 3 | own;

    static ring_operation& operation_of(std::uint64_t user_data) noexcept {
        return *reinterpret_cast<ring_operation*>(user_data & ~marks);
    }

    void make_rings() {
        ring_.emplace(calls_);
        lent_.emplace(buffers_, *ring_);
    }
    void drop_rings() noexcept {
        ring_.reset();
        lent_.reset();
        alarm_.reset();
    }
    // Called when the kernel's ring belongs to another thread: takes its last results, and makes a
    // new ring. The kernel cancels what was pending in the old ring without running it.
    void leave_thread() noexcept {
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
    void end_later(ring_operation& op) noexcept {
        op.ended = true;
        over_.push_back(&op);
    }
    // For an operation that the kernel has not begun in the old ring, or has undone completely.
    void begin_later(ring_operation& op) noexcept {
        op.ended = true;  // ended in the old ring
        again_.push_back(&op);
    }
    void begin_again() noexcept {
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
    // Starts an operation that was pending in an earlier ring.
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

    static bool is_send(const ring_operation& op) noexcept {
        return op.code == opcode::send || op.code == opcode::send_message;
    }
    // Sends at once, for the first send that a turn's only completion starts. Through the ring it
    // would also cost a call: an enter that does not wait. Returns false if the send has to wait.
    bool send_at_once(ring_operation& op) noexcept {
        answers_at_once_ = false;
        constexpr int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
        const ssize_t sent = op.code == opcode::send ? ::send(op.on->fd, op.data, op.size, flags)
                                                     : ::sendmsg(op.on->fd, op.message, flags);
        op.result = sent < 0 ? -errno : static_cast<int>(sent);
        return op.result != -EAGAIN && op.result != -EINTR;
    }
    void submit_send(ring_operation& op) noexcept {
        sqe& entry = ring_->next_entry();
        ask_send(entry, op);
        entry.user_data = address(&op);
    }
    [[gnu::noinline]] void submit(ring_operation& op) noexcept {
        sqe& entry = ring_->next_entry();
        ask(entry, op);
        entry.user_data = address(&op);
    }
    void submit_cancel(ring_operation& op) noexcept {
        submit_cancel_of(address(&op));
        if (op.code == opcode::connect) submit_cancel_of(address(&op) | connecting);
    }
    void submit_cancel_of(std::uint64_t request) noexcept {
        sqe& entry = ring_->next_entry();
        ask_end(entry, request);
        entry.user_data = ignored;
    }

    static std::uint64_t stream_name(int fd, std::uint32_t generation) noexcept {
        return std::uint64_t{generation} << 32 | static_cast<std::uint64_t>(fd) << 3 | streaming;
    }
    // Returns the stream that serves this operation; nullptr if the kernel serves it.
    receive_stream* stream_for(const ring_operation& op) noexcept {
        if (op.code == opcode::receive_pooled) return streams_.find_or_make(op.on->fd);
        if (op.code != opcode::receive && op.code != opcode::receive_message) return nullptr;
        receive_stream* const s = streams_.find(op.on->fd);
        return s != nullptr && s->in_use() ? s : nullptr;
    }
    void arm(int fd, receive_stream& s) noexcept {
        sqe& entry = ring_->next_entry();
        ask_all_bytes(entry, fd);
        entry.user_data = stream_name(fd, s.generation);
        s.armed = true;
        s.cancelling = false;
    }
    // Takes over what a multishot receive has brought. Returns nullptr if its file has been closed.
    receive_stream* receive_into_stream(const cqe& entry) noexcept {
        receive_stream* const s = streams_.find(stream_file(entry));
        const bool stale = s->generation != entry.user_data >> 32;
        int result = entry.result;
        if ((entry.flags & cqe_buffer) != 0) [[likely]] {
            std::byte* const data =
                lent_->take(static_cast<std::uint16_t>(entry.flags >> cqe_buffer_shift));
            if (data == nullptr) [[unlikely]] {
                result = -ENOMEM;
            } else if (stale || result <= 0 || s->end != receive_stream::open) [[unlikely]] {
                buffers_.give(data);
            } else {
                s->take(data, result);
            }
        }
        if (stale) [[unlikely]]
            return nullptr;
        s->armed = (entry.flags & cqe_more) != 0;
        if (result > 0) [[likely]]
            return s;
        if (result == -ENOBUFS) lend_more();
        // All lent buffers were full at once, or the ring canceled the request. It is armed again
        // when needed.
        const bool pause =
            result == -ENOBUFS || result == -ECANCELED || result == -EINTR || result == -EAGAIN;
        if (!pause) s->end = static_cast<std::int16_t>(result);  // 0, or a negative errno
        return s;
    }
    void deliver_stream(const cqe& entry) noexcept {
        receive_stream* const s = receive_into_stream(entry);
        if (s == nullptr) [[unlikely]]
            return;
        const int fd = stream_file(entry);
        if (s->armed && s->next_doubted == receive_stream::not_doubted) [[unlikely]]
            doubt(fd, *s);  // it has brought bytes and continues
        if (s->waiting != nullptr && (s->served || s->serve(*s->waiting, buffers_))) [[likely]] {
            ring_operation& op = *std::exchange(s->waiting, nullptr);
            s->served = false;
            op.on->owner->finish(op);
        } else if (s->waiting != nullptr && !s->armed) {
            arm(fd, *s);
        } else if (s->count >= receive_stream::waiting_max) {
            end_shot(fd, *s);
        }
    }
    void end_shot(int fd, receive_stream& s) noexcept {
        if (s.armed && !std::exchange(s.cancelling, true)) {
            submit_cancel_of(stream_name(fd, s.generation));
        }
    }
    [[gnu::cold, gnu::noinline]] void doubt(int fd, receive_stream& s) noexcept {
        if (!streams_.has_doubted()) look_in(look_delay);
        streams_.doubt(fd, s);
    }
    // Looks at the streams that have brought bytes, and ends the requests of those whose peers have
    // gone.
    void look() noexcept {
        std::array<pollfd, looks_max> files;
        nfds_t count = 0;
        while (count != files.size() && streams_.has_doubted()) {
            files[count++] = {streams_.next_doubted(), POLLRDHUP, 0};
        }
        const bool blind = ::poll(files.data(), count, 0) < 0;
        for (const pollfd& file : std::span(files).first(count)) {
            const bool gone = (file.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
            if (gone || blind) end_shot(file.fd, *streams_.find(file.fd));
        }
        if (streams_.has_doubted()) look_in(no_delay);  // the loop's other work comes first
    }
    void look_in(const kernel_timespec& delay) noexcept {
        sqe& entry = ring_->next_entry();
        ask_time(entry, delay, 0);
        entry.user_data = looking;
    }
    static int stream_file(const cqe& entry) noexcept {
        return static_cast<int>(entry.user_data >> 3 & 0x1fffffff);
    }

    static bool is_accept(const cqe& entry) noexcept {
        const std::uint64_t mark = entry.user_data & marks;
        return mark == accepting || mark == listening;
    }
    static std::uint64_t accept_name(const accept_stream& a) noexcept {
        return a.id << 3 | (a.moved ? listening : accepting);
    }
    // Returns true if a connection was waiting. Otherwise the operation waits for one.
    bool accept_from(accept_stream& a, ring_operation& op) noexcept {
        if (!a.empty()) {
            op.result = a.pop();
            return true;
        }
        a.waiting = &op;
        if (!a.armed) arm(a);
        return false;
    }
    void arm(accept_stream& a) noexcept {
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
    void end_shot(accept_stream& a) noexcept {
        if (a.armed && !std::exchange(a.cancelling, true)) submit_cancel_of(accept_name(a));
    }
    // Takes over what a request of `a` has brought. Returns 0 or more, or a negative errno.
    int accept_into_stream(accept_stream& a, const cqe& entry) noexcept {
        a.armed = (entry.flags & cqe_more) != 0;
        int result = entry.result;
        if ((entry.user_data & marks) == listening && result >= 0) {
            result = ::accept4(a.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (result < 0) result = -errno;
        }
        if (result >= 0) a.push(result);
        return result;
    }
    // Returns nullptr if the listener has been closed.
    accept_stream* stream_of_accept(const cqe& entry) noexcept {
        accept_stream* const a = accepts_.find_id(entry.user_data >> 3);
        const bool brought = (entry.user_data & marks) == accepting && entry.result >= 0;
        if (a == nullptr && brought) ::close(entry.result);
        return a;
    }
    void deliver_accept(const cqe& entry) noexcept {
        accept_stream* const a = stream_of_accept(entry);
        if (a == nullptr) return;
        const int result = accept_into_stream(*a, entry);
        // The ring canceled the request, the thread of an earlier ring has ended, or the peer has
        // gone.
        const bool pause = result == -ECANCELED || result == -EINTR || result == -EAGAIN ||
                           result == -ECONNABORTED;
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

    // Closes a file. If `armed`, the kernel's `request` still holds the file; ends the request now,
    // so that the file is closed now.
    void close_file(int fd, bool armed, std::uint64_t request) noexcept {
        const bool here = issuer_ == this_thread();
        if (armed && !here) ::shutdown(fd, SHUT_RDWR);
        ::close(fd);
        if (!armed || !here) return;
        submit_cancel_of(request);
        ring_->submit(0, nullptr);
    }

    void deliver(const cqe& entry) noexcept {
        const std::uint64_t mark = entry.user_data & marks;
        if (mark == streaming) {
            deliver_stream(entry);
        } else if (mark == 0 && operation_of(entry.user_data).code == opcode::send &&
                   entry.result > 0) {
            answers_at_once_ = false;  // what follows a send may have to wait
            ring_operation& op = operation_of(entry.user_data);
            op.result = entry.result;
            op.on->owner->finish(op);
        } else {
            deliver_other(entry);
        }
    }
    [[gnu::noinline]] void deliver_other(const cqe& entry) noexcept {
        if ((entry.user_data & marks) == own) {
            deliver_own(entry.user_data);
            return;
        }
        if (is_accept(entry)) {
            deliver_accept(entry);
            return;
        }
        ring_operation& op = operation_of(entry.user_data);
        if (is_send(op)) answers_at_once_ = false;  // what follows a send may have to wait
        if (judge(op, entry)) {
            op.on->owner->finish(op);
        } else {
            submit(op);
        }
    }
    void deliver_own(std::uint64_t what) noexcept {
        switch (what) {
            case woken:
                listen_for_wakes();
                break;
            case alarmed:
                alarm_.rang();
                break;
            case looking:
                look();
                break;
            default:
                break;  // ignored
        }
    }
    // Takes the result over. Returns false if the operation must be started again.
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
        // All lent buffers were full at once. They have been returned by now, so the operation
        // waits again.
        const bool full = op.result == -ENOBUFS && op.code == opcode::receive_pooled;
        if (full) lend_more();
        // Canceled, but not by cancel(): the thread that had the ring has ended.
        const bool orphaned = op.result == -ECANCELED;
        return op.cancelled || !(full || orphaned || op.result == -EINTR || op.result == -EAGAIN);
    }
    // Lends more buffers, once for all requests that found none left in the same turn.
    void lend_more() noexcept {
        if (!std::exchange(has_lent_more_, true)) lent_->lend_more();
    }
    // Returns the outcome of a connect; -EAGAIN if what the earlier ring began is neither under way
    // nor done, so that it must begin again.
    static int connect_outcome(const ring_operation& op, int polled) noexcept {
        if (polled < 0) return polled;
        int error = 0;
        socklen_t size = sizeof error;
        ::getsockopt(op.on->fd, SOL_SOCKET, SO_ERROR, &error, &size);
        if (error != 0) return -error;
        // A socket that is not connecting at all is writable too.
        sockaddr_storage peer;
        socklen_t peer_size = sizeof peer;
        void* const where = &peer;
        const bool connected =
            ::getpeername(op.on->fd, static_cast<sockaddr*>(where), &peer_size) == 0;
        return connected || errno != ENOTCONN ? 0 : -EAGAIN;
    }

    // Sets the alarm's timeout, and makes one if none is set. If the timeout that should change has
    // just ended, its completion comes next, and the alarm is then set again.
    void set_timer(time_point at) noexcept {
        timer_spec_ = timespec_of(at.time_since_epoch());
        sqe& entry = ring_->next_entry();
        if (alarm_.is_set()) {
            ask_other_time(entry, alarmed, timer_spec_, timeout_abs);
            entry.user_data = ignored;
        } else {
            ask_time(entry, timer_spec_, timeout_abs);
            entry.user_data = alarmed;
        }
    }
    static kernel_timespec timespec_of(duration time) noexcept {
        return {.seconds = time.count() / 1'000'000'000,
                .nanoseconds = time.count() % 1'000'000'000};
    }

    void listen_for_wakes() noexcept {
        sqe& entry = ring_->next_entry();
        ask_read(entry, wake_.fd, &wake_count_, sizeof wake_count_);
        entry.user_data = woken;
    }

    static constexpr kernel_timespec look_delay{0, 100'000'000};
    static constexpr kernel_timespec no_delay{0, 0};
    static constexpr std::size_t looks_max = 256;  // most streams to look at in one turn

    buffer_pool& buffers_;
    uring_calls& calls_;
    monotonic_clock clock_;
    alarm alarm_;
    kernel_timespec timer_spec_{};  // read when the entry that refers to it is submitted
    owned_file wake_;
    std::uint64_t wake_count_ = 0;
    std::optional<kernel_ring> ring_;
    std::optional<lent_buffers> lent_;
    bool has_lent_more_ = false;    // in this turn
    bool answers_at_once_ = false;  // set while the only completion of this turn is being delivered
    std::uint64_t issuer_ = 0;      // the number of the thread that enabled the ring; 0: none yet
    operation_queue cancelled_;     // canceled by a thread other than the issuer
    receive_streams streams_;
    accept_streams accepts_;
    operation_queue over_;   // operations that ended when the ring changed threads
    operation_queue again_;  // operations that begin again because the ring changed threads
};

}  // namespace

std::unique_ptr<ring> make_uring_ring(buffer_pool& buffers, uring_calls& calls) {
    return std::make_unique<uring_ring>(buffers, calls);
}

}  // namespace coppice::io
