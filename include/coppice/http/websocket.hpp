// WebSocket (RFC 6455) in a server's routes: messages both ways over one connection.
#pragma once
// A handler is a coroutine that has the socket:
//
//   routes.get("/echo", http::websocket_handler([](http::websocket& socket) -> task<> {
//       while (const auto message = co_await socket.receive()) co_await socket.send(*message);
//   }));
//
// receive() gives nothing once the connection is closing or gone, so such a loop ends by itself.
// When the coroutine has ended, the server sends a close frame and waits for the client's. The
// server answers pings, sends its own, and checks everything that the client sends. A client that
// breaks the protocol gets the close code that says so.
//
// The coroutine begins on the connection's loop in every model of threads, as the producer of a
// streamed body does. It may move to other threads; what it awaits of the socket happens on the
// loop. If the client resets the connection, the server cuts off, or the client ends the connection
// while nothing waits for a message, the coroutine is stopped, as every handler is. A drain sends
// the close code 1001; receive() then gives what the client still sends, and its end.

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/request.hpp>
#include <coppice/http/response.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/task/task.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace coppice::http {

// A whole message.
struct websocket_message {
    std::string_view data;
    bool binary = false;  // otherwise text, which is UTF-8
};

// What a server permits, for each WebSocket.
struct websocket_options {
    // The subprotocols that the handler speaks, the preferred first. The first that the client
    // offers is chosen; if it offers none of them, websocket::protocol() is "".
    std::vector<std::string> protocols = {};
    // Origins whose pages may connect besides those of the request's own host, for example
    // "https://app.example". "*": all. Other pages get 403. A client that sends no Origin is no
    // browser, and may connect.
    std::vector<std::string> origins = {};
    // Of one message, in bytes, also after inflating; beyond this: close code 1009.
    std::size_t message_bytes_max = 1024 * 1024;
    // Frames of one message; beyond this: close code 1009.
    std::size_t fragments_max = 65'536;
    // send() waits while more bytes than this are unsent.
    std::size_t unsent_bytes_max = 64 * 1024;
    // While receive() waits: after so much silence the server sends a ping, and after
    // `pong_timeout` more the connection counts as dead. `ping_interval` is at least 1 ms, and the
    // others are 0 or more. max(): never.
    internal::duration ping_interval = std::chrono::seconds(30);
    internal::duration pong_timeout = std::chrono::seconds(30);
    // How long the server waits for the client's close frame after its own.
    internal::duration close_timeout = std::chrono::seconds(5);
    // Compresses messages (permessage-deflate, RFC 7692) if the client offers it. Costs memory for
    // each connection: about 2^(window_bits + 2) bytes + 2^(window_bits) + 40 KiB.
    bool deflate = false;
    int window_bits = 15;                // 9 to 15
    bool context_takeover = false;       // a message may refer to the one before: smaller, slower
    int deflate_level = 1;               // zlib's, 1 to 9
    std::size_t deflate_bytes_min = 64;  // shorter messages are not compressed
};

// One connection. Threads: receive() by one task at a time, the other functions by any number of
// tasks, on any threads. Lifetime: it is destroyed after the handler's coroutine.
class websocket : immovable {
public:
    // Completes with the next message, whose view is valid until the next call; with nothing if
    // the connection is closing or gone. Answers pings and watches for silence meanwhile. A stop
    // or a passed deadline stops the caller. What a stop loses: nothing; the message is for the
    // next call. Errors: std::logic_error while another receive() waits. Cost: no allocation for a
    // message that is no longer than one before.
    virtual task<std::optional<websocket_message>> receive() = 0;

    // Completes when the message is in the connection's output, which is sent in the order of these
    // calls. Waits first while more than unsent_bytes_max bytes are unsent: a client that does not
    // read makes its senders wait, and the server's write timeout ends it. A stop or a passed
    // deadline stops the caller while it waits. What a stop loses: nothing, since nothing of the
    // message was taken; afterwards the message is sent whole, or the connection fails. Errors:
    // connection_reset if the connection is gone, connection_aborted once a close frame was sent;
    // the message was not taken then. std::invalid_argument for a text that is not UTF-8.
    // Lifetime: the bytes outlive the call. Cost: a copy, or for a payload of more than 8 KiB that
    // nothing is unsent before, a system call and a copy of what the socket does not take.
    virtual task<std::error_code> send(websocket_message message) = 0;
    task<std::error_code> send(std::string_view text) {
        return send(websocket_message{text, false});
    }
    task<std::error_code> send_binary(std::string_view bytes) {
        return send(websocket_message{bytes, true});
    }
    // Begins to close: sends a close frame after what was sent before. receive() still gives
    // messages that the client sends before its own close frame. Does nothing if a close frame was
    // sent. Errors: std::invalid_argument for a code that no frame may have (RFC 6455 section
    // 7.4), and for a reason that is no UTF-8 or longer than 123 bytes. What a stop loses: nothing.
    virtual task<> close(unsigned code = 1000, std::string_view reason = {}) = 0;

