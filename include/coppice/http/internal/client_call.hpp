// client_call: one request of a client in flight, its connection, and its turn at a limited host.
#pragma once
// A call repeats this cycle until it has an answer to give:
//
//   aimed -> admitted -> connected -> asked -> answered        the head is the caller's
//     ^  a redirect, a retry                    |
//     +---- its body is dropped <---------------+
//
// Each wait, for a turn, a name, or a time, is for a sender that the call's environment can stop,
// and that interrupt() ends through waiting_.

#include <coppice/base/intrusive.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/deadline.hpp>
#include <coppice/http/client_message.hpp>
#include <coppice/http/url.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/stop/inplace.hpp>

#include <coroutine>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

namespace coppice::http {

class client;

// An open connection, in use or kept.
struct client_connection : immovable {
    client_connection(io::context& loop, const io::endpoint& peer, std::string_view host,
                      std::uint16_t port_of_host)
        : socket(loop), to(peer), name(host), port(port_of_host) {}

    io::tcp::socket socket;
    io::endpoint to;
    std::string name;  // the host that was looked up; "": `to` was given
    std::uint16_t port;
    std::string input;  // received, not yet consumed
    internal::time_point used{};
    bool fresh = true;
};

// A call that waits for a connection to one host. It lies in the call's task.
struct client_waiter : list_hook<> {
    explicit client_waiter(class client_call& c) noexcept : call(&c) {}
    client_call* call;
};

// The connections in use to one host.
struct client_host {
    struct client_hosts* all = nullptr;
    const std::string* name = nullptr;  // its key in `all`
    std::size_t in_use = 0;
    intrusive_list<client_waiter> waiting;  // empty while in_use is below the maximum
};

// All hosts, if their connections are limited. Used on the loop.
struct client_hosts {
    std::size_t in_use_max = 0;
    std::size_t hosts_max = 0;  // hosts that stay here without a connection in use
    std::unordered_map<std::string, client_host> by_name;
};

// Where a request with a URL goes: at first, or after a redirect.
struct client_route {
    explicit client_route(http::url u) : url(std::move(u)) {}
    http::url url;
    io::endpoint to;     // unspecified: the host is looked up
    std::string fields;  // what a redirect leaves of the request's fields
};

// One request in flight, while it is awaited.
class client_call : io::timer_entry {
public:
    // How the answer's body is given.
    enum class bodies : unsigned char { whole, by_pieces };
    client_call(client& owner, const client_request& r, bodies how = bodies::whole) noexcept;
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
    enum class outcome : unsigned char { answered, redirected, failed };
    enum class step : unsigned char { piece, more, end };
    struct posted_stop : io::operation {
        explicit posted_stop(client_call& c) noexcept : operation(&arrive), call(c) {}
        static void arrive(operation* op) noexcept;
        client_call& call;
    };
    void stop() noexcept;
    void interrupt() noexcept;
    static void expired(io::timer_entry* entry) noexcept;
    void limit(internal::duration time) noexcept;
    void unlimit() noexcept;
    [[noreturn]] void fail(std::error_code error, const char* what) const;

    // client.cpp
    task<bool> perform_in_time(internal::duration total);
    task<bool> perform_until_stopped();
    task<bool> request();
    task<> ask();
    task<bool> attempt(bool may_fail);
    task<bool> until_interrupted(task<> work);
    task<> connect_by_name(std::error_code& ec);
    void let_go() noexcept;

    // client_route.cpp
    void aim();
    void aim_at(const url& at);
    url current_url() const;
    outcome judge();
    bool may_repeat() const noexcept;
    bool answer_repeats();
    bool becomes_get() const noexcept;
    bool answer_redirects();
    void follow();
    std::string remaining_fields(bool other_origin, bool without_body) const;
    std::optional<internal::duration> retry_after() const;
    bool before_deadline(internal::duration time) const noexcept;
    internal::duration next_delay() noexcept;
    task<> wait(internal::duration time);
    task<> admit();
    void release() noexcept;

    // client_request.cpp
    void write_request();
    bool body_apart() const noexcept;
    task<bool> exchange();
    task<bool> send_body(inplace_stop_token enough);
    task<bool> send_pieces();
    task<bool> send_piece(std::string_view piece);
    task<bool> send_output();

    // client_answer.cpp
    task<bool> receive_answer();
    task<bool> receive_head();
    void begin_body();
    task<> receive_body();
    task<> drop_body();
    task<std::string_view> next_piece();
    void break_off(std::error_code error, std::string_view what);
    step next_step(std::string_view& piece);
    step next_chunk(std::string_view& piece);
    void end_of_stream();
    task<> deliver(std::string_view piece);
    task<> give_to_sink(std::string_view piece);
    task<bool> receive_more();
    void finish();
    bool collects() const noexcept;
    void check_beginning(std::string_view news) const;
    void read_head(std::string_view head);
    void read_framing_field(std::string_view name, std::string_view value);

    client& client_;
    io::context& loop_;
    const client_request& request_;
    const bodies how_;
    inplace_stop_token outer_;  // the awaiter's, as is the deadline
    execution::instant deadline_ = execution::instant::never();
    internal::time_point end_ = internal::time_point::max();  // the end of its total time

    // Where and what is asked: from the request or from a redirect.
    std::unique_ptr<client_route> route_;  // only for a request with a URL
    const io::endpoint* to_ = nullptr;
    std::string_view name_;  // the host's, if it is looked up
    std::uint16_t port_ = 0;
    std::string_view host_field_;
    std::string_view target_;
    std::string_view method_;
    std::string_view fields_;
    bool without_body_ = false;  // a redirect has turned it into a GET

    std::size_t redirects_left_ = 0;
    std::size_t retries_left_ = 0;
    internal::duration delay_{};  // before the next try; grows
    internal::duration asked_delay_{};
    bool lost_ = false;  // the connection was lost before a byte of an answer

    client_host* host_ = nullptr;  // where this call has a connection, if they are limited
    inplace_stop_source* waiting_ = nullptr;  // of until_interrupted()

    std::unique_ptr<client_connection> connection_;
    std::string output_;
    client_response answer_;
    // The answer's framing.
    std::optional<std::uint64_t> length_;
    bool chunked_ = false;
    bool closes_ = false;
    bool version_1_0_ = false;
    bool keep_alive_ = false;
    // Its body.
    std::optional<chunk_decoder> decoder_;
    std::uint64_t left_ = 0;    // bytes of a body that is not chunked
    std::size_t consumed_ = 0;  // bytes of the input, taken by the piece that was given last
    bool last_chunk_ = false;
    std::error_code broken_;  // what read() has thrown, and throws from then on
    std::string broken_by_;
    outcome outcome_ = outcome::answered;
    std::size_t collected_ = 0;
    std::error_code ended_by_;  // none: the stream ended properly
    std::error_code send_error_;
    std::size_t sent_ = 0;  // bytes of the last piece
    std::optional<inplace_stop_source>
        enough_;            // stops a body that is sent while the answer is received
    bool sending_ = false;  // such a body is being sent, and enough_ may be asked to stop
    bool head_received_ = false;
    bool heard_ = false;  // a byte of an answer has arrived
    bool in_sink_ = false;

    posted_stop posted_operation_{*this};
    std::coroutine_handle<> waiter_;
    bool posted_ = false;  // written by the callback, read when the callback is gone
    bool arrived_ = false;
    bool stopped_ = false;
    bool late_ = false;
};

}  // namespace coppice::http
