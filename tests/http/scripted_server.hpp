// A loop on its own thread, and servers that send what a test tells them; for the client's tests.
#pragma once

#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/task/task.hpp>

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace coppice::test {

// A loop on its own thread, on which tests run their tasks.
class network {
public:
    explicit network(io::backend backend) : loop(backend), guard_(std::in_place, loop) {
        thread_ = std::thread([this] { loop.run(); });
    }
    ~network() {
        guard_.reset();
        thread_.join();
    }
    void run(task<> t) {
        this_thread::sync_wait(execution::starts_on(loop.get_scheduler(), std::move(t)));
    }
    io::context loop;

private:
    std::optional<io::context::work_guard> guard_;
    std::thread thread_;
};

// A socket that listens on its own port.
inline int listen_anywhere(io::endpoint& where) {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    const io::endpoint any = io::loopback(0);
    socklen_t size = any.size();
    sockaddr_storage at{};
    std::memcpy(&at, any.data(), any.size());
    if (::bind(listener, reinterpret_cast<sockaddr*>(&at), size) != 0) std::abort();
    if (::listen(listener, 16) != 0) std::abort();
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size);
    where = io::endpoint::from(reinterpret_cast<sockaddr*>(&at), size);
    return listener;
}
// Returns a request without a body; "" if the connection ends before it has arrived.
inline std::string read_request(int fd) {
    std::string asked;
    char buffer[4096];
    while (asked.find("\r\n\r\n") == asked.npos) {
        const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
        if (n <= 0) return "";
        asked.append(buffer, static_cast<std::size_t>(n));
    }
    return asked;
}

// One accepted connection, as a thread of the server sees it.
struct accepted {
    int fd;
    std::string received = {};

    bool receive() {
        char buffer[64 * 1024];
        const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
        if (n > 0) received.append(buffer, static_cast<std::size_t>(n));
        return n > 0;
    }
    void receive_head() {
        while (received.find("\r\n\r\n") == received.npos && receive()) {
        }
    }
    std::size_t body_bytes() const { return received.size() - received.find("\r\n\r\n") - 4; }
    bool send(std::string_view bytes) const {
        while (!bytes.empty()) {
            const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (n <= 0) return false;
            bytes.remove_prefix(static_cast<std::size_t>(n));
        }
        return true;
    }
    void receive_all() {
        while (receive()) {
        }
    }
    // Waits until the client has closed or reset the connection; reads nothing.
    void wait_for_end() const {
        pollfd p{fd, POLLRDHUP, 0};
        (void)::poll(&p, 1, 60'000);
    }
};

// Serves `connections` connections, one after the other, by a function.
class server_of {
public:
    explicit server_of(std::function<void(accepted&)> serve, int connections = 1)
        : listener_(listen_anywhere(where)) {
        thread_ = std::thread([this, serve = std::move(serve), connections] {
            for (int i = 0; i != connections; ++i) {
                accepted a{::accept(listener_, nullptr, nullptr)};
                serve(a);
                ::close(a.fd);
            }
        });
    }
    ~server_of() {
        thread_.join();
        ::close(listener_);
    }
    io::endpoint where;

private:
    int listener_;
    std::thread thread_;
};

// Answers each connection with one text, whatever is requested, and then closes it.
class scripted_server {
public:
    enum class ending { end_of_stream, reset };
    explicit scripted_server(std::vector<std::string> answers, ending how = ending::end_of_stream)
        : how_(how), listener_(listen_anywhere(where)) {
        thread_ = std::thread([this, answers = std::move(answers)] {
            for (const std::string& answer : answers) serve(answer);
        });
    }
    ~scripted_server() {
        thread_.join();
        ::close(listener_);
    }
    io::endpoint where;

private:
    void serve(const std::string& answer) const {
        const int fd = ::accept(listener_, nullptr, nullptr);
        (void)read_request(fd);
        ::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
        if (how_ == ending::reset) {
            // The client has read everything, so the reset is all that it can see.
            int unread = 1;
            while (::ioctl(fd, SIOCOUTQ, &unread) == 0 && unread != 0) std::this_thread::yield();
            const linger now{1, 0};
            ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        }
        ::close(fd);
    }
    const ending how_;
    int listener_;
    std::thread thread_;
};

}  // namespace coppice::test
