// coppice-serve: reads its options, listens, serves until SIGTERM or SIGINT, and drains.
// Exit status: 0 after a drain, 2 if the options cannot be served, 1 for a failure while running.
#include "options.hpp"
#include "routes.hpp"

#include <coppice/io/signal_set.hpp>
#include <coppice/io/timer.hpp>

#include <sys/resource.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <system_error>
#include <thread>

namespace {

using namespace coppice;

// Every connection is a file: take as many as the system lets us have.
void raise_file_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Waits for the signals that end a server, on a loop and a thread of its own.
class signal_watch {
public:
    explicit signal_watch(http::server& server) : server_(server) {
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
        for (bool draining = false;; draining = true) {
            std::error_code ec;
            const int signal = co_await signals_.wait(use_await[ec]);
            if (ec) co_return;
            if (draining) {
                std::fputs("coppice-serve: stopped twice, ending at once\n", stderr);
                std::_Exit(128 + signal);
            }
            std::fputs("coppice-serve: draining\n", stderr);
            server_.drain(drain_time);
            end_late();
        }
    }
    // The drain has cut everything off by then; what still runs does not listen to its stop token.
    session end_late() {
        io::timer timer(loop_);
        std::error_code ec;
        co_await timer.wait_for(drain_time + grace, use_await[ec]);
        if (ec) co_return;
        std::fputs("coppice-serve: a handler did not stop, ending without it\n", stderr);
        std::_Exit(0);
    }
    static constexpr duration drain_time = std::chrono::seconds(30);
    static constexpr duration grace = std::chrono::seconds(1);
    http::server& server_;
    io::context loop_{io::backend::epoll};
    io::signal_set signals_{loop_, {SIGTERM, SIGINT}};
    std::thread thread_;
};

int refuse(const std::string& why) {
    std::fprintf(stderr, "coppice-serve: %s\n", why.c_str());
    return 2;
}

int serve_until_stopped(http::server& server) {
    try {
        const signal_watch watch(server);
        std::printf("listening on http://%s\n", server.local().to_string().c_str());
        std::fflush(stdout);
        server.run();
        return 0;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "coppice-serve: %s\n", e.what());
        return 1;
    }
}

void block_signals() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGTERM);
    ::sigaddset(&set, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);  // every thread started from here on inherits it
    std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace

int main(int argc, char** argv) {
    const auto parsed = serve::parse(argc, argv);
    if (const int* const status = std::get_if<int>(&parsed)) return *status;
    const serve::options& options = std::get<serve::options>(parsed);

    const result<io::endpoint> endpoint = io::endpoint::parse(options.address, options.port);
    if (!endpoint) {
        return refuse("--address: '" + options.address + "' is no IPv4 or IPv6 address");
    }
    raise_file_limit();
    block_signals();
    serve::world world;
    std::optional<http::access_log> log;
    std::optional<http::server> server;
    try {
        if (!options.root.empty()) world.files.emplace(options.root);
        if (options.access_log == "-") {
            log.emplace(STDERR_FILENO);
        } else if (!options.access_log.empty()) {
            log.emplace(options.access_log);
        }
        http::server_options how;
        how.access_log = log ? &*log : nullptr;
        how.endpoint = endpoint.value();
        how.threads = options.threads;
        how.model = options.model;
        how.backend = options.ring;
        server.emplace(std::move(how), serve::make_routes(world));
    } catch (const std::system_error& e) {
        return refuse(std::string(e.what()) + " (" + endpoint.value().to_string() + ")");
    } catch (const std::exception& e) {
        return refuse(e.what());
    }
    world.server = &*server;
    return serve_until_stopped(*server);
}
