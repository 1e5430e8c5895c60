// connection: one client's connection to http::server, and the states that it goes through.
#pragma once
// Each state has a file. Only the functions of that file enter the state, and only they write its
// members. docs/http-server.md says how each state is left: on bytes, on time, on a stop, on an
// error.
//
//   state         file             what is pending           entered by
//   idle          connection.cpp   a receive                 become_idle
//   reading_head  receiving.cpp    a receive                 await_head
//   reading_body  receiving.cpp    a receive                 await_body, await_piece
//   handling      handling.cpp     the handler, a receive    begin_run, resume_run, run_untimed,
//                                                            back_to_batch
//   overdue       handling.cpp     the handler               tell_to_stop
//   writing       writing.cpp      a send                    begin_writing
//   lingering     closing.cpp      a receive                 linger, give_up
//   multiplexing  multiplexing.cpp what its session waits for  multiplex, and stream_session
//   (gone)        closing.cpp      what the kernel still has end
//
// A batch is what one receive brought. It goes the short way if nothing has to be waited for, most
// often:
//
//   idle -> received -> advance() answers in the exchange -> sent -> idle
//
// Otherwise advance() returns the step that needs waiting, and a coroutine, attend(), takes the
// batch through the other states (conversing.cpp). The remaining files know no states:
// answering.cpp makes answers, refusing.cpp those that need no handler, streaming.cpp and
// incoming_body.cpp are for bodies in pieces, time_limits.cpp has the timer, budget.cpp the memory.

#include "secure_link.hpp"
#include "serving_loop.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace coppice::http {

using namespace internal;

// The PROXY header of a connection, and what it says.
struct proxied_client {
    const io::server_security* security = nullptr;  // encrypts what follows; nullptr: nothing
    std::string header;                             // a part that arrived alone
    io::endpoint client;                            // only if told
    bool is_read = false;
    bool is_told = false;
    address_counts::slot* counted = nullptr;  // the address; nullptr: it is not counted
};

// What a connection knows of where it comes from: the slot that counts its address, or a
// proxied_client, which it owns and which has the slot. One word, since a connection must be small.
class connection_source : immovable {
public:
    explicit connection_source(address_counts::slot* counted) noexcept
        : word_(reinterpret_cast<std::uintptr_t>(counted)) {}
    ~connection_source() { delete proxied(); }
    // Called at most once, before the address is counted.
    void become(proxied_client& p) noexcept {
        word_ = reinterpret_cast<std::uintptr_t>(&p) | proxied_bit;
    }
    proxied_client* proxied() const noexcept {
        if ((word_ & proxied_bit) == 0) [[likely]]
            return nullptr;
        return reinterpret_cast<proxied_client*>(word_ & ~proxied_bit);
    }
    address_counts::slot* counted() const noexcept {
        const proxied_client* const p = proxied();
        return p != nullptr ? p->counted : reinterpret_cast<address_counts::slot*>(word_);
    }

private:
    static constexpr std::uintptr_t proxied_bit = 1;
    std::uintptr_t word_;
};
class stream_session;

// An open connection. It owns itself and is the operation that receives. While it waits for a
// request, it holds nothing else: the exchange is lent with the first byte, and coroutines start
// when it has to wait for something.
//
// The connection belongs to its loop. While `away_` is set, a thread of the pool answers its batch,
// and may send. The loop then neither closes the socket nor touches the exchange; it only requests
// stops.
class connection : public list_hook<connection_list>, io::internal::ring_operation {
public:
    // Serves a connection until either side ends it. Returns false if there is no memory for it.
    // `security`: encrypts it, if that is not nullptr. `proxied`: begins with a PROXY header.
    static bool open(serving_loop& l, io::tcp::socket&& s, address_counts::slot* from,
                     const io::server_security* security, bool proxied) noexcept;
    // Serves the one request of a stream. The connection owns `stream` if this returns true.
    static bool open_stream(serving_loop& l, link& stream) noexcept;

