// Reads the command line with CLI11.
#include "options.hpp"

#include <coppice/io/endpoint.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <CLI/CLI.hpp>

#include <iostream>
#include <map>

namespace chat {

namespace {

std::string refuse_other_than_address(const std::string& text) {
    if (coppice::io::endpoint::parse(text, 1)) return "";
    return "'" + text + "' is not an IPv4 or IPv6 address, like 127.0.0.1 or ::";
}

void add_count(CLI::App& app, const std::string& flag, std::size_t& value, std::size_t most,
               const std::string& help) {
    app.add_option(flag, value, help)
        ->check(CLI::Range(std::size_t{1}, most))
        ->type_name("N")
        ->capture_default_str();
}

void add_time(CLI::App& app, const std::string& flag, std::int64_t& ms, const std::string& help) {
    static const std::map<std::string, std::int64_t> units{{"ms", 1}, {"s", 1000}, {"m", 60'000}};
    app.add_option(flag, ms, help + ": 500ms, 5s, 1m; an hour at most")
        ->transform(CLI::AsNumberWithUnit(units, CLI::AsNumberWithUnit::UNIT_REQUIRED))
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{3'600'000}))
        ->type_name("TIME")
        ->default_str(std::to_string(ms / 1000) + "s");
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
    int port = o.port;
    std::int64_t ping_ms = o.ping_interval.count();
    std::int64_t drain_ms = o.drain.count();
    CLI::App app("A chat over WebSockets, and its page.", "coppice-chat");
    app.set_version_flag("--version", "coppice-chat " COPPICE_CHAT_VERSION);
    app.add_option("--address", o.address, "IPv4 or IPv6 address to listen on")
        ->check(refuse_other_than_address)
        ->capture_default_str();
    app.add_option("--port", port, "TCP port; 0 lets the system choose")
        ->check(CLI::Range(0, 65535))
        ->capture_default_str();
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
    add_time(app, "--ping-interval", ping_ms, "silence until the server sends a ping");
    add_time(app, "--drain-timeout", drain_ms,
             "after SIGTERM or SIGINT, for visitors to take what is theirs");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e, std::cout, std::cerr) == 0 ? 0 : 2;
    }
    o.port = static_cast<std::uint16_t>(port);
    o.ping_interval = std::chrono::milliseconds(ping_ms);
    o.drain = std::chrono::milliseconds(drain_ms);
    if (o.threads == 0) o.threads = coppice::thread_pool::hardware();
    return o;
}

}  // namespace chat
