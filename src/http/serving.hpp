// The internals of http::server, shared by its sources: loops, connections, and batches of answers.
#pragma once
// server.cpp has the loops. connection.cpp has what arrives and what is sent. answering.cpp has the
// answers that need no waiting, waiting.cpp those that do, and streaming.cpp bodies in pieces.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/server.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/trace/counter.hpp>

#include "accepting.hpp"
#include "budget.hpp"
#include "exchange.hpp"

#include <cerrno>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace coppice::http {

using namespace internal;

// The counts of one loop. Written by its thread.
struct loop_counts {
    trace::counter accepted, refused, shed, closed, timed_out, exceptions, stopped;
    trace::counter bytes_received, bytes_sent;
    std::array<trace::counter, 500> by_status;
    // Answers that were sent from the pool. Written by its threads; nothing depends on their order.
    std::array<atomic<std::uint64_t>, 500> by_status_away{};
    trace::histogram latency;
};

struct connection_list;  // the tag of a loop's list
struct serving_loop;

// What the loops share.
struct serving_shared {
    explicit serving_shared(server_options&& o)
        : options(std::move(o)),
          budget(options.buffered_bytes_max.value_or(default_buffered_bytes())),
          per_address(address_limit::of(options)) {}

    server_options options;
    router routes;
    thread_pool* pool = nullptr;
    limits parser_limits;  // those of the options, large enough for streamed bodies
    atomic<std::size_t> open_connections{0};  // of all loops; nothing depends on its order
    address_counts addresses;
    byte_budget budget;
    const address_limit per_address;
    std::vector<serving_loop*> loops;  // complete before any of them runs
    // Waits until the drain has ended on all loops. The last loop to end posts it to the first
    // loop.
    io::operation* after_drain = nullptr;  // written before any loop runs
    atomic<std::size_t> loops_drained{0};  // nothing depends on its order
};

// One loop of a server. Everything except `counts` belongs to its thread.
struct serving_loop : immovable {
    serving_loop(serving_shared& s, io::tcp::acceptor_options how)
        : shared(s),
          options(s.options),
          routes(s.routes),
          context(s.options.simulation != nullptr ? io::context(*s.options.simulation)
                                                  : io::context(s.options.backend)),
          acceptor(context, s.options.endpoint, how) {}

    // Returns nullptr if there is no memory.
    exchange* take_exchange(connection& owner) noexcept;
    void give_exchange(exchange& used) noexcept;
    // Notes that the connection waits for a request from now on; it becomes the last of the idle
    // ones.
    void add_idle(connection& c) noexcept;
    // Returns true if a client can be let in, perhaps in the place of an idle connection of this
    // loop.
    bool has_room() noexcept;
    // Serves an accepted connection, or refuses it.
    void let_in(io::tcp::socket&& s) noexcept;
    // Returns the connection that has waited longest for a request, or nullptr.
    connection* longest_idle() noexcept;
    // Closes that connection. Returns false if there is none.
    bool shed_idle() noexcept;
    // Asks the other loops to close one of theirs. Returns true if a loop that may have one has not
    // answered yet.
    bool ask_others_to_shed() noexcept;
    // Returns the date of the current turn.
    std::string_view date() noexcept;
    // Takes the log lines of answers that have been written.
    void log(std::string& lines) noexcept;
    // Sends the answers in `e` together with others of this turn, one after the other, so that the
    // kernel's code for a send stays in the caches. Sends before it returns if enough answers have
    // been collected.
    void send_soon(exchange& e) noexcept;

    // Returns true if the handler runs on the pool.
    bool on_pool(const handler& h) const noexcept {
        if (shared.pool == nullptr) return false;
        if (h.needs().pool || options.model == model::worker) return true;
        return options.model == model::async && h.is_plain();
    }
    // Returns the workers to which the handler's awaited work may be forked, or nullptr.
    const fork_team* team_of(const handler& h) const noexcept {
        return on_pool(h) ? execution::team_of(shared.pool->get_scheduler()) : nullptr;
    }

    // Closes idle connections, and gives the others until `hard_stop` has passed.
    void begin_drain(duration hard_stop) noexcept;
    // Ends the remaining connections now.
    void cut_off() noexcept;
    void connection_ended() noexcept;

