// client: HTTP/1.1 requests over connections that are kept and used again; on one loop.
#pragma once
// A request is a task: it takes a kept connection to the endpoint, or makes one, sends, and ends
// when the answer's body has ended, in memory or piece by piece in a sink. It can be stopped at any
// moment, from any thread: by what awaits it (timeout, when_any, a scope, a deadline) and by a
// token of its own; then it ends as stopped, and its connection is closed. The server may have
// acted on it, docs/stopping.md. Being stoppable allocates nothing.
//
// Nothing is sent unless it is exactly one request. Method, target, host and fields may come from a
// stranger: what would be malformed or would end the request elsewhere is errc::invalid_argument.
//
// A large or streamed body is sent while the answer is received. An answer of 300 or more that
// comes before the body's end stops the sending and its source, and is the result; with one below,
// the rest is still sent, unless the server closes, and is timed_out if the server does not take it
// in time. So is an answer never lost to a failed send.
//
// A kept connection may have been closed by the server meanwhile. A request that finds that out
// before any byte of an answer has come is sent once more, on a new connection, if its method is
// idempotent and its body is not streamed (RFC 9110 section 9.2.2, RFC 9112 section 9.3.1).
//
// Answers are read as strictly as the server reads requests: what two programs could read
// differently is an error. Errors are thrown as std::system_error: those of the sockets; timed_out;
// bad_message for an answer that is no HTTP/1.1; message_size for one beyond a limit;
// connection_aborted for one that ends too early, by a reset too if only the connection's end ends
// its body.

#include <coppice/base/clock.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/deadline.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/parse.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/stop/concepts.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/stop/never.hpp>
#include <coppice/task/task.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::http {

struct client_options {
    internal::duration connect = std::chrono::seconds(10);  // until connected
    // from connected, or all sent, to the head
    internal::duration answer = std::chrono::seconds(60);
    internal::duration body = std::chrono::seconds(60);  // without a byte of a body, either way
    internal::duration idle = std::chrono::seconds(20);  // older connections are not used again
    std::size_t idle_connections_max = 64;               // kept; beyond, the oldest is closed
    http::limits limits = {};  // of an answer's head, and of a collected body
};

// Takes a streamed body, piece by piece; nothing is received while its task runs.
using body_sink = std::function<task<>(std::string_view piece)>;

// What to ask. Views: they outlive the request.
struct client_request {
    io::endpoint to;
    std::string_view target = "/";
    std::string_view method = "GET";
    std::string_view host = {};  // the Host field; "": the endpoint's text
    // More lines, each ended by CRLF; see response::add() to make them. Not those that only the
    // client writes: Host, Content-Length, Transfer-Encoding, Upgrade, Connection but for close.
    std::string_view fields = {};
    std::string_view body = {};
    std::shared_ptr<body_source> source = nullptr;  // in place of `body`
    body_sink sink = nullptr;                       // empty: the body is collected
};

// A whole answer.
class client_response {
public:
    // The code, 100 to 599, and the body. Lifetime: the view is the response's.
    int status() const noexcept { return status_; }
    std::string_view body() const& noexcept { return body_; }
    std::string body() && noexcept { return std::move(body_); }
    // The first field of that name, whatever its case.
    std::optional<std::string_view> find(std::string_view name) const noexcept;
    // Behind a chunked body.
    std::optional<std::string_view> trailer(std::string_view name) const noexcept;

private:
    friend class client_call;
    int status_ = 0;
    std::string head_;  // the field lines
    std::string body_;
    std::string trailers_;
};

// An open connection, in use or kept.
struct client_connection : immovable {
    client_connection(io::context& loop, const io::endpoint& peer) : socket(loop), to(peer) {}

    io::tcp::socket socket;
    io::endpoint to;
    std::string input;  // received, not yet consumed
    internal::time_point used{};
    bool fresh = true;
};

// Threads: any may await a request. One that begins off the loop is posted to it and runs there,
// its source and its sink too; its awaiter goes on on its own scheduler, or on the loop if it has
// none, as a handler's task. All else is for the loop's thread, but for the stop tokens' sources.
// Lifetime: outlives its requests; the loop outlives it.
class client : immovable {
public:
    // Connects to nobody yet.
    explicit client(io::context& loop, client_options options = {});
    ~client();

    // Errors: see above; a request stopped by its token ends as by set_stopped. Cost: off the loop,
    // a frame more and what posting costs.
    template <stoppable_token Token = never_stop_token>
    task<client_response> send(client_request r, Token token = {});
    template <stoppable_token Token = never_stop_token>
    task<client_response> get(const io::endpoint& to, std::string_view target, Token token = {}) {
        client_request r;
        r.to = to;
        r.target = target;
        return send(std::move(r), token);
    }
    // Asks with POST. Lifetime: `target` and `body` outlive the task.
    template <stoppable_token Token = never_stop_token>
    task<client_response> post(const io::endpoint& to, std::string_view target,
                               std::string_view body, Token token = {}) {
        client_request r;
        r.to = to;
        r.target = target;
        r.method = "POST";
        r.body = body;
        return send(std::move(r), token);
    }

