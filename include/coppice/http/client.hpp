// client: HTTP/1.1 requests over connections that are kept and used again; on one loop.
#pragma once
// A request is a task: it takes a kept connection to the endpoint, or makes one, sends, and ends
// when the answer's body has ended, in memory or piece by piece in a sink. It can be stopped at any
// moment, from any thread: by what awaits it (timeout, when_any, a scope, a deadline) and by a
// token of its own; then it ends as stopped, and its connection is closed. The server may have
// acted on it, docs/stopping.md. Being stoppable allocates nothing.
//
// A request has an endpoint and a target, or a URL: its host is looked up, and its addresses raced
// (io/connecting.hpp). https is errc::protocol_not_supported: there is no TLS here.
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
// Four things end a request in time. Each wait has a limit, and so has the whole if `total` is set:
// both are timed_out. A deadline of the environment ends it as stopped. A timeout around it comes
// as a stop when its time is up, which the client does not know before.
//
// If it is told so, a client follows redirects (RFC 9110 section 15.4). 303 asks for the other URL
// with GET, as 301 and 302 do after POST; 307 and 308 repeat the request. Authorization, Cookie and
// Proxy-Authorization go to no other scheme, host or port. A streamed body cannot be repeated: then
// the redirect is the answer, as it is without a Location. One redirect more than allowed is
// errc::too_many_links; a Location that is no URL is bad_message.
//
// If it is told so, it tries again what is idempotent and has no streamed body: when no connection
// can be made, when one is lost before a byte of an answer, and after 429, 502, 503 and 504, not
// before the time that Retry-After says. Never when that would be after `total` or the deadline of
// the environment; then, and when it has tried often enough, the last answer or error is the
// result. The end of a timeout around the request comes during that wait.
//
// Answers are read as strictly as the server reads requests: what two programs could read
// differently is an error. Errors are thrown as std::system_error: those of the sockets; timed_out;
// bad_message for an answer that is no HTTP/1.1; message_size for one beyond a limit;
// connection_aborted for one that ends too early, by a reset too if only the connection's end ends
// its body.

#include <coppice/base/clock.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/http/client_call.hpp>
#include <coppice/http/client_message.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/stop/concepts.hpp>
#include <coppice/stop/never.hpp>
#include <coppice/task/task.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coppice::http {

// A request whose answer is read piece by piece, in memory of its own.
struct client_opened;

// Ends it on its loop, now or in a coming turn, which resets its connection unless all was read.
struct client_opened_end {
    void operator()(client_opened* opened) const noexcept;
};

// An answer whose body is read as far as it is wanted. Nothing is received while nobody reads, so a
// slow reader slows its server. Threads: any, one at a time; the loop receives. Lifetime: the loop
// outlives it, and the client its reading; it may be moved and destroyed at any time but while
// read() is awaited. Destroyed before the body's end it resets the connection.
class client_answer : public client_head {
public:
    client_answer(client_answer&&) noexcept = default;
    client_answer& operator=(client_answer&&) noexcept = default;

    // Gives the next piece of the body, "" at its end and from then on; valid until the next call.
    // Errors: as those of the client, and then always; client_options::body limits each wait. Cost:
    // allocates only where the input grows.
    task<std::string_view> read();

private:
    friend class client;
    client_answer(std::unique_ptr<client_opened, client_opened_end> opened,
                  client_head&& head) noexcept
        : client_head(std::move(head)), opened_(std::move(opened)) {}

    std::unique_ptr<client_opened, client_opened_end> opened_;
};

// Threads: any may await a request. One that begins off the loop is posted to it and runs there,
// its source and its sink too; its awaiter goes on on its own scheduler, or on the loop if it has
// none, as a handler's task. All else is for the loop's thread, but for the stop tokens' sources.
// Lifetime: outlives its requests; the loop outlives it.
class client : immovable {
public:
    // Connects to nobody yet. Errors: std::invalid_argument for an option out of its range.
    explicit client(io::context& loop, client_options options = {});
    ~client();

