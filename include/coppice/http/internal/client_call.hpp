// client_call: one request of a client in flight, and the states that it goes through.
#pragma once
// Each state has a file. Only the functions of that file enter the state.
//
//   state        file                what is pending             entered by
//   aimed        client_route.cpp    nothing                     aim, follow, pause
//   queued       client_turn.cpp     a turn at a limited host    admit
//                client_origins.cpp  a stream of HTTP/2          join
//   connecting   client_connect.cpp  a connect                   connect
//   asking       client_asking.cpp   a send and a receive        exchange
//   receiving    client_body.cpp     a receive                   begin_body, give_to_sink
//   delivering   client_body.cpp     the sink                    give_to_sink
//   handed_over  client_body.cpp     a read() of the caller      begin_body
//   dropping     client_body.cpp     a receive                   begin_body
//   ended        client_call.cpp     nothing                     let_go
//   pausing      client_retry.cpp    the delay before a retry    pause
//
// The course is in client_call.cpp. perform() repeats this cycle until an answer is the caller's:
//
//   aimed -> queued -> connecting -> asking -> receiving <-> delivering --+
//     ^                                |-----> handed_over -------------->|
//     |                                +-----> dropping ----------------->|
//     |                                                                   v
//     +<---- pausing <---- a retry ------------------------------------ ended
//     +<------------------ a redirect <-----------------------------------+
//
// A call is queued only if connections are limited, or for HTTP/2, and connects only if no kept
// connection leads to its host. A stream of HTTP/2 is a connection of one request, so the states
// are the same for both protocols. A kept connection that turns out to be closed leads from asking
// to connecting. A lost connection leads from connecting or asking to ended.
//
// A large or streamed body is sent beside the states from asking on: `sending_` is set meanwhile
// (client_sending.cpp). The remaining files know no states: client_request.cpp writes the request,
// and client_head.cpp reads the head of the answer.
//
// Each wait, for a turn, a name, or a time, is for a sender that the call's environment can stop,
// and that interrupt() ends through waiting_.

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/exec/deadline.hpp>
#include <coppice/http/client_message.hpp>
#include <coppice/http/internal/client_core.hpp>
#include <coppice/http/parse.hpp>
#include <coppice/io/context.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/task/task.hpp>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace coppice::http {

class url;
struct client_origin;

}  // namespace coppice::http

namespace coppice::http::internal {

// The library's own: src/http/client_connection.hpp.
struct client_host;
struct client_route;

// One request in flight, while it is awaited.
class client_call : io::timer_entry {
public:
    // How the answer's body is given.
    enum class bodies : unsigned char { whole, by_pieces };
    client_call(client_core& owner, const client_request& r, bodies how = bodies::whole) noexcept;
    ~client_call();

    // Gives true, with the answer in answer(), or false if its awaiter has stopped it. A stop
    // through the request's own token, or a time limit, ends it early with an error.
    task<bool> perform();
    client_response& answer() noexcept { return answer_; }

    // Gives the next piece of the body, "" at its end; the view is valid until the next call. Only
    // by_pieces, after perform(). Heeds the stop and the deadline of its awaiter, and loses nothing
    // by them.
    task<std::string_view> read();
    // Returns true if nothing of the answer is still to be received.
    bool finished() const noexcept { return connection_ == nullptr; }
    io::context& loop() const noexcept { return loop_; }

    // The stop callback. Threads: any.
    class on_stop {
    public:
        explicit on_stop(client_call& call) noexcept : call_(&call) {}
        void operator()() const noexcept { call_->stop(); }

    private:
        client_call* call_;
    };
    // Returns true if the call has been told to end, through any of the ways to stop it.
    bool stopped() const noexcept;

    // Awaited once the callback is gone: completes when what the callback may have posted has
    // arrived.
    class settled {
    public:
        explicit settled(client_call& call) noexcept : call_(call) {}
        bool await_ready() const noexcept { return !call_.posted_ || call_.arrived_; }
        void await_suspend(std::coroutine_handle<> h) noexcept { call_.waiter_ = h; }
        void await_resume() const noexcept {}

    private:
        client_call& call_;
    };

private:
    friend class client_writer;
    friend struct client_host;
    friend http::client_origin;
    enum class state : unsigned char {
        aimed,
        queued,
        connecting,
        asking,
        receiving,
        delivering,
        handed_over,
        dropping,
        pausing,
        ended,
    };
    enum class outcome : unsigned char { answered, redirected, failed };
    enum class step : unsigned char { piece, more, end };
    struct posted_stop : io::operation {
        explicit posted_stop(client_call& c) noexcept : operation(&arrive), call(c) {}
        static void arrive(operation* op) noexcept;
        client_call& call;
    };

    // client_call.cpp: the course, what ends it early, and the limit of each wait.
    task<bool> perform_in_time(duration total);
    task<bool> perform_until_stopped();
    task<bool> request();
    task<> ask();
    task<bool> attempt(bool may_fail, bool may_be_refused);
    std::error_code loss() const noexcept;
    outcome judge();
    void stop() noexcept;
    void interrupt() noexcept;
    static void expired(io::timer_entry* entry) noexcept;
    void limit(duration time) noexcept;
    void unlimit() noexcept;
    task<bool> until_interrupted(task<> work);
    task<> wait(duration time);
    void let_go() noexcept;
    [[noreturn]] void fail(std::error_code error, const char* what) const;

