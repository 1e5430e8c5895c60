// exchange: what a connection needs to serve one batch of requests; for the server's sources.
#pragma once

#include <coppice/http/body.hpp>
#include <coppice/http/server.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/task/internal/transfer.hpp>

#include "budget.hpp"
#include "request_end.hpp"
#include "request_marks.hpp"

#include <array>
#include <coroutine>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace coppice::http {

using namespace internal;

class connection;
struct exchange;

inline std::string_view text_of(const io::pooled_buffer& buffer) noexcept {
    return {reinterpret_cast<const char*>(buffer.bytes().data()), buffer.bytes().size()};
}

// What was received before it was asked for, while the connection waited for a handler of the
// batch.
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
    // Called last: what is resumed may end the connection.
    void resume_waiter() noexcept {
        execution::internal::resume_from_outside(std::exchange(waiter, {}));
    }

    std::array<io::pooled_buffer, buffers_max> kept;
    unsigned first = 0;
    unsigned count = 0;
    bool ended = false;              // nothing more will arrive
    std::error_code error;           // only if ended
    std::coroutine_handle<> waiter;  // waits for the next buffer, or for the end
};

// Decides which thread answers a request whose handler runs on the pool: the pool's thread, or the
// loop if the handler does not end in time. Each handler of a batch has a time of its own. Threads:
// any.
class right_to_answer {
public:
    // Called on the loop when the batch leaves for the pool, where its first handler has to end by
    // `deadline`. `alone`: see begin().
    void depart(bool alone, time_point deadline) noexcept {
        alone_ = alone;
        deadline_ = deadline;
        told_ = false;
    }
    // Called when the batch's first handler is about to start. Returns false if the loop gave the
    // connection up while the batch waited for a thread; the contents of the exchange then belong
    // to the loop.
    [[nodiscard]] bool begin_first() noexcept {
        const std::lock_guard lock(mutex_);
        return !given_up_;
    }
    // Called when a later handler is about to start, which has to end by `deadline`. `alone`: no
    // earlier answer is waiting to be sent. Returns false if the connection was given up.
    [[nodiscard]] bool begin(bool alone, time_point deadline) noexcept {
        const std::lock_guard lock(mutex_);
        if (given_up_) return false;
        alone_ = alone;
        deadline_ = deadline;
        return true;
    }
    // Called when the handler has ended. Returns false if the connection was given up.
    [[nodiscard]] bool end() noexcept {
        const std::lock_guard lock(mutex_);
        alone_ = false;
        deadline_ = time_point::max();
        return !given_up_;
    }
    // Called on the loop. Returns true if a handler is late; the loop then tells it to stop.
    // Otherwise sets `next` to the time when one may be late, or to max() if none is running.
    [[nodiscard]] bool tell_if_late(time_point now, time_point& next) noexcept {
        const std::lock_guard lock(mutex_);
        next = deadline_;
        told_ = told_ || now >= deadline_;
        return told_;
    }
    // Called after end(). Returns true if a handler of this batch was told to stop. The next
    // handler then needs a new stop source, which the loop makes.
    [[nodiscard]] bool was_told() noexcept {
        const std::lock_guard lock(mutex_);
        return told_;
    }
    // Called when the loop stops waiting. Returns true if a handler is running or about to run, and
    // its answer would be the next to be sent. The contents of the exchange then belong to the loop
    // until the batch returns to it.
    [[nodiscard]] bool give_up() noexcept {
        const std::lock_guard lock(mutex_);
        given_up_ = true;
        return alone_;
    }
    // Called while no thread of the pool has the batch.
    void reset() noexcept { alone_ = given_up_ = told_ = false; }

private:
    std::mutex mutex_;
    time_point deadline_ = time_point::max();  // of the running handler; max(): none runs
    bool alone_ = false;
    bool given_up_ = false;
    bool told_ = false;  // a handler was told to stop
};

