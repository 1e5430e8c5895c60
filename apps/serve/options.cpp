// Reads the command line with CLI11.
#include "options.hpp"

#include "../common/flags.hpp"
#include "config_file.hpp"

#include <CLI/CLI.hpp>

#include <coppice/http/admission.hpp>

#include <charconv>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <utility>

namespace serve {

namespace {

using duration = std::chrono::nanoseconds;

// A whole number without a sign, and the text after it.
std::optional<std::pair<std::uint64_t, std::string_view>> number_and_unit(std::string_view text) {
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    if (read.ec != std::errc()) return std::nullopt;
    return std::pair(number, text.substr(static_cast<std::size_t>(read.ptr - text.data())));
}

// Writes a value for --help, in the largest unit that divides it.
std::string written(duration time) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
    return ms % 1000 == 0 ? std::to_string(ms / 1000) + "s" : std::to_string(ms) + "ms";
}
std::string written(std::uint64_t size) {
    int unit = 0;
    for (; size != 0 && size % 1024 == 0 && unit != 3; ++unit) size /= 1024;
    static constexpr const char* names[] = {"", "k", "M", "G"};
    return std::to_string(size) + names[unit];
}

// The flags of one group of --help.
class flag_group {
public:
    flag_group(CLI::App& app, std::string name) : app_(app), name_(std::move(name)) {}

