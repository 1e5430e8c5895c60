// The loops of http::server, and what they share; for the server's sources.
#pragma once

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/intrusive.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/any_scheduler.hpp>
#include <coppice/http/date.hpp>
#include <coppice/http/message.hpp>
#include <coppice/http/server.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/trace/counter.hpp>

#include "accepting.hpp"
#include "budget.hpp"
#include "exchange.hpp"
#include "session.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
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

// The counts of one route on one loop. Written by the loop and by threads of the pool; nothing
// depends on their order.
struct route_counts {
    std::array<atomic<std::uint64_t>, 5> by_class{};
    // The last one counts what is longer than all bounds.
    std::array<atomic<std::uint64_t>, route_statistics::bounds + 1> latency{};
    atomic<std::uint64_t> latency_sum{0};
    atomic<std::uint64_t> in_flight{0};
};

// A request in flight, in the counts of its route. nullptr: it is not counted.
class route_flight : immovable {
public:
    explicit route_flight(route_counts* of) noexcept : of_(of) {
        if (of_ != nullptr) of_->in_flight.fetch_add(1, relaxed);  // relaxed: a count
    }
    ~route_flight() {
        if (of_ != nullptr) of_->in_flight.fetch_sub(1, relaxed);  // relaxed: a count
    }

private:
    route_counts* const of_;
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
    std::vector<listening_endpoint> listeners;  // all of them, the first one is that of `options`
    router routes;
    thread_pool* pool = nullptr;
    limits parser_limits;  // those of the options, large enough for streamed bodies
    atomic<std::size_t> open_connections{0};  // of all loops; nothing depends on its order
    atomic<unsigned> loops_that_wait{0};      // until another loop has closed an idle connection
    address_counts addresses;
    byte_budget budget;
    mark_source marks{options.simulation != nullptr};
    const address_limit per_address;
    std::vector<serving_loop*> loops;  // complete before any of them runs
    // Waits until the drain has ended on all loops. The last loop to end posts it to the first
    // loop.
    io::operation* after_drain = nullptr;  // written before any loop runs
    atomic<std::size_t> loops_drained{0};  // nothing depends on its order
};

// One acceptor of a loop, and what encrypts the connections that it accepts.
struct served_port : immovable {
    served_port(io::context& loop, const listening_endpoint& of, io::tcp::acceptor_options how)
        : acceptor(loop, of.endpoint, how), security(of.security.get()), proxies(of.proxies) {}
    io::tcp::acceptor acceptor;
    const io::server_security* const security;  // nullptr: nothing
    const address_set& proxies;                 // that begin with a header of the PROXY protocol
};

// One loop of a server. Everything except `counts` belongs to its thread.
struct serving_loop : immovable {
    explicit serving_loop(serving_shared& s);

    // Returns nullptr if there is no memory.
    exchange* take_exchange(connection& owner) noexcept;
    void give_exchange(exchange& used) noexcept;
    // Notes that the connection waits for a request from now on; it becomes the last of the idle
    // ones.
    void add_idle(connection& c) noexcept;
    // Notes that the connection shakes hands from now on; it becomes the last of these.
    void add_handshake(connection& c) noexcept;
    // Returns true if a client can be let in, perhaps in the place of an idle connection of this
    // loop.
    bool has_room() noexcept;
    // Serves an accepted connection, or refuses it.
    void let_in(io::tcp::socket&& s, const served_port& port) noexcept;
    // Counts a connection of the client, if that is needed now, and sets `from`. Returns false if
    // its address has too many.
    bool count_address(const io::endpoint& client, address_counts::slot*& from) noexcept;
    // Returns the connection that has waited longest for a request, otherwise the one that has
    // shaken hands longest, or nullptr.
    connection* longest_idle() noexcept;
    // Closes that connection. Returns false if there is none.
    bool shed_idle() noexcept;
    // Asks the other loops to close one of theirs. Returns true if a loop that may have one has not
    // answered yet.
    bool ask_others_to_shed() noexcept;
    // Returns the date of the current turn.
    std::string_view date() noexcept {
        if (context.turn_time() == dated) [[likely]]
            return dates.last();
        return new_date();
    }
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
        return on_pool(h) ? execution::internal::team_of(shared.pool->get_scheduler()) : nullptr;
    }

    // Returns the counts of the route that a request has matched; nullptr: they are not wanted.
    route_counts* counts_of(const route_match<handler>& match) const noexcept {
        if (by_route == nullptr) [[likely]]
            return nullptr;
        const bool found = match.status == match_status::found;
        return &by_route[found ? match.handler->route() : routes.names().size()];
    }
    // Adds the counts of each route to `sums`, which has one more element than there are routes.
    void add_route_counts(std::vector<route_statistics>& sums) const noexcept;

    // Closes idle connections once what has come from them is read, and gives the others until
    // `hard_stop` has passed.
    void begin_drain(duration hard_stop) noexcept;
    // Ends the remaining connections now.
    void cut_off() noexcept;
    void connection_ended() noexcept;

    serving_shared& shared;
    const server_options& options;
    const router& routes;
    using list = intrusive_list<connection, connection_list>;
    list connections;  // without those in the lists below
    list idle;         // the one that has been idle longest is first
    list handshakes;   // new encrypted ones, the oldest first
    std::vector<std::unique_ptr<exchange>> exchanges;  // those that are free
    time_point batch_ended{};                          // when the last batch ended
    std::string log_lines;
    date_cache dates;
    time_point dated = time_point::min();  // the turn of the last date
    bool draining = false;
    time_point drain_began{};          // only if `draining`
    inplace_stop_source drain_source;  // requested when `draining` becomes true
    bool drained = false;
    loop_counts counts;
    // By route; the last one is for what no route answers. nullptr: routes are not counted.
    std::unique_ptr<route_counts[]> by_route;
    shed_request shed_for_others{*this};
    reserve_descriptor reserve;
    // What send_soon() has collected. Sends it when the ring has reported all its events.
    struct answer_group : io::operation {
        explicit answer_group(serving_loop& l) noexcept : operation(&end), loop(l) {}
        static void end(operation* op) noexcept;
        serving_loop& loop;
        io::internal::operation_queue senders;  // of exchanges
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
    std::vector<std::unique_ptr<served_port>>
        ports;  // one for each listener; complete before run()
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
    // Posted in a drain, so that a turn of the loop reads what has come before each run.
    struct idle_look : io::operation {
        explicit idle_look(serving_loop& l) noexcept : operation(&look), loop(l) {}
        static void look(operation* op) noexcept;
        serving_loop& loop;
        std::size_t idle_before = 0;
    };
    std::size_t idle_connections() noexcept;
    std::string_view new_date() noexcept;
    void send_group() noexcept;
    void end_idle() noexcept;
    void end_handshakes() noexcept;
    void hasten(loop_timer& timer, list& waiting) noexcept;
    void hand_log_over() noexcept;
    idle_look idle_look_{*this};
    loop_timer cut_off_{*this, &serving_loop::cut_off};
    loop_timer end_idle_{*this, &serving_loop::end_idle};
    loop_timer end_handshakes_{*this, &serving_loop::end_handshakes};
    loop_timer log_hand_over_{*this, &serving_loop::hand_log_over};
};

// accepting.cpp
session accept_connections(serving_loop& l, served_port& port, bool& began);
// Tells a client that the server is full, as far as that needs no waiting for the client.
session refuse_full(io::tcp::socket s);

}  // namespace coppice::http
