// bench_edge: what meets the public network, beside nginx and Boost.Beast with the same settings in
// the same run: TLS handshakes, HTTPS, HTTP/2, WebSockets, and the memory of idle TLS connections.
// A server has processor 0 and one thread; its client, the same for all rivals, has the last
// processor. Servers take turns. What counts is the server's processor time: the client is often
// slower than the server. Every figure is a median with its spread, and ratios are of medians.
#include "certificate.hpp"
#include "h2load.hpp"
#include "message_client.hpp"
#include "rivals.hpp"
#include "tls_client.hpp"

#include "../harness.hpp"
#include "../http/processes.hpp"

#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace bench_edge;
using bench::median;
using bench_http::server_process;

struct rival {
    const char* name;
    void (*serve)();
};
// The last of each is the base of the ratios.
const std::vector<rival> tls_rivals = {{"coppice epoll", serve_coppice_tls_epoll},
                                       {"coppice io_uring", serve_coppice_tls_uring},
                                       {"nginx", serve_nginx_tls}};
const std::vector<rival> h2_rivals = {{"coppice epoll", serve_coppice_h2_epoll},
                                      {"coppice io_uring", serve_coppice_h2_uring},
                                      {"nginx", serve_nginx_h2}};
const std::vector<rival> echo_rivals = {{"coppice epoll", serve_coppice_echo_epoll},
                                        {"coppice io_uring", serve_coppice_echo_uring},
                                        {"raw epoll", serve_raw_echo_epoll},
                                        {"raw io_uring", serve_raw_echo_uring},
#ifdef BENCH_WITH_BEAST
                                        {"Boost.Beast", serve_beast_echo}
#endif
};

// What one turn did.
struct turn {
    std::uint64_t count = 0;
    double per_second = 0;
    std::uint64_t failures = 0;
};

struct scenario {
    std::string name;
    const char* unit;  // what is counted
    const std::vector<rival>& rivals;
    // Lets the server work; `client` is what prepare() made for this rival.
    std::function<turn(const server_process&, std::shared_ptr<void>& client)> run;
};

struct figures {
    std::vector<double> cpu_us, per_second;
    std::uint64_t failures = 0;
};

void print_figures(const scenario& s, const char* name, const figures& f, double base,
                   const bench::options& options) {
    if (f.cpu_us.empty()) {
        std::printf("  %-18s not installed\n", name);
        return;
    }
    const auto [low, high] = std::minmax_element(f.cpu_us.begin(), f.cpu_us.end());
    std::printf("  %-18s %9.2f us CPU (%.2f to %.2f)  x %.3f  %9.1f per s  failures %llu\n", name,
                median(f.cpu_us), *low, *high, base > 0 ? median(f.cpu_us) / base : 0,
                median(f.per_second), static_cast<unsigned long long>(f.failures));
    bench::write(
        options,
        bench::of_samples(s.name, name, std::string("us of processor per ") + s.unit, f.cpu_us));
    bench::write(options, bench::of_samples(s.name, name, std::string(s.unit) + "s per s",
                                            f.per_second, true));
}

