// The epoll ring: edge-triggered readiness, turned into completions.
// A descriptor is registered once, for everything. Its flags remember what edges have said: an
// operation tries its system call while its flag is up; EAGAIN, and a read that got less than it
// asked for, take the flag down. Until the end of the stream is announced, a short read means that
// the socket was empty (epoll(7)), so a request costs one read and one write.
#include <coppice/io/context.hpp>
#include <coppice/io/ring.hpp>

#include <coppice/base/check.hpp>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

namespace coppice::io {

namespace {

class epoll_ring final : public ring {
public:
    explicit epoll_ring(buffer_pool& buffers) : buffers_(buffers) {
        epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
        if (epoll_ < 0) throw std::system_error(errno, std::system_category(), "epoll_create1");
        wake_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        epoll_event event{};
        event.events = EPOLLIN | EPOLLET;
        event.data.ptr = nullptr;
        if (wake_ < 0 || ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) != 0) {
            const int error = errno;
            if (wake_ >= 0) ::close(wake_);
            ::close(epoll_);
            throw std::system_error(error, std::system_category(), "eventfd");
        }
    }
    ~epoll_ring() override {
        ::close(wake_);
        ::close(epoll_);
    }

    backend kind() const noexcept override { return backend::epoll; }
    bool enter() noexcept override { return true; }

    std::error_code attach(descriptor& d) noexcept override {
        epoll_event event{};
        event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
        event.data.ptr = &d;
        if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, d.fd, &event) == 0) return {};
        return {errno, std::system_category()};
    }

    bool start(ring_operation& op) noexcept override {
        descriptor& d = *op.on;
        switch (op.code) {
            case opcode::connect:
                return start_connect(op);
            case opcode::send:
                return d.writable && attempt(op);
            default:
                return d.readable && attempt(op);
        }
    }

    void cancel(ring_operation& op) noexcept override {
        if (op.cancelled) return;
        op.cancelled = true;  // no event of this batch will end it any more
        cancelled_.push_back(&op);
    }

    void detach(descriptor& d) noexcept override {
        ::close(d.fd);  // leaves the epoll set with its last reference
    }

    void poll(std::optional<time_point> until) noexcept override {
        if (!cancelled_.empty()) until.reset();
        epoll_event events[events_max];
        const int count = wait(events, until);
        for (int i = 0; i < count; ++i) {
            if (events[i].data.ptr == nullptr) continue;  // woken: the loop looks at its mailbox
            dispatch(*static_cast<descriptor*>(events[i].data.ptr), events[i].events);
        }
        while (operation* const op = cancelled_.pop_front()) {
            ring_operation& cancelled = *static_cast<ring_operation*>(op);
            cancelled.result = -ECANCELED;
            end(cancelled);
        }
    }

    void wake() noexcept override {
        const std::uint64_t one = 1;
        // A full counter is as awake as it gets, and edges are delivered for every write.
        [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
    }

private:
    static constexpr int events_max = 256;

    int wait(epoll_event* events, std::optional<time_point> until) noexcept {
        timespec timeout{};
        timespec* limit = &timeout;
        if (until == forever) {
            limit = nullptr;
        } else if (until) {
            const duration left = std::max(*until - clock_.now(), duration::zero());
            timeout.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000);
            timeout.tv_nsec = static_cast<long>(left.count() % 1'000'000'000);
        }
        return ::epoll_pwait2(epoll_, events, events_max, limit, nullptr);
    }

    void dispatch(descriptor& d, std::uint32_t events) noexcept {
        if (d.fd < 0) return;  // closed by an earlier event of this batch
        if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) d.hung_up = true;
        if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) d.readable = true;
        if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) d.writable = true;
        // A completion may close the descriptor and even let the slot be used again; both are
        // harmless here, since the flags and operations are then those of the new file.
        if (d.readable && d.reading != nullptr) try_again(*d.reading);
        if (d.writable && d.writing != nullptr) try_again(*d.writing);
    }
    void try_again(ring_operation& op) noexcept {
        if (!op.cancelled && attempt(op)) end(op);
    }

    void end(ring_operation& op) noexcept { op.on->owner->finish(op); }

    bool start_connect(ring_operation& op) noexcept {
        descriptor& d = *op.on;
        if (::connect(d.fd, reinterpret_cast<const sockaddr*>(op.peer), op.peer_size) == 0) {
            op.result = 0;
            return true;
        }
        if (errno == EINPROGRESS || errno == EINTR) {
            d.writable = false;
            return false;
        }
        op.result = -errno;
        return true;
    }

    // Tries the system call. True: the operation has its result.
    bool attempt(ring_operation& op) noexcept {
        descriptor& d = *op.on;
        for (;;) {
            const long n = call(op);
            if (n >= 0) {
                op.result = static_cast<int>(n);
                const bool reads = op.code == opcode::receive || op.code == opcode::receive_pooled;
                if (reads && static_cast<std::size_t>(n) < op.size && !d.hung_up) {
                    d.readable = false;
                }
                return true;
            }
            if (errno == EINTR || (errno == ECONNABORTED && op.code == opcode::accept)) continue;
            if (errno == EAGAIN || errno == EWOULDBLOCK) {
                (op.code == opcode::send || op.code == opcode::connect ? d.writable : d.readable) =
                    false;
                return false;
            }
            op.result = -errno;
            return true;
        }
    }

    long call(ring_operation& op) noexcept {
        const int fd = op.on->fd;
        switch (op.code) {
            case opcode::accept:
                op.peer_size = op.peer == nullptr ? 0 : sizeof *op.peer;
                return ::accept4(fd, reinterpret_cast<sockaddr*>(op.peer),
                                 op.peer == nullptr ? nullptr : &op.peer_size,
                                 SOCK_NONBLOCK | SOCK_CLOEXEC);
            case opcode::connect: {
                int error = 0;
                socklen_t size = sizeof error;
                ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
                errno = error;
                return error == 0 ? 0 : -1;
            }
            case opcode::receive:
                return ::recv(fd, op.data, op.size, 0);
            case opcode::receive_pooled: {
                op.data = buffers_.take();
                op.size = buffer_pool::buffer_bytes;
                const long n = ::recv(fd, op.data, op.size, 0);
                if (n <= 0) buffers_.give(op.data);
                return n;
            }
            case opcode::send:
                return ::send(fd, op.data, op.size, MSG_NOSIGNAL);
            case opcode::read:
                return ::read(fd, op.data, op.size);
        }
        errno = EINVAL;
        return -1;
    }

    buffer_pool& buffers_;
    monotonic_clock clock_;
    int epoll_ = -1;
    int wake_ = -1;
    operation_queue cancelled_;
};

}  // namespace

std::unique_ptr<ring> make_epoll_ring(buffer_pool& buffers) {
    return std::make_unique<epoll_ring>(buffers);
}

}  // namespace coppice::io
