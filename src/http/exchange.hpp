// exchange: what serving one batch of requests needs, and its parts; for serving.hpp.
#pragma once

#include <coppice/http/body.hpp>
#include <coppice/http/server.hpp>
#include <coppice/io/socket.hpp>

#include "budget.hpp"
#include "request_end.hpp"

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
// when the handler does not end in time. Each handler of a batch has a time of its own. Threads:
// any.
class right_to_answer {
public:
    // The batch leaves for the pool, where its first handler has to end by `deadline`. `alone`: as
    // below. On the loop.
    void depart(bool alone, time_point deadline) noexcept {
        alone_ = alone;
        deadline_ = deadline;
        told_ = false;
    }
    // The batch's first handler is about to start. False: the connection was given up while the
    // batch waited for a thread, and what the exchange has is the loop's.
    [[nodiscard]] bool begin_first() noexcept {
        const std::lock_guard lock(mutex_);
        return !given_up_;
    }
    // A later one is, which has to end by `deadline`. `alone`: no earlier answer is waiting to be
    // sent. False: the connection has been given up.
    [[nodiscard]] bool begin(bool alone, time_point deadline) noexcept {
        const std::lock_guard lock(mutex_);
        if (given_up_) return false;
        alone_ = alone;
        deadline_ = deadline;
        return true;
    }
    // The handler has ended. False: the connection has been given up.
    [[nodiscard]] bool end() noexcept {
        const std::lock_guard lock(mutex_);
        alone_ = false;
        deadline_ = time_point::max();
        return !given_up_;
    }
    // The loop looks at the time. True: a handler is late, and the loop tells it to stop. Otherwise
    // `next` is when one may be, or max() if none is running.
    [[nodiscard]] bool tell_if_late(time_point now, time_point& next) noexcept {
        const std::lock_guard lock(mutex_);
        next = deadline_;
        told_ = told_ || now >= deadline_;
        return told_;
    }
    // Whether a handler of this batch was told to stop: the next one needs a stop source that knows
    // nothing of it, which the loop makes. After end().
    [[nodiscard]] bool was_told() noexcept {
        const std::lock_guard lock(mutex_);
        return told_;
    }
    // The loop waits no longer. True: a handler is running or about to, and its answer is the next:
    // what the exchange has is the loop's until the batch comes home.
    [[nodiscard]] bool give_up() noexcept {
        const std::lock_guard lock(mutex_);
        given_up_ = true;
        return alone_;
    }
    // While no thread of the pool has the batch.
    void reset() noexcept { alone_ = given_up_ = told_ = false; }

private:
    std::mutex mutex_;
    time_point deadline_ = time_point::max();  // of the handler that runs; max(): none does
    bool alone_ = false;
    bool given_up_ = false;
    bool told_ = false;  // a handler was told to stop
};

// The client's address: taken from the socket when somebody asks first, and kept. The loop takes it
// before it closes the socket under a handler, since the descriptor may be another connection's
// then. Threads: any.
class peer_address {
public:
    explicit peer_address(exchange& of) noexcept : of_(of) {}
    io::endpoint get() noexcept;
    // For the next connection.
    void forget() noexcept { known_ = false; }

private:
    exchange& of_;
    std::mutex mutex_;
    bool known_ = false;
    io::endpoint address_;  // only if known
};

// Sent with 503 to a request for which there is no memory.
inline constexpr const char* no_room_reason = "the server is short of memory";

// What serving one batch of requests needs; lent by the loop, so that idle connections hold none.
// While the batch is on the pool it is that thread's, but for `stop`, `right`, and the loop's own:
// the timer, the sender, and what is read ahead. The lines of the cache that a batch touches cost
// more than what it does with them: so most batches leave the second half alone.
struct alignas(64) exchange : io::timer_entry {
    exchange(const limits& l, byte_budget& b, void (*expired)(timer_entry*) noexcept) noexcept
        : timer_entry(expired), parser(l), budget(b) {
        origin.peer = &address;
    }
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
    bool unread = false;        // closing while the client may rightly send more
    bool in_head = false;       // its head is being waited for
    bool streaming = false;     // an answer has begun whose body comes in pieces
    bool given_up = false;      // the handler did not end in time, and answers nobody any more
    bool sending_late = false;  // what give_up() has to say
    bool departing = false;     // none of the batch's handlers has begun on the pool
    bool more = false;          // what is below `parser` may be in use
    route_match<handler> match;
    head_parser parser;

    std::string input;                // bytes of a request that did not come in one piece
    std::size_t room = 0;             // of `input`'s capacity, what is reserved
    std::size_t reserved = 0;         // of the budget, but for what is read ahead
    std::size_t reserved_output = 0;  // of that, while the output waits
    std::size_t reserved_ahead = 0;   // of the budget, for `ahead`: the loop's own
    bool out_of_room = false;         // the last that was asked of the budget did not fit
    byte_budget& budget;
    peer_address address{*this};
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

}  // namespace coppice::http
