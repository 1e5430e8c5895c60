// The insides of http::server, shared by server.cpp (loops) and connection.cpp (what they serve).
#pragma once

#include <coppice/base/atomic.hpp>
#include <coppice/http/server.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/trace/counter.hpp>

#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace coppice::http {

// What serving one batch of requests needs; lent by the loop, so that idle connections hold none.
struct exchange {
    explicit exchange(const limits& l) noexcept : parser(l) {}
    head_parser parser;
    std::string input;   // bytes of a request that did not come in one piece
    std::string output;  // answers not yet written
};

// Counts of one loop; written by its thread.
struct loop_counts {
    trace::counter accepted, refused, closed, requests, timed_out, exceptions;
    trace::counter bytes_received, bytes_sent;
    std::array<trace::counter, 500> by_status;
    trace::histogram latency;
};

class connection;

struct connection_list;  // the tag of a loop's list

// One event loop of a server. Everything but `counts` belongs to its thread.
struct serving_loop : immovable {
    serving_loop(server_options& o, const router& r, atomic<std::size_t>& open,
                 io::tcp::acceptor_options how)
        : options(o),
          routes(r),
          open_connections(open),
          context(o.backend),
          acceptor(context, o.endpoint, how) {}

    std::unique_ptr<exchange> take_exchange();
    void give_exchange(std::unique_ptr<exchange> used) noexcept;
    std::string_view date() noexcept;

    // Closes what is idle and gives the rest until `hard_stop` has passed.
    void begin_drain(duration hard_stop) noexcept;
    void connection_ended() noexcept;

    server_options& options;
    const router& routes;
    atomic<std::size_t>& open_connections;  // of all loops; nothing rides on it
    intrusive_list<connection, connection_list> connections;
    std::vector<std::unique_ptr<exchange>> exchanges;  // free ones
    date_cache dates;
    bool draining = false;
    loop_counts counts;
    // Ends before what is above: its end resumes sessions that use them.
    io::context context;
    io::tcp::acceptor acceptor;

private:
    // Fires when a drain has lasted long enough.
    struct cut_off_timer : io::timer_entry {
        explicit cut_off_timer(serving_loop& o) noexcept : timer_entry(&expired), owner(o) {}
        static void expired(timer_entry* entry) noexcept;
        serving_loop& owner;
    };
    cut_off_timer cut_off_{*this};
};

// A coroutine that owns itself: a connection's, or an accept loop's.
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

// An open connection; lives in its session's frame.
class connection : public list_hook<connection_list>, io::timer_entry {
public:
    connection(serving_loop& l, io::tcp::socket s) noexcept;
    ~connection();

    // Serves a connection until either side ends it.
    static session serve(serving_loop& l, io::tcp::socket s);

    // The server stops: ends at once if idle, after the present requests otherwise.
    void drain() noexcept;
    // Ends now; a handler that is running is waited for, but its answer is dropped.
    void cut_off() noexcept { socket_.close(); }

private:
    enum class phase : unsigned char { idle, header, body, handling, writing, lingering };

    // Where a received body and its request end, from the head's end and the input's begin.
    struct body_end {
        std::size_t body;
        std::size_t next;
    };

    void enter(phase p, duration time) noexcept;
    void set_deadline(time_point when) noexcept;
    static void expired(timer_entry* entry) noexcept;
    duration transfer_time(duration base, std::uint64_t bytes) const noexcept;

    task<bool> converse(exchange& e, io::pooled_buffer buffer);
    task<bool> answer(exchange& e, const request_head& head, std::string_view body);
    static void keep(exchange& e, std::string_view& bytes, io::pooled_buffer& buffer);
    task<bool> receive_more(exchange& e);
    task<std::optional<body_end>> receive_body(exchange& e, std::size_t head, std::uint64_t length);
    task<bool> write(exchange& e);
    task<> linger();
    response refusal(int status, const char* reason);
    response respond(const handler& h, request& r);
    void report_exception() noexcept;
    void put(exchange& e, const response& r, const request_head* head);

    serving_loop& loop_;
    io::tcp::socket socket_;
    time_point deadline_{};
    time_point armed_for_{};  // when the timer will look at the deadline
    time_point batch_began_{};
    unsigned batch_requests_ = 0;
    phase phase_ = phase::idle;
    bool closing_ = false;  // the answers now in the output are the last
    bool unread_ = false;   // closing while the client may still send
};

}  // namespace coppice::http
