// coppice-serve: reads its options, listens, serves until SIGTERM or SIGINT, and drains. SIGHUP
// reopens the access log and the served directory, and reads the certificates again. Exit status: 0
// after a drain, 2 if the options cannot be served, 1 for a failure while running, or if the server
// that --healthcheck asks is not well.
#include "../common/process.hpp"
#include "certificates.hpp"
#include "health.hpp"
#include "options.hpp"
#include "routes.hpp"

#include <coppice/base/saturating.hpp>
#include <coppice/io/service_manager.hpp>
#include <coppice/io/signal_set.hpp>
#include <coppice/io/timer.hpp>

#ifdef COPPICE_WITH_HTTP2
#include <coppice/http2.hpp>
#endif

#include <signal.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using namespace coppice;

void say(const std::string& what) {
    std::fprintf(stderr, "coppice-serve: %s\n", what.c_str());
}

constexpr std::array watched_signals{SIGTERM, SIGINT, SIGHUP};

// Blocks the watched signals in this thread and in those that it makes from now on. A signal that
// comes before the watch begins is kept for it, and no handler runs on the thread of a loop.
void block_watched_signals() {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int signal : watched_signals) ::sigaddset(&set, signal);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

// Lets the signals that end a program do so, once the watch is over.
void unblock_ending_signals() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGTERM);
    ::sigaddset(&set, SIGINT);
    ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

// Tells the service manager, if there is one. What it is not told, it finds out later.
void tell_manager(const std::string& message) {
    if (const std::error_code ec = io::notify_service_manager(message)) {
        say("NOTIFY_SOCKET: " + message + ": " + ec.message());
    }
}

// What SIGHUP reopens. If that fails, the old one stays in use. A call returns what has failed,
// separated by semicolons; "" if nothing has.
class reloading {
public:
    reloading(serve::world& world, std::optional<http::access_log>& log,
              serve::certificates& certificates, const serve::options& o)
        : world_(world), log_(log), certificates_(certificates), options_(o) {}
    std::string operator()() const {
        std::string failures;
        const auto failed = [&](const std::string& what, const char* why) {
            const std::string text = what + " cannot be opened again, the old one stays: " + why;
            say("SIGHUP: " + text);
            failures += (failures.empty() ? "" : "; ") + text;
        };
        if (log_ && options_.access_log != "-") {
            if (const std::error_code ec = log_->reopen()) {
                failed(options_.access_log, ec.message().c_str());
            }
        }
        if (!options_.root.empty()) {
            try {
                world_.files.set(serve::open_files(options_));
            } catch (const std::exception& e) {
                failed(options_.root, e.what());
            }
        }
        try {
            certificates_.reload();
            for (const std::string& late : certificates_.out_of_date()) say("SIGHUP: " + late);
        } catch (const std::exception& e) {
            failed("a certificate", e.what());
        }
        if (failures.empty()) say("SIGHUP: opened again");
        return failures;
    }

private:
    serve::world& world_;
    std::optional<http::access_log>& log_;
    serve::certificates& certificates_;
    const serve::options& options_;
};

