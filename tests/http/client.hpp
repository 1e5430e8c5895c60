// A blocking HTTP client for tests: raw bytes out, whole answers in.
#pragma once

#include <coppice/http/parse.hpp>
#include <coppice/io/endpoint.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace coppice::test {

// Every wait is bounded: a server that hangs fails the test instead of hanging it.
class client {
public:
    explicit client(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
        const timeval bound{10, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
        ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof bound);
        const int now = 1;  // small pieces do not wait for the server's acknowledgment
        ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &now, sizeof now);
        const io::endpoint to = io::loopback(port);
        connected_ = ::connect(fd_, to.data(), to.size()) == 0;
    }
    client(const client&) = delete;
    ~client() {
        if (fd_ >= 0) ::close(fd_);
    }

    bool connected() const { return connected_; }
    int fd() const { return fd_; }

    bool send(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return false;
            bytes.remove_prefix(static_cast<std::size_t>(n));
        }
        return true;
    }
    // Begins to post `length` bytes to /echo. Returns true once the server has the head and waits
    // for them.
    bool begin_post(std::size_t length) {
        return send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: " +
                    std::to_string(length) + "\r\n\r\n") &&
               receive() == "HTTP/1.1 100 Continue\r\n\r\n";
    }
    void finish_sending() { ::shutdown(fd_, SHUT_WR); }

    // Returns the next answer, head and body; "" if the connection ends or nothing arrives. Answers
    // to HEAD have no body. A chunked body is returned without its framing.
    std::string receive(bool head_only = false) {
        for (;;) {
            const std::size_t end = input_.find("\r\n\r\n");
            if (end != std::string::npos) {
                const std::size_t coding = input_.find("Transfer-Encoding: chunked\r\n");
                if (coding < end && !head_only) return receive_chunked(end + 4);
                const std::size_t at = input_.find("Content-Length: ");
                const std::size_t length =
                    head_only || at == std::string::npos || at > end
                        ? 0
                        : static_cast<std::size_t>(std::atoll(input_.c_str() + at + 16));
                if (input_.size() >= end + 4 + length) {
                    std::string answer = input_.substr(0, end + 4 + length);
                    input_.erase(0, answer.size());
                    return answer;
                }
            }
            if (!receive_some()) return "";
        }
    }
    // Returns what has arrived, at least one byte; "" if the connection ends or nothing arrives.
    std::string receive_piece() {
        if (input_.empty()) (void)receive_some();
        return std::exchange(input_, {});
    }
    // Returns everything until the server closes; sets `reset` if it ended with a reset.
    std::string receive_all(bool* reset = nullptr) {
        while (receive_some()) {
        }
        if (reset != nullptr) *reset = error_ != 0;
        return std::exchange(input_, {});
    }
    // Returns the trailer fields of the last chunked answer.
    const std::string& trailers() const { return trailers_; }
    // Ends the connection with a reset.
    void reset() {
        const linger now{1, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        ::close(std::exchange(fd_, -1));
    }
    // Returns true if the server has ended the connection, and nothing is left to read.
    bool ended() { return input_.empty() && !receive_some() && error_ != EAGAIN; }

private:
    std::string receive_chunked(std::size_t head) {
        http::limits wide;
        wide.body_bytes_max = std::size_t{1} << 30;
        http::chunk_decoder decoder(wide);
        trailers_.clear();
        decoder.keep_trailers(trailers_);
        std::string answer = input_.substr(0, head);
        for (std::size_t seen = head;;) {
            std::string piece = input_.substr(seen);
            const auto r = decoder.decode(piece);
            answer.append(piece, 0, r.produced);
            seen += r.consumed;
            if (r.status == http::parse_status::complete) {
                input_.erase(0, seen);
                return answer;
            }
            if (r.status == http::parse_status::error || !receive_some()) return "";
        }
    }
    bool receive_some() {
        char buffer[65536];
        ssize_t n;
        do {
            n = ::recv(fd_, buffer, sizeof buffer, 0);
        } while (n < 0 && errno == EINTR);  // a call with a timeout is never restarted
        error_ = n < 0 ? errno : 0;
        if (n <= 0) return false;
        input_.append(buffer, static_cast<std::size_t>(n));
        return true;
    }
    int fd_;
    bool connected_ = false;
    int error_ = 0;
    std::string input_;
    std::string trailers_;
};

}  // namespace coppice::test
