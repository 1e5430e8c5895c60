// A loop of a server: its exchanges, its idle connections, answers in a row, and its end.
#include "connection.hpp"

#include <coppice/base/saturating.hpp>

#include <algorithm>
#include <utility>

namespace coppice::http {

using namespace internal;

namespace {

constexpr std::size_t spare_exchanges_max = 64;
constexpr std::size_t spare_output_max = 256 * 1024;  // larger output buffers are not kept
constexpr std::size_t spare_text_max = 64 * 1024;     // larger texts are not kept
constexpr unsigned group_size_most = 16;              // answers that are sent in a row
constexpr duration slow_answer = std::chrono::microseconds(50);

}  // namespace

serving_loop::serving_loop(serving_shared& s)
    : shared(s),
      options(s.options),
      routes(s.routes),
      context(s.options.simulation != nullptr ? io::context(*s.options.simulation)
                                              : io::context(s.options.backend)) {
    exchanges.reserve(spare_exchanges_max);
    if (options.route_metrics) by_route.reset(new route_counts[routes.names().size() + 1]);
    if (!simulated) (void)reserve.take();
}

exchange* serving_loop::take_exchange(connection& owner) noexcept {
    exchange* e;
    if (exchanges.empty()) [[unlikely]] {
        e = try_new<exchange>(shared.parser_limits, shared.budget, &connection::expired);
        if (e == nullptr) return nullptr;
    } else {
        e = exchanges.back().release();
        exchanges.pop_back();
    }
    e->owner = &owner;
    e->deadline = time_point::max();
    return e;
}

void serving_loop::give_exchange(exchange& used) noexcept {
    used.clear();
    used.owner = nullptr;
    bool large = used.output.capacity() > spare_output_max;
    if (used.more) [[unlikely]] {
        used.ahead.clear();
        used.more = false;
        large = large || used.head.capacity() > spare_text_max;
    }
    if (large || exchanges.size() == exchanges.capacity()) [[unlikely]] {
        if (used.armed()) context.disarm(used);
        delete &used;
    } else {
        exchanges.emplace_back(&used);  // an armed timer stays: the next user may need it
    }
}

void exchange::clear() noexcept {
    output.clear();
    buffer.release();
    left = {};
    sent = 0;
    is_preface = given_up = closing = unread = in_head = streaming = false;
    if (!more) [[likely]]
        return;
    for (std::string* const text : {&input, &rest, &log, &trailers, &peer}) {
        text->clear();
        if (text->capacity() > spare_text_max) std::string().swap(*text);
    }
    const std::size_t bytes = std::exchange(reserved, 0) + std::exchange(reserved_ahead, 0);
    if (bytes != 0) budget.give(bytes);
    room = reserved_output = reserved_body = 0;
    out_of_room = false;
    address.forget();
    marks.forget();
    parser.reset();
    streamed.reset();
    end = {};
    right.reset();
}

void serving_loop::add_idle(connection& c) noexcept {
    idle.erase(c);
    idle.push_back(c);
    if (!end_idle_.armed() && c.idle_until() != time_point::max()) [[unlikely]] {
        context.arm(end_idle_, c.idle_until());
    }
}

// All idle connections have the same time limit, so the first is the next to exceed it.
void serving_loop::end_idle() noexcept {
    if (context.ending()) return;
    for (connection* c; (c = idle.front()) != nullptr;) {
        if (context.turn_time() < c->idle_until()) {
            context.arm(end_idle_, c->idle_until());
            return;
        }
        idle.erase(*c);
        connections.push_back(*c);
        counts.timed_out.add();
        c->end_idle();
    }
}

void serving_loop::add_handshake(connection& c) noexcept {
    list::erase(c);
    handshakes.push_back(c);
    if (!end_handshakes_.armed() && c.idle_until() != time_point::max()) {
        context.arm(end_handshakes_, c.idle_until());
    }
}

// A handshake that has ended leaves the list with the first request, or here.
void serving_loop::end_handshakes() noexcept {
    if (context.ending()) return;
    for (connection* c; (c = handshakes.front()) != nullptr;) {
        if (context.turn_time() < c->idle_until()) {
            context.arm(end_handshakes_, c->idle_until());
            return;
        }
        if (c->is_waiting() && c->is_ready()) {
            c->become_idle();
            continue;
        }
        const bool late = c->is_waiting();
        list::erase(*c);
        connections.push_back(*c);
        if (!late) continue;  // its answers are being sent
        counts.timed_out.add();
        c->end_wait();
    }
}

void serving_loop::send_soon(exchange& e) noexcept {
    group.senders.push_back(&e.sender);
    ++group.size;
    if (group.size >= group.size_max && !group.sending) {
        send_group();
    } else if (!std::exchange(group.deferred, true)) {
        context.defer(group);
    }
}

// The time that the last answers took to make decides how many are collected: an answer must not
// wait for slow handlers. go_on() may make more answers, and may run turns of the loop, as block()
// does.
void serving_loop::send_group() noexcept {
    const time_point now = context.now();
    const duration taken = now - std::max(group.sent, context.turn_time());
    const bool slow = taken > std::exchange(group.size, 0) * slow_answer;
    group.size_max = slow ? 1 : std::min(group.size_max + 1, group_size_most);
    group.sent = now;
    const auto owner_of = [](io::operation* op) noexcept -> connection& {
        return *static_cast<exchange::sending*>(op)->of.owner;
    };
    // First all the system calls, then what follows them: each kind of code stays in the caches.
    io::internal::operation_queue done;
    while (io::operation* const op = group.senders.pop_front()) {
        if (owner_of(op).start_sending()) done.push_back(op);
    }
    const bool sending = std::exchange(group.sending, true);
    while (io::operation* const op = done.pop_front()) owner_of(op).go_on(now);
    group.sending = sending;
}

void serving_loop::answer_group::end(operation* op) noexcept {
    answer_group& group = *static_cast<answer_group*>(op);
    group.deferred = false;
    if (!group.senders.empty()) group.loop.send_group();
}

// Makes the timer fire for the first connection in the list.
void serving_loop::hasten(loop_timer& timer, list& waiting) noexcept {
    const connection* const first = waiting.front();
    if (first == nullptr || first->idle_until() == time_point::max()) return;
    if (timer.armed()) context.disarm(timer);
    context.arm(timer, first->idle_until());
}

void serving_loop::begin_drain(duration hard_stop) noexcept {
    draining = true;
    drain_began = context.turn_time();
    for (const auto& port : ports) port->acceptor.close();
    idle.for_each([](connection& c) { c.drain(); });
    handshakes.for_each([](connection& c) { c.drain(); });
    connections.for_each([](connection& c) { c.drain(); });
    drain_source.request_stop();
    // Those that are left wait for less time than before.
    hasten(end_idle_, idle);
    hasten(end_handshakes_, handshakes);
    context.arm(cut_off_, saturating_add(context.turn_time(), hard_stop));
    idle_look_.idle_before = idle_connections();
    context.post(idle_look_);
}

std::size_t serving_loop::idle_connections() noexcept {
    std::size_t count = 0;
    idle.for_each([&count](const connection&) { ++count; });
    return count;
}

// A loop that was busy may begin its drain before it has read what came meanwhile. So the idle
// connections are closed after a turn that has read from none of them.
void serving_loop::idle_look::look(operation* op) noexcept {
    idle_look& self = *static_cast<idle_look*>(op);
    const std::size_t count = self.loop.idle_connections();
    if (count != std::exchange(self.idle_before, count)) {
        self.loop.context.post(self);
        return;
    }
    self.loop.idle.for_each([](connection& c) { c.end_idle_in_drain(); });
    self.loop.connection_ended();
}

// Without connections nothing is timed, and a draining loop has nothing left to do.
void serving_loop::connection_ended() noexcept {
    if (!draining || !connections.empty() || !idle.empty() || !handshakes.empty()) return;
    if (cut_off_.armed()) context.disarm(cut_off_);
    if (end_idle_.armed()) context.disarm(end_idle_);
    if (end_handshakes_.armed()) context.disarm(end_handshakes_);
    for (const auto& spare : exchanges) {
        if (spare->armed()) context.disarm(*spare);
    }
    if (std::exchange(drained, true) || shared.after_drain == nullptr) return;
    // relaxed: a count; the mailbox orders what is posted
    if (shared.loops_drained.fetch_add(1, relaxed) + 1 != shared.loops.size()) return;
    shared.loops.front()->context.post(*shared.after_drain);
}

void serving_loop::cut_off() noexcept {
    // A stop may end any connection, so the list is walked from its start until all are told.
    for (connection* c; (c = connections.front()) != nullptr && !c->is_cut();) {
        connections.erase(*c);
        connections.push_back(*c);
        c->cut_off();
    }
    idle.for_each([](connection& c) { c.end_wait(); });
    handshakes.for_each([](connection& c) { c.end_wait(); });
}

void serving_loop::loop_timer::expired(timer_entry* entry) noexcept {
    loop_timer& timer = *static_cast<loop_timer*>(entry);
    (timer.owner.*timer.function)();
}

std::string_view serving_loop::new_date() noexcept {
    dated = context.turn_time();
    return dates.at(context.system().wall_time().time_since_epoch().count());
}

}  // namespace coppice::http
