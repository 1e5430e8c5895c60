// coppice-notes: keeps short texts in a database and serves them as JSON. An application to start
// from: options, a store behind an interface, handlers that suspend, and a drain at the end.
// Exit status: 0 after a drain, 2 if the options cannot be served, 1 for a failure while running.
#include "../common/flags.hpp"
#include "../common/process.hpp"
#include "routes.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>

namespace {

using namespace coppice;

struct options {
    std::string address = "127.0.0.1";
    std::uint16_t port = 8081;
    std::size_t threads = thread_pool::hardware();
    std::string database = "notes.db";
    std::int64_t database_ms = 5000;
};

std::unique_ptr<notes::store> open(const options& o) {
    const std::chrono::nanoseconds limit = std::chrono::milliseconds(o.database_ms);
    if (!o.database.starts_with("postgresql://")) return notes::open_sqlite(o.database, limit);
#ifdef NOTES_WITH_POSTGRESQL
    return notes::open_postgres(o.database, limit);
#else
    throw std::runtime_error("this program was built without PostgreSQL (COPPICE_POSTGRESQL)");
#endif
}

int serve(const options& o) {
    std::unique_ptr<notes::store> store;
    std::optional<http::server> server;
    try {
        store = open(o);
        http::server_options how;
        how.endpoint = io::endpoint::parse(o.address, o.port).value();
        how.threads = o.threads;
        how.limits.body_bytes_max = 512 * 1024;
        server.emplace(std::move(how), notes::make_routes(*store));
        server->drain_on({SIGTERM, SIGINT}, std::chrono::seconds(30), [](int signal, int count) {
            if (count == 2) std::_Exit(128 + signal);
        });
    } catch (const std::exception& e) {
        std::fprintf(stderr, "coppice-notes: %s\n", e.what());
        return 2;
    }
    std::printf("listening on http://%s\n", server->local().to_string().c_str());
    std::fflush(stdout);
    server->run();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    options o;
    CLI::App app("Keeps short texts in a database and serves them as JSON.", "coppice-notes");
    common::add_place(app, o.address, o.port);
    app.add_option("--threads", o.threads, "event loops")->check(CLI::Range(1, 1024));
    app.add_option("--database", o.database,
                   "an SQLite file, made if it is missing, or postgresql://...")
        ->capture_default_str();
    common::add_time(app, "--database-timeout", o.database_ms,
                     "how long a request waits for the database before it gets 503");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e, std::cout, std::cerr) == 0 ? 0 : 2;
    }
    common::prepare_process();
    try {
        return serve(o);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "coppice-notes: %s\n", e.what());
        return 1;
    }
}
