// Bodies that are read and written piece by piece, with back-pressure; for handlers and the client.
#pragma once
// A streamed answer is a coroutine that writes:
//
//   response(200).body(http::stream([](body_writer& out) -> task<> {
//       for (int i = 0; i != 1000; ++i) co_await out.write("a line\n");
//   }));
//
// write() copies into a buffer of about 16 KiB. When the buffer is full, write() waits until the
// kernel has taken it: a client that does not read makes its producer wait, and memory stays
// bounded. If the client goes away, or does not read for longer than the write timeout, the
// coroutine that awaits write() is stopped, as by a sender that completes with set_stopped: it ends
// without a result, and destructors run. If a producer throws, the server ends the connection
// without the proper end of the body, so that the client can tell that the answer is incomplete.
//
// The callable lives until its coroutine has ended, so a lambda may capture.

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/task/task.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace coppice::http {

namespace internal {
class websocket_source;
}  // namespace internal

// What a producer writes to. Threads: one at a time; write() and flush() may be awaited on any.
class body_writer : immovable {
public:
    // Completes when the bytes have been copied or sent. Stops the caller if the client no longer
    // reads. What a stop loses: nothing; written() tells how many of the bytes were taken. These
    // are sent, and the next call goes on with the rest. Errors: std::length_error for more bytes
    // than the declared length. Lifetime: the bytes outlive the call.
    virtual task<> write(std::string_view bytes) = 0;
    // Returns how many bytes all calls of write() have taken. Threads: as write(), while none
    // waits.
    virtual std::uint64_t written() const noexcept = 0;
    // Completes when the kernel has taken everything that was written so far. What a stop loses:
    // nothing; the next call sends the rest.
    virtual task<> flush() = 0;
    // Adds a field after the body. It is sent only if the body has no declared length, and not over
    // HTTP/1.0. Errors: std::invalid_argument, as response::add().
    virtual void trailer(std::string_view name, std::string_view value) = 0;
    // Returns the token that is requested when the client has gone away or the server cuts off.
    virtual inplace_stop_token stop_token() const noexcept = 0;
    // Returns the token that is requested, on the connection's loop, when the server drains: an
    // endless body should then come to its end. A writer that is not a server's returns a token
    // that is never requested.
    virtual inplace_stop_token drain_token() const noexcept { return {}; }

protected:
    ~body_writer() = default;
};

// What a handler declared with read_body() reads from. Threads: one at a time; read() may be
// awaited on any.
class body_reader : immovable {
public:
    // Completes with the next piece, "" at the end; the view is valid until the next call. The
    // server receives nothing between two calls, so a slow handler slows its client. Stops the
    // caller if the client goes away or is too slow. What a stop loses: nothing. Errors:
    // http::refused if the body is malformed or too large, or has no room (503), from then on at
    // every call; the client is told.
    // std::logic_error while another read() waits; the other read() continues.
    virtual task<std::string_view> read() = 0;
    // Counts `bytes` more toward what the server keeps for its clients
    // (server_options::buffered_bytes_max), until the handler has ended. For a handler that
    // collects what it reads. Errors: http::refused, 503, if that exceeds the limit; nothing is
    // counted then. A body_reader that is not the server's counts nothing. Threads: as read().
    // Cost: no allocation.
    virtual void keep(std::size_t bytes) { (void)bytes; }
    // Returns true if read() has returned a piece, or the end. read_json(), read_multipart(), and
    // multipart_reader need the whole body, and throw std::logic_error if it has.
    virtual bool has_begun() const noexcept { return false; }

protected:
    ~body_reader() = default;
};

// The refusal of a request, thrown by body_reader::read() and keep(). A handler must let it
// propagate: the connection answers with the status and closes.
struct refused {
    int status;          // of the answer
    const char* reason;  // static text
};

// An open file, and the part of it to send, in bytes.
struct file_part {
    int file;
    std::uint64_t offset;
    std::uint64_t size;
};

// A body that is not in the response. It can be sent once, by one response.
class body_source : immovable {
public:
    virtual ~body_source() = default;
    // Returns the length in bytes, or nothing if it is not known beforehand.
    virtual std::optional<std::uint64_t> length() const noexcept = 0;
    // Writes the whole body. Errors: an exception ends the connection.
    virtual task<> write_to(body_writer& out) = 0;
    // Returns the part of a file that is the body, if it is one. The connection sends it without
    // copying it through memory.
    virtual std::optional<file_part> file() const noexcept { return std::nullopt; }
    // Returns what the connection becomes, if this is no body but that (websocket.hpp).
    virtual internal::websocket_source* upgrade() noexcept { return nullptr; }
};

namespace internal {

template <class Producer>
class produced_body final : public body_source {
public:
    template <class P>
    produced_body(P&& producer, std::optional<std::uint64_t> length)
        : producer_(std::forward<P>(producer)), length_(length) {}
    std::optional<std::uint64_t> length() const noexcept override { return length_; }
    task<> write_to(body_writer& out) override { return producer_(out); }

private:
    Producer producer_;
    std::optional<std::uint64_t> length_;
};

}  // namespace internal

// Makes a body that a task<>(body_writer&) writes. Without a length, the body is chunked; for an
// HTTP/1.0 client, the end of the connection ends it. Cost: one allocation.
template <class Producer>
    requires std::is_invocable_r_v<task<>, std::decay_t<Producer>&, body_writer&>
std::shared_ptr<body_source> stream(Producer&& producer,
                                    std::optional<std::uint64_t> length = std::nullopt) {
    return std::make_shared<internal::produced_body<std::decay_t<Producer>>>(
        std::forward<Producer>(producer), length);
}

}  // namespace coppice::http
