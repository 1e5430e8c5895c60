// The insides of http::server, shared by its sources: loops, connections, and what they answer.
#pragma once
// server.cpp has the loops, connection.cpp what comes and what is sent, answering.cpp the answers
// that need no waiting, waiting.cpp those that do, streaming.cpp bodies in pieces.

#include <coppice/base/atomic.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/server.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/trace/counter.hpp>

#include <cerrno>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "request_end.hpp"

namespace coppice::http {

class connection;

inline std::string_view text_of(const io::pooled_buffer& buffer) noexcept {
    return {reinterpret_cast<const char*>(buffer.bytes().data()), buffer.bytes().size()};
}

// What was received before anyone asked for it: in a batch whose handler was being waited for.
struct read_ahead {
    static constexpr unsigned buffers_max = 4;

    bool is_full() const noexcept { return count == buffers_max; }
    bool has_news() const noexcept { return count != 0 || ended; }
    void push(io::pooled_buffer&& b) noexcept {
        kept[(first + count++) % buffers_max] = std::move(b);
    }
    io::pooled_buffer pop() noexcept {
        io::pooled_buffer next = std::move(kept[first]);
        first = (first + 1) % buffers_max;
        --count;
        return next;
    }
    void clear() noexcept {
        while (count != 0) pop();
        first = 0;
        if (!std::exchange(ended, false)) return;
        error = {};
    }

    std::array<io::pooled_buffer, buffers_max> kept;
    unsigned first = 0;
    unsigned count = 0;
    bool ended = false;              // nothing more will come
    std::error_code error;           // only if ended
    std::coroutine_handle<> waiter;  // wants the next buffer, or the end
};

// Who answers a request whose handler runs on the pool: the pool's thread, or its loop in its place
// when the handler does not end in time. Threads: any.
class right_to_answer {
public:
    // The handler starts. `alone`: no earlier answer is waiting to be sent.
    void begin(bool alone) noexcept {
        const std::lock_guard lock(mutex_);
        alone_ = alone;
    }
    // The handler has ended. False: the connection has been given up.
    [[nodiscard]] bool end() noexcept {
        const std::lock_guard lock(mutex_);
        alone_ = false;
        return !given_up_;
    }
    // The loop waits no longer. True: a handler is running and its answer is the next: what the
    // exchange has is the loop's until the batch comes home.
    [[nodiscard]] bool give_up() noexcept {
        const std::lock_guard lock(mutex_);
        given_up_ = true;
        return alone_;
    }
    // While no thread of the pool has the batch.
    void reset() noexcept { alone_ = given_up_ = false; }

private:
    std::mutex mutex_;
    bool alone_ = false;
    bool given_up_ = false;
};

// What serving one batch of requests needs; lent by the loop, so that idle connections hold none.
// While the batch is on the pool it is that thread's, but for `stop`, `right`, and the loop's own:
// the timer, the sender, and what is read ahead. The lines of the cache that a batch touches cost
// more than what it does with them: so most batches leave the second half alone.
struct alignas(64) exchange : io::timer_entry {
    exchange(const limits& l, void (*expired)(timer_entry*) noexcept) noexcept
        : timer_entry(expired), parser(l) {}
    // For the next batch, which may have been read ahead.
    void clear() noexcept;

    connection* owner = nullptr;  // nullptr: it is free, and its timer, if armed, means nothing
    time_point deadline{};        // of the owner's phase
    time_point armed_for{};       // when the timer will look at the deadline
    struct sending : io::ring_operation {
        explicit sending(exchange& e) noexcept : ring_operation(nullptr, io::opcode::send), of(e) {}
        exchange& of;
    };
    sending sender{*this};
    time_point began{};
    io::pooled_buffer buffer;  // what was received, until it is consumed or has to be kept
    std::string_view left;     // of it or of `input`: what has not been consumed
    std::string output;        // answers not yet written
    std::size_t sent = 0;      // of `output`
    // What the loop has not counted yet: runs of answers of one status, mostly one of one.
    struct run {
        int status = 0;
        unsigned count = 0;
    };
    run latest;                        // the last ones
    std::vector<run> earlier;          // than these
    std::size_t written_requests = 0;  // counted, but for how long they took
    std::size_t bytes_sent = 0;
    std::size_t exceptions = 0;
    std::size_t stops = 0;
    // The request that is being answered.
    std::size_t head_bytes = 0;
    std::size_t body_bytes = 0;
    request_end end;
    std::string_view body;
    request_origin origin;
    bool closing = false;       // the answers now in `output` are the last
    bool unread = false;        // closing while the client may still send
    bool in_head = false;       // its head is being waited for
    bool streaming = false;     // an answer has begun whose body comes in pieces
    bool given_up = false;      // the handler did not end in time, and answers nobody any more
    bool sending_late = false;  // what give_up() has to say
    bool more = false;          // what is below `parser` may be in use
    route_match<handler> match;
    head_parser parser;