    // Errors: see above; a request stopped by its token ends as by set_stopped. Cost: off the loop,
    // a frame more and what posting costs; with a URL, what its text and its look-up allocate.
    template <stoppable_token Token = never_stop_token>
    task<client_response> send(client_request r, Token token = {});
    template <stoppable_token Token = never_stop_token>
    task<client_response> get(const io::endpoint& to, std::string_view target, Token token = {}) {
        client_request r;
        r.to = to;
        r.target = target;
        return send(std::move(r), token);
    }
    template <stoppable_token Token = never_stop_token>
    task<client_response> get(std::string_view url, Token token = {}) {
        client_request r;
        r.url = url;
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
    template <stoppable_token Token = never_stop_token>
    task<client_response> post(std::string_view url, std::string_view body, Token token = {}) {
        client_request r;
        r.url = url;
        r.method = "POST";
        r.body = body;
        return send(std::move(r), token);
    }
    // Gives the answer once its head has come; its body is read from it. A body of the request that
    // is streamed, or larger than 16 KiB, is sent before that, unless the answer refuses it.
    // Lifetime: the request's views outlive the answer. Errors: as send(); invalid_argument for a
    // sink. Cost: allocates the call.
    template <stoppable_token Token = never_stop_token>
    task<client_answer> open(client_request r, Token token = {});
    template <stoppable_token Token = never_stop_token>
    task<client_answer> open(std::string_view url, Token token = {}) {
        client_request r;
        r.url = url;
        return open(std::move(r), token);
    }

    // Closes the kept connections; the destructor does too, and so belongs to the loop's thread
    // while any are kept and the loop runs.
    void close_idle() noexcept { idle_.clear(); }
    std::size_t idle_connections() const noexcept { return idle_.size(); }
    std::size_t connections_made() const noexcept { return made_; }

private:
    friend class client_call;
    friend class client_writer;
    friend struct client_opened;
    template <class Token>
    task<client_response> send_on_loop(client_request r, Token token);
    template <class Token>
    task<client_answer> open_on_loop(client_request r, Token token);
    template <class Token>
    task<> finish(client_call& call, Token token);
    std::unique_ptr<client_opened, client_opened_end> begin_open(client_request&& r);
    static client_call& call_of(client_opened& opened) noexcept;
    enum class connections : unsigned char { kept_or_new, new_only };
    std::unique_ptr<client_connection> take(const io::endpoint* to, std::string_view name,
                                            std::uint16_t port, connections which);
    void keep(std::unique_ptr<client_connection> used) noexcept;
    std::uint64_t random() noexcept;

    io::context& loop_;
    const client_options options_;
    std::vector<std::unique_ptr<client_connection>> idle_;  // oldest first
    std::size_t made_ = 0;
    std::uint64_t random_;
    std::shared_ptr<client_hosts> hosts_;  // if the connections to each are limited
};

template <stoppable_token Token>
task<client_response> client::send(client_request r, Token token) {
    // The frame of a request that is on its loop has no room for the way there.
    if (!loop_.is_current()) [[unlikely]]
        co_return co_await send_on_loop(std::move(r), std::move(token));
    client_call call(*this, r);
    co_await finish(call, std::move(token));
    co_return std::move(call.answer());
}

template <class Token>
task<client_response> client::send_on_loop(client_request r, Token token) {
    co_return co_await execution::starts_on(loop_.get_scheduler(),
                                            send(std::move(r), std::move(token)));
}

template <stoppable_token Token>
task<client_answer> client::open(client_request r, Token token) {
    if (!loop_.is_current()) [[unlikely]]
        co_return co_await open_on_loop(std::move(r), std::move(token));
    auto opened = begin_open(std::move(r));
    client_call& call = call_of(*opened);
    co_await finish(call, std::move(token));
    co_return client_answer(std::move(opened), std::move(call.answer()));
}

// Asks, stopped by the token too, until the call has its answer.
template <class Token>
task<> client::finish(client_call& call, Token token) {
    bool answered = false;
    std::exception_ptr error;
    {
        const stop_callback_for_t<Token, client_call::on_stop> callback(token,
                                                                        client_call::on_stop(call));
        try {
            answered = co_await call.perform();
        } catch (...) {
            error = std::current_exception();
        }
    }
    co_await client_call::settled(call);
    if (!answered && (call.stopped() || !error)) co_await execution::just_stopped();
    if (error) std::rethrow_exception(error);
}

template <class Token>
task<client_answer> client::open_on_loop(client_request r, Token token) {
    co_return co_await execution::starts_on(loop_.get_scheduler(),
                                            open(std::move(r), std::move(token)));
}

}  // namespace coppice::http
