// Two tasks for each visitor: one reads, one writes. The first to end stops the other.
#include "visit.hpp"

#include <coppice/exec/when_any.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace chat {

namespace {

using namespace coppice;

// Ends when the visitor leaves, or its connection does. The server checks what arrives: a text that
// is not UTF-8 gets the close code 1007, and a message that is too long 1009.
task<> pass_on(http::websocket& socket, seat& mine, std::size_t per_second) {
    pace limit(per_second);
    const std::string too_fast =
        "refused more than " + std::to_string(per_second) + " messages per second";
    for (;;) {
        const std::optional<http::websocket_message> message = co_await socket.receive();
        if (!message) co_return;
        if (message->binary) {
            co_await socket.close(1003, "send text");
            co_return;
        }
        if (message->data.empty()) continue;
        if (limit.permits(pace::clock::now())) {
            mine.say(message->data);
        } else if (co_await socket.send(too_fast)) {
            co_return;  // the connection is closing
        }
    }
}

// Ends when the hall closes, or the connection does. While the visitor does not read, send() waits;
// what the room keeps no longer by then is lost for this visitor.
task<> tell(http::websocket& socket, std::string first, lines::receiver room) {
    if (co_await socket.send(first)) co_return;
    std::uint64_t missed = 0;
    for (;;) {
        const std::optional<line> next = co_await room.receive();
        if (!next) break;
        const std::uint64_t lost = room.missed() - std::exchange(missed, room.missed());
        if (lost != 0) {
            const std::string note = "missed " + std::to_string(lost);
            if (co_await socket.send(note)) co_return;
        }
        if (co_await socket.send(**next)) co_return;
    }
    if (co_await socket.send("closing")) co_return;
    co_await socket.close(1001, "the server ends");
}

}  // namespace

bool pace::permits(clock::time_point now) noexcept {
    const double passed = std::chrono::duration<double>(now - std::exchange(last_, now)).count();
    left_ = std::min(2 * rate_, left_ + passed * rate_);
    if (left_ < 1) return false;
    left_ -= 1;
    return true;
}

task<> visit(http::websocket& socket, seat mine, std::size_t per_second) {
    // The first line and the reader come before the others know: nothing is said in between.
    lines::receiver room = mine.listen();
    std::string first = mine.who_is_here();
    mine.join();
    co_await execution::when_any(pass_on(socket, mine, per_second),
                                 tell(socket, std::move(first), std::move(room)));
}

}  // namespace chat