    std::string input;  // bytes of a request that did not come in one piece
    std::string rest;
    std::string trailers;
    std::string log;   // lines of the answers in `output`
    std::string peer;  // for the log; "": not asked for yet
    right_to_answer right;
    read_ahead ahead;
    std::coroutine_handle<> late_waiter;  // wants what is sent late to end
    std::string head;                     // of a request whose handler reads the body
    std::array<char, 29> date;            // for answers of a thread of the pool
    std::optional<response> streamed;     // the answer, if its body comes in pieces
    // Handlers are being waited for, or run elsewhere: engaged and reset on the loop.
    std::optional<inplace_stop_source> stop;
};

// Counts of one loop; written by its thread.
struct loop_counts {
    trace::counter accepted, refused, closed, timed_out, exceptions, stopped;
    trace::counter bytes_received, bytes_sent;
    std::array<trace::counter, 500> by_status;
    // Answers that were sent from the pool; written by its threads, nothing rides on them.
    std::array<atomic<std::uint64_t>, 500> by_status_away{};
    trace::histogram latency;
};

// Open connections by client address, over all loops. Threads: any.
class address_counts : immovable {
public:
    using address = std::array<unsigned char, 16>;
    using slot = std::pair<const address, std::size_t>;

    // Nullptr: the address has its `most` connections already. Cost: a system call, a lock and a
    // tree.
    slot* enter(int file, std::size_t most);
    void leave(slot& s) noexcept;

private:
    std::mutex mutex_;
    std::map<address, std::size_t> open_;
};

struct connection_list;  // the tag of a loop's list

// What loops share.
struct serving_shared {
    server_options options;
    router routes;
    thread_pool* pool = nullptr;
    limits parser_limits;  // those of the options, wide enough for streamed bodies
    atomic<std::size_t> open_connections{0};  // of all loops; nothing rides on it
    address_counts addresses;
};

// One event loop of a server. Everything but `counts` belongs to its thread.
struct serving_loop : immovable {
    serving_loop(serving_shared& s, io::tcp::acceptor_options how)
        : shared(s),
          options(s.options),
          routes(s.routes),
          context(s.options.simulation != nullptr ? io::context(*s.options.simulation)
                                                  : io::context(s.options.backend)),
          acceptor(context, s.options.endpoint, how) {}

    exchange& take_exchange(connection& owner);
    void give_exchange(exchange& used) noexcept;
    // The connection waits for a request from now on; it is the last to have begun to.
    void add_idle(connection& c) noexcept;
    // Of the present turn.
    std::string_view date() noexcept;
    // Takes over the log lines of answers that have been written.
    void log(std::string& lines) noexcept;
    // The answers in `e` are to be sent with others of this turn, one after the other, so that the
    // kernel's way through a send stays in the caches; before this returns if they are enough.
    void send_soon(exchange& e) noexcept;

    // Whether the handler runs on the pool.
    bool on_pool(const handler& h) const noexcept {
        if (shared.pool == nullptr) return false;
        if (h.needs().pool || options.model == model::worker) return true;
        return options.model == model::async && !h.is_asynchronous();
    }

    // Closes what is idle and gives the rest until `hard_stop` has passed.
    void begin_drain(duration hard_stop) noexcept;
    void connection_ended() noexcept;

