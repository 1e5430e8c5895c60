// stream_session: a connection that carries many requests, over an engine of multiplexer.hpp.
#pragma once
// It has the connection's socket from the preface on, with a receive and a send of its own. Each
// stream gets a stream_link, and a connection that serves one request through it.

#include <coppice/base/intrusive.hpp>
#include <coppice/http/multiplexer.hpp>

#include "connection.hpp"
#include "stream_link.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace coppice::http {

using namespace internal;

// Threads: its loop's. Lifetime: it owns itself; it ends when its transport, its streams, and its
// operations have.
class stream_session final : public multiplexed_streams, io::timer_entry {
public:
    // Returns nullptr if there is no memory.
    static stream_session* make(connection& transport) noexcept;
    // Takes the bytes that the connection has received, and goes on. May end the connection.
    void begin(std::string_view first) noexcept;
    // Called when the server drains: the streams that were begun go on, and the connection ends
    // after the client has read their answers.
    void drain() noexcept;
    // Called when the connection has been idle for its time, which was counted: likewise.
    void end_idle() noexcept;
    // Ends the connection now.
    void cut_off() noexcept;

    multiplexed_stream* begin(std::int32_t number, std::string_view head,
                              bool ended) noexcept override;

    // For links.
    multiplexer& engine() noexcept { return *engine_; }
    serving_loop& loop() noexcept { return loop_; }
    byte_budget& budget() noexcept { return loop_.shared.budget; }
    // Returns what the handshake has agreed on; nullptr in the clear. Threads: any.
    const io::agreed_security* security() const noexcept { return security_.get(); }
    const io::endpoint& peer() const noexcept { return peer_; }
    // Notes that pump() has something to do.
    void note_ready(stream_link& l) noexcept;
    // Has run() called in a later turn.
    void run_later() noexcept;

private:
    struct own_operation : io::internal::ring_operation {
        own_operation(stream_session& s, void (*function)(operation*) noexcept,
                      io::opcode what) noexcept
            : ring_operation(function, what), of(s) {}
        stream_session& of;
        bool pending = false;
    };
    struct turn : io::operation {
        explicit turn(stream_session& s) noexcept : operation(&came), of(s) {}
        static void came(operation* op) noexcept;
        stream_session& of;
        bool pending = false;
    };

    explicit stream_session(connection& transport);
    ~stream_session();
    static void input_ended(io::operation* op) noexcept;
    static void output_ended(io::operation* op) noexcept;
    static void expire(io::timer_entry* entry) noexcept;
    void run() noexcept;
    void pump_links() noexcept;
    bool flush() noexcept;
    bool start(own_operation& op) noexcept;
    void came(int result) noexcept;
    void give(std::span<const std::byte> bytes) noexcept;
    void went(int result) noexcept;
    void settle() noexcept;
    void rest() noexcept;
    void part() noexcept;
    void say_end() noexcept;
    void note_answers() noexcept;
    void ask_for_receipt() noexcept;
    void limit_receipt() noexcept;
    void await_receipt() noexcept;
    void become_busy() noexcept;
    duration time_to_close() const noexcept;
    void begin_closing() noexcept;
    void leave() noexcept;
    void limit(duration time) noexcept;

    connection* transport_;  // nullptr: the connection has ended
    serving_loop& loop_;
    std::unique_ptr<multiplexer> engine_;  // nullptr: likewise
    const std::shared_ptr<const io::agreed_security> security_;
    const io::endpoint peer_;
    own_operation input_;
    own_operation output_;
    turn turn_;
    std::string out_;       // frames that are being sent
    std::size_t sent_ = 0;  // bytes of out_
    intrusive_list<stream_link, session_streams> streams_;
    intrusive_list<stream_link, session_ready> ready_;
    std::uint64_t begun_ = 0;     // streams
    std::uint64_t unread_ = 0;    // bytes that were sent, and no receipt has covered yet
    std::uint64_t later_ = 0;     // those of them that were sent since the latest question
    time_point answered_{};       // when the last stream ended
    time_point receipt_until_{};  // when the wait for the receipt ends
    unsigned depth_ = 0;          // calls of run() that are under way
    bool is_served_ = false;      // a stream was begun since the last note_answers()
    bool is_idle_ = false;        // the transport is among the idle connections
    bool is_counted_ = false;     // its end is counted as one by a timeout
    bool is_asking_ = false;      // the client was asked for a receipt, which has not come
    bool is_draining_ = false;
    bool is_parting_ = false;  // the receipt that is awaited is the last
    bool has_told_ = false;    // the end is said
    bool is_closing_ = false;  // likewise, and what comes is dropped
    bool is_broken_ = false;   // the connection must end
};

}  // namespace coppice::http