    // Called when the server drains: ends after the current requests, or within a limit. If idle,
    // end_idle_in_drain() follows; a connection that has had no request may get the time for one.
    void drain() noexcept;
    // Called in a drain when nothing is left to read. Ends the connection if it is idle.
    void end_idle_in_drain() noexcept;
    // Ends the connection unless a request has arrived.
    void end_wait() noexcept;
    // Ends the connection, which has been idle for its time. Of HTTP/2 the client is told first.
    void end_idle() noexcept;
    // Ends the connection now. A running handler is stopped and waited for, but its answer is
    // dropped.
    void cut_off() noexcept;
    bool is_cut() const noexcept { return cut_; }
    // Returns true if the connection waits for a request, and nothing of one has arrived.
    bool is_waiting() const noexcept {
        return state_ == state::idle && batch_ == nullptr && socket_.is_open();
    }
    // Returns true if it is encrypted, or will be. Threads: any.
    bool is_secure() const noexcept { return link_ != nullptr && link_->is_secure(); }
    // Returns what its handshake has agreed on; nullptr in the clear. Threads: any, once a request
    // has come.
    const io::agreed_security* security() const noexcept {
        return link_ != nullptr ? link_->security() : nullptr;
    }
    // Returns what the bytes go through instead of the socket, or nullptr. Threads: any.
    const link* through() const noexcept { return link_.get(); }
    // Returns true unless its handshake or its PROXY header is still under way.
    bool is_ready() const noexcept {
        const proxied_client* const proxied = from_.proxied();
        if (proxied != nullptr && !proxied->is_read) return false;
        return link_ == nullptr || link_->is_ready();
    }
    // Returns the client that a PROXY header named, or nullptr. Threads: any, once it is read.
    const io::endpoint* told_client() const noexcept {
        const proxied_client* const proxied = from_.proxied();
        return proxied != nullptr && proxied->is_told ? &proxied->client : nullptr;
    }
    // Returns the proxies that the server trusts. Threads: any.
    const forwarding& trusted() const noexcept { return loop_.options.forwarding; }
    // Returns what numbers requests. Threads: any.
    mark_source& marks() const noexcept { return loop_.shared.marks; }
    time_point idle_until() const noexcept { return idle_until_; }
    // Makes the connection wait for requests as an idle one, from now on.
    void become_idle() noexcept;
    static void expired(io::timer_entry* entry) noexcept;  // the timer of an exchange
    // For serving_loop::send_soon(). Returns false if answers_sent() will be called; otherwise the
    // caller must call go_on().
    bool start_sending() noexcept;
    // Continues after a send whose result was known by the time `sent`. May end the connection.
    void go_on(time_point sent) noexcept;

private:
    connection(serving_loop& l, io::tcp::socket&& s, address_counts::slot* from) noexcept;
    connection(serving_loop& l, link& stream) noexcept;
    bool secure_by(const io::server_security& security) noexcept;
    ~connection();

    friend class incoming_body;
    friend class live_websocket;
    friend class outgoing_body;
    friend class peer_address;
    friend class stream_session;
    template <class T, class... Args>
    friend T* coppice::try_new(Args&&... args) noexcept;

    enum class state : unsigned char {
        idle,
        reading_head,
        reading_body,
        handling,  // the batch is being answered
        overdue,   // the handler has been told to stop
        writing,
        lingering,  // everything is sent; reads on, so that the client sees it
        multiplexing,  // its session has the socket
    };

    // Why answering a batch cannot continue without waiting, or what comes next.
    enum class step : unsigned char {
        admitted,  // only the handler can answer the request
        answered,  // the request's answer is in the output; continue with the next request
        drop,      // likewise, but first receive and drop the rest of the body
        idle,      // all requests are answered
        last,      // the answers in the output are the last
        input,     // a head is incomplete
        body,      // a body is incomplete
        flush,     // too much output is unsent
        depart,    // the request is for the pool
        handler,   // the request's handler is asynchronous
        stream,    // the answer's body comes in pieces
        preface,   // these are not requests, but the beginning of HTTP/2
        gone,      // the connection has ended
    };

    // connection.cpp: idle, and the short way.
    void serve() noexcept;
    bool await_input() noexcept;
    void begin_handshake() noexcept;
    bool may_wait_in_drain() const noexcept;
    void become_busy() noexcept;
    bool start_receiving(void (*then)(operation*) noexcept) noexcept;
    static connection& receive_ended(operation* op) noexcept;
    static void received(operation* op) noexcept;
    bool take_input() noexcept;
    io::pooled_buffer take_received() noexcept;
    bool send_answers(std::optional<time_point> sent) noexcept;
    static void answers_sent(operation* op) noexcept;
    bool note_sent(exchange& e) noexcept;
    void rest() noexcept;
    void begin_batch(exchange& e, io::pooled_buffer received) noexcept;
    void end_batch(time_point sent) noexcept;

    // multiplexing.cpp: a client that speaks HTTP/2.
    static void greeted(operation* op) noexcept;
    [[gnu::cold, gnu::noinline]] bool is_preface(const exchange& e) const noexcept;
    [[gnu::cold, gnu::noinline]] void multiplex_rest(exchange& e) noexcept;
    void multiplex(std::string_view first) noexcept;

