// Lines of the access log: made by connections, handed over by loops.
#include "connection.hpp"

#include <charconv>
#include <new>

namespace coppice::http {

using namespace internal;

namespace {

constexpr std::size_t log_bytes = 32 * 1024;  // handed over at once
constexpr duration log_delay = std::chrono::milliseconds(100);

}  // namespace

// See access_log.hpp for the format.
void connection::log(exchange& e, int status, std::uint64_t body_bytes, const request_head* head) {
    e.more = true;
    // Behind a proxy, each request of a connection may have a client of its own.
    if (e.peer.empty() || !loop_.options.forwarding.from.empty()) {
        e.peer = request(e.parser.head(), {}, {}, &e.origin).peer().to_string();
    }
    const std::string_view date = date_for(e);  // Sat, 21 Nov 2026 10:05:50 GMT
    e.log.append(e.peer).append(" [").append(date.substr(5, 2)).append("/");
    e.log.append(date.substr(8, 3)).append("/").append(date.substr(12, 4)).append(":");
    e.log.append(date.substr(17, 8)).append(" +0000] \"");
    if (head == nullptr) {
        e.log.append("-");
    } else {
        // The parser has rejected quotes and control bytes.
        e.log.append(head->method_text()).append(" ").append(head->target());
        if (is_stream_) {
            e.log.append(" HTTP/2.0");
        } else {
            e.log.append(head->minor_version() == 0 ? " HTTP/1.0" : " HTTP/1.1");
        }
    }
    char numbers[64];
    char* at = numbers;
    const auto number = [&](std::uint64_t value) {
        *at++ = ' ';
        at = std::to_chars(at, numbers + sizeof numbers, value).ptr;
    };
    number(static_cast<std::uint64_t>(status));
    number(body_bytes);
    const duration taken = loop_.context.now() - e.began;
    const auto microseconds = static_cast<std::uint64_t>(taken.count()) / 1000;
    number(microseconds / 1'000'000);
    *at++ = '.';
    for (std::uint64_t digit = 100'000; digit != 0; digit /= 10) {
        *at++ = static_cast<char>('0' + microseconds / digit % 10);
    }
    *at++ = '\n';
    e.log.append("\"").append(numbers, static_cast<std::size_t>(at - numbers));
}

void serving_loop::log(std::string& lines) noexcept {
    try {
        log_lines += lines;
    } catch (const std::bad_alloc&) {  // the log may have room, and counts what it drops
        hand_log_over();
        options.access_log->write(lines);
    }
    lines.clear();
    if (log_lines.size() >= log_bytes) {
        hand_log_over();
    } else if (!log_hand_over_.armed()) {
        context.arm(log_hand_over_, context.turn_time() + log_delay);
    }
}

void serving_loop::hand_log_over() noexcept {
    if (log_hand_over_.armed()) context.disarm(log_hand_over_);
    options.access_log->write(log_lines);
}

}  // namespace coppice::http