    serving_shared& shared;
    const server_options& options;
    const router& routes;
    intrusive_list<connection, connection_list> connections;  // without the idle ones
    intrusive_list<connection, connection_list>
        idle;  // the one that has been idle longest is first
    std::vector<std::unique_ptr<exchange>> exchanges;  // those that are free
    time_point batch_ended{};                          // when the last batch ended
    std::string log_lines;
    date_cache dates;
    time_point dated = time_point::min();  // the turn of the last date
    bool draining = false;
    bool drained = false;
    loop_counts counts;
    shed_request shed_for_others{*this};
    reserve_descriptor reserve;
    // What send_soon() has collected. Sends it when the ring has reported all its events.
    struct answer_group : io::operation {
        explicit answer_group(serving_loop& l) noexcept : operation(&end), loop(l) {}
        static void end(operation* op) noexcept;
        serving_loop& loop;
        io::operation_queue senders;  // of exchanges
        unsigned size = 0;
        unsigned size_max = 1;  // small while handlers are slow
        bool deferred = false;
        bool sending = false;
        time_point sent{};  // when the last group was sent
    };
    answer_group group{*this};
    // Destroyed before the members above: destroying it resumes sessions that use them.
    io::context context;
    // io_uring keeps what it is to send until its next turn anyway.
    const bool sends_in_groups = context.kind() != io::backend::uring;
    io::tcp::acceptor acceptor;
    const bool simulated = options.simulation != nullptr;

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
    void end_idle() noexcept;
    void hand_log_over() noexcept;
    loop_timer cut_off_{*this, &serving_loop::cut_off};
    loop_timer end_idle_{*this, &serving_loop::end_idle};
    loop_timer log_hand_over_{*this, &serving_loop::hand_log_over};
};

// A coroutine that owns itself: that of a batch that has to wait, or of an accept loop. It reports
// through a reference that it has begun; it does not begin if there is no memory. It cannot report
// by its result, which may lie in its frame, and the frame may be gone when the call returns.
struct session {
    struct promise_type {
        static void* operator new(std::size_t bytes) noexcept {
            try {
                return frame_pool::allocate(bytes);
            } catch (const std::bad_alloc&) {
                return nullptr;
            }
        }
        static void operator delete(void* memory, std::size_t bytes) noexcept {
            frame_pool::deallocate(memory, bytes);
        }
        static session get_return_object_on_allocation_failure() noexcept { return {}; }
        session get_return_object() const noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        // Sessions catch every exception that may be thrown in them.
        void unhandled_exception() const noexcept { std::terminate(); }
    };
};

// A tcp::socket that tells which of the loop's descriptors it is.
class served_socket : public io::tcp::socket {
public:
    explicit served_socket(io::tcp::socket&& s) noexcept : socket(std::move(s)) {}
    io::internal::descriptor* slot() const noexcept { return reference().on; }
};

// An open connection. It owns itself and is the operation that receives. While it waits for a
// request, it holds nothing else: the exchange is lent with the first byte, and coroutines start
// when it has to wait for something. Most batches therefore go like this:
//
//   idle, receiving -> received -> answered in the exchange -> sent -> idle
//
// The connection belongs to its loop. While `away_` is set, a thread of the pool answers its batch,
// and may send. The loop then neither closes the socket nor touches the exchange; it only requests
// stops.
class connection : public list_hook<connection_list>, io::ring_operation {
public:
    // Serves a connection until either side ends it. Returns false if there is no memory for it.
    static bool open(serving_loop& l, io::tcp::socket&& s, address_counts::slot* from) noexcept;

    // Called when the server drains: ends at once if idle, otherwise after the current requests.
    void drain() noexcept;
    // Ends the connection now. A running handler is stopped and waited for, but its answer is
    // dropped.
    void cut_off() noexcept;
    bool is_cut() const noexcept { return cut_; }
    // Returns true if the connection waits for a request, and nothing of one has arrived.
    bool is_waiting() const noexcept {
        return phase_ == phase::idle && batch_ == nullptr && socket_.is_open();
    }
    time_point idle_until() const noexcept { return idle_until_; }
    static void expired(io::timer_entry* entry) noexcept;  // the timer of an exchange
    // For serving_loop::send_soon(). Returns false if answers_sent() will be called; otherwise the
    // caller must call go_on().
    bool start_sending() noexcept;
    // Continues after a send whose result was known by the time `sent`. May end the connection.
    void go_on(time_point sent) noexcept;

private:
    connection(serving_loop& l, io::tcp::socket&& s, address_counts::slot* from) noexcept;
    ~connection();

