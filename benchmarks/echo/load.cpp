// Processes, and an epoll client that costs the same for every server.
#include "load.hpp"

#include "rivals.hpp"

#include "../harness.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace bench_echo {

namespace {

[[noreturn]] void fail(const char* what) {
    std::perror(what);
    std::exit(1);
}

int connect_to(int port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    const int yes = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    if (::connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) fail("connect");
    return fd;
}

void send_message(int fd, std::uint64_t number) {
    unsigned char message[message_bytes];
    std::memset(message, static_cast<int>(number & 255), sizeof message);
    if (::send(fd, message, sizeof message, MSG_NOSIGNAL) != message_bytes) fail("send");
}
std::uint64_t receive_message(int fd) {
    unsigned char message[message_bytes];
    if (::recv(fd, message, sizeof message, MSG_WAITALL) != message_bytes) fail("recv");
    return message[0] + message[message_bytes - 1];
}

}  // namespace

int listen_on_loopback() {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    const int yes = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    if (::bind(fd, reinterpret_cast<sockaddr*>(&at), size) != 0 || ::listen(fd, 256) != 0 ||
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
        fail("listen");
    }
    announce(ntohs(at.sin_port));
    return fd;
}
void announce(int port) {
    std::printf("listening on %d\n", port);
    std::fflush(stdout);
}

server_process::server_process(void (*serve)()) {
    int out[2];
    if (::pipe(out) != 0) return;
    std::fflush(nullptr);  // so that the child does not write what is buffered here
    pid_ = ::fork();
    if (pid_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::dup2(out[1], STDOUT_FILENO);
        ::close(out[0]);
        ::close(out[1]);
        bench::pin(0);
        serve();
        std::_Exit(0);
    }
    ::close(out[1]);
    std::FILE* const lines = ::fdopen(out[0], "r");
    if (std::fscanf(lines, "listening on %d", &port_) != 1) port_ = 0;
    std::fclose(lines);
}
server_process::~server_process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
}
std::uint64_t server_process::cpu_ns() const {
    std::ifstream stat("/proc/" + std::to_string(pid_) + "/schedstat");
    std::uint64_t ns = 0;
    stat >> ns;
    return ns;
}

void pin_client() {
    bench::pin(static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN)) - 1);
}

clients::clients(int port, int count) : epoll_(::epoll_create1(0)) {
    for (int i = 0; i != count; ++i) {
        connections_.push_back(connect_to(port));
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.fd = connections_.back();
        ::epoll_ctl(epoll_, EPOLL_CTL_ADD, connections_.back(), &event);
    }
}
clients::~clients() {
    for (const int fd : connections_) ::close(fd);
    ::close(epoll_);
}

std::uint64_t clients::ping(std::size_t messages) {
    return connections_.size() == 1 ? ping_alone(messages) : ping_many(messages);
}

std::uint64_t clients::ping_alone(std::size_t messages) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i != messages; ++i) {
        send_message(connections_[0], i);
        sum += receive_message(connections_[0]);
    }
    return sum;
}

std::uint64_t clients::ping_many(std::size_t messages) {
    std::uint64_t sum = 0;
    std::size_t sent = 0, received = 0;
    for (; sent != connections_.size() && sent != messages; ++sent) {
        send_message(connections_[sent], sent);
    }
    while (received != messages) {
        epoll_event events[256];
        const int count = ::epoll_wait(epoll_, events, 256, -1);
        for (int i = 0; i < count; ++i) {
            sum += receive_message(events[i].data.fd);
            ++received;
            if (sent != messages) send_message(events[i].data.fd, sent++);
        }
    }
    return sum;
}

}  // namespace bench_echo
