// Reads the command line with CLI11.
#include "options.hpp"

#include <CLI/CLI.hpp>

#include <iostream>
#include <map>

namespace serve {

std::variant<options, int> parse(int argc, char** argv) {
    using coppice::http::model;
    using coppice::io::backend;
    static const std::map<std::string, model> models{{"single", model::single},
                                                     {"multi", model::multi},
                                                     {"worker", model::worker},
                                                     {"async", model::async}};
    static const std::map<std::string, backend> rings{
        {"auto", backend::automatic}, {"uring", backend::uring}, {"epoll", backend::epoll}};
    options o;
    int port = o.port;
    CLI::App app("An HTTP/1.1 server on the coppice runtime.", "coppice-serve");
    app.set_version_flag("--version", "coppice-serve " COPPICE_VERSION);
    app.add_option("--address", o.address, "IPv4 or IPv6 address to listen on")
        ->capture_default_str();
    app.add_option("--port", port, "TCP port; 0 lets the system choose")
        ->check(CLI::Range(0, 65535))
        ->capture_default_str();
    app.add_option("--threads", o.threads,
                   "event loops, for worker the threads of its pool; by default 1 for single, "
                   "else one per processor")
        ->check(CLI::Range(1, 1024));
    app.add_option("--model", o.model,
                   "single: one loop; multi: a loop per thread; worker: loops read, a pool "
                   "answers; async: loops run what suspends, a pool the rest")
        ->transform(CLI::Transformer(models))
        ->default_str("multi");
    app.add_option("--ring", o.ring, "how to wait for the network: auto, uring or epoll")
        ->transform(CLI::Transformer(rings))
        ->default_str("auto");
    app.add_option("--root", o.root, "directory whose files are served under /static/")
        ->check(CLI::ExistingDirectory);
    app.add_option("--access-log", o.access_log,
                   "file to which each answered request adds a line; - is stderr");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e, std::cout, std::cerr) == 0 ? 0 : 2;
    }
    o.port = static_cast<std::uint16_t>(port);
    if (o.threads == 0) o.threads = o.model == model::single ? 1 : coppice::thread_pool::hardware();
    return o;
}

}  // namespace serve
