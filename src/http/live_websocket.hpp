// live_websocket: the WebSocket that a connection has become, as its handler uses it.
#pragma once
// Output: frames are appended to pending_. A deferred operation swaps pending_ with output_ and
// sends it, so that the frames of one turn of the loop share a system call. No stop of a task
// interrupts it, so a frame is sent whole or the connection ends. A long frame that nothing is
// unsent before is sent from the caller's memory, and what the socket does not take is appended.
//
// Input: receive() takes the connection's buffers, as the body of a request does, and decodes them
// until a message is complete. Between two calls the connection reads ahead at most four
// buffers: a slow handler slows its client. The rest of a long frame is received into its message,
// as far as it has come.

#include "connection.hpp"
#include "loop_wait.hpp"

#include <coppice/base/internal/atomic.hpp>
#include <coppice/http/internal/websocket_codec.hpp>
#include <coppice/http/websocket.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace coppice::http {

using namespace internal;

// Lives as long as the handler, and until what it sends is sent. Threads: its loop's, except for
// the functions that a handler calls, which go there.
class live_websocket final : public websocket, io::timer_entry {
public:
    // `first`: what has arrived behind the request.
    live_websocket(connection& c, exchange& e, websocket_source& from, std::string&& first);
    ~live_websocket() = default;

    using websocket::send;
    task<std::optional<websocket_message>> receive() override;
    task<std::error_code> send(websocket_message message) override;
    task<> close(unsigned code, std::string_view reason) override;
    unsigned close_code() const noexcept override { return close_code_; }
    std::string_view close_reason() const noexcept override { return close_reason_; }
    std::string_view protocol() const noexcept override { return source_.protocol; }
    inplace_stop_token stop_token() const noexcept override { return exchange_.origin.stop; }
    io::context& loop() const noexcept override { return connection_.loop_.context; }

    // Called on the loop after the handler: closes with this code, unless that was done, and waits
    // for the client's close frame and for the end of all sending.
    task<> finish(unsigned code);

private:
    enum class outcome : unsigned char { none, message, ended, stopped };
    // Held by the receive() that is under way.
    class turn_to_receive : coppice::immovable {
    public:
        explicit turn_to_receive(live_websocket& of);
        ~turn_to_receive() { end(); }
        void end() noexcept;

    private:
        live_websocket* of_;
    };
    struct sending : io::internal::ring_operation {
        explicit sending(live_websocket& w) noexcept
            : ring_operation(&sent, io::opcode::send), of(w) {}
        live_websocket& of;
    };
    struct flush : io::operation {
        explicit flush(live_websocket& w) noexcept : operation(&flush_now), of(w) {}
        live_websocket& of;
    };
    // Its timer is armed by the first wait, and then only when it has fired or would fire too late.
    struct silence : io::timer_entry {
        explicit silence(live_websocket& w) noexcept : timer_entry(&silence_is_over), of(w) {}
        live_websocket& of;
        time_point armed_for{};
    };
    class on_drain {
    public:
        explicit on_drain(live_websocket& of) noexcept : of_(&of) {}
        void operator()() const noexcept { of_->begin_close(1001, {}); }

    private:
        live_websocket* of_;
    };
    class all_sent;
    class next_buffer;

    task<> sending_ended();
    task<> receive_here(inplace_stop_token stop, execution::instant deadline);
    void look_ahead() noexcept;
    bool decode();
    bool decode_directly();
    void expect_long() noexcept;
    void note_size() noexcept;
    void found(websocket_decoder::found what);
    void ended_without_close() noexcept;
    void note_heard() noexcept;
    void limit_silence() noexcept;
    void note_silence() noexcept;
    static void silence_is_over(timer_entry* entry) noexcept;
    std::string_view unread() const noexcept;
    void consume(std::size_t bytes) noexcept;
    bool keep_message() noexcept;
    time_point silence_limit() const noexcept;

    task<> send_here(websocket_message message, inplace_stop_token stop,
                     execution::instant deadline, std::optional<std::error_code>& result);
    bool must_wait() const noexcept;
    std::error_code put_now(const websocket_message& message);
    std::error_code why_not() const noexcept;
    bool is_open() const noexcept { return connection_.socket_.is_open(); }
    std::size_t unsent() const noexcept { return pending_.size() + output_.size() - sent_; }
    void put(const websocket_message& message);
    void put_frame(websocket_opcode opcode, std::string_view payload, bool compressed);
    std::size_t send_now(std::string_view head, std::string_view payload) noexcept;
    void put_control(websocket_opcode opcode, std::string_view payload) noexcept;
    void begin_close(unsigned code, std::string_view reason) noexcept;
    void send_soon() noexcept;
    void pump() noexcept;
    void wait_for_sending() noexcept;
    bool is_idle() const noexcept { return !is_sending_ && !is_deferred_ && !is_called_; }
    void end_of_call() noexcept;
    bool note_sent() noexcept;
    void fail() noexcept;
    static void flush_now(io::operation* op) noexcept;
    static void sent(io::operation* op) noexcept;
    static void close_is_late(timer_entry* entry) noexcept;

    connection& connection_;
    exchange& exchange_;
    websocket_source& source_;
    const websocket_options& options_;
    websocket_decoder decoder_;
    std::unique_ptr<message_deflater> deflater_;
    std::string packed_;  // the deflater's

    std::string first_;  // read before `input_`
    io::pooled_buffer input_;
    std::size_t at_ = 0;  // of what is read
    // Long messages are expected until so many short ones have come in a row; 0: short ones are.
    static constexpr unsigned short_messages = 16;
    unsigned short_left_ = 0;
    std::size_t kept_ = 0;    // bytes of the budget, for the message
    time_point heard_{};      // when bytes came last, or since then the ping was sent
    bool pinged_ = false;     // since then
    bool is_silent_ = false;  // the timer has ended a wait
    silence silence_{*this};
    outcome outcome_ = outcome::none;
    atomic<bool> receiving_{false};  // a receive() is under way
    unsigned close_code_ = 0;
    std::string close_reason_;
    bool is_over_ = false;  // the client has closed, or cannot be understood, or is gone

    std::string pending_;       // frames that come after output_
    std::string output_;        // is being sent
    std::size_t sent_ = 0;      // bytes of output_
    std::size_t reserved_ = 0;  // bytes of the budget, for output_
    sending sender_{*this};
    flush flush_{*this};
    bool is_sending_ = false;   // sender_ is pending
    bool is_deferred_ = false;  // flush_ is pending
    bool is_called_ = false;    // one of them has ended, and its function has not returned
    bool is_late_ = false;      // the client has not answered a close frame in time
    bool close_sent_ = false;   // a close frame is in pending_, or was
    std::optional<std::string> late_pong_;  // answers the last ping, when there is room
    loop_wait::list waiters_;               // tasks that wait for room
    std::coroutine_handle<> ending_;        // waits for the end of all sending
    std::optional<inplace_stop_callback<on_drain>> drain_;
};

}  // namespace coppice::http
