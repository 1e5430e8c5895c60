// The io_uring ring: raw system calls, one issuer, deferred task work, provided receive buffers.
#pragma once
// Needs kernel 6.1 (SINGLE_ISSUER with DEFER_TASKRUN). The constructor throws on older kernels, and
// where the system forbids io_uring; a context with backend::automatic then uses epoll. The
// kernel's ring starts disabled and belongs to the thread that enables it. For another thread a new
// ring is made, and pending operations are submitted there. One enter call per turn submits what
// was started and collects what has completed. One exception: the first send that a turn's only
// completion starts is made by a system call of its own. So is what its caller only tries.
//
//   uring.cpp             what every turn does: starts operations, waits, and delivers results
//   uring_accepting.cpp   accepts: from the connections that a multishot request brings
//   uring_closing.cpp     ends: of operations, of files, and of requests whose peers have gone
//   uring_moving.cpp      takes the ring, and what is pending in it, to another thread

#include <coppice/base/clock.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/internal/ring.hpp>

#include "alarm.hpp"
#include "uring_abi.hpp"
#include "uring_accept.hpp"
#include "uring_kernel.hpp"
#include "uring_stream.hpp"

#include <sys/eventfd.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>

namespace coppice::io::uring {

// Returns a number for this thread. Numbers of threads that have ended are not used again.
inline std::uint64_t this_thread() noexcept {
    static atomic<std::uint64_t> last{0};
    std::uint64_t& mine = thread_slot<kernel_ring, std::uint64_t>();
    if (mine == 0) mine = last.fetch_add(1, relaxed) + 1;  // relaxed: only uniqueness matters
    return mine;
}

class [[gnu::visibility("hidden")]] uring_ring final : public ring {
public:
    // Errors: std::system_error if the kernel lacks or forbids what the ring needs.
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

    bool enter(event_loop& loop) noexcept override;

    std::error_code attach(descriptor&, bool) noexcept override { return {}; }
    bool has_received(int fd) const noexcept override {
        const receive_stream* const s = streams_.find(fd);
        return s != nullptr && (s->first != nullptr || s->end != receive_stream::open);
    }
    void detach(descriptor& d) noexcept override;

    bool start(ring_operation& op) noexcept override;

    bool try_now(ring_operation& op) noexcept override {
        return op.code == opcode::send_message ? send_at_once(op) : receive_at_once(op);
    }
    void receive_one_by_one(descriptor& d, bool on) noexcept override;

    void cancel(ring_operation& op) noexcept override;

    void poll(std::optional<time_point> until) noexcept override;

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

    void make_rings();
    void drop_rings() noexcept;
    // Called when the kernel's ring belongs to another thread: takes its last results, and makes a
    // new ring. The kernel cancels what was pending in the old ring without running it.
    void leave_thread() noexcept;
    void end_later(ring_operation& op) noexcept {
        op.ended = true;
        over_.push_back(&op);
    }
    // For an operation that the kernel has not begun in the old ring, or has undone completely.
    void begin_later(ring_operation& op) noexcept {
        op.ended = true;  // ended in the old ring
        again_.push_back(&op);
    }
    void begin_again() noexcept;
    // Starts an operation that was pending in an earlier ring.
    void restart(ring_operation& op) noexcept;

    static bool is_send(const ring_operation& op) noexcept {
        return op.code == opcode::send || op.code == opcode::send_message;
    }
    // Sends at once, for the first send that a turn's only completion starts. Through the ring it
    // would also cost a call: an enter that does not wait. Returns false if the send has to wait.
    bool send_at_once(ring_operation& op) noexcept;
    // Receives at once, unless a request of the stream may have bytes that come first. Returns
    // false if nothing has come.
    bool receive_at_once(ring_operation& op) noexcept;
    [[gnu::always_inline]] inline void submit_send(ring_operation& op) noexcept;
    [[gnu::noinline]] void submit(ring_operation& op) noexcept;
    void submit_cancel(ring_operation& op) noexcept;
    void submit_cancel_of(std::uint64_t request) noexcept;

    static std::uint64_t stream_name(int fd, std::uint32_t generation) noexcept {
        return std::uint64_t{generation} << 32 | static_cast<std::uint64_t>(fd) << 3 | streaming;
    }
    // Returns the stream that serves this operation; nullptr if the kernel serves it.
    receive_stream* stream_for(const ring_operation& op) noexcept;
    void arm(int fd, receive_stream& s) noexcept;
    // Takes over what a multishot receive has brought. Returns nullptr if its file has been closed.
    receive_stream* receive_into_stream(const cqe& entry) noexcept;
    [[gnu::always_inline]] inline void deliver_stream(const cqe& entry) noexcept;
    void end_shot(int fd, receive_stream& s) noexcept;
    [[gnu::cold, gnu::noinline]] void doubt(int fd, receive_stream& s) noexcept;
    // Looks at the streams that have brought bytes, and ends the requests of those whose peers have
    // gone.
    void look() noexcept;
    void look_in(const kernel_timespec& delay) noexcept;
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
    bool accept_from(accept_stream& a, ring_operation& op) noexcept;
    void arm(accept_stream& a) noexcept;
    void end_shot(accept_stream& a) noexcept;
    // Takes over what a request of `a` has brought. Returns 0 or more, or a negative errno.
    int accept_into_stream(accept_stream& a, const cqe& entry) noexcept;
    // Returns nullptr if the listener has been closed.
    accept_stream* stream_of_accept(const cqe& entry) noexcept;
    void deliver_accept(const cqe& entry) noexcept;

    // Closes a file. If `armed`, the kernel's `request` still holds the file; ends the request now,
    // so that the file is closed now.
    void close_file(int fd, bool armed, std::uint64_t request) noexcept;

    [[gnu::always_inline]] inline void deliver(const cqe& entry) noexcept;
    [[gnu::noinline]] void deliver_other(const cqe& entry) noexcept;
    void deliver_own(std::uint64_t what) noexcept;
    // Takes the result over. Returns false if the operation must be started again.
    bool judge(ring_operation& op, const cqe& entry) noexcept;
    // Lends more buffers, once for all requests that found none left in the same turn.
    void lend_more() noexcept {
        if (!std::exchange(has_lent_more_, true)) lent_->lend_more();
    }
    // Returns the outcome of a connect; -EAGAIN if what the earlier ring began is neither under way
    // nor done, so that it must begin again.
    static int connect_outcome(const ring_operation& op, int polled) noexcept;

    // Sets the alarm's timeout, and makes one if none is set. If the timeout that should change has
    // just ended, its completion comes next, and the alarm is then set again.
    void set_timer(time_point at) noexcept;
    static kernel_timespec timespec_of(duration time) noexcept {
        return {.seconds = time.count() / 1'000'000'000,
                .nanoseconds = time.count() % 1'000'000'000};
    }

    void listen_for_wakes() noexcept;

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

}  // namespace coppice::io::uring