    serving_shared& shared;
    const server_options& options;
    const router& routes;
    intrusive_list<connection, connection_list> connections;  // but for the idle ones
    intrusive_list<connection, connection_list> idle;         // the longest idle first
    std::vector<std::unique_ptr<exchange>> exchanges;         // free ones
    time_point batch_ended{};                                 // the last one
    std::string log_lines;
    date_cache dates;
    time_point dated = time_point::min();  // the turn of the last date
    bool draining = false;
    loop_counts counts;
    // What send_soon() keeps, and who sends it when the ring has told everything that there was.
    struct answer_group : io::operation {
        explicit answer_group(serving_loop& l) noexcept : operation(&end), loop(l) {}
        static void end(operation* op) noexcept;
        serving_loop& loop;
        io::operation_queue senders;  // of exchanges
        unsigned size = 0;
        unsigned size_max = 1;  // small while handlers are slow
        bool deferred = false;
        bool sending = false;
        time_point sent{};  // the last group
    };
    answer_group group{*this};
    // Ends before what is above: its end resumes sessions that use them.
    io::context context;
    // A ring that is io_uring keeps what it is to send until its next turn anyway.
    const bool sends_in_groups = context.kind() != io::backend::uring;
    io::tcp::acceptor acceptor;

private:
    // Calls a function of its loop when its time has come.
    struct loop_timer : io::timer_entry {
        loop_timer(serving_loop& o, void (serving_loop::*f)() noexcept) noexcept
            : timer_entry(&expired), owner(o), function(f) {}
        static void expired(timer_entry* entry) noexcept;
        serving_loop& owner;
        void (serving_loop::*function)() noexcept;
    };
    void send_group() noexcept;
    void cut_off() noexcept;
    void end_idle() noexcept;
    void hand_log_over() noexcept;
    loop_timer cut_off_{*this, &serving_loop::cut_off};
    loop_timer end_idle_{*this, &serving_loop::end_idle};
    loop_timer log_hand_over_{*this, &serving_loop::hand_log_over};
};

// A coroutine that owns itself: a batch's that has to wait, or an accept loop's.
struct session {
    struct promise_type {
        static void* operator new(std::size_t bytes) { return frame_pool::allocate(bytes); }
        static void operator delete(void* memory, std::size_t bytes) noexcept {
            frame_pool::deallocate(memory, bytes);
        }
        session get_return_object() const noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        // Sessions catch what handlers throw; anything else (no memory) has nowhere to go.
        void unhandled_exception() const noexcept { std::terminate(); }
    };
};

// A tcp::socket that says which of the loop's descriptors it is.
class served_socket : public io::tcp::socket {
public:
    explicit served_socket(io::tcp::socket&& s) noexcept : socket(std::move(s)) {}
    io::descriptor* slot() const noexcept { return reference().on; }
};

// An open connection; owns itself. It is the operation that receives, and while it waits for a
// request it is all that there is: the exchange comes with the first byte, and coroutines when
// something has to be waited for. So most batches are:
//
//   idle, receiving -> received -> answered in the exchange -> sent -> idle
//
// It belongs to its loop, but while `away_` is set a thread of the pool answers its batch, and may
// send: then the loop neither closes the socket nor touches the exchange, it only requests stops.
class connection : public list_hook<connection_list>, io::ring_operation {
public:
    // Serves a connection until either side ends it.
    static void open(serving_loop& l, io::tcp::socket s, address_counts::slot* from);

    // The server stops: ends at once if idle, after the present requests otherwise.
    void drain() noexcept;
    // Ends now; a handler that is running is stopped and waited for, but its answer is dropped.
    void cut_off() noexcept;
    bool is_cut() const noexcept { return cut_; }
    time_point idle_until() const noexcept { return idle_until_; }
    static void expired(io::timer_entry* entry) noexcept;  // an exchange's timer
    // Of serving_loop::send_soon(). False: answers_sent() will be called; else go_on() has to be.
    bool start_sending() noexcept;
    // After a send whose result is known, by `sent`. May end it.
    void go_on(time_point sent) noexcept;

private:
    connection(serving_loop& l, io::tcp::socket&& s, address_counts::slot* from) noexcept;
    ~connection();

    friend class incoming_body;
    friend class outgoing_body;

    enum class phase : unsigned char {
        idle,
        header,
        body,
        handling,
        overdue,  // the handler has been told to stop
        writing,
        lingering,
    };

    // Why answering a batch cannot go on without waiting.
    enum class step : unsigned char {
        admitted,  // nothing but the handler can answer the request
        answered,  // the request's answer is in the output: on to the next
        drop,      // likewise, but the rest of the body has to be received and dropped first
        idle,      // all requests are answered
        last,      // the answers in the output are the last
        input,     // a head is incomplete
        body,      // a body is incomplete
        flush,     // too much output waits
        depart,    // the request is for the pool
        handler,   // the request's handler is asynchronous
        stream,    // the answer's body comes in pieces
        gone,      // the connection is over
    };

