// coppice-serve: reads its options, listens, serves until SIGTERM or SIGINT, and drains. SIGHUP
// reopens the access log and the served directory, and reads the certificates again. Exit status: 0
// after a drain, 2 if the options cannot be served, 1 for a failure while running.
#include "certificates.hpp"
#include "options.hpp"
#include "routes.hpp"

#include <coppice/base/saturating.hpp>
#include <coppice/io/signal_set.hpp>
#include <coppice/io/timer.hpp>

#ifdef COPPICE_WITH_HTTP2
#include <coppice/http2.hpp>
#endif

#include <sys/resource.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <memory>
#include <system_error>
#include <thread>

namespace {

using namespace coppice;

// Every connection needs a descriptor: takes as many as the system permits.
void raise_file_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

void say(const std::string& what) {
    std::fprintf(stderr, "coppice-serve: %s\n", what.c_str());
}

// What SIGHUP reopens. If that fails, the old one stays in use.
class reloading {
public:
    reloading(serve::world& world, std::optional<http::access_log>& log,
              serve::certificates& certificates, const serve::options& o)
        : world_(world), log_(log), certificates_(certificates), options_(o) {}
    void operator()() const {
        bool good = true;
        const auto failed = [&](const std::string& what, const char* why) {
            say("SIGHUP: " + what + " cannot be opened again, the old one stays: " + why);
            good = false;
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
        } catch (const std::exception& e) {
            failed("a certificate", e.what());
        }
        if (good) say("SIGHUP: opened again");
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
    signal_watch(http::server& server, std::chrono::nanoseconds drain, const reloading& reload)
        : server_(server), drain_time_(drain), reload_(reload) {
        watch();
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
                reload_();
                continue;
            }
            if (draining) {
                say("stopped twice, ending at once");
                std::_Exit(128 + signal);
            }
            draining = true;
            say("draining");
            server_.drain(drain_time_);
            end_late();
        }
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
    const std::chrono::nanoseconds drain_time_;
    const reloading& reload_;
    io::context loop_{io::backend::epoll};
    io::signal_set signals_{loop_, {SIGTERM, SIGINT, SIGHUP}};
    std::thread thread_;
};

int refuse(const std::string& why) {
    say(why);
    return 2;
}

int serve_until_stopped(http::server& server, bool secure, std::chrono::nanoseconds drain,
                        const reloading& reload) {
    try {
        const signal_watch watch(server, drain, reload);
        std::printf("listening on http://%s\n", server.local().to_string().c_str());
        if (secure) std::printf("listening on https://%s\n", server.local(1).to_string().c_str());
        std::fflush(stdout);
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

    const auto endpoint = io::endpoint::parse(options.address, options.port);
    if (!endpoint) {
        return refuse("--address: '" + options.address + "' is not an IPv4 or IPv6 address");
    }
    raise_file_limit();
    std::signal(SIGPIPE, SIG_IGN);
    serve::world world;
    std::optional<http::access_log> log;
    std::optional<serve::certificates> certificates;
    std::optional<http::server> server;
    try {
        if (!options.root.empty()) world.files.set(serve::open_files(options));
        if (options.access_log == "-") {
            log.emplace(STDERR_FILENO);
        } else if (!options.access_log.empty()) {
            log.emplace(options.access_log);
        }
        http::server_options how = options.server;
        how.access_log = log ? &*log : nullptr;
        how.endpoint = endpoint.value();
        certificates.emplace(options);
#ifdef COPPICE_WITH_HTTP2
        how.http2 = http2::for_server();
#endif
        if (certificates->security() != nullptr) {
            const auto at = io::endpoint::parse(options.address, options.tls_port);
            how.more_listeners.push_back({at.value(), certificates->security()});
        }
        server.emplace(std::move(how), serve::make_routes(world, options));
    } catch (const std::system_error& e) {
        return refuse(std::string(e.what()) + " (" + endpoint.value().to_string() + ")");
    } catch (const std::exception& e) {
        return refuse(e.what());
    }
    world.server = &*server;
    world.board = std::make_unique<serve::live_board>(*server);
    const reloading reload(world, log, *certificates, options);
    const bool secure = certificates->security() != nullptr;
    return serve_until_stopped(*server, secure, options.drain, reload);
}
