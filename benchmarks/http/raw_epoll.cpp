// The floor: a bare epoll loop that answers every read of whole requests with a constant.
// It parses only the ends of heads, so it does the least that an answer costs on this kernel: one
// epoll_wait per batch of events, and one recv and one send per readable connection.
#include "raw_loop.hpp"
#include "rivals.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace bench_http {

int listen_on_loopback() {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    const int yes = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    if (::bind(fd, reinterpret_cast<sockaddr*>(&at), size) != 0 || ::listen(fd, 4096) != 0 ||
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
        std::perror("raw epoll");
        std::exit(1);
    }
    std::printf("listening on http://127.0.0.1:%d\n", ntohs(at.sin_port));
    std::fflush(stdout);
    return fd;
}

namespace {

// Returns false if the connection has ended.
bool answer(int fd, std::string& out) {
    char buffer[4096];
    const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
    if (n <= 0) return n < 0 && errno == EAGAIN;
    const std::string_view bytes(buffer, static_cast<std::size_t>(n));
    const bool close = wants_close(bytes);
    out.clear();
    for (std::size_t heads = count_heads(bytes); heads != 0; --heads) out += constant_answer;
    const ssize_t sent = ::send(fd, out.data(), out.size(), MSG_NOSIGNAL);
    return sent == static_cast<ssize_t>(out.size()) && !close;
}

}  // namespace

void serve_raw_epoll() {
    const int listener = listen_on_loopback();
    const int epoll = ::epoll_create1(0);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = listener;
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    std::string out;
    epoll_event events[256];
    for (;;) {
        const int count = ::epoll_wait(epoll, events, 256, -1);
        for (int i = 0; i < count; ++i) {
            const int fd = events[i].data.fd;
            if (fd != listener) {
                if (!answer(fd, out)) ::close(fd);
                continue;
            }
            for (int peer; (peer = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK)) >= 0;) {
                event.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
                event.data.fd = peer;
                ::epoll_ctl(epoll, EPOLL_CTL_ADD, peer, &event);
            }
        }
    }
}

}  // namespace bench_http