    void count(exchange& e) noexcept;
    void account(exchange& e, time_point sent) noexcept;

    // proxied.cpp: the PROXY header at the beginning of a connection.
    void await_proxy_header(const io::server_security* security) noexcept;
    void receive_proxy_header() noexcept;
    static void proxy_header_received(operation* op) noexcept;
    bool take_proxy_header() noexcept;
    void begin_proxied(std::size_t header_bytes) noexcept;
    bool count_client(proxied_client& client) noexcept;

    // conversing.cpp: the long way, from state to state.
    [[gnu::noinline]] session attend(step s, bool& began);
    task<bool> converse(exchange& e, step s);

    // receiving.cpp: reading_head, reading_body, and reading ahead.
    class next_input;
    class input_stop;
    void await_head(exchange& e) noexcept;
    void await_body() noexcept;
    void await_piece(std::uint64_t received, duration taken, duration most) noexcept;
    bool keep(exchange& e);
    task<bool> receive_more(exchange& e, std::size_t whole = 0);
    task<step> receive_head(exchange& e);
    task<step> receive_body(exchange& e);
    task<step> receive_chunked(exchange& e);
    task<step> drop_body(exchange& e);
    task<step> drop_chunked(exchange& e);
    void read_again(exchange& e, std::string_view moved);
    bool may_receive_now() const noexcept;
    std::size_t receive_now(std::span<char> into) noexcept;
    void receive_one_by_one(bool wanted) noexcept;
    void watch() noexcept;
    void keep_received() noexcept;
    void note_end(int outcome) noexcept;
    static void received_ahead(operation* op) noexcept;

    // handling.cpp: handling and overdue.
    void begin_run(exchange& e);
    void resume_run(exchange& e) noexcept;
    void run_untimed() noexcept;
    void back_to_batch() noexcept;
    void tell_to_stop() noexcept;
    void end_run(exchange& e) noexcept;
    void request_stop() noexcept;
    task<step> run_handler(exchange& e);
    task<step> run_reading_handler(exchange& e);
    void keep_head(exchange& e);
    step conclude(exchange& e, std::optional<response> made, const std::exception_ptr& error,
                  const request& r);
    std::optional<response> answer_to_stopped(exchange& e);

    // away.cpp: handling on a thread of the pool.
    void prepare_departure(exchange& e);
    [[nodiscard]] bool begin_away(exchange& e) noexcept;
    bool come_home_at_once() noexcept;
    task<> come_home();
    void at_home() noexcept;
    bool is_on_time() noexcept;

    // writing.cpp: writing.
    void begin_writing(std::uint64_t bytes) noexcept;
    void wait_for_sending() noexcept;
    bool write_at_once(exchange& e) noexcept;
    task<bool> write(exchange& e);
    bool send_directly(exchange& e) noexcept;
    task<> send_through_link(std::span<const std::byte> bytes, std::size_t& sent,
                             std::error_code& ec);
    task<bool> send_file(exchange& e, file_part part);
    task<bool> send_file_in_pieces(exchange& e, file_part part);

    // closing.cpp: lingering, and the end.
    class end_of_late_answer;
    task<> linger(exchange& e);
    void give_up() noexcept;
    static void late_answer_sent(operation* op) noexcept;
    void abort() noexcept;
    void break_off() noexcept;
    void say_end() noexcept;
    void close_socket() noexcept;
    [[gnu::cold, gnu::noinline]] void run_out_of_memory() noexcept;
    [[gnu::cold, gnu::noinline]] void end() noexcept;
    static void received_last(operation* op) noexcept;

    // time_limits.cpp: how long a state may last.
    void enter(state s, duration time) noexcept;
    void set_deadline(time_point when) noexcept;
    void end_within(duration time) noexcept;
    duration time_in_drain(duration time) const noexcept;
    void allow_time_for(time_point began, std::uint64_t received) noexcept;
    void run_out_of_time() noexcept;
    duration transfer_time(duration base, std::uint64_t bytes) const noexcept;

    // budget.cpp: memory for what is received and sent.
    bool make_room(exchange& e, std::size_t more, std::size_t whole = 0);
    bool reserve(exchange& e, std::size_t bytes) noexcept;
    bool has_room_for(exchange& e, std::uint64_t length) noexcept;
    [[gnu::cold, gnu::noinline]] step give_way(exchange& e);
    bool reserve_output(exchange& e) noexcept;
    static void give_output_back(exchange& e) noexcept;
    static void give_back(exchange& e, std::size_t& part) noexcept;
    void reserve_ahead(exchange& e) noexcept;

