// Lines of the access log: made by connections, handed over by loops.
#include "connection.hpp"
#include "log_line.hpp"

#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <new>

namespace coppice::http {

using namespace internal;

namespace {

constexpr std::size_t log_bytes = 32 * 1024;  // handed over at once
constexpr duration log_delay = std::chrono::milliseconds(100);

// Appends what endpoint::to_string() returns, without its allocation.
void append_endpoint(const io::endpoint& at, std::string& out) {
    std::array<char, INET6_ADDRSTRLEN> text;
    const bool v6 = at.is_v6();
    if (!v6 && !at.is_v4()) {
        out += at.to_string();
        return;
    }
    const void* const address =
        v6 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(at.data())->sin6_addr)
           : &reinterpret_cast<const sockaddr_in*>(at.data())->sin_addr;
    ::inet_ntop(at.family(), address, text.data(), text.size());
    std::array<char, 5> port;
    const char* const end = std::to_chars(port.begin(), port.end(), at.port()).ptr;
    out.append(v6 ? "[" : "").append(text.data()).append(v6 ? "]:" : ":");
    out.append(port.cbegin(), end);
}

}  // namespace

// See access_log.hpp for the formats.
void connection::log(exchange& e, int status, std::uint64_t body_bytes, const request_head* head) {
    e.more = true;
    // Behind a proxy, each request of a connection may have a client of its own.
    if (e.peer.empty() || !loop_.options.forwarding.from.empty()) {
        e.peer.clear();
        // What is no request says nothing of its client.
        const io::endpoint client =
            head == nullptr ? e.address.get() : request(*head, {}, {}, &e.origin).peer();
        append_endpoint(client, e.peer);
    }
    const duration taken = loop_.context.now() - e.began;
    log_line line{.client = e.peer,
                  .date = date_for(e),
                  .head = head,
                  .protocol = is_stream_ ? "HTTP/2.0" : "HTTP/1.1",
                  .status = status,
                  .body_bytes = body_bytes,
                  .microseconds = static_cast<std::uint64_t>(taken.count()) / 1000};
    if (head != nullptr && head->minor_version() == 0) line.protocol = "HTTP/1.0";
    const access_log_format format = loop_.options.access_log_format;
    if (have_marks(format)) {
        line.id = e.marks.id(head);
        line.trace = e.marks.trace(head);
        line.parent = e.marks.parent(head);
    }
    append_log_line(line, format, e.log);
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
