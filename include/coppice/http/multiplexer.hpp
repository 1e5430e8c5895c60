// multiplexer: what carries many requests on one connection: bytes in, bytes out, no descriptors.
#pragma once
// The seam between http::server or http::client and a protocol with streams, such as the component
// http2. The engine translates: heads cross the seam in the form of HTTP/1.1. One parser thus
// judges the requests of all protocols, and one the answers. Below, the other side is the client
// for a server, and the server for a client.

#include <coppice/base/lifetime.hpp>
#include <coppice/http/parse.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace coppice::http {

// One stream, as its engine sees it; implemented by the server, and by the client. The engine makes
// the calls inside its own receive() and write(); none of them may call the engine.
class multiplexed_stream : immovable {
public:
    // What take() returns.
    struct taken {
        std::size_t bytes;
        bool ended;  // nothing follows
    };

    // Takes bytes of the other side's body as they came, without framing, then the end of it, with
    // the field lines after the body. Returns false if there is no room for them: the engine then
    // resets the stream.
    virtual bool input(std::string_view bytes) noexcept = 0;
    virtual bool end_input(std::string_view trailers) noexcept = 0;
    // Says that the stream is closed: its last call. `reset`: because of an error.
    virtual void closed(bool reset) noexcept = 0;
    // Moves the next bytes of this side's body into `room`. Neither bytes nor the end: the engine
    // asks again after multiplexer::wake().
    virtual taken take(std::span<std::byte> room) noexcept = 0;
    // Returns the field lines that follow the body; called when take() has said the end.
    virtual std::string_view trailers() noexcept = 0;

protected:
    ~multiplexed_stream() = default;
};

// What gets the streams of a connection; implemented by the server.
class multiplexed_streams : immovable {
public:
    // Takes a request: the stream's number, and the head in the form of HTTP/1.1. `ended`: it has
    // no body. A head whose last field is `connection: upgrade` makes the stream a tunnel if the
    // answer is 101: then the bytes of both sides are not bodies, and either side may end first.
    // Returns nullptr if it cannot be served now. Called inside receive(). Lifetime: the stream
    // outlives closed().
    virtual multiplexed_stream* begin(std::int32_t number, std::string_view head,
                                      bool ended) noexcept = 0;

protected:
    ~multiplexed_streams() = default;
};

// Why the server ends a stream early.
enum class stream_reset : unsigned char { no_error, internal_error, refused, cancel };

// The server's side of one connection. Threads: one at a time. Numbers are those of streams that
// were begun and are not closed; other numbers change nothing.
class multiplexer {
public:
    virtual ~multiplexer() = default;

    // Takes bytes that have come. Returns false if the connection must end without another byte.
    virtual bool receive(std::span<const std::byte> bytes) noexcept = 0;
    // Appends bytes that are to go, about a frame. Returns false if there are none now, or no
    // memory.
    virtual bool write(std::string& out) noexcept = 0;
    // Returns true if both sides have nothing further to say.
    virtual bool is_finished() const noexcept = 0;

    // Answers: `head` in the form of HTTP/1.1, interim or final; 101 is final. `ended`: no body
    // follows. Otherwise the stream's take() gives it. Returns false if there is no memory.
    virtual bool answer(std::int32_t number, std::string_view head, bool ended) noexcept = 0;
    // Says that take() may give more.
    virtual void wake(std::int32_t number) noexcept = 0;
    // Says that so many bytes of the stream's body were used: the client may send as many more.
    virtual void consumed(std::int32_t number, std::size_t bytes) noexcept = 0;
    virtual void reset(std::int32_t number, stream_reset why) noexcept = 0;
    // Tells the client that no further stream is served, and begins none. Those that were begun go
    // on.
    virtual void shut_down() noexcept = 0;
    // Asks the client to acknowledge that it has read what write() has given so far. Returns false
    // if the connection ends because of an error, so that the client would not be heard.
    virtual bool ask_for_receipt() noexcept = 0;
    // Returns true once the client has answered the latest ask_for_receipt(), or would not be
    // heard.
    virtual bool has_receipt() const noexcept = 0;
};

// Why a request has no answer, or no whole one.
enum class answer_loss : unsigned char {
    unprocessed,  // the server says that it has not acted on the request
    malformed,    // what has come is not HTTP/2
    too_large,    // the fields are beyond what is endured, or what can be sent
    needs_http1,  // the server answers this request over HTTP/1.1 only
};

// One stream of a client.
class requesting_stream : public multiplexed_stream {
public:
    // Takes the final head of the answer: its status, and its field lines. `ended`: no body
    // follows. Returns false if there is no room for it: the engine then resets the stream.
    virtual bool head(int status, std::string_view lines, bool ended) noexcept = 0;
    // Says why closed(true) follows, if that is known.
    virtual void lost(answer_loss why) noexcept = 0;

protected:
    ~requesting_stream() = default;
};

// The client's side of one connection. Threads: one at a time. Numbers are as for a multiplexer.
class client_multiplexer {
public:
    virtual ~client_multiplexer() = default;

    // Take bytes, append bytes, and tell whether both sides are done, as those of a multiplexer.
    virtual bool receive(std::span<const std::byte> bytes) noexcept = 0;
    virtual bool write(std::string& out) noexcept = 0;
    virtual bool is_finished() const noexcept = 0;
    // Returns how many streams may be open at once.
    virtual std::size_t streams_max() const noexcept = 0;
    // Returns false if no further stream may begin, ever.
    virtual bool is_accepting() const noexcept = 0;

    // Begins a request: `head` in the form of HTTP/1.1. `ended`: no body follows. Otherwise the
    // stream's take() gives it. Returns the stream's number; 0 if there is no memory; -1 if the
    // head cannot be said in HTTP/2. Lifetime: the stream outlives closed().
    virtual std::int32_t request(requesting_stream& s, std::string_view head,
                                 bool ended) noexcept = 0;
    virtual void wake(std::int32_t number) noexcept = 0;
    virtual void consumed(std::int32_t number, std::size_t bytes) noexcept = 0;
    // Ends a stream that the client no longer wants.
    virtual void cancel(std::int32_t number) noexcept = 0;
    // Tells the server that this is the end.
    virtual void shut_down() noexcept = 0;
};

// What makes the engines of a client's connections. Threads: any, also concurrently.
class client_multiplexing {
public:
    virtual ~client_multiplexing() = default;
    // Its name in ALPN.
    virtual std::string_view protocol() const noexcept = 0;
    // `secure`: the connection is encrypted. `limit`: those of an answer's head. Errors:
    // std::bad_alloc.
    virtual std::unique_ptr<client_multiplexer> connect(bool secure, const limits& limit) const = 0;
};

// What makes the engines of a server's connections. Threads: any, also concurrently.
class multiplexing {
public:
    virtual ~multiplexing() = default;
    // The first bytes of a client that speaks the protocol without having agreed on it.
    virtual std::string_view preface() const noexcept = 0;
    // Its name in ALPN.
    virtual std::string_view protocol() const noexcept = 0;
    // `secure`: the connection is encrypted. `limit`: those of a request's head. Errors:
    // std::bad_alloc. Lifetime: `streams` outlives the engine.
    virtual std::unique_ptr<multiplexer> accept(multiplexed_streams& streams, bool secure,
                                                const limits& limit) const = 0;
};

}  // namespace coppice::http
