// Two pages of a chat that talk, for a program that is a test too.
#pragma once

#include <coppice/io.hpp>

#include <sys/socket.h>
#include <unistd.h>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

// A page's end of a WebSocket; its mask is 0, which is one like any other.
class trial_page {
public:
    explicit trial_page(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
        const coppice::io::endpoint to = coppice::io::loopback(port);
        (void)::connect(fd_, to.data(), to.size());
        put("GET /chat HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
        while (!received_.ends_with("\r\n\r\n")) received_ += take(1);
    }
    trial_page(const trial_page&) = delete;
    ~trial_page() { ::close(fd_); }
    void say(std::string_view text) {
        std::string frame = "\x81";
        frame += static_cast<char>(0x80 | text.size());
        put(frame.append(4, '\0').append(text));
    }
    std::string hear() {
        const std::string header = take(2);
        return header.size() < 2 ? "nothing" : take(static_cast<unsigned char>(header[1]));
    }

private:
    void put(std::string_view bytes) {
        (void)::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
    std::string take(std::size_t bytes) {
        std::string text(bytes, '\0');
        const ssize_t n = ::recv(fd_, text.data(), bytes, MSG_WAITALL);
        text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
        if (text.empty()) received_ = "\r\n\r\n";  // the server is gone
        return text;
    }
    int fd_;
    std::string received_;
};

void talk(std::uint16_t port) {
    trial_page anna(port);
    anna.say("is anybody here?");  // her own line tells that she is in the room
    std::printf("anna: %s\n", anna.hear().c_str());
    trial_page ben(port);
    ben.say("I am");
    std::printf("ben: %s\n", ben.hear().c_str());
    std::printf("anna: %s\n", anna.hear().c_str());
    anna.say("good");
    std::printf("ben: %s\n", ben.hear().c_str());
}

}  // namespace
