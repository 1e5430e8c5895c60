// /metrics in Prometheus' text format, version 0.0.4.
#include "routes.hpp"

#include <cstdio>

namespace serve {

namespace {

using coppice::http::server_statistics;

class page {
public:
    // Writes the beginning of a metric: its help and type lines.
    page& metric(const char* name, const char* type, const char* help) {
        name_ = name;
        text_ += "# HELP " + name_ + " " + help + "\n# TYPE " + name_ + " " + type + "\n";
        return *this;
    }
    page& value(std::uint64_t v, const std::string& labels = "") {
        text_ += name_ + labels + " " + std::to_string(v) + "\n";
        return *this;
    }
    // Writes one line of a histogram or summary, with a suffix after the name.
    page& line(const char* suffix, const std::string& labels, const std::string& v) {
        text_ += name_ + suffix + labels + " " + v + "\n";
        return *this;
    }
    std::string take() { return std::move(text_); }

private:
    std::string text_;
    std::string name_;
};

std::string seconds(std::uint64_t nanoseconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", static_cast<double>(nanoseconds) * 1e-9);
    return text;
}

void latency(page& p, const server_statistics& s) {
    p.metric("coppice_http_request_duration_seconds", "histogram",
             "From a request's bytes to its answer's write.");
    for (std::uint64_t bound = 1024; bound < (std::uint64_t{1} << 35); bound *= 2) {
        p.line("_bucket", "{le=\"" + seconds(bound) + "\"}",
               std::to_string(s.latency.count_up_to(bound)));
    }
    p.line("_bucket", "{le=\"+Inf\"}", std::to_string(s.latency.total()));
    p.line("_sum", "", seconds(s.latency.sum()));
    p.line("_count", "", std::to_string(s.latency.total()));
}

void refusals(page& p, const world& w) {
    if (w.log != nullptr) {
        p.metric("coppice_access_log_dropped_lines_total", "counter",
                 "Lines that the access log has lost, since its file was too slow or failed.")
            .value(w.log->dropped());
    }
    if (w.rate != nullptr) {
        p.metric("coppice_http_rate_limited_total", "counter",
                 "Requests refused with 429, since their client made too many.")
            .value(w.rate->refused());
    }
    if (w.shedding) {
        p.metric("coppice_http_shed_requests_total", "counter",
                 "Requests refused with 503, since they had waited for too long.")
            .value(w.shedding->refused());
    }
}

// Writes one series for each route, as it was declared: a client cannot make another.
void routes(page& p, const server_statistics& s) {
    if (s.routes.empty()) return;
    const auto labels = [](const coppice::http::route_statistics& r, const std::string& more) {
        return "{method=\"" + r.name.method + "\",route=\"" + r.name.pattern + "\"" + more + "}";
    };
    p.metric("coppice_http_route_requests_total", "counter",
             "Requests answered, by route and class of status; route \"\": no route.");
    for (const auto& r : s.routes) {
        for (std::size_t c = 0; c != r.by_class.size(); ++c) {
            if (r.by_class[c] == 0) continue;
            p.value(r.by_class[c], labels(r, ",class=\"" + std::to_string(c + 1) + "xx\""));
        }
    }
    p.metric("coppice_http_route_in_flight", "gauge",
             "Requests whose handler or streamed body has not ended.");
    for (const auto& r : s.routes) p.value(r.in_flight, labels(r, ""));
    p.metric("coppice_http_route_duration_seconds", "histogram",
             "From a request's bytes to its answer, by route.");
    for (const auto& r : s.routes) {
        std::uint64_t all = 0;
        for (const std::uint64_t n : r.by_class) all += n;
        if (all == 0) continue;
        for (std::size_t i = 6; i != r.bounds; ++i) {  // from 64 microseconds on
            const std::string bound = ",le=\"" + seconds(r.bound(i) * 1000) + "\"";
            p.line("_bucket", labels(r, bound), std::to_string(r.latency_up_to[i]));
        }
        p.line("_bucket", labels(r, ",le=\"+Inf\""), std::to_string(all));
        p.line("_sum", labels(r, ""), seconds(r.latency_sum));
        p.line("_count", labels(r, ""), std::to_string(all));
    }
}

}  // namespace

std::string metrics(const world& w) {
    const server_statistics s = w.server->statistics();
    page p;
    p.metric("coppice_http_requests_total", "counter", "Requests answered, by status.");
    for (std::size_t i = 0; i != s.by_status.size(); ++i) {
        if (s.by_status[i] == 0) continue;
        p.value(s.by_status[i], "{code=\"" + std::to_string(i + 100) + "\"}");
    }
    latency(p, s);
    p.metric("coppice_http_connections", "gauge", "Connections open now.").value(s.open);
    p.metric("coppice_http_connections_accepted_total", "counter", "Connections accepted.")
        .value(s.accepted);
    p.metric("coppice_http_connections_refused_total", "counter",
             "Connections closed for want of room or files.")
        .value(s.refused);
    p.metric("coppice_http_connections_shed_total", "counter",
             "Idle connections closed to make room for others.")
        .value(s.shed);
    p.metric("coppice_http_timeouts_total", "counter", "Connections closed by a timeout.")
        .value(s.timed_out);
    p.metric("coppice_http_exceptions_total", "counter", "Exceptions that left handlers.")
        .value(s.exceptions);
    p.metric("coppice_http_stopped_handlers_total", "counter",
             "Handlers whose client went away, or whose time was up.")
        .value(s.stopped);
    p.metric("coppice_http_received_bytes_total", "counter", "Bytes read from clients.")
        .value(s.bytes_received);
    p.metric("coppice_http_sent_bytes_total", "counter", "Bytes written to clients.")
        .value(s.bytes_sent);
    refusals(p, w);
    routes(p, s);
    p.metric("coppice_loop_requests_total", "counter", "Requests answered, by event loop.");
    for (std::size_t i = 0; i != s.loops.size(); ++i) {
        p.value(s.loops[i].requests, "{loop=\"" + std::to_string(i) + "\"}");
    }
    p.metric("coppice_loop_connections", "gauge", "Connections open now, by event loop.");
    for (std::size_t i = 0; i != s.loops.size(); ++i) {
        p.value(s.loops[i].connections, "{loop=\"" + std::to_string(i) + "\"}");
    }
    const auto per_worker = [&](const char* name, const char* help,
                                std::uint64_t coppice::worker_counts::* count) {
        p.metric(name, "counter", help);
        const coppice::thread_pool* const pool = w.server->pool();
        for (std::size_t i = 0; pool != nullptr && i != pool->size(); ++i) {
            p.value(pool->counts(i).*count, "{worker=\"" + std::to_string(i) + "\"}");
        }
    };
    per_worker("coppice_pool_runs_total", "Work items run.", &coppice::worker_counts::runs);
    per_worker("coppice_pool_steals_total", "Work items taken from another worker.",
               &coppice::worker_counts::steals);
    per_worker("coppice_pool_failed_steals_total", "Steals lost to another.",
               &coppice::worker_counts::failed_steals);
    per_worker("coppice_pool_parks_total", "Times a worker went to sleep.",
               &coppice::worker_counts::parks);
    return p.take();
}

}  // namespace serve