    // connection.cpp
    void serve() noexcept;
    bool await_input() noexcept;
    void become_idle() noexcept;
    void become_busy() noexcept;
    bool start_receiving(void (*then)(operation*) noexcept) noexcept;
    static void received(operation* op) noexcept;
    bool take_input() noexcept;
    io::pooled_buffer take_received() noexcept;
    bool send_answers(std::optional<time_point> sent) noexcept;
    static void answers_sent(operation* op) noexcept;
    bool note_sent(exchange& e) noexcept;
    void wait_for_sending() noexcept;
    void rest() noexcept;
    [[gnu::cold, gnu::noinline]] void end() noexcept;
    static void received_last(operation* op) noexcept;
    void enter(phase p, duration time) noexcept;
    void set_deadline(time_point when) noexcept;
    void run_out_of_time() noexcept;
    duration transfer_time(duration base, std::uint64_t bytes) const noexcept;
    void begin_batch(exchange& e, io::pooled_buffer received) noexcept;
    void end_batch(time_point sent) noexcept;
    void count(exchange& e) noexcept;
    void account(exchange& e, time_point sent) noexcept;

    // waiting.cpp
    class next_input;
    class end_of_late_answer;
    [[gnu::noinline]] session attend(step s);
    task<bool> converse(exchange& e, step s);
    void keep(exchange& e);
    task<bool> receive_more(exchange& e);
    task<step> receive_head(exchange& e);
    task<step> receive_body(exchange& e);
    task<step> receive_chunked(exchange& e);
    void allow_time_for(time_point began, std::uint64_t received) noexcept;
    task<step> drop_body(exchange& e);
    task<step> drop_chunked(exchange& e);
    task<step> run_handler(exchange& e);
    step conclude(exchange& e, std::optional<response> made, const std::exception_ptr& error,
                  const request& r);
    void begin_run(exchange& e);
    void end_run(exchange& e) noexcept;
    void request_stop() noexcept;
    void prepare_departure(exchange& e);
    task<> come_home();
    void at_home() noexcept;
    void watch() noexcept;
    void keep_received() noexcept;
    static void received_ahead(operation* op) noexcept;
    task<bool> write(exchange& e);
    bool send_directly(exchange& e) noexcept;
    task<> linger();
    void give_up() noexcept;
    static void late_answer_sent(operation* op) noexcept;

    // answering.cpp
    step advance(exchange& e);
    bool is_plain(const exchange& e) const noexcept;
    [[gnu::noinline]] step admit(exchange& e);
    step respond(exchange& e);
    step settle(exchange& e, step s);
    step finish(exchange& e, response&& made, const request& r);
    [[gnu::noinline]] void pass_filters(exchange& e, response& made, const request& r);
    std::optional<response> answer_without_handler(exchange& e, const request& r);
    std::optional<response> refuse_large_body(exchange& e);
    response call(exchange& e, const handler& h, request& r);
    [[gnu::cold, gnu::noinline]] response interim_answer(exchange& e);
    static response refusal(exchange& e, int status, const char* reason);
    [[gnu::cold, gnu::noinline]] void refuse(exchange& e, int status, const char* reason);
    [[gnu::cold, gnu::noinline]] void report_exception(exchange& e,
                                                       std::exception_ptr error) noexcept;
    [[gnu::cold, gnu::noinline]] void decide_about_rest(exchange& e, const request_head* head);
    serialize_options framing(exchange& e, const response& r, const request_head* head);
    void put(exchange& e, const response& r, const request_head* head);
    std::string_view date_for(const exchange& e) noexcept;
    void note(exchange& e, int status, std::uint64_t body_bytes, const request_head* head);
    [[gnu::noinline]] void log(exchange& e, int status, std::uint64_t body_bytes,
                               const request_head* head);

    // streaming.cpp
    task<step> run_reading_handler(exchange& e);
    task<step> send_stream(exchange& e);
    task<bool> send_file(exchange& e, file_part part);
    void keep_head(exchange& e);
    void abort() noexcept;
    void break_off() noexcept;

    serving_loop& loop_;
    served_socket socket_;
    address_counts::slot* from_;  // nullptr: addresses are not counted
    exchange* batch_ = nullptr;   // what is being answered
    time_point idle_until_{};
    std::uint32_t served_ = 0;
    phase phase_ = phase::idle;
    bool receiving_ = false;  // this operation is pending
    bool away_ = false;       // a thread of the pool has the batch
    bool cut_ = false;        // cut_off() was called
};

inline bool connection::start_sending() noexcept {
    exchange& e = *batch_;
    if (!socket_.is_open()) [[unlikely]] {
        e.sender.result = -ECANCELED;
        return true;
    }
    e.sender.on = socket_.slot();
    e.sender.complete = &answers_sent;
    e.sender.data = reinterpret_cast<std::byte*>(e.output.data()) + e.sent;
    e.sender.size = e.output.size() - e.sent;
    if (loop_.context.start_here(e.sender)) return true;
    wait_for_sending();
    return false;
}

}  // namespace coppice::http
