// Bodies that are read and written piece by piece, with back-pressure; for handlers and the client.
#pragma once
// A streamed answer is a coroutine that writes:
//
//   response(200).body(http::stream([](body_writer& out) -> task<> {
//       for (int i = 0; i != 1000; ++i) co_await out.write("a line\n");
//   }));
//
// write() copies into a buffer of about 16 KiB. When that is full, write() waits until the kernel
// has taken it: a client that does not read stops its producer, and memory stays bounded. If the
// client goes away, or does not read for longer than the write timeout, what awaits write() is
// stopped, as by a sender that completes with set_stopped: it ends without a result, and
// destructors run. A producer that throws ends the connection without the body's proper end, so
// that the client can tell that the answer is incomplete.
//
// The callable is kept until its coroutine has ended, so a lambda may capture.

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

// Where a producer writes. Threads: one at a time; write() and flush() may be awaited on any.
class body_writer : immovable {
public:
    // Returns when the bytes have been copied, or sent. Stops the caller if nobody reads any more.
    // Errors: more than the declared length is std::length_error.
    virtual task<> write(std::string_view bytes) = 0;
    // Returns when everything written so far has been taken by the kernel.
    virtual task<> flush() = 0;
    // A field behind the body. Sent only if the body is chunked, that is without a declared length
    // and to an HTTP/1.1 client. Errors: std::invalid_argument, as response::add().
    virtual void trailer(std::string_view name, std::string_view value) = 0;
    // Requested when the client has gone away or the server cuts off.
    virtual inplace_stop_token stop_token() const noexcept = 0;

protected:
    ~body_writer() = default;
};

// Where a handler that read_body() declares reads. Threads: one at a time; read() on any.
class body_reader : immovable {
public:
    // The next piece, "" at the end; valid until the next call. Nothing is received in between, so
    // a slow reader slows its client. Stops the caller if the client goes away.
    // Errors: http::refused if the body is malformed, too large or too slow; the client is told.
    // std::logic_error while another read() is under way: that one goes on.
    virtual task<std::string_view> read() = 0;
    // For a handler that gathers what it reads: counts `bytes` more among what the server keeps for
    // its clients (server_options::buffered_bytes_max), until the handler has ended. Errors:
    // http::refused, 503, if that is too much; nothing is counted then. Bodies of one's own count
    // nothing. Threads: as read(). Cost: no allocation.
    virtual void keep(std::size_t bytes) { (void)bytes; }
    // Whether read() has given a piece, or the end. read_json(), read_multipart() and
    // multipart_reader need the whole body, and throw std::logic_error where it has.
    virtual bool has_begun() const noexcept { return false; }

protected:
    ~body_reader() = default;
};

// A request that cannot be served, thrown out of body_reader::read() and keep(). A handler lets it
// pass: the connection answers with the status and closes.
struct refused {
    int status;
    const char* reason;  // static
};

// An open file and the part of it that is to be sent.
struct file_part {
    int file;
    std::uint64_t offset;
    std::uint64_t size;
};

// A body that is not in the response. One response sends it, once.
class body_source : immovable {
public:
    virtual ~body_source() = default;
    // Nothing: not known beforehand.
    virtual std::optional<std::uint64_t> length() const noexcept = 0;
    // Writes all of it. Errors: what it throws ends the connection.
    virtual task<> write_to(body_writer& out) = 0;
    // If it is a file, which part: the connection sends it without copying it through memory.
    virtual std::optional<file_part> file() const noexcept { return std::nullopt; }
};

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

// A body that a task<>(body_writer&) writes. Without a length it is chunked, or to an HTTP/1.0
// client ended by the connection's end. Cost: one allocation.
template <class Producer>
    requires std::is_invocable_r_v<task<>, std::decay_t<Producer>&, body_writer&>
std::shared_ptr<body_source> stream(Producer&& producer,
                                    std::optional<std::uint64_t> length = std::nullopt) {
    return std::make_shared<produced_body<std::decay_t<Producer>>>(std::forward<Producer>(producer),
                                                                   length);
}

}  // namespace coppice::http
