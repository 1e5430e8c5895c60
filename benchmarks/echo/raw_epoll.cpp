// The floor with epoll: one epoll_wait per batch of events, one recv and one send per message.
#include "rivals.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>

namespace bench_echo {

void serve_raw_epoll() {
    const int listener = listen_on_loopback();
    const int epoll = ::epoll_create1(0);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = listener;
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    epoll_event events[256];
    for (;;) {
        const int count = ::epoll_wait(epoll, events, 256, -1);
        for (int i = 0; i < count; ++i) {
            const int fd = events[i].data.fd;
            if (fd == listener) {
                const int peer = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
                event.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
                event.data.fd = peer;
                if (peer >= 0) ::epoll_ctl(epoll, EPOLL_CTL_ADD, peer, &event);
                continue;
            }
            char buffer[4096];
            const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
            if (n > 0) {
                ::send(fd, buffer, static_cast<std::size_t>(n), MSG_NOSIGNAL);
            } else if (n == 0 || errno != EAGAIN) {
                ::close(fd);
            }
        }
    }
}

}  // namespace bench_echo
