// The handlers: the thesis's workloads, and what operators request from a server.
#include "routes.hpp"

#include "page.hpp"

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/http/events.hpp>
#include <coppice/http/filters.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/io/timer.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <thread>
#include <tuple>

namespace serve {

namespace {

using namespace coppice;
using http::request;
using http::response;

constexpr std::uint64_t fib_max = 45;
constexpr std::uint64_t wait_ms_max = 10'000;

// Returns an integer of the query, from 0 to `most`; `otherwise` if it is absent, and nothing if it
// is not such a number.
std::optional<std::uint64_t> number(const request& r, std::string_view name,
                                    std::uint64_t otherwise, std::uint64_t most) {
    if (!r.query(name)) return otherwise;
    const std::optional<std::uint64_t> value = r.query<std::uint64_t>(name);
    if (!value || *value > most) return std::nullopt;
    return value;
}

std::uint64_t fib(std::uint64_t n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

// Computes the same number twice and adds the two: on a pool, they run side by side.
task<response> cpu(const world& w, request& r) {
    const std::optional<std::uint64_t> asked = number(r, "n", 22, fib_max);
    if (!asked) co_return response::text("n must be a number from 0 to 45\n", 400);
    const std::uint64_t n = *asked;
    thread_pool* const pool = w.server->pool();
    if (pool == nullptr) co_return response::text(std::to_string(fib(n) + fib(n)));
    const auto half = [&] {
        return execution::schedule(pool->get_scheduler()) | execution::then([n] { return fib(n); });
    };
    const std::tuple<std::uint64_t, std::uint64_t> halves =
        co_await execution::when_all(half(), half());
    co_return response::text(std::to_string(std::get<0>(halves) + std::get<1>(halves)));
}

response hold_thread(request& r) {
    const std::optional<std::uint64_t> ms = number(r, "ms", 15, wait_ms_max);
    if (!ms) return response::text("ms must be a number from 0 to 10000\n", 400);
    std::this_thread::sleep_for(std::chrono::milliseconds(*ms));
    return response::text("held its thread for " + std::to_string(*ms) + " ms\n");
}

task<response> wait_on_timer(const world&, request& r) {
    const std::optional<std::uint64_t> ms = number(r, "ms", 15, wait_ms_max);
    if (!ms) co_return response::text("ms must be a number from 0 to 10000\n", 400);
    co_await http::pause(r, std::chrono::milliseconds(*ms));
    co_return response::text("waited for " + std::to_string(*ms) + " ms\n");
}

// Answers with the request's own body, without copying it: the server writes an answer before it
// releases the request's bytes.
response echo(request& r) {
    response answer;
    answer.body(http::static_text::promised(r.body()));
    const auto type = r.find("Content-Type");
    answer.content_type(http::static_text::promised(type.value_or("application/octet-stream")));
    return answer;
}

// Counts the workloads in flight. Threads: any.
class workload_limit : immovable {
public:
    explicit workload_limit(std::uint64_t most) noexcept : most_(most) {}
    // Permission to run one workload, until it is destroyed. False if too many are running.
    class place : immovable {
    public:
        explicit place(workload_limit& limit) noexcept : limit_(limit) {
            // relaxed: a count, which orders nothing else
            granted_ = limit.running_.fetch_add(1, std::memory_order_relaxed) < limit.most_;
        }
        ~place() { limit_.running_.fetch_sub(1, std::memory_order_relaxed); }  // relaxed: as above
        explicit operator bool() const noexcept { return granted_; }

    private:
        workload_limit& limit_;
        bool granted_;
    };

private:
    const std::uint64_t most_;
    std::atomic<std::uint64_t> running_{0};
};

response too_many() {
    return response::status(503, "too many workloads run").add("Retry-After", "1");
}

using shared_limit = std::shared_ptr<workload_limit>;

task<response> limited(shared_limit limit, task<response> (*workload)(const world&, request&),
                       const world& w, request& r) {
    const workload_limit::place place(*limit);
    if (!place) co_return too_many();
    co_return co_await workload(w, r);
}

// Returns the handler, counted under the route's name.
template <class F>
auto counted(world& w, const char* name, F function) {
    route_count& count = w.routes.emplace_back(name);
    if constexpr (http::is_declared_handler<F>) {
        return http::declare(
            [&count, f = std::move(function.function)](request& r) {
                count.add();
                return f(r);
            },
            function.needs);
    } else {
        return [&count, f = std::move(function)](request& r) {
            count.add();
            return f(r);
        };
    }
}

// Returns what does not change while the server runs, as members of a look.
std::string about(const world& w, const options& o) {
    static constexpr const char* models[] = {"single", "multi", "worker", "async"};
    const char* const ring = w.server->backend() == io::backend::uring ? "io_uring" : "epoll";
    return std::string(",\"program\":\"" COPPICE_SERVE_VERSION "\",\"model\":\"") +
           models[static_cast<std::size_t>(o.server.model)] + "\",\"ring\":\"" + ring +
           "\",\"processors\":" + std::to_string(std::thread::hardware_concurrency());
}

// Lets each answer of HTTP/1.1 be the last of its connection once the drain is coming.
class last_answers final : public http::filter {
public:
    explicit last_answers(const world& w) noexcept : world_(w) {}
    void after(const request&, response& answer) const override {
        // Relaxed: nothing depends on its order.
        if (world_.draining.load(std::memory_order_relaxed)) answer.close();
    }

private:
    const world& world_;
};

// Refusals come first: they cost the least.
void add_refusals(http::router& routes, world& w, const options& o) {
    if (!o.hosts.empty()) routes.use(std::make_shared<http::allowed_hosts>(o.hosts));
    if (o.rate != 0) {
        http::rate_limit_options limit;
        limit.per_second = static_cast<double>(o.rate);
        constexpr std::uint64_t burst_most = 1u << 30;
        const std::uint64_t burst = std::min(2 * o.rate, burst_most);
        limit.burst = static_cast<std::size_t>(o.rate_burst != 0 ? o.rate_burst : burst);
        for (const std::string& block : o.rate_exempt) limit.exempt.add(block);
        w.rate = std::make_shared<http::rate_limit>(std::move(limit));
        routes.use(w.rate);
    }
    if (o.shed_after != std::chrono::nanoseconds(0)) {
        w.shedding.emplace(o.shed_after);
        routes.use(*w.shedding);
    }
}

// Sends a look at the figures, and the next one each time a period has passed. While the page does
// not read, none is made for it. Ends when the page leaves, or the server drains.
task<> send_looks(const world& w, std::string about, io::context& loop, http::event_writer& out) {
    struct counted_at_end {
        live_board& board;
        io::context& loop;
        ~counted_at_end() { board.add_own_events(loop); }
    } const counted{*w.board, loop};
    io::timer timer(loop);
    for (;;) {
        const std::shared_ptr<const live_look> look = w.board->recent_look(w.routes, about);
        co_await out.send({.data = look->text, .retry = live_board::period});
        co_await timer.wait_until(look->at + live_board::period);
    }
}

// The page at /, the events that it gets, and their figures for scripts. The page's own requests
// are counted separately.
void add_page(http::router& routes, world& w, const options& o) {
    routes.get("/", [&w](request& r) {
        w.board->add_own(r.loop());
        return response::html(live_page);
    });
    routes.get("/live", [&w, o](request& r) {
        response answer = response::json(w.board->look(w.routes, about(w, o)).text);
        answer.add("Cache-Control", "no-store");
        // counted after this answer is made, so it does not include itself
        w.board->add_own(r.loop());
        return answer;
    });
    routes.get("/live/events", [&w, o](request& r) {
        return http::events(r,
                            [&w, &loop = r.loop(), about = about(w, o)](http::event_writer& out) {
                                return send_looks(w, about, loop, out);
                            });
    });
}

void add_workloads(http::router& routes, world& w, std::uint64_t most) {
    if (most == 0) most = std::numeric_limits<std::uint64_t>::max();
    const auto limit = std::make_shared<workload_limit>(most);
    const auto at_once = [limit](response (*workload)(request&)) {
        return [limit, workload](request& r) {
            const workload_limit::place place(*limit);
            return place ? workload(r) : too_many();
        };
    };
    const auto suspending = [limit, &w](task<response> (*workload)(const world&, request&)) {
        return [limit, workload, &w](request& r) { return limited(limit, workload, w, r); };
    };
    routes.get("/cpu", counted(w, "/cpu", http::offload(suspending(cpu))))
        .get("/io", counted(w, "/io", at_once(hold_thread)))
        .get("/io-async", counted(w, "/io-async", suspending(wait_on_timer)))
        .post("/echo", counted(w, "/echo", at_once(echo)));
}

response scrape(const world& w) {
    return response(200).body(metrics(w)).content_type("text/plain; version=0.0.4; charset=utf-8");
}
response readiness(const world& w) {
    // Relaxed: nothing depends on its order.
    const bool draining = w.draining.load(std::memory_order_relaxed);
    return draining ? response::text("draining\n", 503) : response::text("ready\n");
}
response health(request&) {
    return response::text("ok\n");
}

}  // namespace

std::shared_ptr<const http::files> open_files(const options& o) {
    return std::make_shared<const http::files>(o.root);
}

http::router make_routes(world& w, const options& o) {
    http::router routes;
    routes.use(std::make_shared<const last_answers>(w));
    add_refusals(routes, w, o);
    if (!o.cors.empty()) routes.use(http::cors({.origins = o.cors}));
    if (o.compress) routes.use(http::compression());
    add_page(routes, w, o);
    const auto plain = [](request&) { return response::text("Hello, World!"); };
    const auto json = [](request&) { return response::json(R"({"message":"Hello, World!"})"); };
    routes.get("/plaintext", counted(w, "/plaintext", plain))
        .get("/json", counted(w, "/json", json))
        .get("/healthz", counted(w, "/healthz", health));
    if (!o.admin_port) {
        routes.get("/metrics", counted(w, "/metrics", [&w](request&) { return scrape(w); }))
            .get("/livez", counted(w, "/livez", health))
            .get("/readyz", counted(w, "/readyz", [&w](request&) { return readiness(w); }));
    }
    if (o.workloads) add_workloads(routes, w, o.workload_max);
    if (w.files.get() != nullptr) {
        const auto file = [&w](request& r) { return (*w.files.get())(r); };
        routes.get("/static/{path...}", counted(w, "/static", file));
    }
    return routes;
}

http::router make_admin_routes(const world& w) {
    http::router routes;
    routes.get("/metrics", [&w](request&) { return scrape(w); })
        .get("/livez", health)
        .get("/readyz", [&w](request&) { return readiness(w); })
        .get("/healthz", health);
    return routes;
}

}  // namespace serve