    // client_route.cpp: aimed
    void aim();
    void aim_at(const url& at);
    url current_url() const;
    bool becomes_get() const noexcept;
    bool answer_redirects();
    void follow();
    std::string remaining_fields(bool other_origin, bool without_body) const;

    // client_turn.cpp: queued
    task<> admit();
    void release() noexcept;

    // client_origins.cpp: queued
    bool multiplexes() const noexcept;
    client_target target() const noexcept;
    task<> join();
    void agree();

    // client_connect.cpp: connecting
    task<> connect();
    task<> connect_by_name(std::error_code& ec);
    task<> shake_hands(std::error_code& ec);

    // client_request.cpp
    void write_request();
    bool body_apart() const noexcept;

    // client_asking.cpp: asking
    task<bool> exchange();
    task<bool> receive_answer();
    task<bool> receive_head();
    task<bool> receive_more();
    task<io::pooled_buffer> receive_encrypted(std::error_code& ec);

    // client_sending.cpp
    task<bool> send_body(inplace_stop_token enough);
    task<bool> send_pieces();
    task<bool> send_piece(std::string_view piece);
    task<> send_encrypted(std::span<const std::byte> bytes);
    task<bool> send_output();

    // client_head.cpp
    void check_beginning(std::string_view news) const;
    void read_head(std::string_view head);
    void read_framing_field(std::string_view name, std::string_view value);

    // client_body.cpp: receiving, delivering, handed_over, dropping
    void begin_body();
    task<> receive_body();
    task<> deliver(std::string_view piece);
    task<> give_to_sink(std::string_view piece);
    task<> drop_body();
    task<std::string_view> next_piece();
    void break_off(std::error_code error, std::string_view what);
    step next_step(std::string_view& piece);
    step next_chunk(std::string_view& piece);
    void end_of_stream();
    void finish();
    bool collects() const noexcept;

    // client_retry.cpp: pausing
    bool may_repeat() const noexcept;
    bool answer_repeats();
    std::optional<duration> retry_after() const;
    bool before_deadline(duration time) const noexcept;
    duration next_delay() noexcept;
    task<> pause(duration time);

    client_core& client_;
    io::context& loop_;
    const client_request& request_;
    const bodies how_;
    state state_ = state::aimed;
    outcome outcome_ = outcome::answered;
    inplace_stop_token outer_;  // the awaiter's, as is the deadline
    execution::instant deadline_ = execution::instant::never();
    time_point end_ = time_point::max();  // the end of its total time

    // Aimed: where and what is asked, from the request or from a redirect.
    std::unique_ptr<client_route> route_;  // only for a request with a URL
    const io::endpoint* to_ = nullptr;
    std::string_view name_;  // the host's, if it is looked up
    std::uint16_t port_ = 0;
    std::string_view proven_;  // the host that the server has to prove; "": without TLS
    std::string_view host_field_;
    std::string_view target_;
    std::string_view method_;
    std::string_view fields_;
    bool without_body_ = false;  // a redirect has turned it into a GET
    std::size_t redirects_left_ = 0;

    // Pausing.
    std::size_t retries_left_ = 0;
    duration delay_{};  // before the next try; grows
    duration asked_delay_{};
    bool lost_ = false;  // the connection was lost before a byte of an answer

    // Queued: the host at which this call has a place, if places are limited.
    client_host* host_ = nullptr;
    inplace_stop_source* waiting_ = nullptr;  // of until_interrupted()
    client_origin* deciding_ = nullptr;  // the server of which this call finds out what it speaks

    // From connecting to ended.
    std::unique_ptr<client_connection> connection_;

    // Asking, and sending.
    std::string output_;
    std::error_code send_error_;
    std::size_t sent_ = 0;  // bytes of the last piece
    std::optional<inplace_stop_source>
        enough_;            // stops a body that is sent while the answer is received
    bool sending_ = false;  // such a body is being sent, and enough_ may be asked to stop
    bool heard_ = false;    // a byte of an answer has arrived

    // The answer, and its framing.
    client_response answer_;
    std::optional<std::uint64_t> length_;
    bool chunked_ = false;
    bool closes_ = false;
    bool version_1_0_ = false;
    bool keep_alive_ = false;

    // Its body.
    std::optional<chunk_decoder> decoder_;
    std::uint64_t left_ = 0;    // bytes of a body that is not chunked
    std::size_t consumed_ = 0;  // bytes of the input, taken by the piece that was given last
    std::size_t collected_ = 0;
    bool last_chunk_ = false;
    std::error_code ended_by_;  // none: the stream ended properly
    std::error_code broken_;    // what read() has thrown, and throws from then on
    std::string broken_by_;

    // What ends the call early.
    posted_stop posted_operation_{*this};
    std::coroutine_handle<> waiter_;
    bool posted_ = false;  // written by the callback, read when the callback is gone
    bool arrived_ = false;
    bool stopped_ = false;
    bool late_ = false;  // a limit has passed
};

}  // namespace coppice::http::internal
