// The loops of http/server.hpp: listening, accepting, running, and draining.
#include <coppice/http/server.hpp>

#include "options.hpp"
#include "serving.hpp"

#include <coppice/base/internal/check.hpp>
#include <coppice/base/saturating.hpp>
#include <coppice/io/signal_set.hpp>
#include <coppice/io/timer.hpp>

#include <pthread.h>
#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <system_error>

namespace coppice::http {

using namespace internal;

namespace {

constexpr std::size_t spare_exchanges_max = 64;
constexpr std::size_t spare_output_max = 256 * 1024;  // larger output buffers are not kept
constexpr std::size_t spare_text_max = 64 * 1024;     // larger texts are not kept
constexpr std::size_t log_bytes = 32 * 1024;          // handed over at once
constexpr duration log_delay = std::chrono::milliseconds(100);
constexpr std::size_t threads_per_loop = 8;  // of the pool, in the model `worker`
constexpr unsigned group_size_most = 16;     // answers that are sent in a row
constexpr duration slow_answer = std::chrono::microseconds(50);

}  // namespace

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
    given_up = closing = unread = in_head = streaming = false;
    if (!more) [[likely]]
        return;
    for (std::string* const text : {&input, &rest, &log, &trailers, &peer}) {
        text->clear();
        if (text->capacity() > spare_text_max) std::string().swap(*text);
    }
    const std::size_t bytes = std::exchange(reserved, 0) + std::exchange(reserved_ahead, 0);
    if (bytes != 0) budget.give(bytes);
    room = reserved_output = 0;
    out_of_room = false;
    address.forget();
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
        c->drain();
    }
}

void serving_loop::log(std::string& lines) noexcept {
    try {
        log_lines += lines;
    } catch (const std::bad_alloc&) {  // these lines are lost
    }
    lines.clear();
    if (log_lines.size() >= log_bytes) {
        hand_log_over();
    } else if (!log_hand_over_.armed()) {
        context.arm(log_hand_over_, context.turn_time() + log_delay);
    }
}

