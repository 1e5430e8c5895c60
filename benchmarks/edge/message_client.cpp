// Opening handshakes, and one frame there and back at a time.
#include "message_client.hpp"

#include "tls_client.hpp"

#include "../harness.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace bench_edge {

namespace {

[[noreturn]] void fail_to_echo(const char* what) {
    std::fprintf(stderr, "bench_edge: WebSocket: %s\n", what);
    std::exit(1);
}

// Returns the head of a binary frame: RFC 6455, section 5.2.
std::string frame_head(std::size_t size, bool masked) {
    std::string head(1, '\x82');
    const char mask = masked ? '\x80' : '\0';
    if (size < 126) {
        head += static_cast<char>(mask | static_cast<char>(size));
    } else {
        head += static_cast<char>(mask | 126);
        head += static_cast<char>(size >> 8);
        head += static_cast<char>(size & 255);
    }
    return head;
}

int open_websocket(int port) {
    const int fd = connect_to_loopback(port);
    const std::string request =
        "GET /echo HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAECAwQFBgcICQoLDA0ODw==\r\n\r\n";
    if (fd < 0 || ::send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0)
        fail_to_echo("no connection");
    std::string answer;
    while (answer.find("\r\n\r\n") == answer.npos) {
        char buffer[1024];
        const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
        if (n <= 0) fail_to_echo("no answer");
        answer.append(buffer, static_cast<std::size_t>(n));
    }
    if (answer.compare(0, 12, "HTTP/1.1 101") != 0) fail_to_echo("refused");
    return fd;
}

}  // namespace

message_client::message_client(int port, std::size_t message_bytes, std::size_t connections)
    : buffer_(128 * 1024), poll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (message_bytes > 65'535) fail_to_echo("the message is too long for this client");
    constexpr char key[] = {'\x5a', '\x17', '\x33', '\x71'};
    expected_ = frame_head(message_bytes, false);
    frame_ = frame_head(message_bytes, true);
    frame_.append(key, sizeof key);
    for (std::size_t i = 0; i != message_bytes; ++i) {
        const auto byte = static_cast<char>(i * 7 % 251);
        expected_ += byte;
        frame_ += static_cast<char>(byte ^ key[i % 4]);
    }
    all_.resize(connections);
    for (connection& c : all_) {
        c.fd = open_websocket(port);
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.ptr = &c;
        ::epoll_ctl(poll_, EPOLL_CTL_ADD, c.fd, &event);
    }
}

message_client::~message_client() {
    for (const connection& c : all_) ::close(c.fd);
    ::close(poll_);
}

void message_client::send_to(const connection& c) const {
    for (std::size_t sent = 0; sent != frame_.size();) {
        const ssize_t n =
            ::send(c.fd, frame_.data() + sent, frame_.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            sent += static_cast<std::size_t>(n);
        } else if (errno == EAGAIN) {
            pollfd writable{c.fd, POLLOUT, 0};
            ::poll(&writable, 1, 10'000);
        } else {
            fail_to_echo("sending failed");
        }
    }
}

// Returns true if the message is complete.
bool message_client::receive_from(connection& c) {
    const ssize_t n = ::recv(c.fd, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (n < 0) fail_to_echo(std::strerror(errno));
    if (n == 0) fail_to_echo("the server has ended a connection");
    std::string_view came(buffer_.data(), static_cast<std::size_t>(n));
    // The turns of the other servers may last so long that this one asks whether the client lives.
    constexpr std::string_view ping("\x89\0", 2);
    while (c.received == 0 && came.starts_with(ping)) came.remove_prefix(ping.size());
    if (came != std::string_view(expected_).substr(c.received, came.size()))
        fail_to_echo("a message did not come back as it was sent");
    c.received += came.size();
    if (c.received != expected_.size()) return false;
    c.received = 0;
    return true;
}

double message_client::echo(int count) {
    int sent = 0, received = 0;
    const double from = bench::now(false);
    for (const connection& c : all_) {
        if (sent == count) break;
        ++sent;
        send_to(c);
    }
    epoll_event events[64];
    while (received != count) {
        const int ready = ::epoll_wait(poll_, events, 64, 10'000);
        if (ready <= 0) fail_to_echo("the server is silent");
        for (int i = 0; i != ready; ++i) {
            connection& c = *static_cast<connection*>(events[i].data.ptr);
            if (!receive_from(c)) continue;
            ++received;
            if (sent == count) continue;
            ++sent;
            send_to(c);
        }
    }
    return (bench::now(false) - from) / 1e9;
}

}  // namespace bench_edge
