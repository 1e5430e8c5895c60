// writing: sending to a client that may read slowly, from memory and from files.
#include "connection.hpp"
#include "file_bodies.hpp"

#include <coppice/base/saturating.hpp>

#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>

namespace coppice::http {

using namespace internal;

namespace {

constexpr std::size_t file_bytes = 64 * 1024;  // of a file, read when its socket is full
// of a file, sent before other connections get their turn
constexpr std::size_t turn_bytes = 1024 * 1024;

}  // namespace

// Enters `writing`, to send so many bytes.
void connection::begin_writing(std::uint64_t bytes) noexcept {
    enter(state::writing, transfer_time(loop_.options.timeouts.write, bytes));
}

// Called when a send of the short way has to wait.
void connection::wait_for_sending() noexcept {
    if (state_ != state::idle) return;
    become_busy();
    if (!reserve_output(*batch_)) {
        abort();
        return;
    }
    begin_writing(batch_->sender.size);
}

// Writes e.output if that needs no waiting, and so no coroutine. Returns true if nothing is left.
bool connection::write_at_once(exchange& e) noexcept {
    if (e.output.empty()) return true;
    count(e);
    return away_ && link_ == nullptr && send_directly(e);
}

// Writes e.output. Gives false if the connection has ended, or if the awaiter was stopped; in the
// second case the socket is still open, and the next call writes the rest. Afterwards the
// connection is on its loop, unless everything was written from the pool.
task<bool> connection::write(exchange& e) {
    if (write_at_once(e)) co_return true;
    if (away_) {
        co_await come_home();
        if (!socket_.is_open()) co_return false;
    }
    if (!reserve_output(e)) {
        abort();
        co_return false;
    }
    begin_writing(e.output.size() - e.sent);
    std::error_code ec;
    while (e.sent != e.output.size() && !ec) {
        const auto left = std::as_bytes(std::span(e.output)).subspan(e.sent);
        std::size_t n = 0;
        if (link_ == nullptr) {
            n = co_await socket_.send(left, use_await[ec]);
        } else {
            co_await send_through_link(left, n, ec);
        }
        e.sent += n;
        e.bytes_sent += n;
    }
    give_output_back(e);
    const bool stopped = ec == std::errc::operation_canceled && socket_.is_open();
    if (!stopped) {
        e.output.clear();
        e.sent = 0;
    }
    back_to_batch();
    account(e, loop_.context.now());
    // The send may have taken the error of the socket, so that the pending receive sees only an end
    // of input, and a producer that waits for something else would learn nothing.
    if (ec && !stopped) request_stop();
    co_return !ec;
}

// Adds to `sent`. Apart from write(), whose frame would be larger.
task<> connection::send_through_link(std::span<const std::byte> bytes, std::size_t& sent,
                                     std::error_code& ec) {
    const std::size_t n = co_await link_->send(bytes, use_await[ec]);
    sent += n;
}

// Sends from a thread of the pool. Returns true if the kernel has taken everything.
bool connection::send_directly(exchange& e) noexcept {
    const std::span left = std::span(e.output).subspan(e.sent);
    const ssize_t n =
        ::send(e.origin.connection, left.data(), left.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n <= 0) return false;  // the loop will wait, or find the error
    e.sent += static_cast<std::size_t>(n);
    e.bytes_sent += static_cast<std::size_t>(n);
    if (e.sent != e.output.size()) return false;
    e.output.clear();
    e.sent = 0;
    return true;
}

// Sends the output, and a part of a file after it. While the socket takes bytes, the kernel moves
// them. When it is full, a piece is copied and sent in the usual way, which waits.
task<bool> connection::send_file(exchange& e, file_part part) {
    if (link_ != nullptr) co_return co_await send_file_in_pieces(e, part);
    if (!co_await write(e)) co_return false;
    const time_point latest = saturating_add(
        loop_.context.turn_time(), transfer_time(loop_.options.timeouts.write, part.size));
    std::uint64_t at = part.offset;
    const std::uint64_t end = part.offset + part.size;
    for (std::size_t in_turn = 0; at != end;) {
        if (in_turn >= turn_bytes) {
            co_await loop_.context.get_scheduler().schedule();
            in_turn = 0;
        }
        if (!socket_.is_open()) co_return false;
        const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(end - at, turn_bytes));
        const coppice::internal::result<std::size_t> sent =
            loop_.context.system().send_file(socket_.native(), part.file, at, most);
        std::size_t n = sent ? sent.value() : 0;
        if (!sent && sent.error() == std::errc::operation_would_block) {
            e.output.resize(std::min(most, file_bytes));
            const ssize_t read =
                ::pread(part.file, e.output.data(), e.output.size(), static_cast<off_t>(at));
            n = static_cast<std::size_t>(std::max<ssize_t>(read, 0));
            e.output.resize(n);
            if (!reserve_output(e)) co_return false;
            enter(state::writing, latest - loop_.context.turn_time());
            std::error_code ec;
            co_await socket_.send_all(std::as_bytes(std::span(e.output)), use_await[ec]);
            e.output.clear();
            give_output_back(e);
            if (ec) co_return false;
        } else if (!sent && sent.error() == std::errc::interrupted) {
            continue;
        }
        if (n == 0) co_return false;  // the file was truncated meanwhile, or cannot be read
        e.bytes_sent += n;
        at += n;
        in_turn += n;
    }
    co_return true;
}

// Sends the output, and a part of a file after it, read in pieces.
task<bool> connection::send_file_in_pieces(exchange& e, file_part part) {
    if (!co_await write(e)) co_return false;
    const time_point latest = saturating_add(
        loop_.context.turn_time(), transfer_time(loop_.options.timeouts.write, part.size));
    std::uint64_t at = part.offset;
    const std::uint64_t end = part.offset + part.size;
    for (std::size_t in_turn = 0; at != end;) {
        if (in_turn >= turn_bytes) {
            co_await loop_.context.get_scheduler().schedule();
            in_turn = 0;
        }
        if (!socket_.is_open()) co_return false;
        const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(end - at, file_bytes));
        e.output.resize(most);
        const std::size_t n = read_at(part.file, e.output.data(), most, at);
        e.output.resize(n);
        if (n == 0) co_return false;  // the file was truncated meanwhile, or cannot be read
        if (!reserve_output(e)) co_return false;
        enter(state::writing, latest - loop_.context.turn_time());
        std::error_code ec;
        for (std::size_t sent = 0; sent != n && !ec;) {
            const auto left = std::as_bytes(std::span(e.output)).subspan(sent);
            co_await send_through_link(left, sent, ec);
        }
        e.output.clear();
        give_output_back(e);
        if (ec) co_return false;
        e.bytes_sent += n;
        at += n;
        in_turn += n;
    }
    co_return true;
}

}  // namespace coppice::http
