// TCP echo of 64 bytes: processor time per message on 64 connections, and the round trip on one.
// The servers run on one processor and the client on another. All servers are started first and
// take turns, so that a change of the machine's speed affects all of them. The client is the same
// bare epoll loop for every rival. Ratios are to the raw loop of the same kind.
#include "load.hpp"
#include "rivals.hpp"

#include "../harness.hpp"

#include <coppice/io/context.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace {

using namespace bench_echo;

struct rival {
    const char* name;
    void (*serve)();
    const char* base;
};

constexpr rival rivals[] = {
    {"raw epoll", &serve_raw_epoll, "raw epoll"},
    {"coppice on epoll, await", &serve_coppice_epoll, "raw epoll"},
    {"coppice on epoll, callback", &serve_coppice_epoll_callback, "raw epoll"},
    {"raw io_uring", &serve_raw_uring, "raw io_uring"},
    {"coppice on io_uring, await", &serve_coppice_uring, "raw io_uring"},
    {"coppice on io_uring, callback", &serve_coppice_uring_callback, "raw io_uring"},
#if defined(BENCH_WITH_ASIO)
    {"asio, callback", &serve_asio_callback, "raw epoll"},
    {"asio, awaitable", &serve_asio_awaitable, "raw epoll"},
#endif
};

bool has_uring() {
    try {
        return coppice::io::context(coppice::io::backend::uring).kind() ==
               coppice::io::backend::uring;
    } catch (const std::system_error&) {
        return false;
    }
}

struct contender {
    const rival* what;
    std::unique_ptr<server_process> server;
    std::unique_ptr<clients> connections;
    std::vector<double> times;
    double median() const { return bench::median(times); }
};

const contender& named(const std::vector<contender>& all, const std::string& name) {
    return *std::find_if(all.begin(), all.end(),
                         [&](const contender& c) { return c.what->name == name; });
}

// Judges our budgets.
void judge(const std::vector<contender>& all, int connections, const bench::options& o) {
    for (const contender& c : all) {
        if (std::string_view(c.what->name).substr(0, 7) != "coppice") continue;
        const std::string what = std::to_string(connections) + " connection(s), " + c.what->name;
        const auto beside = [&](const std::string& base) {
            return bench::ratios(c.times, named(all, base).times);
        };
        if (connections == 1) {
            bench::judge_no_worse(o, what + " / " + c.what->base, beside(c.what->base));
            continue;
        }
        bench::judge(o, what + " / " + c.what->base, beside(c.what->base), 1.05);
#if defined(BENCH_WITH_ASIO)
        const bool await = std::string_view(c.what->name).ends_with("await");
        const char* const asio = await ? "asio, awaitable" : "asio, callback";
        bench::judge(o, what + " / " + asio, beside(asio), 1.0);
#endif
    }
}

// Runs every rival with `connections`. Returns false if the results differ.
bool run(int connections, std::size_t messages, const bench::options& o) {
    std::vector<contender> all;
    const bool uring = has_uring();
    for (const rival& r : rivals) {
        if (!uring && std::string(r.name).find("io_uring") != std::string::npos) continue;
        contender c{&r, std::make_unique<server_process>(r.serve), nullptr, {}};
        if (c.server->port() == 0) {
            std::fprintf(stderr, "echo: %s did not start\n", r.name);
            return false;
        }
        c.connections = std::make_unique<clients>(c.server->port(), connections);
        all.push_back(std::move(c));
    }
    if (o.tiny) {
        bool agree = true;
        const std::uint64_t expected = all.front().connections->ping(messages);
        for (contender& c : all) {
            const std::uint64_t sum = &c == &all.front() ? expected : c.connections->ping(messages);
            agree = agree && sum == expected;
            std::printf("workload echo, %d connections (%s) hash %016llx\n", connections,
                        c.what->name,
                        static_cast<unsigned long long>(bench::hash().add(sum).value()));
        }
        return agree;
    }
    for (contender& c : all) bench::keep(c.connections->ping(messages / 10));  // warms up
    // The repetitions are short, and the budgets are ratios near 1.
    const int repetitions = (connections == 1 ? 9 : 3) * o.repetitions;
    std::vector<contender*> turns;
    for (contender& c : all) turns.push_back(&c);
    for (int i = 0; i != repetitions; ++i) {
        for (contender* const c : turns) {
            const std::uint64_t cpu = c->server->cpu_ns();
            const auto begin = std::chrono::steady_clock::now();
            bench::keep(c->connections->ping(messages));
            const std::chrono::duration<double, std::nano> took =
                std::chrono::steady_clock::now() - begin;
            const double ns =
                connections == 1 ? took.count() : static_cast<double>(c->server->cpu_ns() - cpu);
            c->times.push_back(ns / static_cast<double>(messages));
        }
        std::reverse(turns.begin(), turns.end());
    }
    std::printf("echo of %d bytes, %d connection(s): %s, ns per message\n", message_bytes,
                connections, connections == 1 ? "round trip" : "processor time of the server");
    for (const contender& c : all) {
        const double ratio = bench::median(bench::ratios(c.times, named(all, c.what->base).times));
        const auto [low, high] = std::minmax_element(c.times.begin(), c.times.end());
        std::printf("  %-34s %10.0f  (%.0f to %.0f)  x %.3f of %s\n", c.what->name, c.median(),
                    *low, *high, ratio, c.what->base);
        bench::write(o, {"echo, " + std::to_string(connections) + " connection(s)", c.what->name,
                         connections == 1 ? "ns per round trip" : "ns of processor per message",
                         c.median(), *low, *high});
    }
    judge(all, connections, o);
    std::fflush(stdout);
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    const bench::options o = bench::parse(argc, argv);
    pin_client();
    const bool many = run(64, o.tiny ? 2000 : 30'000, o);
    const bool one = run(1, o.tiny ? 200 : 2'000, o);
    return many && one ? 0 : 1;
}