    CLI::Option* time(const std::string& flag, duration& value, duration least,
                      const std::string& help) {
        const auto set = [flag, least, &value](const std::string& text) {
            const std::optional<duration> read = read_duration(text);
            if (!read || *read < least) {
                throw CLI::ValidationError(flag, "'" + text + "' is not a time from " +
                                                     written(least) +
                                                     " on, like 500ms, 10s, 2m or 1h");
            }
            value = *read;
        };
        return named(app_.add_option_function<std::string>(flag, set, help), "TIME",
                     written(value));
    }
    template <class Size>
    CLI::Option* size(const std::string& flag, Size& value, std::uint64_t least,
                      const std::string& help) {
        const auto set = [flag, least, &value](const std::string& text) {
            const std::optional<std::uint64_t> read = read_size(text);
            if (!read || *read < least || *read > std::numeric_limits<Size>::max()) {
                throw CLI::ValidationError(flag, "'" + text + "' is not a size from " +
                                                     std::to_string(least) +
                                                     " on, like 4096, 64k, 8M or 1G");
            }
            value = static_cast<Size>(*read);
        };
        return named(app_.add_option_function<std::string>(flag, set, help), "SIZE",
                     value == 0 ? "" : written(value));
    }
    template <class Count>
    CLI::Option* count(const std::string& flag, Count& value, const std::string& help,
                       std::uint64_t most = std::numeric_limits<Count>::max()) {
        const auto set = [flag, most, &value](const std::string& text) {
            const auto read = number_and_unit(text);
            if (!read || !read->second.empty() || read->first == 0 || read->first > most) {
                throw CLI::ValidationError(
                    flag, "'" + text + "' is not a number from 1 to " + std::to_string(most));
            }
            value = static_cast<Count>(read->first);
        };
        return named(app_.add_option_function<std::string>(flag, set, help), "N",
                     value == 0 ? "" : std::to_string(value));
    }
    CLI::Option* add(CLI::Option* option) { return option->group(name_); }

private:
    CLI::Option* named(CLI::Option* option, const char* type, const std::string& shown) {
        return option->type_name(type)->default_str(shown)->group(name_);
    }
    CLI::App& app_;
    std::string name_;
};

// Returns what is wrong with a block of addresses; "" if nothing is.
std::string refuse_other_than_block(const std::string& text) {
    try {
        coppice::http::address_set().add(text);
        return "";
    } catch (const std::invalid_argument& e) {
        return e.what();
    }
}

// Returns what is wrong with the file of a log, as far as that shows before it is opened; "" if
// nothing is.
std::string refuse_other_than_log(const std::string& text) {
    namespace fs = std::filesystem;
    std::error_code ec;
    if (text == "-") return "";
    if (text.empty()) return "'' is not a file";
    if (fs::is_directory(text, ec)) return "'" + text + "' is a directory";
    const fs::path parent = fs::path(text).parent_path();
    if (parent.empty() || fs::is_directory(parent, ec)) return "";
    return "'" + text + "' cannot be made: there is no directory " + parent.string();
}

void add_log(CLI::App& app, options& o) {
    using coppice::http::access_log_format;
    static const std::map<std::string, access_log_format> formats{
        {"plain", access_log_format::plain},
        {"combined", access_log_format::combined},
        {"traced", access_log_format::traced},
        {"json", access_log_format::json}};
    CLI::Option* const log =
        app.add_option("--access-log", o.access_log,
                       "file that gets a line for each answered request; - means stderr. SIGHUP "
                       "reopens it")
            ->check(refuse_other_than_log);
    app.add_option("--access-log-format", o.server.access_log_format,
                   "plain; combined: as Apache writes it; traced: combined, the request's id, its "
                   "traceparent, and the seconds; json: an object in a line, with all of these")
        ->transform(CLI::CheckedTransformer(formats))
        ->default_str("plain")
        ->needs(log);
    app.add_flag("--request-id", o.server.send_request_id,
                 "send the id of each request to its client, as X-Request-Id");
}

void add_place(CLI::App& app, options& o) {
    using coppice::http::model;
    using coppice::io::backend;
    static const std::map<std::string, model> models{{"single", model::single},
                                                     {"multi", model::multi},
                                                     {"worker", model::worker},
                                                     {"async", model::async}};
    static const std::map<std::string, backend> rings{
        {"auto", backend::automatic}, {"uring", backend::uring}, {"epoll", backend::epoll}};
    common::add_place(app, o.address, o.port);
    app.add_option("--threads", o.threads,
                   "event loops; for worker, the threads of its pool; by default 1 for single, "
                   "otherwise one per processor")
        ->check(CLI::Range(1, 1024));
    app.add_option("--model", o.server.model,
                   "single: one loop; multi: a loop per thread; worker: loops read, a pool "
                   "answers; async: loops run tasks, a pool the rest")
        ->transform(CLI::CheckedTransformer(models))
        ->default_str("multi");
    app.add_option("--ring", o.server.backend, "how to wait for the network: auto, uring or epoll")
        ->transform(CLI::CheckedTransformer(rings))
        ->default_str("auto");
    app.add_option("--proxies", o.proxies,
                   "addresses of proxies that begin connections with a PROXY header, like "
                   "10.0.0.0/8, ::1 or unix; the client that it names counts then")
        ->type_name("BLOCK")
        ->check(refuse_other_than_block);
    static const std::map<std::string, coppice::http::forwarding_field> fields{
        {"x-forwarded-for", coppice::http::forwarding_field::x_forwarded_for},
        {"forwarded", coppice::http::forwarding_field::forwarded}};
    CLI::Option* const forwarded =
        app.add_option("--forwarded-from", o.forwarded_from,
                       "addresses of proxies whose word about their clients is taken from a field "
                       "of the request")
            ->type_name("BLOCK")
            ->check(refuse_other_than_block);
    app.add_option("--forwarded-field", o.server.forwarding.kind,
                   "the field that these proxies write: x-forwarded-for or forwarded")
        ->transform(CLI::CheckedTransformer(fields))
        ->default_str("x-forwarded-for")
        ->needs(forwarded);
    add_log(app, o);
}

// Returns what is wrong with an origin; "" if nothing is. An origin with a path would match no
// request.
std::string refuse_other_than_origin(const std::string& text) {
    const std::size_t scheme = text.find("://");
    const bool origin = scheme != 0 && scheme != text.npos && scheme + 3 != text.size() &&
                        text.find('/', scheme + 3) == text.npos;
    if (origin || text == "*") return "";
    return "'" + text + "' is not an origin, like https://example.org, without a path";
}

void add_content(CLI::App& app, options& o) {
    flag_group content(app, "Content");
    content.add(app.add_option("--root", o.root,
                               "directory whose files are served under /static/. SIGHUP "
                               "reopens it")
                    ->check(CLI::ExistingDirectory));
    content.add(app.add_option("--cors", o.cors,
                               "origins whose scripts may use the server, like "
                               "https://example.org; * means any")
                    ->type_name("ORIGIN")
                    ->check(refuse_other_than_origin));
    content.add(app.add_flag("--compress", o.compress,
                             "compress text for clients that accept gzip or deflate"));
    CLI::Option* const none = content.add(app.add_flag_callback(
        "--no-workloads", [&o] { o.workloads = false; },
        "leave out /cpu, /io, /io-async, and /echo"));
    content
        .count("--workload-limit", o.workload_max,
               "requests to /cpu, /io, /io-async, and /echo in flight at once; beyond this: "
               "503; no limit by default")
        ->excludes(none);
}

void add_tls(CLI::App& app, options& o) {
    flag_group tls(app, "TLS");
    CLI::Option* const certificates = tls.add(
        app.add_option("--tls-certificate", o.tls_certificates,
                       "PEM file with a certificate, and those between it and its authority. "
                       "Several: each is for the hosts that it names, the first also for others. "
                       "SIGHUP reads all again")
            ->check(CLI::ExistingFile));
    CLI::Option* const keys = tls.add(app.add_option("--tls-key", o.tls_keys,
                                                     "PEM file with the key of a certificate, in "
                                                     "the order of these")
                                          ->check(CLI::ExistingFile));
    certificates->needs(keys);
    keys->needs(certificates);
    tls.add(app.add_flag("--tls-only", o.tls_only, "listen at no port in the clear")
                ->needs(certificates));
    tls.add(app.add_option("--handshake-threads", o.handshake_threads,
                           "threads that compute handshakes, so that the server's loops go on; 0: "
                           "the loops compute them")
                ->check(CLI::Range(0, 1024))
                ->capture_default_str()
                ->needs(certificates));
    tls.add(app.add_option("--tls-port", o.tls_port, "TCP port for TLS; 0 lets the system choose")
                ->check(CLI::Range(0, 65535))
                ->capture_default_str()
                ->needs(certificates));
}

void add_admin(CLI::App& app, options& o) {
    flag_group admin(app, "Operation");
    CLI::Option* const port =
        admin.add(app.add_option("--admin-port", o.admin_port,
                                 "TCP port of a listener of its own, with a loop of its own, for "
                                 "/metrics, /livez and /readyz; 0 lets the system choose; without "
                                 "it they are where all else is")
                      ->check(CLI::Range(0, 65535)));
    admin.add(
        app.add_option("--admin-address", o.admin_address, "IPv4 or IPv6 address of that listener")
            ->check(common::refuse_other_than_address)
            ->capture_default_str()
            ->needs(port));
    admin.add(app.add_flag("--route-metrics", o.server.route_metrics,
                           "count requests, latencies, and those in flight by route in /metrics"));
    app.set_config("--config", "",
                   "TOML or INI file with flags, without their dashes, such as port = 80; flags on "
                   "the command line come before it")
        ->group("Operation");
    app.config_formatter(std::make_shared<config_file>(app));
    // A flag that is misspelled must not be a limit that is missing.
    app.allow_config_extras(CLI::config_extras_mode::error);
    admin.add(app.add_flag("--check", o.check,
                           "read everything that the flags and the configuration name, say "
                           "whether it can be served, and end")
                  ->configurable(false));
    admin.add(app.add_flag("--healthcheck", o.healthcheck,
                           "ask the server that runs with these flags, on this machine, for "
                           "/livez, and end: with status 0 if it is well, otherwise 1")
                  ->configurable(false));
    admin.time("--drain-delay", o.drain_delay, duration(0),
               "after SIGTERM or SIGINT, until the listener closes; /readyz answers 503 meanwhile");
}

void add_limits(CLI::App& app, options& o) {
    flag_group limits(app, "Limits");
    coppice::http::server_options& s = o.server;
    limits.size("--max-target", s.limits.target_bytes_max, 1,
                "of a request's target; beyond this: 414");
    limits.size("--max-header", s.limits.header_bytes_max, 1,
                "of all field lines; beyond this: 431");
    limits.count("--max-fields", s.limits.fields_max, "fields of a request; beyond this: 431",
                 coppice::http::request_head::capacity);
    limits.size("--max-body", s.limits.body_bytes_max, 0, "of a request's body; beyond this: 413");
    limits.count("--max-connections", s.connections_max, "open at once; beyond this: refused");
    limits.count("--max-connections-per-address", o.connections_per_address_max,
                 "open at once from one address; beyond this: refused; by default an eighth of "
                 "the above, and no limit for clients on this machine");
    limits.size("--max-buffered", o.buffered_bytes_max, 1,
                "kept for all clients together; beyond this: 503; by default a quarter of the "
                "memory");
    limits.count("--max-requests-per-connection", s.requests_per_connection_max,
                 "the last answer closes the connection");
    limits.size("--min-rate", s.timeouts.rate_min, 0,
                "per second: bodies and answers get the time that they take at this rate in "
                "addition to their timeout; 0: they have no timeout");
}

// Returns what is wrong with a host; "" if nothing is.
std::string refuse_other_than_host(const std::string& text) {
    try {
        (void)coppice::http::allowed_hosts({text});
        return "";
    } catch (const std::invalid_argument& e) {
        return e.what();
    }
}

// Refusals of whole requests, by host, client, and load.
void add_refusals(CLI::App& app, options& o) {
    flag_group refusals(app, "Limits");
    refusals.add(app.add_option("--hosts", o.hosts,
                                "hosts that are served, like example.org, *.example.org or "
                                "[::1]:8080; others: 421; all by default")
                     ->type_name("HOST")
                     ->check(refuse_other_than_host));
    CLI::Option* const rate = refusals.count(
        "--rate-limit", o.rate,
        "requests per second of one address; beyond this: 429; no limit by default", 1'000'000'000);
    refusals
        .count("--rate-burst", o.rate_burst,
               "requests of one address at once; by default twice the above", 1u << 30)
        ->needs(rate);
    refusals.add(app.add_option("--rate-exempt", o.rate_exempt, "addresses without that limit")
                     ->type_name("BLOCK")
                     ->check(refuse_other_than_block)
                     ->needs(rate));
    refusals.time("--shed-after", o.shed_after, duration(0),
                  "requests that have waited for longer until their handler can begin: 503; a "
                  "tenth of it while a queue stands; 0 means no limit");
}

void add_timeouts(CLI::App& app, options& o) {
    flag_group times(app, "Timeouts");
    coppice::http::timeouts& t = o.server.timeouts;
    constexpr duration least = std::chrono::milliseconds(1);
    times.time("--header-timeout", t.header, least,
               "from a request's first byte to its head's end");
    times.time("--idle-timeout", t.idle, least, "between the requests of a connection");
    times.time("--body-timeout", t.body, least,
               "for a body, plus the time that it takes at --min-rate");
    times.time("--write-timeout", t.write, least,
               "for an answer, plus the time that it takes at --min-rate");
    times.time("--handler-timeout", t.handler, least, "until a handler has made its answer");
    times.time("--drain-timeout", o.drain, duration(0),
               "after SIGTERM or SIGINT; afterwards the rest is cut off");
}

// Errors: CLI::ValidationError if --healthcheck cannot find the server, or cannot speak with it.
void check_that_it_can_be_asked(const options& o) {
    if (o.admin_port.value_or(o.port) == 0) {
        throw CLI::ValidationError("--healthcheck", "the port of the server must not be 0");
    }
    if (o.tls_only && !o.admin_port) {
        throw CLI::ValidationError("--healthcheck", "needs --admin-port with --tls-only");
    }
}

}  // namespace

std::optional<duration> read_duration(std::string_view text) {
    static constexpr std::pair<std::string_view, std::uint64_t> units[] = {
        {"ms", 1'000'000},
        {"s", 1'000'000'000},
        {"m", 60'000'000'000},
        {"h", 3'600'000'000'000},
    };
    constexpr auto most = static_cast<std::uint64_t>(duration::max().count());
    const auto read = number_and_unit(text);
    if (!read) return std::nullopt;
    for (const auto& [name, nanoseconds] : units) {
        if (read->second != name) continue;
        if (read->first > most / nanoseconds) return std::nullopt;
        return duration(static_cast<duration::rep>(read->first * nanoseconds));
    }
    return std::nullopt;
}

std::optional<std::uint64_t> read_size(std::string_view text) {
    static constexpr std::pair<std::string_view, int> units[] = {
        {"", 0}, {"k", 10}, {"K", 10}, {"M", 20}, {"G", 30}};
    const auto read = number_and_unit(text);
    if (!read) return std::nullopt;
    for (const auto& [name, shift] : units) {
        if (read->second != name) continue;
        if (read->first > std::numeric_limits<std::uint64_t>::max() >> shift) return std::nullopt;
        return read->first << shift;
    }
    return std::nullopt;
}

std::variant<options, int> parse(int argc, char** argv) {
    options o;
    CLI::App app("A web server on the coppice runtime.", "coppice-serve");
    app.set_version_flag("--version", "coppice-serve " COPPICE_SERVE_VERSION);
    add_place(app, o);
    add_tls(app, o);
    add_content(app, o);
    add_admin(app, o);
    add_limits(app, o);
    add_refusals(app, o);
    add_timeouts(app, o);
    common::refuse_other_switches(app);
    try {
        app.parse(argc, argv);
        if (o.tls_certificates.size() != o.tls_keys.size()) {
            throw CLI::ValidationError("--tls-key", "each --tls-certificate needs one");
        }
        if (o.server.model == coppice::http::model::single && o.threads > 1) {
            throw CLI::ValidationError("--threads", "must be 1 for --model single");
        }
        if (o.healthcheck) check_that_it_can_be_asked(o);
    } catch (const CLI::ParseError& e) {
        return app.exit(e, std::cout, std::cerr) == 0 ? 0 : 2;
    }
    // A handler that reads its body piece by piece has the same limit as one that has it whole.
    o.server.streamed_body_bytes_max = o.server.limits.body_bytes_max;
    if (o.connections_per_address_max != 0) {
        o.server.connections_per_address_max = o.connections_per_address_max;
    }
    if (o.buffered_bytes_max != 0) o.server.buffered_bytes_max = o.buffered_bytes_max;
    for (const std::string& block : o.proxies) o.server.proxies.add(block);
    for (const std::string& block : o.forwarded_from) o.server.forwarding.from.add(block);
    const bool single = o.server.model == coppice::http::model::single;
    if (o.threads == 0) o.threads = single ? 1 : coppice::thread_pool::hardware();
    o.server.threads = o.threads;
    return o;
}

}  // namespace serve
