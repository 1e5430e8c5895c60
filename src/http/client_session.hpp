// client_session: a client's connection that carries many requests, over a client_multiplexer.
#pragma once
// It has the socket, and the link if that is encrypted, from the moment both sides have agreed. It
// always receives, so that it answers the server, and ends with the server's end. A receive without
// a stream is in the background: a kept connection does not keep its loop running.

#include <coppice/base/clock.hpp>
#include <coppice/base/intrusive.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/http/multiplexer.hpp>
#include <coppice/io/context.hpp>

#include "client_connection.hpp"
#include "client_stream.hpp"
#include "secure_link.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace coppice::http {

using namespace internal;

struct client_origin;

// Threads: its loop's. Lifetime: it owns itself; it ends when it has left its origin, and its
// streams and operations have ended.
class client_session final : immovable {
public:
    // Takes the socket and the link of a connection that is ready. The host's place is the
    // session's from then on. Errors: std::bad_alloc; the connection is then as before.
    static client_session* make(client_connection& from, client_origin& of,
                                std::unique_ptr<client_multiplexer> engine);

    // Returns true if it takes another request: now, or later.
    bool is_usable() const noexcept;
    // Returns false until one of its streams has ended.
    bool has_room() const noexcept;
    // Returns true if a call waits for its place. It then takes no request, and ends when its
    // streams have, unless that call leaves before.
    bool is_wanted() const noexcept { return host != nullptr && !host->waiting.empty(); }
    bool takes_now() const noexcept { return is_usable() && has_room() && !is_wanted(); }
    // Returns a connection that is a stream of this one. Errors: std::bad_alloc.
    std::unique_ptr<client_connection> open(const client_target& target);
    // Returns true if the loop has not yet brought what has come without a stream.
    bool has_news() noexcept { return is_idle() && input_.pending && !socket_.is_quiet(); }
    bool is_idle() const noexcept { return streams_.empty(); }
    bool is_kept() const noexcept { return is_idle() && !is_ending_; }
    // Takes no further request, and ends when its streams have.
    void end_use() noexcept;
    // Ends now. The server hears of it if it listens; streams that are open are cut off.
    void leave() noexcept;

    // For streams. Numbers are those of the engine; they change nothing when it is gone.
    io::context& loop() noexcept { return loop_; }
    bool is_secure() const noexcept { return link_ != nullptr; }
    std::uint64_t heard() const noexcept { return heard_; }
    bool has_left() const noexcept { return engine_ == nullptr; }
    std::int32_t request(client_stream& s, std::string_view head, bool ended) noexcept;
    void wake(std::int32_t number) noexcept;
    void consumed(std::int32_t number, std::size_t bytes) noexcept;
    void cancel(std::int32_t number) noexcept;
    // Notes that pump() of the stream has something to do.
    void note_ready(client_stream& s) noexcept;
    // Has run() called in a later turn.
    void run_later() noexcept;
    // Called when the call of a stream has ended.
    void owner_is_gone() noexcept { --owned_; }
    // Returns true if the socket has not yet taken what was sent last.
    bool is_sending() const noexcept { return output_.pending; }

    client_host* host = nullptr;  // where it has a place, if places are limited
    time_point used{};            // when its last stream ended

private:
    struct own_operation : io::internal::ring_operation {
        own_operation(client_session& s, void (*function)(operation*) noexcept,
                      io::opcode what) noexcept
            : ring_operation(function, what), of(s) {}
        client_session& of;
        bool pending = false;
    };
    struct turn : io::operation {
        explicit turn(client_session& s) noexcept : operation(&came), of(s) {}
        static void came(operation* op) noexcept;
        client_session& of;
        bool pending = false;
    };

    client_session(client_connection& from, client_origin& of,
                   std::unique_ptr<client_multiplexer>&& engine) noexcept;
    ~client_session();
    static void input_ended(io::operation* op) noexcept;
    static void output_ended(io::operation* op) noexcept;
    void run() noexcept;
    void pump_streams() noexcept;
    bool flush() noexcept;
    bool start(own_operation& op) noexcept;
    void came(int result) noexcept;
    void went(int result) noexcept;
    void settle() noexcept;
    void leave_now() noexcept;
    void end_if_over() noexcept;
    void rest() noexcept;
    void receive_in_background(bool on) noexcept;
    void say_end() noexcept;

    io::context& loop_;
    client_origin* origin_;  // nullptr: it has left
    const std::shared_ptr<client_hosts> hosts_;
    slotted_socket socket_;
    secure_link::owned link_;                     // nullptr: not encrypted
    std::unique_ptr<client_multiplexer> engine_;  // nullptr: it has left
    own_operation input_;
    own_operation output_;
    turn turn_;
    std::string out_;       // frames that are being sent
    std::size_t sent_ = 0;  // bytes of out_
    intrusive_list<client_stream, client_streams> streams_;
    intrusive_list<client_stream, client_ready> ready_;
    std::size_t open_ = 0;           // streams
    std::size_t owned_ = 0;          // those that a call has
    std::uint64_t heard_ = 0;        // receives that have brought something
    unsigned depth_ = 0;             // calls of run() that are under way
    bool is_ending_ = false;         // it takes no further request
    bool is_deaf_ = false;           // the server takes nothing further
    bool is_broken_ = false;         // the connection must end
    bool was_idle_ = false;          // at the end of the turn before
    bool is_in_background_ = false;  // the receive lets the loop's run end
};

}  // namespace coppice::http