    friend class incoming_body;
    friend class outgoing_body;
    friend class peer_address;
    template <class T, class... Args>
    friend T* coppice::try_new(Args&&... args) noexcept;

    enum class phase : unsigned char {
        idle,
        header,
        body,
        handling,
        overdue,  // the handler has been told to stop
        writing,
        lingering,  // everything is sent; reads on, so that the client sees it
    };
    static constexpr duration linger_time_drain = std::chrono::milliseconds(500);

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
        gone,      // the connection has ended
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
    void close_socket() noexcept;
    void rest() noexcept;
    [[gnu::cold, gnu::noinline]] void end() noexcept;
    static void received_last(operation* op) noexcept;
    void enter(phase p, duration time) noexcept;
    void set_deadline(time_point when) noexcept;
    void end_within(duration time) noexcept;
    void run_out_of_time() noexcept;
    duration transfer_time(duration base, std::uint64_t bytes) const noexcept;
    void begin_batch(exchange& e, io::pooled_buffer received) noexcept;
    void end_batch(time_point sent) noexcept;
    void count(exchange& e) noexcept;
    void account(exchange& e, time_point sent) noexcept;

    // waiting.cpp
    class next_input;
    class end_of_late_answer;
    [[gnu::noinline]] session attend(step s, bool& began);
    task<bool> converse(exchange& e, step s);
    bool keep(exchange& e);
    task<bool> receive_more(exchange& e, std::size_t whole = 0);
    task<step> receive_head(exchange& e);
    task<step> receive_body(exchange& e);
    task<step> receive_chunked(exchange& e);
    void allow_time_for(time_point began, std::uint64_t received) noexcept;
    task<step> drop_body(exchange& e);
    task<step> drop_chunked(exchange& e);
    task<step> run_handler(exchange& e);
    step conclude(exchange& e, std::optional<response> made, const std::exception_ptr& error,
                  const request& r);
    std::optional<response> answer_to_stopped(exchange& e);
    void begin_run(exchange& e);
    void end_run(exchange& e) noexcept;
    void request_stop() noexcept;
    void prepare_departure(exchange& e);
    [[nodiscard]] bool begin_away(exchange& e) noexcept;
    task<> come_home();
    void at_home() noexcept;
    void watch() noexcept;
    void keep_received() noexcept;
    static void received_ahead(operation* op) noexcept;
    task<bool> write(exchange& e);
    bool send_directly(exchange& e) noexcept;
    task<> linger(exchange& e);
    void give_up() noexcept;
    static void late_answer_sent(operation* op) noexcept;

    // budget.cpp
    bool make_room(exchange& e, std::size_t more, std::size_t whole = 0);
    bool reserve(exchange& e, std::size_t bytes) noexcept;
    bool has_room_for(exchange& e, std::uint64_t length) noexcept;
    [[gnu::cold, gnu::noinline]] static response no_room(exchange& e);
    [[gnu::cold, gnu::noinline]] step give_way(exchange& e);
    bool reserve_output(exchange& e) noexcept;
    static void give_output_back(exchange& e) noexcept;
    void reserve_ahead(exchange& e) noexcept;
    [[gnu::cold, gnu::noinline]] void run_out_of_memory() noexcept;

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
    [[gnu::cold, gnu::noinline]] response answer_to(exchange& e,
                                                    const std::exception_ptr& error) noexcept;
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
    class input_stop;
    task<step> run_reading_handler(exchange& e);
    task<step> send_stream(exchange& e);
    task<bool> send_file(exchange& e, file_part part);
    void keep_head(exchange& e);
    void abort() noexcept;
    void break_off() noexcept;

    serving_loop& loop_;
    served_socket socket_;
    address_counts::slot* from_;  // nullptr: addresses are not counted
    exchange* batch_ = nullptr;   // the batch that is being answered
    time_point idle_until_{};
    std::uint32_t served_ = 0;
    phase phase_ = phase::idle;
    bool receiving_ = false;  // the receive operation is pending
    bool away_ = false;       // a thread of the pool has the batch
    bool cut_ = false;        // cut_off() was called
};

// accepting.cpp
session accept_connections(serving_loop& l, bool& began);

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
