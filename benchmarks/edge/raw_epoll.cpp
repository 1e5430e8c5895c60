// The floor of an echo: a bare epoll loop that unmasks each frame where it was received, and sends
// it back from there. One epoll_wait per batch of events, one recv and one send per short message.
#include "raw_echo.hpp"
#include "rivals.hpp"

#include "../http/raw_loop.hpp"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <string_view>

namespace bench_edge {

namespace {

struct connection : raw_peer {
    explicit connection(int file) : fd(file) {}
    int fd;
};

// Returns false if the connection has ended.
bool serve(connection& c) {
    const ssize_t n = ::recv(c.fd, c.bytes.data() + c.have, c.bytes.size() - c.have, 0);
    if (n <= 0) return n < 0 && errno == EAGAIN;
    c.have += static_cast<std::size_t>(n);
    const std::string_view answer = raw_answer(c);
    if (answer.empty()) return true;
    return ::send(c.fd, answer.data(), answer.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(answer.size());
}

}  // namespace

void serve_raw_echo_epoll() {
    const int listener = bench_http::listen_on_loopback();
    const int epoll = ::epoll_create1(0);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = nullptr;
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    epoll_event events[256];
    for (;;) {
        const int count = ::epoll_wait(epoll, events, 256, -1);
        for (int i = 0; i < count; ++i) {
            auto* const peer = static_cast<connection*>(events[i].data.ptr);
            if (peer != nullptr) {
                if (!serve(*peer)) {
                    ::close(peer->fd);
                    delete peer;
                }
                continue;
            }
            for (int fd; (fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK)) >= 0;) {
                event.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
                event.data.ptr = new connection(fd);
                ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
            }
        }
    }
}

}  // namespace bench_edge
