// What a client of WebSocket sends and sees, for tests: frames made by hand over a blocking socket.
#pragma once

#include <coppice/http/internal/websocket_codec.hpp>

#include "client.hpp"
#include "websocket_frames.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace coppice::test {

// A client whose connection becomes a WebSocket.
class websocket_client : public client {
public:
    explicit websocket_client(std::uint16_t port) : client(port) {}

    // Returns the server's answer.
    std::string open(std::string_view path = "/", std::string_view more = {},
                     std::string_view behind = {}) {
        EXPECT_TRUE(send(upgrade_request(path, more).append(behind)));
        return receive(true);
    }
    // Returns the next frame, as next_frame() does.
    std::string next() {
        return next_frame([this](std::size_t size) { return take(size); });
    }
    std::string say(std::string_view bytes) { return send(bytes) ? next() : "end"; }

private:
    std::string take(std::size_t size) {
        while (unread_.size() < size) {
            const std::string more = receive_piece();
            if (more.empty()) return "";
            unread_ += more;
        }
        std::string out = unread_.substr(0, size);
        unread_.erase(0, size);
        return out;
    }
    std::string unread_;
};

}  // namespace coppice::test