    // answering.cpp: from requests to answers.
    step advance(exchange& e);
    bool is_plain(const exchange& e) const noexcept;
    [[gnu::noinline]] step admit(exchange& e);
    step respond(exchange& e);
    step settle(exchange& e, step s);
    step finish(exchange& e, response&& made, const request& r);
    static bool upgrades(const response& made) noexcept;
    bool fits(const response& made) const noexcept;
    [[gnu::noinline]] void pass_filters(exchange& e, response& made, const request& r);
    response call(exchange& e, const handler& h, request& r);
    [[gnu::cold, gnu::noinline]] void decide_about_rest(exchange& e, const request_head* head);
    serialize_options framing(exchange& e, const response& r, const request_head* head);
    void put(exchange& e, const response& r, const request_head* head);
    std::string_view date_for(const exchange& e) noexcept;
    void note(exchange& e, int status, std::uint64_t body_bytes, const request_head* head);
    [[gnu::cold, gnu::noinline]] void count_route(const exchange& e, int status,
                                                  const request_head* head) noexcept;

    // refusing.cpp: answers that need no handler.
    std::optional<response> answer_without_handler(exchange& e, const request& r);
    std::optional<response> refuse_large_body(exchange& e);
    static response refusal(exchange& e, int status, const char* reason);
    [[gnu::cold, gnu::noinline]] static response no_room(exchange& e);
    [[gnu::cold, gnu::noinline]] void refuse(exchange& e, int status, const char* reason);
    [[gnu::cold, gnu::noinline]] response unfit_answer(exchange& e, int status);
    [[gnu::cold, gnu::noinline]] response answer_to(exchange& e,
                                                    const std::exception_ptr& error) noexcept;
    [[gnu::cold, gnu::noinline]] void report_exception(exchange& e,
                                                       std::exception_ptr error) noexcept;

    // streaming.cpp: answers in pieces.
    task<step> send_stream(exchange& e);

    // websocket_sending.cpp: the connection becomes a WebSocket.
    task<step> serve_websocket(exchange& e, std::optional<response> answer);

    // logging.cpp: the access log.
    [[gnu::noinline]] void log(exchange& e, int status, std::uint64_t body_bytes,
                               const request_head* head);

    // Starts an operation on the socket, or on what encrypts it. Returns true if it has ended.
    bool start(io::internal::ring_operation& op) noexcept;

    serving_loop& loop_;
    slotted_socket socket_;       // closed by closing.cpp, and by attend() at its end
    link::owned link_;            // nullptr: bytes go to and from the socket as they are
    connection_source from_;
    exchange* batch_ = nullptr;   // the batch that is being answered: begin_batch(), end_batch()
    stream_session* session_ = nullptr;  // while multiplexing: multiplex(), stream_session
    time_point idle_until_{};     // written by become_idle()
    std::uint32_t served_ = 0;    // written by framing()
    state state_ = state::idle;   // written by become_idle(), enter(), and back_to_batch()
    bool receiving_ = false;      // the receive operation is pending: connection.cpp
    bool away_ = false;           // a thread of the pool has the batch: away.cpp
    bool cut_ = false;            // cut_off() was called
    bool is_stream_ = false;      // it serves a stream: open_stream()
};

inline bool connection::start(io::internal::ring_operation& op) noexcept {
    if (link_ != nullptr) [[unlikely]]
        return link_->start(op);
    op.on = socket_.slot();
    return loop_.context.start_here(op);
}

inline bool connection::start_sending() noexcept {
    exchange& e = *batch_;
    if (!socket_.is_open()) [[unlikely]] {
        e.sender.result = -ECANCELED;
        return true;
    }
    e.sender.complete = &answers_sent;
    e.sender.data = reinterpret_cast<std::byte*>(e.output.data()) + e.sent;
    e.sender.size = e.output.size() - e.sent;
    if (start(e.sender)) return true;
    wait_for_sending();
    return false;
}

// Enters `handling` again after a wait, with the time that is left: the batch goes on at once.
inline void connection::back_to_batch() noexcept {
    state_ = state::handling;
}

// Notes that the pending receive has ended.
inline connection& connection::receive_ended(operation* op) noexcept {
    connection& c = *static_cast<connection*>(static_cast<ring_operation*>(op));
    c.receiving_ = false;
    return c;
}

}  // namespace coppice::http