// The client's address: taken from the socket on the first call, and kept. The loop takes it before
// it closes the socket under a handler, since the descriptor may belong to another connection
// afterwards. Threads: any.
class peer_address {
public:
    explicit peer_address(exchange& of) noexcept : of_(of) {}
    io::endpoint get() noexcept;
    bool is_secure() const noexcept;  // the client's connection, which has the exchange
    const io::agreed_security* security() const noexcept;  // likewise
    const forwarding& trusted() const noexcept;            // the server's proxies
    // Reserves memory of the budget for the body of the answer. Returns false if it does not fit.
    // Threads: the one that has the exchange.
    [[nodiscard]] bool reserve_for_body(std::size_t bytes) noexcept;
    // Forgets the address, for the next connection.
    void forget() noexcept { known_ = false; }

private:
    exchange& of_;
    std::mutex mutex_;
    bool known_ = false;
    io::endpoint address_;  // only if known
};

// Sent to a client that waits for it before it sends the body.
inline constexpr std::string_view continue_line = "HTTP/1.1 100 Continue\r\n\r\n";
// The texts of the 503 to a request for which there is no memory, and of that for a handler that
// does not end in time.
inline constexpr const char* no_room_reason = "the server is short of memory";
inline constexpr const char* overdue_reason = "the answer took too long";

// What a connection needs to serve one batch of requests. The loop lends it, so idle connections
// hold none. While the batch is on the pool, the exchange belongs to that thread, except for
// `stop`, `right`, and the loop's own parts: the timer, the sender, and what is read ahead. The
// cache lines that a batch touches cost more than the work on them, so most batches leave the
// second half alone.
struct alignas(64) exchange : io::timer_entry {
    exchange(const limits& l, byte_budget& b, void (*expired)(timer_entry*) noexcept) noexcept
        : timer_entry(expired), parser(l), budget(b) {
        origin.peer = &address;
        origin.marks = &marks;
    }
    // Prepares for the next batch, which may have been read ahead.
    void clear() noexcept;

    connection* owner = nullptr;  // nullptr: it is free, and its timer means nothing
    time_point deadline{};        // when the owner's state has to end
    time_point armed_for{};       // when the timer will check the deadline
    struct sending : io::internal::ring_operation {
        explicit sending(exchange& e) noexcept : ring_operation(nullptr, io::opcode::send), of(e) {}
        exchange& of;
    };
    sending sender{*this};
    time_point began{};
    io::pooled_buffer buffer;  // what was received, until it is consumed or must be kept
    std::string_view left;     // the unconsumed rest of `buffer` or `input`
    std::string output;        // answers not yet written
    std::size_t sent = 0;      // bytes of `output`
    // What the loop has not counted yet: runs of answers with the same status. Most often there is
    // one run of one answer.
    struct run {
        int status = 0;
        unsigned count = 0;
    };
    run latest;                        // the last run
    std::vector<run> earlier;          // the runs before `latest`
    std::size_t written_requests = 0;  // counted, but their latency is not recorded yet
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
    bool unread = false;        // closing while the client may still be sending
    bool in_head = false;       // its head is being waited for
    bool streaming = false;     // an answer with a body in pieces has begun
    bool given_up = false;      // the handler did not end in time; its answer is dropped
    bool sending_late = false;  // give_up()'s answer is being sent
    bool is_preface = false;    // `left` begins HTTP/2
    bool departing = false;     // the batch has left; none of its handlers has begun
    bool more = false;          // the members below `parser` may be in use
    route_match<handler> match;
    head_parser parser;

    std::string input;                // bytes of a request that arrived in several pieces
    std::size_t room = 0;             // the reserved part of `input`'s capacity
    std::size_t reserved = 0;         // of the budget, without what is read ahead
    std::size_t reserved_output = 0;  // of `reserved`, for unsent output
    std::size_t reserved_body = 0;    // of `reserved`, for what makes the body of `streamed`
    std::size_t reserved_ahead = 0;   // of the budget, for `ahead`; the loop's own
    bool out_of_room = false;         // the last reservation did not fit into the budget
    byte_budget& budget;
    peer_address address{*this};
    request_marks marks{*this};
    std::string rest;
    std::string trailers;
    std::string log;   // log lines of the answers in `output`
    std::string peer;  // for the log; "": not asked for yet
    right_to_answer right;
    read_ahead ahead;
    std::coroutine_handle<> late_waiter;  // waits for the end of the late answer
    std::string head;                     // the head of a request whose handler reads the body
    std::array<char, 29> date;            // for answers made on the pool
    std::optional<response> streamed;     // an answer whose body comes in pieces
    // Engaged while a handler is waited for or runs on the pool. Engaged and reset on the loop.
    std::optional<inplace_stop_source> stop;
};

}  // namespace coppice::http