// Waits for signals on a separate loop and thread.
class signal_watch {
public:
    signal_watch(http::server& server, serve::world& world, const serve::options& o,
                 const reloading& reload)
        : server_(server),
          world_(world),
          drain_delay_(o.drain_delay),
          drain_time_(o.drain),
          reload_(reload) {
        watch();
        if (const auto time = io::watchdog_time()) beat(*time);
        thread_ = std::thread([this] { loop_.run(); });
    }
    ~signal_watch() {
        loop_.stop();
        thread_.join();
    }

private:
    struct session {
        struct promise_type {
            session get_return_object() const noexcept { return {}; }
            std::suspend_never initial_suspend() const noexcept { return {}; }
            std::suspend_never final_suspend() const noexcept { return {}; }
            void return_void() const noexcept {}
            void unhandled_exception() const noexcept { std::terminate(); }
        };
    };
    session watch() {
        for (bool draining = false;;) {
            std::error_code ec;
            const int signal = co_await signals_.wait(use_await[ec]);
            if (ec) co_return;
            if (signal == SIGHUP) {
                reload(draining);
                continue;
            }
            if (draining) {
                say("stopped twice, ending at once");
                std::_Exit(128 + signal);
            }
            draining = true;
            // Relaxed: nothing depends on its order.
            world_.draining.store(true, std::memory_order_relaxed);
            say("draining");
            tell_manager("STOPPING=1\nSTATUS=draining");
            drain_later();
        }
    }
    // A manager that was told STOPPING=1 is not told of reloads.
    void reload(bool draining) const {
        if (!draining) tell_manager("RELOADING=1");
        std::string failures = reload_();
        std::ranges::replace(failures, '\n', ' ');  // a newline would begin another variable
        if (draining) return;
        tell_manager(failures.empty()
                         ? "READY=1\nSTATUS=serving"
                         : "READY=1\nSTATUS=serving, but the last reload failed: " + failures);
    }
    // Tells the manager that the server is well, twice as often as it asks, as long as each loop
    // takes up work in time. A server that drains is well: its loops may have ended.
    session beat(std::chrono::nanoseconds time) {
        io::timer timer(loop_);
        for (std::error_code ec;;) {
            co_await timer.wait_for(time / 2, use_await[ec]);
            if (ec) co_return;
            // Relaxed: only this thread writes it.
            const bool draining = world_.draining.load(std::memory_order_relaxed);
            if (draining || world_.board->is_prompt(time)) tell_manager("WATCHDOG=1");
        }
    }
    // First only /readyz tells, so that a balancer sends its requests to another server, and each
    // answer of HTTP/1.1 closes its connection, so that the balancer's next one goes there too.
    session drain_later() {
        io::timer timer(loop_);
        std::error_code ec;
        co_await timer.wait_for(drain_delay_, use_await[ec]);
        if (ec) co_return;
        server_.drain(drain_time_);
        end_late();
    }
    // The drain has cut off everything by then; what still runs ignores its stop token.
    session end_late() {
        io::timer timer(loop_);
        std::error_code ec;
        co_await timer.wait_for(saturating_add(drain_time_, grace), use_await[ec]);
        if (ec) co_return;
        say("a handler did not stop, ending without it");
        std::_Exit(0);
    }
    static constexpr std::chrono::nanoseconds grace = std::chrono::seconds(1);
    http::server& server_;
    serve::world& world_;
    const std::chrono::nanoseconds drain_delay_;
    const std::chrono::nanoseconds drain_time_;
    const reloading& reload_;
    io::context loop_{io::backend::epoll};
    io::signal_set signals_{loop_, watched_signals};
    std::thread thread_;
};

int refuse(const std::string& why) {
    say(why);
    return 2;
}

// A place where the options let the server listen.
struct place {
    const char* flag;
    io::endpoint at;
};

bool is_every_address(const io::endpoint& at, const char* address) {
    return at == io::endpoint::parse(address, at.port()).value();
}

// Returns true if two listeners want the same port of an address. Linux gives the connections of
// IPv4 to a listener on :: too.
bool overlap(const io::endpoint& a, const io::endpoint& b) {
    if (a.port() != b.port() || a.port() == 0) return false;
    const auto takes = [](const io::endpoint& one, const io::endpoint& other) {
        return is_every_address(one, "::") || (is_every_address(one, "0.0.0.0") && other.is_v4());
    };
    return a == b || takes(a, b) || takes(b, a);
}

// Errors: std::invalid_argument if the options name one port twice.
void check_ports(const serve::options& o) {
    std::vector<place> places;
    const auto add = [&](const char* flag, const std::string& address, std::uint16_t port) {
        places.push_back({flag, io::endpoint::parse(address, port).value()});
    };
    if (!o.tls_only) add("--port", o.address, o.port);
    if (!o.tls_certificates.empty()) add("--tls-port", o.address, o.tls_port);
    if (o.admin_port) add("--admin-port", o.admin_address, *o.admin_port);
    for (std::size_t i = 1; i < places.size(); ++i) {
        for (std::size_t k = 0; k != i; ++k) {
            if (!overlap(places[i].at, places[k].at)) continue;
            throw std::invalid_argument(
                std::string(places[i].flag) + ": " + places[i].at.to_string() + " is the port of " +
                places[k].flag + " (" + places[k].at.to_string() + "): choose another one");
        }
    }
}

// Makes the server listen on the options' ports, or on the sockets that were passed: encrypted on
// those with the name https. Errors: std::invalid_argument.
void choose_listeners(http::server_options& how, const std::vector<io::activated_socket>& passed,
                      std::shared_ptr<const io::server_security> security,
                      const serve::options& options) {
    if (passed.empty()) {
        if (security == nullptr) return;
        const auto at = io::endpoint::parse(options.address, options.tls_port);
        if (options.tls_only) {
            how.endpoint = at.value();
            how.security = security;
        } else {
            how.more_listeners.push_back({at.value(), security, how.proxies});
        }
        return;
    }
    std::vector<http::listening_endpoint> listeners;
    for (const io::activated_socket& s : passed) {
        const bool secure = s.name == "https";
        if (secure && security == nullptr) {
            throw std::invalid_argument("a socket has the name https: add --tls-certificate");
        }
        listeners.push_back({s.local, secure ? security : nullptr, how.proxies, s.descriptor});
    }
    how.endpoint = listeners.front().endpoint;
    how.security = listeners.front().security;
    how.already_listening = listeners.front().already_listening;
    how.more_listeners.assign(listeners.begin() + 1, listeners.end());
    // Another process may accept what this one has not: no connection is lost.
    if (how.backend == io::backend::automatic) how.backend = io::backend::epoll;
    how.timeouts.drain_first_request = std::chrono::seconds(1);
}

