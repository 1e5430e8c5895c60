// The loops of http/server.hpp: listening, accepting, running, and draining.
#include <coppice/http/server.hpp>

#include "options.hpp"
#include "serving_loop.hpp"

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

constexpr std::size_t threads_per_loop = 8;  // of the pool, in the model `worker`

}  // namespace

// The loops, and what is needed to stop them from outside.
struct server::shared {
    shared(server_options&& o, router&& r) : serving(std::move(o)) {
        const server_options& given = serving.options;
        serving.listeners.push_back(
            {given.endpoint, given.security, given.proxies, given.already_listening});
        for (const listening_endpoint& l : serving.options.more_listeners)
            serving.listeners.push_back(l);
        for (const listening_endpoint& l : serving.listeners) {
            // The path of a socket that listens already belongs to its owner.
            const bool own = l.already_listening < 0;
            paths.push_back(std::make_unique<socket_path>(own ? l.endpoint : io::endpoint()));
        }
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

    // Makes the acceptors of a loop. The first acceptor on an endpoint binds alone, so that a port
    // in use is detected even if its owner shares it. The others join it, which the kernel allows
    // once the first shares too.
    void listen(std::size_t index, bool shares) {
        serving_loop& l = *loops[index];
        for (std::size_t n = 0; n != serving.listeners.size(); ++n) {
            listening_endpoint& at = serving.listeners[n];
            io::tcp::acceptor_options how;
            how.already_listening = at.already_listening;
            if (index != 0 && at.endpoint.is_unix()) {
                how.already_listening = loops[0]->ports[n]->acceptor.native();
            }
            how.share_port = shares && how.already_listening < 0 && !at.endpoint.is_unix();
            how.first_sharer = index == 0;
            l.ports.push_back(std::make_unique<served_port>(l.context, at, how));
            if (index == 0) {
                at.endpoint = l.ports[n]->acceptor.local();
                paths[n]->adopt();
            }
        }
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
                for (const auto& port : ports) {
                    bool began = false;
                    accept_connections(*this, *port, began);
                    if (!began) throw std::bad_alloc();
                }
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
    std::vector<std::unique_ptr<socket_path>> paths;  // outlive the acceptors that listen there
    std::vector<std::unique_ptr<loop>> loops;
    std::optional<signal_watch> signals;  // its session ends when the first loop is destroyed
    bool running = false;
    std::mutex failing;
    std::exception_ptr failure;  // of the first loop that cannot serve; written under `failing`
};

server::server(server_options options, router routes)
    : shared_(std::make_unique<shared>(checked(std::move(options)), std::move(routes))) {
    server_options& o = shared_->serving.options;
    const std::size_t loops = shared_->loops_wanted();
    if (o.simulation == nullptr) provide_descriptors(o, loops);
    for (std::size_t i = 0; i != loops; ++i) {
        shared_->loops.push_back(std::make_unique<shared::loop>(shared_->serving));
        shared_->serving.loops.push_back(shared_->loops.back().get());
        shared_->listen(i, loops > 1);
    }
    shared_->make_pool();
}

server::~server() {
    COPPICE_CHECK(!shared_->running, "a server was destroyed inside run(): let run() return first");
}

std::uint16_t server::port(std::size_t listener) const noexcept {
    return local(listener).port();
}
io::endpoint server::local(std::size_t listener) const noexcept {
    return shared_->serving.listeners[listener].endpoint;
}
thread_pool* server::pool() const noexcept {
    return shared_->serving.pool;
}
io::backend server::backend() const noexcept {
    return shared_->loops[0]->context.kind();
}

void server::run() {
    COPPICE_CHECK(
        !shared_->running,
        "server::run() was called while the server was running: one thread at a time may call it");
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
    for (const auto& path : shared_->paths) path->remove();
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
    if (shared_->serving.options.route_metrics) {
        for (const route_name& name : shared_->serving.routes.names())
            s.routes.push_back({.name = name});
        s.routes.emplace_back();
    }
    for (const auto& l : shared_->loops) {
        l->add_route_counts(s.routes);
        const loop_counts& c = l->counts;
        // Read before `accepted`, so that it never exceeds it.
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
