// Reads the command line with CLI11.
#include "options.hpp"

#include "../common/flags.hpp"

#include <coppice/pool/thread_pool.hpp>

#include <CLI/CLI.hpp>

#include <iostream>

namespace chat {

namespace {

void add_count(CLI::App& app, const std::string& flag, std::size_t& value, std::size_t most,
               const std::string& help) {
    app.add_option(flag, value, help)
        ->check(CLI::Range(std::size_t{1}, most))
        ->type_name("N")
        ->capture_default_str();
}

void add_tls(CLI::App& app, options& o) {
    CLI::Option* const certificate =
        app.add_option("--tls-certificate", o.tls_certificate,
                       "PEM file with a certificate, and those between it and its authority: the "
                       "port is for https then")
            ->check(CLI::ExistingFile);
    CLI::Option* const key =
        app.add_option("--tls-key", o.tls_key, "PEM file with the key of the certificate")
            ->check(CLI::ExistingFile)
            ->needs(certificate);
    certificate->needs(key);
}

}  // namespace

std::variant<options, int> parse(int argc, char** argv) {
    options o;
    std::int64_t ping_ms = o.ping_interval.count();
    std::int64_t drain_ms = o.drain.count();
    CLI::App app("A chat over WebSockets, and its page.", "coppice-chat");
    app.set_version_flag("--version", "coppice-chat " COPPICE_CHAT_VERSION);
    common::add_place(app, o.address, o.port);
    app.add_option("--threads", o.threads, "event loops; by default one per processor")
        ->check(CLI::Range(1, 1024));
    add_tls(app, o);
    add_count(app, "--rooms", o.rooms_max, 1'000'000, "rooms at once; beyond this: 503");
    add_count(app, "--visitors", o.visitors_max, 100'000,
              "visitors of a room at once; beyond this: 503");
    add_count(app, "--backlog", o.backlog, 100'000,
              "messages that a visitor may be behind; beyond this, the oldest are lost for it");
    add_count(app, "--message-bytes", o.message_bytes_max, 1024 * 1024,
              "of one message; beyond this: close code 1009");
    add_count(app, "--rate", o.messages_per_second, 1'000'000,
              "messages per second of one visitor; beyond this they are refused");
    common::add_time(app, "--ping-interval", ping_ms, "silence until the server sends a ping");
    common::add_time(app, "--drain-timeout", drain_ms,
                     "after SIGTERM or SIGINT, for visitors to take what is theirs");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e, std::cout, std::cerr) == 0 ? 0 : 2;
    }
    o.ping_interval = std::chrono::milliseconds(ping_ms);
    o.drain = std::chrono::milliseconds(drain_ms);
    if (o.threads == 0) o.threads = coppice::thread_pool::hardware();
    return o;
}

}  // namespace chat