// Serves the admin routes on a loop and a thread of their own: they answer while the loops of the
// server are busy, and until it has drained.
class admin_listener {
public:
    admin_listener(const io::endpoint& at, const serve::world& world)
        : server_(only_loop(at), serve::make_admin_routes(world)), thread_([this] { run(); }) {}
    ~admin_listener() {
        server_.drain(std::chrono::seconds(0));
        thread_.join();
    }
    io::endpoint local() const { return server_.local(); }

private:
    static http::server_options only_loop(const io::endpoint& at) {
        http::server_options o;
        o.endpoint = at;
        o.model = http::model::single;
        o.connections_max = 100;
        return o;
    }
    void run() noexcept {
        try {
            server_.run();
        } catch (const std::exception& e) {
            say(std::string("the admin listener has ended: ") + e.what());
        }
    }
    http::server server_;
    std::thread thread_;
};

int serve_until_stopped(http::server& server, serve::world& world, const std::vector<bool>& secure,
                        const serve::options& options, const reloading& reload) {
    try {
        const signal_watch watch(server, world, options, reload);
        for (std::size_t i = 0; i != secure.size(); ++i) {
            std::printf("listening on %s://%s\n", secure[i] ? "https" : "http",
                        server.local(i).to_string().c_str());
        }
        std::fflush(stdout);
        tell_manager("READY=1\nSTATUS=serving");
        server.run();
        return 0;
    } catch (const std::exception& e) {
        say(e.what());
        return 1;
    }
}

}  // namespace

int main(int argc, char** argv) {
    const auto parsed = serve::parse(argc, argv);
    if (const int* const status = std::get_if<int>(&parsed)) return *status;
    const serve::options& options = std::get<serve::options>(parsed);

    if (options.healthcheck) return serve::ask_for_health(options);
    const auto endpoint = io::endpoint::parse(options.address, options.port);
    common::prepare_process();
    serve::world world;
    std::optional<http::access_log> log;
    std::optional<serve::certificates> certificates;
    std::optional<thread_pool> handshakes;
    std::optional<http::server> server;
    std::vector<bool> secure;  // for each listener
    try {
        if (!options.root.empty()) world.files.set(serve::open_files(options));
        certificates.emplace(options);
        const std::vector<io::activated_socket> passed = io::activated_sockets();
        if (passed.empty()) check_ports(options);
        // Only --check fails for these: a restart must not, since clients decide what they accept.
        for (const std::string& late : certificates->out_of_date()) say(late);
        if (options.check) {
            if (!certificates->out_of_date().empty()) return 2;
            (void)serve::make_routes(world, options);
            std::puts("the options can be served");
            return 0;
        }
        if (options.access_log == "-") {
            log.emplace(STDERR_FILENO);
        } else if (!options.access_log.empty()) {
            log.emplace(options.access_log);
        }
        block_watched_signals();
        http::server_options how = options.server;
        how.access_log = log ? &*log : nullptr;
        how.endpoint = endpoint.value();
#ifdef COPPICE_WITH_HTTP2
        how.http2 = http2::for_server();
#endif
        if (options.handshake_threads != 0) {
            how.handshake_pool = &handshakes.emplace(options.handshake_threads);
        }
        choose_listeners(how, passed, certificates->security(), options);
        secure.push_back(how.security != nullptr);
        for (const auto& l : how.more_listeners) secure.push_back(l.security != nullptr);
        server.emplace(std::move(how), serve::make_routes(world, options));
    } catch (const std::system_error& e) {
        return refuse(std::string(e.what()) + " (" + endpoint.value().to_string() + ")");
    } catch (const std::exception& e) {
        return refuse(e.what());
    }
    world.server = &*server;
    world.log = log ? &*log : nullptr;
    world.board = std::make_unique<serve::live_board>(*server);
    const reloading reload(world, log, *certificates, options);
    std::optional<admin_listener> admin;
    if (options.admin_port) {
        const auto at = io::endpoint::parse(options.admin_address, *options.admin_port);
        try {
            admin.emplace(at.value(), world);
        } catch (const std::system_error& e) {
            return refuse(std::string("--admin-port: ") + e.what());
        }
        std::printf("admin on http://%s\n", admin->local().to_string().c_str());
    }
    const int status = serve_until_stopped(*server, world, secure, options, reload);
    // What is left may wait for a log that takes nothing.
    unblock_ending_signals();
    return status;
}