    // Returns the code of the client's close frame: 1005 if it had none, 1006 if the connection
    // ended without one; 0 before the end. Threads: the one that has awaited receive().
    virtual unsigned close_code() const noexcept = 0;
    virtual std::string_view close_reason() const noexcept = 0;
    // Returns the subprotocol that was chosen, or "".
    virtual std::string_view protocol() const noexcept = 0;
    // Returns the token that is requested when the client has gone away or the server cuts off.
    virtual inplace_stop_token stop_token() const noexcept = 0;
    // Returns the loop that owns the connection.
    virtual io::context& loop() const noexcept = 0;

protected:
    ~websocket() = default;
};

namespace internal {

// What a connection runs after it has answered 101. It is the body of that answer.
class websocket_source : public body_source {
public:
    std::optional<std::uint64_t> length() const noexcept final { return std::nullopt; }
    task<> write_to(body_writer&) final;
    websocket_source* upgrade() noexcept final { return this; }
    // Starts the handler's coroutine. Called once.
    virtual task<> run(websocket& socket) = 0;

    std::shared_ptr<const websocket_options> options;
    std::string_view protocol;  // one of options->protocols, or ""
    bool deflates = false;      // what was negotiated:
    bool server_takes_over = false;
    bool client_takes_over = false;
    int server_window_bits = 15;
    int client_window_bits = 15;
    bool used = false;  // a connection has taken it
};

template <class F>
class websocket_source_of final : public websocket_source {
public:
    explicit websocket_source_of(std::shared_ptr<F> f) noexcept : function_(std::move(f)) {}
    task<> run(websocket& socket) override { return (*function_)(socket); }

private:
    const std::shared_ptr<F> function_;
};

// Errors: std::invalid_argument for options out of range.
std::shared_ptr<const websocket_options> checked(websocket_options&& options);
// Returns the answer 101 with `source`, or a refusal.
response upgrade(const request& r, std::shared_ptr<websocket_source> source);

}  // namespace internal

// Returns a handler that accepts WebSockets, and runs task<>(websocket&) for each of them. The
// callable is shared by all connections and threads; it lives as long as any of them. A request
// that is not a proper opening handshake gets 400; 403 for a page that may not connect; 426 if it
// is for another version of the protocol, or for none. Errors: std::invalid_argument for options
// out of range.
template <class F>
    requires std::is_invocable_r_v<task<>, const std::decay_t<F>&, websocket&>
auto websocket_handler(F&& function, websocket_options options = {}) {
    return [function = std::make_shared<const std::decay_t<F>>(std::forward<F>(function)),
            options = internal::checked(std::move(options))](request& r) -> response {
        using source_type = internal::websocket_source_of<const std::decay_t<F>>;
        auto source = std::make_shared<source_type>(function);
        source->options = options;
        return internal::upgrade(r, std::move(source));
    };
}

// Returns the answer that makes the connection of this request a WebSocket, or a refusal as above;
// for a handler that first looks at the request. Give `function` what it needs by value: the
// request is gone when it begins. `options` are shared by many connections. Errors:
// std::invalid_argument for options out of range.
template <class F>
    requires std::is_invocable_r_v<task<>, std::decay_t<F>&, websocket&>
response accept_websocket(const request& r, F&& function,
                          std::shared_ptr<const websocket_options> options = nullptr) {
    using source_type = internal::websocket_source_of<std::decay_t<F>>;
    auto source =
        std::make_shared<source_type>(std::make_shared<std::decay_t<F>>(std::forward<F>(function)));
    source->options =
        options != nullptr ? internal::checked(websocket_options(*options)) : internal::checked({});
    return internal::upgrade(r, std::move(source));
}

}  // namespace coppice::http
