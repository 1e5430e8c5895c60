// The loops of http/server.hpp: listening, accepting, running and draining.
#include <coppice/http/server.hpp>

#include "serving.hpp"

#include <coppice/base/check.hpp>
#include <coppice/io/timer.hpp>

#include <pthread.h>
#include <cerrno>
#include <ctime>
#include <stdexcept>
#include <system_error>

namespace coppice::http {

namespace {

constexpr std::size_t spare_exchanges_max = 64;
constexpr std::size_t spare_text_max = 256 * 1024;  // larger buffers are not kept
constexpr duration accept_pause = std::chrono::milliseconds(50);

bool out_of_resources(std::error_code ec) noexcept {
    return ec == std::errc::too_many_files_open || ec == std::errc::too_many_files_open_in_system ||
           ec == std::errc::no_buffer_space || ec == std::errc::not_enough_memory;
}

// Accepts until the acceptor is closed. A machine that has run out of files is given time.
session accept_connections(serving_loop& l) {
    while (!l.draining) {
        std::error_code ec;
        io::tcp::socket s = co_await l.acceptor.accept(use_await[ec]);
        // Closed, or ended with its context; a connection that came last is not served.
        if (l.draining || ec == std::errc::operation_canceled) co_return;
        if (out_of_resources(ec)) {
            l.counts.refused.add();
            io::timer pause(l.context);
            std::error_code ended;
            co_await pause.wait_for(accept_pause, use_await[ended]);
            if (ended) co_return;
            continue;
        }
        if (ec) continue;  // that connection is gone; the next may be fine
        // Relaxed: a count that may be over by the number of loops for an instant.
        if (l.open_connections.fetch_add(1, relaxed) >= l.options.connections_max) {
            l.open_connections.fetch_sub(1, relaxed);
            l.counts.refused.add();
            continue;
        }
        connection::serve(l, std::move(s));
    }
}

}  // namespace

std::unique_ptr<exchange> serving_loop::take_exchange() {
    if (exchanges.empty()) return std::make_unique<exchange>(options.limits);
    std::unique_ptr<exchange> e = std::move(exchanges.back());
    exchanges.pop_back();
    return e;
}

void serving_loop::give_exchange(std::unique_ptr<exchange> used) noexcept {
    if (exchanges.size() == exchanges.capacity()) return;
    if (used->input.capacity() > spare_text_max || used->output.capacity() > spare_text_max) return;
    used->parser.reset();
    used->input.clear();
    used->output.clear();
    exchanges.push_back(std::move(used));
}

std::string_view serving_loop::date() noexcept {
    return dates.at(std::time(nullptr));
}

void serving_loop::begin_drain(duration hard_stop) noexcept {
    draining = true;
    acceptor.close();
    connections.for_each([](connection& c) { c.drain(); });
    if (!connections.empty()) context.arm(cut_off_, context.turn_time() + hard_stop);
}

void serving_loop::connection_ended() noexcept {
    if (connections.empty() && cut_off_.armed()) context.disarm(cut_off_);
}

void serving_loop::cut_off_timer::expired(timer_entry* entry) noexcept {
    static_cast<cut_off_timer*>(entry)->owner.connections.for_each(
        [](connection& c) { c.cut_off(); });
}

// A loop, and what it takes to stop it from outside.
struct server::shared {
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
        // Serves until drained: then nothing is pending any more.
        void run() {
            accept_connections(*this);
            context.run();
        }

        drain_request drain{*this};
        duration hard_stop{};  // written before the drain is posted
        std::thread thread;
    };

    shared(server_options o, router r) : options(std::move(o)), routes(std::move(r)) {}

    server_options options;
    router routes;
    atomic<std::size_t> open_connections{0};
    atomic<bool> draining{false};  // set by the first drain(); nothing rides on it
    std::vector<std::unique_ptr<loop>> loops;
    io::endpoint local;
    bool running = false;
};

server::server(server_options options, router routes)
    : shared_(std::make_unique<shared>(std::move(options), std::move(routes))) {
    server_options& o = shared_->options;
    if (o.model == model::worker || o.model == model::async) {
        throw std::invalid_argument("this model is not available yet: use single or multi");
    }
    if (o.threads == 0) throw std::invalid_argument("a server needs at least one thread");
    if (o.model == model::single && o.threads != 1) {
        throw std::invalid_argument("the model single has one thread");
    }
    // The first acceptor binds alone, so that a port in use is found even if its owner shares it;
    // the others join it, which the kernel allows once the first shares too.
    for (std::size_t i = 0; i != o.threads; ++i) {
        io::tcp::acceptor_options how;
        how.share_port = o.threads > 1;
        how.first_sharer = i == 0;
        shared_->loops.push_back(
            std::make_unique<shared::loop>(o, shared_->routes, shared_->open_connections, how));
        shared_->loops.back()->exchanges.reserve(spare_exchanges_max);
        if (i == 0) o.endpoint = shared_->local = shared_->loops[0]->acceptor.local();
    }
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
io::backend server::backend() const noexcept {
    return shared_->loops[0]->context.kind();
}

void server::run() {
    COPPICE_CHECK(!shared_->running, "a server runs once");
    shared_->running = true;
    auto& loops = shared_->loops;
    try {
        for (std::size_t i = 1; i < loops.size(); ++i) {
            loops[i]->thread = std::thread([l = loops[i].get()] { l->run(); });
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
    loops[0]->run();
    for (std::size_t i = 1; i < loops.size(); ++i) loops[i]->thread.join();
    shared_->running = false;
}

void server::drain(duration hard_stop) noexcept {
    if (shared_->draining.exchange(true, relaxed)) return;
    for (auto& l : shared_->loops) {
        l->hard_stop = hard_stop;
        l->context.post(l->drain);
    }
}

server_statistics server::statistics() const {
    server_statistics s;
    for (const auto& l : shared_->loops) {
        const loop_counts& c = l->counts;
        const std::uint64_t closed = c.closed.read();  // before accepted: never more than it
        const std::uint64_t open = c.accepted.read() - closed;
        s.accepted += open + closed;
        s.open += open;
        s.refused += c.refused.read();
        s.requests += c.requests.read();
        s.timed_out += c.timed_out.read();
        s.exceptions += c.exceptions.read();
        s.bytes_received += c.bytes_received.read();
        s.bytes_sent += c.bytes_sent.read();
        for (std::size_t i = 0; i != s.by_status.size(); ++i)
            s.by_status[i] += c.by_status[i].read();
        c.latency.add_to(s.latency);
        s.loops.push_back({c.requests.read(), open});
    }
    return s;
}

}  // namespace coppice::http
