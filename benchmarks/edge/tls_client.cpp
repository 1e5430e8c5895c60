// Sixteen connections at once, moved by epoll.
#include "tls_client.hpp"

#include "../harness.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>

namespace bench_edge {

namespace {

// Counts the tickets that a connection has got; the context keeps none.
int count_ticket(SSL* ssl, SSL_SESSION*) {
    if (void* const count = SSL_get_app_data(ssl)) ++*static_cast<int*>(count);
    return 0;
}

}  // namespace

int connect_to_loopback(int port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval bound{10, 0};
    const int yes = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    if (::connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0) return fd;
    ::close(fd);
    return -1;
}

struct tls_client::connection {
    int fd = -1;
    owned_ssl ssl{nullptr, &::SSL_free};
    int tickets = 0;
    bool failed = false;
};

tls_client::tls_client(int port, tls_version version)
    : port_(port),
      sends_tickets_late_(version == tls_version::v1_3),
      context_(::SSL_CTX_new(::TLS_client_method())) {
    const int which = sends_tickets_late_ ? TLS1_3_VERSION : TLS1_2_VERSION;
    if (context_ == nullptr || SSL_CTX_set_min_proto_version(context_, which) != 1 ||
        SSL_CTX_set_max_proto_version(context_, which) != 1) {
        std::fprintf(stderr, "bench_edge: OpenSSL makes no client\n");
        std::exit(1);
    }
    ::SSL_CTX_set_verify(context_, SSL_VERIFY_NONE, nullptr);
    SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    ::SSL_CTX_sess_set_new_cb(context_, &count_ticket);
}

tls_client::~tls_client() {
    ::SSL_SESSION_free(session_);
    ::SSL_CTX_free(context_);
}

tls_client::owned_ssl tls_client::begin(int fd) {
    owned_ssl ssl(::SSL_new(context_), &::SSL_free);
    ::SSL_set_fd(ssl.get(), fd);
    ::SSL_set_connect_state(ssl.get());
    return ssl;
}

// Returns true if the connection has done its work, or has failed.
bool tls_client::step(connection& c) {
    ::ERR_clear_error();
    int returned = ::SSL_do_handshake(c.ssl.get());
    if (returned == 1) {
        // A session of TLS 1.2 that is resumed may bring no ticket.
        if (!sends_tickets_late_ || c.tickets != 0) return true;
        char byte;
        returned = ::SSL_read(c.ssl.get(), &byte, 1);
        if (c.tickets != 0) return true;
    }
    c.failed = ::SSL_get_error(c.ssl.get(), returned) != SSL_ERROR_WANT_READ;
    return c.failed;
}

void tls_client::learn_session() {
    const int fd = connect_to_loopback(port_);
    connection c;
    c.ssl = begin(fd);
    SSL_set_app_data(c.ssl.get(), &c.tickets);
    // The answer comes after the tickets.
    if (fd < 0 || ask(c.ssl.get(), "/plaintext").empty()) {
        std::fprintf(stderr, "bench_edge: there is no session to resume\n");
        std::exit(1);
    }
    session_ = ::SSL_get1_session(c.ssl.get());
    ::SSL_shutdown(c.ssl.get());
    ::close(fd);
}

handshake_result tls_client::shake_hands(int count, bool resume) {
    if (resume && session_ == nullptr) learn_session();
    const int poll = ::epoll_create1(EPOLL_CLOEXEC);
    std::vector<connection> all(16);
    handshake_result result;
    int begun = 0, ended = 0;
    const auto start = [&](connection& c) {
        c.fd = connect_to_loopback(port_);
        c.tickets = 0;
        c.failed = c.fd < 0;
        if (c.failed) return;
        ::fcntl(c.fd, F_SETFL, O_NONBLOCK);
        c.ssl = begin(c.fd);
        SSL_set_app_data(c.ssl.get(), &c.tickets);
        if (resume) {
            // A copy: OpenSSL resumes a session of TLS 1.3 no more once it has brought a ticket.
            SSL_SESSION* const copy = ::SSL_SESSION_dup(session_);
            ::SSL_set_session(c.ssl.get(), copy);
            ::SSL_SESSION_free(copy);
        }
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.ptr = &c;
        ::epoll_ctl(poll, EPOLL_CTL_ADD, c.fd, &event);
    };
    const auto end = [&](connection& c) {
        ++ended;
        result.failures += c.failed ? 1 : 0;
        if (c.fd < 0) return;
        result.resumed += ::SSL_session_reused(c.ssl.get()) == 1 ? 1 : 0;
        if (!c.failed) ::SSL_shutdown(c.ssl.get());
        c.ssl.reset();
        ::close(c.fd);
    };
    // Uses a connection's slot until it has to wait, or none are left to begin.
    const auto go_on = [&](connection& c, bool is_new) {
        while (is_new || step(c)) {
            if (!is_new) end(c);
            is_new = false;
            if (begun == count) return;
            ++begun;
            start(c);
        }
    };
    const double from = bench::now(false);
    for (connection& c : all) go_on(c, true);
    epoll_event events[16];
    while (ended < count) {
        const int ready = ::epoll_wait(poll, events, 16, 10'000);
        if (ready <= 0) break;  // the server is silent
        for (int i = 0; i != ready; ++i) {
            go_on(*static_cast<connection*>(events[i].data.ptr), false);
        }
    }
    result.seconds = (bench::now(false) - from) / 1e9;
    result.failures += static_cast<std::uint64_t>(count - ended);
    ::close(poll);
    return result;
}

std::string tls_client::ask(SSL* ssl, const std::string& target) {
    const std::string request = "GET " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    if (::SSL_write(ssl, request.data(), static_cast<int>(request.size())) <= 0) return {};
    std::string input;
    for (;;) {
        char buffer[16 * 1024];
        const int n = ::SSL_read(ssl, buffer, sizeof buffer);
        if (n <= 0) return {};
        input.append(buffer, static_cast<std::size_t>(n));
        const std::size_t end = input.find("\r\n\r\n");
        const std::size_t at = input.find("Content-Length: ");
        if (end == input.npos || at == input.npos) continue;
        const auto length = static_cast<std::size_t>(std::atoi(input.c_str() + at + 16));
        if (input.size() >= end + 4 + length) return input.substr(0, 12) + input.substr(end + 4);
    }
}

std::string tls_client::fetch(const std::string& target) {
    const int fd = connect_to_loopback(port_);
    if (fd < 0) return {};
    const owned_ssl ssl = begin(fd);
    std::string answer = ask(ssl.get(), target);
    ::SSL_shutdown(ssl.get());
    ::close(fd);
    return answer;
}

int tls_client::open_idle() {
    const int fd = connect_to_loopback(port_);
    if (fd < 0) return -1;
    const owned_ssl ssl = begin(fd);
    ::SSL_set_quiet_shutdown(ssl.get(), 1);
    if (!ask(ssl.get(), "/plaintext").empty()) return fd;
    ::close(fd);
    return -1;
}

}  // namespace bench_edge