void serving_loop::hand_log_over() noexcept {
    if (log_hand_over_.armed()) context.disarm(log_hand_over_);
    options.access_log->write(log_lines);
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
    io::operation_queue done;
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

void serving_loop::begin_drain(duration hard_stop) noexcept {
    draining = true;
    acceptor.close();
    idle.for_each([](connection& c) { c.drain(); });
    connections.for_each([](connection& c) { c.drain(); });
    context.arm(cut_off_, saturating_add(context.turn_time(), hard_stop));
    connection_ended();
}

// Without connections nothing is timed, and a draining loop has nothing left to do.
void serving_loop::connection_ended() noexcept {
    if (!draining || !connections.empty() || !idle.empty()) return;
    if (cut_off_.armed()) context.disarm(cut_off_);
    if (end_idle_.armed()) context.disarm(end_idle_);
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
}

void serving_loop::loop_timer::expired(timer_entry* entry) noexcept {
    loop_timer& timer = *static_cast<loop_timer*>(entry);
    (timer.owner.*timer.function)();
}

// The loops, and what is needed to stop them from outside.
struct server::shared {
    shared(server_options&& o, router&& r) : serving(std::move(o)), path(serving.options.endpoint) {
        serving.routes = std::move(r);
        serving.parser_limits = serving.options.limits;
        serving.parser_limits.body_bytes_max =
            std::max(serving.parser_limits.body_bytes_max,
                     saturating_cast<std::size_t>(serving.options.streamed_body_bytes_max));
    }
    // No handler runs any longer. What the handlers own may use the loops, so it is destroyed
    // first.
    ~shared() {
        serving.routes = router();
        serving.options.on_loop = nullptr;
        serving.options.on_exception = nullptr;
    }
    // In `worker`, loops only accept and read. They need little, so the pool has the processors.
    std::size_t loops_wanted() const {
        const server_options& o = serving.options;
        if (o.model != model::worker) return o.threads;
        return (o.threads + threads_per_loop - 1) / threads_per_loop;
    }
    void make_pool() {
        server_options& o = serving.options;
        const bool wanted = o.model == model::worker || o.model == model::async ||
                            (o.model == model::multi && serving.routes.wants_pool());
        if (!wanted) return;
        serving.pool = o.pool;
        if (serving.pool != nullptr) return;
        own_pool = std::make_unique<thread_pool>(o.threads);
        serving.pool = own_pool.get();
    }

    struct loop : serving_loop {
        using serving_loop::serving_loop;
        // Posted once by drain().
        struct drain_request : io::operation {
            explicit drain_request(loop& o) noexcept : operation(&begin), owner(o) {}
            static void begin(operation* op) noexcept {
                loop& owner = static_cast<drain_request*>(op)->owner;
                owner.begin_drain(owner.hard_stop);
            }
            loop& owner;
        };
        // Posted once, after the drain, by the second signal of drain_on().
        struct cut_request : io::operation {
            explicit cut_request(loop& o) noexcept : operation(&begin), owner(o) {}
            static void begin(operation* op) noexcept {
                static_cast<cut_request*>(op)->owner.cut_off();
            }
            loop& owner;
        };
        // Serves until drained; nothing is pending then.
        void run(server::shared& owner) {
            try {
                bool began = false;
                accept_connections(*this, began);
                if (!began) throw std::bad_alloc();
                if (options.on_loop) options.on_loop(context);
            } catch (...) {
                owner.fail(std::current_exception());
            }
            context.run();
            if (options.access_log != nullptr) options.access_log->write(log_lines);
        }

        drain_request drain{*this};
        cut_request cut{*this};
        duration hard_stop{};  // written before the drain is posted
        std::thread thread;
    };

    // Called on any thread when a loop cannot serve: ends all loops. run() throws the first such
    // error.
    void fail(std::exception_ptr error) noexcept {
        const std::lock_guard lock(failing);
        if (!failure) failure = std::move(error);
        begin_drain(duration::zero());
    }

    // The signals that drain_on() asked for, received on the first loop.
    struct signal_watch : io::operation {
        signal_watch(shared& o, std::initializer_list<int> signals, duration limit,
                     std::function<void(int, int)>&& f)
            : operation(&end),
              owner(o),
              set(o.loops.front()->context, signals),
              hard_stop(limit),
              told(std::move(f)) {}
        static void end(operation* op) noexcept { static_cast<signal_watch*>(op)->set.close(); }

        shared& owner;
        io::signal_set set;
        const duration hard_stop;
        const std::function<void(int, int)> told;
    };
    // Ends when the set is closed, without touching the watch.
    static session watch_signals(signal_watch& watch, bool& began) {
        began = true;
        for (int count = 1;; ++count) {
            std::error_code ec;
            const int signal = co_await watch.set.wait(use_await[ec]);
            if (ec) co_return;
            if (watch.told) watch.told(signal, count);
            if (count == 1) watch.owner.begin_drain(watch.hard_stop);
            if (count == 2) watch.owner.cut_off();
        }
    }
    void begin_drain(duration hard_stop) noexcept {
        if (draining.exchange(true, relaxed)) return;
        for (auto& l : loops) {
            l->hard_stop = hard_stop;
            l->context.post(l->drain);
        }
    }
    void cut_off() noexcept {
        for (auto& l : loops) l->context.post(l->cut);
    }

    // What the loops share; it outlives them.
    serving_shared serving;
    std::unique_ptr<thread_pool> own_pool;
    atomic<bool> draining{false};  // set by the first drain(); nothing depends on its order
    socket_path path;              // outlives the acceptors that listen there
    std::vector<std::unique_ptr<loop>> loops;
    std::optional<signal_watch> signals;  // its session ends when the first loop is destroyed
    io::endpoint local;
    bool running = false;
    std::mutex failing;
    std::exception_ptr failure;  // of the first loop that cannot serve; written under `failing`
};

server::server(server_options options, router routes)
    : shared_(std::make_unique<shared>(checked(std::move(options)), std::move(routes))) {
    server_options& o = shared_->serving.options;
    // The first acceptor binds alone, so that a port in use is detected even if its owner shares
    // it. The others join it, which the kernel allows once the first shares too.
    const std::size_t loops = shared_->loops_wanted();
    if (o.simulation == nullptr) provide_descriptors(o, loops);
    for (std::size_t i = 0; i != loops; ++i) {
        io::tcp::acceptor_options how;
        if (i != 0 && o.endpoint.is_unix()) {
            how.already_listening = shared_->loops[0]->acceptor.native();
        }
        how.share_port = loops > 1 && !o.endpoint.is_unix();
        how.first_sharer = i == 0;
        shared_->loops.push_back(std::make_unique<shared::loop>(shared_->serving, how));
        shared_->loops.back()->exchanges.reserve(spare_exchanges_max);
        if (!shared_->loops.back()->simulated) (void)shared_->loops.back()->reserve.take();
        shared_->serving.loops.push_back(shared_->loops.back().get());
        if (i == 0) {
            o.endpoint = shared_->local = shared_->loops[0]->acceptor.local();
            shared_->path.adopt();
        }
    }
    shared_->make_pool();
}

server::~server() {
    COPPICE_CHECK(!shared_->running, "a server was destroyed inside run()");
}

std::uint16_t server::port() const noexcept {
    return shared_->local.port();
}
io::endpoint server::local() const noexcept {
    return shared_->local;
}
thread_pool* server::pool() const noexcept {
    return shared_->serving.pool;
}
io::backend server::backend() const noexcept {
    return shared_->loops[0]->context.kind();
}

void server::run() {
    COPPICE_CHECK(!shared_->running, "server::run() was called while the server was running");
    shared_->running = true;
    auto& loops = shared_->loops;
    try {
        for (std::size_t i = 1; i < loops.size(); ++i) {
            loops[i]->thread = std::thread([l = loops[i].get(), this] { l->run(*shared_); });
            const std::string name = "coppice-http/" + std::to_string(i % 1000);
            ::pthread_setname_np(loops[i]->thread.native_handle(), name.c_str());
        }
    } catch (...) {
        drain(duration::zero());
        for (auto& l : loops) {
            if (l->thread.joinable()) l->thread.join();
        }
        shared_->running = false;
        throw;
    }
    loops[0]->run(*shared_);
    for (std::size_t i = 1; i < loops.size(); ++i) loops[i]->thread.join();
    shared_->running = false;
    shared_->path.remove();
    if (shared_->failure) std::rethrow_exception(std::exchange(shared_->failure, nullptr));
}

void server::drain(duration hard_stop) noexcept {
    shared_->begin_drain(hard_stop);
}

void server::drain_on(std::initializer_list<int> signals, duration hard_stop,
                      std::function<void(int signal, int count)> told) {
    COPPICE_CHECK(!shared_->running && !shared_->signals, "drain_on is called once, before run()");
    shared_->signals.emplace(*shared_, signals, hard_stop, std::move(told));
    bool began = false;
    shared::watch_signals(*shared_->signals, began);
    if (!began) throw std::bad_alloc();
    shared_->serving.after_drain = &*shared_->signals;
}

server_statistics server::statistics() const {
    server_statistics s;
    for (const auto& l : shared_->loops) {
        const loop_counts& c = l->counts;
        // read before accepted, so never more than it
        const std::uint64_t closed = c.closed.read();
        const std::uint64_t open = c.accepted.read() - closed;
        s.accepted += open + closed;
        s.open += open;
        s.refused += c.refused.read();
        s.shed += c.shed.read();
        s.timed_out += c.timed_out.read();
        s.exceptions += c.exceptions.read();
        s.stopped += c.stopped.read();
        s.bytes_received += c.bytes_received.read();
        s.bytes_sent += c.bytes_sent.read();
        std::uint64_t requests = 0;
        for (std::size_t i = 0; i != s.by_status.size(); ++i) {
            const std::uint64_t answers =
                c.by_status[i].read() + c.by_status_away[i].load(relaxed);  // relaxed: a count
            s.by_status[i] += answers;
            requests += answers;
        }
        s.requests += requests;
        c.latency.add_to(s.latency);
        s.loops.push_back({requests, open, &l->context});
    }
    return s;
}

}  // namespace coppice::http
