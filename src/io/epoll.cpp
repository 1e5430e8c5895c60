// The epoll ring: readiness.hpp over the kernel's sockets. Files are left to the process's workers.
#include "alarm.hpp"
#include "readiness.hpp"

#include <coppice/base/internal/check.hpp>
#include <coppice/io/internal/workers.hpp>

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <algorithm>
#include <utility>

namespace coppice::io {

using namespace internal;

namespace {

class epoll_kernel : immovable {
public:
    static constexpr backend kind = backend::epoll;
    static constexpr int events_max = 256;

    epoll_kernel() {
        epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
        if (epoll_ < 0) throw std::system_error(errno, std::system_category(), "epoll_create1");
        wake_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        timer_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
        if (!add(wake_, nullptr)) {
            const int error = errno;
            close_all();
            throw std::system_error(error, std::system_category(), "eventfd");
        }
        if (!add(timer_, &alarmed_) && timer_ >= 0) ::close(std::exchange(timer_, -1));
    }
    ~epoll_kernel() { close_all(); }

    system_calls& system() noexcept { return kernel(); }
    const clock& time() const noexcept { return clock_; }

    int watch(descriptor& d) noexcept {
        epoll_event event{};
        event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
        event.data.ptr = &d;
        return ::epoll_ctl(epoll_, EPOLL_CTL_ADD, d.fd, &event) == 0 ? 0 : errno;
    }

    int wait(ready_event* ready, std::optional<time_point> until) noexcept {
        if (!until) return ::epoll_wait(epoll_, ready, events_max, 0);
        if (*until == ring::forever ||
            alarm_.covers(*until, [this](time_point at) { return set_timer(at); })) {
            return ::epoll_wait(epoll_, ready, events_max, -1);
        }
        const time_point now = clock_.now();
        alarm_.see(now);
        const duration left = std::max(*until - now, duration::zero());
        return wait_for(ready, {.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000),
                                .tv_nsec = static_cast<long>(left.count() % 1'000'000'000)});
    }

    // Called for an event that does not belong to an open descriptor.
    void hear(const void* whose) noexcept {
        if (whose == &alarmed_) alarm_.rang();
    }

    void wake() noexcept {
        const std::uint64_t one = 1;
        // A full counter needs no increment, and every write delivers an edge.
        [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
    }

    // An event that is ready keeps its place in the list of epoll.
    void mark() noexcept { wake(); }

    static long accept(int fd) noexcept {
        return outcome(::accept4(fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    }
    static long connect(int fd, const sockaddr* to, socklen_t size) noexcept {
        return outcome(::connect(fd, to, size));
    }
    static long connect_outcome(int fd) noexcept {
        int error = 0;
        socklen_t size = sizeof error;
        ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
        return -error;
    }
    static long receive(int fd, std::byte* data, std::size_t size) noexcept {
        return outcome(::recv(fd, data, size, 0));
    }
    static long receive_message(int fd, msghdr& message) noexcept {
        return outcome(::recvmsg(fd, &message, 0));
    }
    static long send(int fd, const std::byte* data, std::size_t size) noexcept {
        return outcome(::send(fd, data, size, MSG_NOSIGNAL));
    }
    static long send_message(int fd, const msghdr& message) noexcept {
        return outcome(::sendmsg(fd, &message, MSG_NOSIGNAL));
    }
    static long read(int fd, std::byte* data, std::size_t size) noexcept {
        return outcome(::read(fd, data, size));
    }

    // Reports ENOMEM, because EAGAIN would tell the request to start again at once.
    static int start_file_operation(ring_operation& op) noexcept {
        return static_cast<file_operation&>(op).start_call() ? -ENOMEM : 0;
    }
    static void cancel_file_operation(ring_operation& op) noexcept {
        static_cast<file_operation&>(op).give_up();
    }

private:
    bool add(int fd, descriptor* whose) noexcept {
        epoll_event event{};
        event.events = EPOLLIN | EPOLLET;
        event.data.ptr = whose;
        return fd >= 0 && ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0;
    }
    void close_all() noexcept {
        for (const int fd : {timer_, wake_, epoll_}) {
            if (fd >= 0) ::close(fd);
        }
    }
    bool set_timer(time_point at) noexcept {
        if (timer_ < 0) return false;
        const std::chrono::nanoseconds::rep since = at.time_since_epoch().count();
        itimerspec setting{};
        setting.it_value.tv_sec = static_cast<time_t>(since / 1'000'000'000);
        setting.it_value.tv_nsec = static_cast<long>(since % 1'000'000'000);
        return ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &setting, nullptr) == 0;
    }

    // Kernels before 5.11, and sandboxes that do not know the newer call, have only milliseconds.
    // Waits are then rounded up.
    int wait_for(ready_event* ready, const timespec& limit) noexcept {
        if (has_nanoseconds_) {
            const int count = ::epoll_pwait2(epoll_, ready, events_max, &limit, nullptr);
            if (count >= 0 || (errno != ENOSYS && errno != EPERM)) return count;
            has_nanoseconds_ = false;
        }
        constexpr time_t seconds_max = 1'000'000;  // a longer wait takes several turns
        const time_t most = limit.tv_sec > seconds_max
                                ? seconds_max * 1000
                                : limit.tv_sec * 1000 + (limit.tv_nsec + 999'999) / 1'000'000;
        return ::epoll_wait(epoll_, ready, events_max, static_cast<int>(most));
    }
    static long outcome(long returned) noexcept { return returned < 0 ? -errno : returned; }

    monotonic_clock clock_;
    int epoll_ = -1;
    int wake_ = -1;
    int timer_ = -1;      // the alarm's timerfd; -1 if the system gave none
    descriptor alarmed_;  // never open; its address marks the alarm's events
    alarm alarm_;
    bool has_nanoseconds_ = true;  // until epoll_pwait2() is found to be missing
};

}  // namespace

namespace internal {

std::unique_ptr<ring> make_epoll_ring(buffer_pool& buffers) {
    return std::make_unique<readiness_ring<epoll_kernel>>(buffers);
}

}  // namespace internal

}  // namespace coppice::io