    // Closes the kept connections; the destructor does too, and so belongs to the loop's thread
    // while any are kept and the loop runs.
    void close_idle() noexcept { idle_.clear(); }
    std::size_t idle_connections() const noexcept { return idle_.size(); }
    std::size_t connections_made() const noexcept { return made_; }

private:
    friend class client_call;
    friend class client_writer;
    template <class Token>
    task<client_response> send_on_loop(client_request r, Token token);
    std::unique_ptr<client_connection> take(const io::endpoint& to);
    void keep(std::unique_ptr<client_connection> used);

    io::context& loop_;
    const client_options options_;
    std::vector<std::unique_ptr<client_connection>> idle_;  // oldest first
    std::size_t made_ = 0;
};

// One request under way, while it is awaited.
class client_call : io::timer_entry {
public:
    client_call(client& owner, const client_request& r) noexcept;
    ~client_call();

    // Ends with the answer, or with nothing if what it awaits was stopped by `stop`. A stop of the
    // request by its own token or a time that is up ends it early, with an error.
    task<std::optional<client_response>> perform(inplace_stop_token stop,
                                                 execution::instant deadline);

    // The stop callback. Threads: any.
    class on_stop {
    public:
        explicit on_stop(client_call& call) noexcept : call_(&call) {}
        void operator()() const noexcept { call_->stop(); }

    private:
        client_call* call_;
    };
    // It has been told to end, by any of those who may.
    bool stopped() const noexcept;

    // Once the callback is gone: awaits what it may have posted.
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
    struct posted_stop : io::operation {
        explicit posted_stop(client_call& c) noexcept : operation(&arrive), call(c) {}
        static void arrive(operation* op) noexcept;
        client_call& call;
    };
    void stop() noexcept;
    void interrupt() noexcept;
    static void expired(io::timer_entry* entry) noexcept;
    void limit(internal::duration time) noexcept;
    [[noreturn]] void fail(std::error_code error, const char* what) const;

    task<client_response> request();
    task<bool> attempt(client_response& answer, bool may_fail);
    void write_request();
    bool body_apart() const noexcept;
    task<bool> exchange(client_response& answer);
    task<bool> send_body(inplace_stop_token enough);
    task<bool> send_pieces();
    task<bool> send_piece(std::string_view piece);
    task<bool> send_output();
    task<bool> receive_answer(client_response& answer);
    task<bool> receive_head(client_response& answer);
    task<> receive_body(client_response& answer);
    task<> receive_chunked(client_response& answer);
    task<> deliver(client_response& answer, std::string_view piece);
    task<bool> receive_more();
    void check_beginning(std::string_view news) const;
    void read_head(client_response& answer, std::string_view head);
    void read_framing_field(std::string_view name, std::string_view value);

    client& client_;
    const client_request& request_;
    inplace_stop_token outer_;  // of what awaits the request, as the next
    execution::instant deadline_ = execution::instant::never();
    std::unique_ptr<client_connection> connection_;
    std::string output_;
    // The answer's framing.
    std::optional<std::uint64_t> length_;
    bool chunked_ = false;
    bool closes_ = false;
    bool version_1_0_ = false;
    bool keep_alive_ = false;
    std::size_t collected_ = 0;
    std::error_code ended_by_;  // none: a proper end of the stream
    std::error_code send_error_;
    std::size_t sent_ = 0;                       // of the last piece
    std::optional<inplace_stop_source> enough_;  // of a body that is sent beside its answer
    bool sending_ = false;                       // it is, and the source may be asked to stop
    bool head_received_ = false;
    bool in_sink_ = false;

    posted_stop posted_operation_{*this};
    std::coroutine_handle<> waiter_;
    bool posted_ = false;  // written by the callback, read when it is gone
    bool arrived_ = false;
    bool stopped_ = false;
    bool late_ = false;
};

template <stoppable_token Token>
task<client_response> client::send(client_request r, Token token) {
    // The frame of a request that is on its loop has no room for the way there.
    if (!loop_.is_current()) [[unlikely]]
        co_return co_await send_on_loop(std::move(r), std::move(token));
    client_call call(*this, r);
    const inplace_stop_token outer = co_await execution::read_env(get_stop_token);
    const execution::instant deadline = co_await execution::read_env(execution::get_deadline);
    std::optional<client_response> answer;
    std::exception_ptr error;
    {
        const stop_callback_for_t<Token, client_call::on_stop> callback(token,
                                                                        client_call::on_stop(call));
        try {
            answer = co_await call.perform(outer, deadline);
        } catch (...) {
            error = std::current_exception();
        }
    }
    co_await client_call::settled(call);
    if (!answer && (call.stopped() || !error)) co_await execution::just_stopped();
    if (error) std::rethrow_exception(error);
    co_return std::move(*answer);
}

template <class Token>
task<client_response> client::send_on_loop(client_request r, Token token) {
    co_return co_await execution::starts_on(loop_.get_scheduler(),
                                            send(std::move(r), std::move(token)));
}

}  // namespace coppice::http
