// What happens on the WebSocket of one visitor.
#pragma once

#include "hall.hpp"

#include <coppice/http/websocket.hpp>
#include <coppice/task/task.hpp>

#include <chrono>
#include <cstddef>

namespace chat {

// Permits so many messages per second on average, and twice as many at once. Threads: one.
class pace {
public:
    using clock = std::chrono::steady_clock;
    explicit pace(std::size_t per_second)
        : rate_(static_cast<double>(per_second)), left_(2 * rate_) {}
    // Returns false for a message that comes too early.
    bool permits(clock::time_point now) noexcept;

private:
    const double rate_;
    double left_;  // messages
    clock::time_point last_ = clock::now();
};

// Passes on what the visitor says, and tells the visitor what the room says, until the visitor
// leaves or the hall closes.
coppice::task<> visit(coppice::http::websocket& socket, seat mine, std::size_t per_second);

}  // namespace chat