void compare(const scenario& s, const bench::options& options) {
    std::printf("%s\n", s.name.c_str());
    const std::size_t size = s.rivals.size();
    std::vector<std::unique_ptr<server_process>> servers;
    std::vector<std::shared_ptr<void>> clients(size);
    std::vector<figures> all(size);
    for (const rival& r : s.rivals) {
        servers.push_back(std::make_unique<server_process>(r.serve));
    }
    // The first turn of each, which is not counted, warms up.
    for (int i = -1; i != options.repetitions; ++i) {
        std::fprintf(stderr, "\r%s: repetition %d of %d ", s.name.c_str(), i + 1,
                     options.repetitions);
        for (std::size_t k = 0; k != size; ++k) {
            const std::size_t r = i % 2 == 0 ? k : size - 1 - k;
            if (!servers[r]->ready()) continue;
            const std::uint64_t before = servers[r]->cpu_ns();
            const turn t = s.run(*servers[r], clients[r]);
            ::usleep(20'000);  // the server sees the last connections end
            const auto used = static_cast<double>(servers[r]->cpu_ns() - before);
            all[r].failures += t.failures;
            if (i < 0) continue;
            all[r].cpu_us.push_back(used / 1e3 / static_cast<double>(t.count));
            all[r].per_second.push_back(t.per_second);
        }
    }
    std::fprintf(stderr, "\n");
    const double base = median(all.back().cpu_us);
    for (std::size_t r = 0; r != size; ++r) {
        print_figures(s, s.rivals[r].name, all[r], base, options);
    }
    std::fflush(stdout);
}

// ---- The scenarios ------------------------------------------------------------------------------

scenario handshakes(tls_version version, bool resume, const bench::options& options) {
    const int count = (resume ? 2'000 : 1'000) / (options.quick ? 2 : 1);
    const std::string name = std::string(version == tls_version::v1_3 ? "TLS 1.3" : "TLS 1.2") +
                             (resume ? " handshake, resumed" : " handshake, full");
    return {name, "handshake", tls_rivals,
            [=](const server_process& server, std::shared_ptr<void>& kept) {
                if (kept == nullptr) kept = std::make_shared<tls_client>(server.port(), version);
                const auto r = static_cast<tls_client*>(kept.get())->shake_hands(count, resume);
                const auto all = static_cast<std::uint64_t>(count);
                const std::uint64_t otherwise = resume ? all - r.resumed : r.resumed;
                return turn{all, count / r.seconds, r.failures + otherwise};
            }};
}

scenario secure_requests(const char* target, const char* size) {
    return {std::string("HTTPS keep-alive, 64 connections, ") + size, "request", tls_rivals,
            [=](const server_process& server, std::shared_ptr<void>&) {
                bench_http::load how{64, 1, false, 1};
                how.target = target;
                how.secure = true;
                const bench_http::load_result r = bench_http::wrk(server.port(), how).result();
                return turn{r.requests, r.per_second, r.errors};
            }};
}

scenario h2_requests(int streams) {
    return {"HTTP/2 in the clear, 16 connections, streams: " + std::to_string(streams), "request",
            h2_rivals, [=](const server_process& server, std::shared_ptr<void>&) {
                const h2_result r = h2load(server.port(), 16, streams, 1);
                return turn{r.requests, r.per_second, r.failures};
            }};
}

scenario echoes(std::size_t bytes, const char* size, const bench::options& options) {
    const int count = (bytes < 1000 ? 60'000 : 20'000) / (options.quick ? 2 : 1);
    return {std::string("WebSocket echo, 64 connections, ") + size, "message", echo_rivals,
            [=](const server_process& server, std::shared_ptr<void>& kept) {
                if (kept == nullptr)
                    kept = std::make_shared<message_client>(server.port(), bytes, 64);
                const double seconds = static_cast<message_client*>(kept.get())->echo(count);
                return turn{static_cast<std::uint64_t>(count), count / seconds, 0};
            }};
}

// ---- Memory -------------------------------------------------------------------------------------

// Returns the bytes that the server has grown by for each connection, or -1.
double idle_bytes(const server_process& server, int connections) {
    constexpr int threads = 16;  // of the client, which wait for the server in turn
    tls_client client(server.port(), tls_version::v1_3);
    std::vector<int> open[threads];
    const auto add = [&](int count) {
        std::vector<std::thread> all;
        for (std::vector<int>& mine : open) {
            all.emplace_back([&client, &mine, each = count / threads] {
                for (int i = 0; i != each; ++i) mine.push_back(client.open_idle());
            });
        }
        for (std::thread& t : all) t.join();
    };
    add(64);  // pays the costs that only the first connections have
    const std::uint64_t before = server.memory_kib();
    add(connections);
    const std::uint64_t after = server.memory_kib();
    bool good = true;
    for (const std::vector<int>& mine : open) {
        for (const int fd : mine) {
            good = good && fd >= 0;
            ::close(fd);
        }
    }
    if (!good) return -1;
    return 1024 * (static_cast<double>(after) - static_cast<double>(before)) / connections;
}

void idle_memory(const bench::options& options) {
    // The server and the client have as many descriptors each.
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    const auto most = static_cast<double>(files.rlim_cur) - 200;
    const int connections = static_cast<int>(std::clamp(most, 16.0, 10'000.0)) / 16 * 16;
    const std::string name =
        (connections == 10'000 ? "10,000" : std::to_string(connections)) + " idle TLS connections";
    std::printf("%s\n", name.c_str());
    std::vector<double> all;
    for (const rival& r : tls_rivals) {
        const server_process server(r.serve);
        all.push_back(server.ready() ? idle_bytes(server, connections) / 1024 : -1);
    }
    for (std::size_t r = 0; r != all.size(); ++r) {
        if (all[r] < 0) {
            std::printf("  %-18s not installed, or a connection failed\n", tls_rivals[r].name);
            continue;
        }
        std::printf("  %-18s %9.2f KiB each  x %.3f\n", tls_rivals[r].name, all[r],
                    all.back() > 0 ? all[r] / all.back() : 0);
        bench::write(options,
                     {name, tls_rivals[r].name, "KiB per connection", all[r], all[r], all[r]});
    }
    std::fflush(stdout);
}

// ---- Runs ---------------------------------------------------------------------------------------

// Runs everything whose name contains `only`.
int full(const bench::options& options, const std::string& only) {
    const auto wanted = [&](const std::string& name) { return name.find(only) != name.npos; };
    std::vector<scenario> all;
    for (const tls_version version : {tls_version::v1_3, tls_version::v1_2}) {
        for (const bool resume : {false, true}) all.push_back(handshakes(version, resume, options));
    }
    all.push_back(secure_requests("/plaintext", "13 bytes"));
    all.push_back(secure_requests("/page", "16 KiB"));
    if (has_h2load()) {
        all.push_back(h2_requests(1));
        all.push_back(h2_requests(100));
    } else {
        std::printf("HTTP/2 is left out: h2load (nghttp2-client) is not installed\n");
    }
    all.push_back(echoes(64, "64 bytes", options));
    all.push_back(echoes(16 * 1024, "16 KiB", options));
    for (const scenario& s : all) {
        if (wanted(s.name)) compare(s, options);
    }
    if (wanted("idle TLS connections")) idle_memory(options);
    return 0;
}

// Returns a hash of what the server answers; of the same bytes for every rival.
std::uint64_t tiny_tls(const server_process& server) {
    bench::hash hash;
    for (const tls_version version : {tls_version::v1_3, tls_version::v1_2}) {
        tls_client client(server.port(), version);
        for (const bool resume : {false, true}) {
            const handshake_result r = client.shake_hands(20, resume);
            if (r.failures != 0 || r.resumed != (resume ? 20 : 0)) return 0;  // agrees with none
        }
        for (const char* const target : {"/plaintext", "/page"}) {
            const std::string answer = client.fetch(target);
            hash.add(answer.size());
            for (const char c : answer) hash.add(static_cast<unsigned char>(c));
        }
    }
    return hash.value();
}
std::uint64_t tiny_h2(const server_process& server) {
    const h2_result r = h2load(server.port(), 2, 10, 0, 100);
    return bench::hash().add(r.requests).add(r.failures).value();
}
std::uint64_t tiny_echo(const server_process& server) {
    for (const std::size_t bytes : {64, 16 * 1024}) {
        message_client(server.port(), bytes, 4).echo(20);
    }
    return bench::hash().add(40).value();  // the client compares the messages
}

int tiny() {
    bool agree = true;
    const auto check = [&](const char* name, const std::vector<rival>& rivals,
                           std::uint64_t (*hash_of)(const server_process&)) {
        std::uint64_t expected = 0;
        for (const rival& r : rivals) {
            const server_process server(r.serve);
            if (!server.ready()) {
                std::printf("workload %s (%s) is not installed\n", name, r.name);
                agree = agree && std::strcmp(r.name, "nginx") == 0;
                continue;
            }
            const std::uint64_t hash = hash_of(server);
            if (expected == 0) expected = hash;
            agree = agree && hash != 0 && hash == expected;
            std::printf("workload %s (%s) hash %016llx\n", name, r.name,
                        static_cast<unsigned long long>(hash));
        }
    };
    check("TLS", tls_rivals, tiny_tls);
    if (has_h2load()) check("HTTP/2", h2_rivals, tiny_h2);
    check("WebSocket", echo_rivals, tiny_echo);
    if (!agree) std::printf("the rivals disagree\n");
    return agree ? 0 : 1;
}

// Serves in this process, for profilers: `--serve tls "coppice epoll"`. Returns 2 if there is no
// such rival.
int serve_here(const std::string& what, const std::string& name) {
    for (const rival& r : what == "tls" ? tls_rivals : what == "h2" ? h2_rivals : echo_rivals) {
        if (name == r.name) r.serve();
    }
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    std::string only;
    std::vector<char*> shared;  // arguments that all benchmarks have
    (void)shared_certificate();
    for (int i = 0; i < argc; ++i) {
        if (std::strcmp(argv[i], "--serve") == 0 && i + 2 < argc) {
            return serve_here(argv[i + 1], argv[i + 2]);
        }
        if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            only = argv[++i];  // part of a scenario's name
        } else {
            shared.push_back(argv[i]);
        }
    }
    bench::options options = bench::parse(static_cast<int>(shared.size()), shared.data());
    bench::pin(static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN)) - 1);
    if (options.tiny) return tiny();
    return full(options, only);
}
