// bench_http: requests and processor time per request, beside raw loops of both kinds and nginx;
// the memory of idle connections; and chapter 8 of the thesis (documents.json) in the four models.
// Servers on processor 0 take turns of a second, with wrk on the last processor, each next to the
// raw loop of its kind. Every figure is a median with its spread, and ratios are of adjacent turns.
// If processor time has a budget, the turns are slices of 50 ms, so that other programs on the
// machine disturb all rivals alike.
// machine disturb all rivals alike.
#include "processes.hpp"
#include "rivals.hpp"

#include "../harness.hpp"

#include <unistd.h>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace bench_http;
using bench::median;

struct rival {
    const char* name;
    void (*serve)();
    int floor = 0;  // index of the rival that is its floor
};
enum rival_index { raw_epoll, raw_uring, ours_epoll, ours_uring, nginx };
constexpr rival rivals[] = {
    {"raw epoll loop", serve_raw_epoll, raw_epoll},
    {"raw io_uring loop", serve_raw_uring, raw_uring},
    {"coppice epoll", serve_coppice_epoll, raw_epoll},
    {"coppice io_uring", serve_coppice_uring, raw_uring},
    {"nginx", serve_nginx, raw_epoll},
};

struct scenario {
    const char* name;
    load how;
    bool in_slices = false;  // the processor time
};
constexpr scenario scenarios[] = {
    {"keep-alive, 64 connections", {64, 1, false, 1}, true},
    {"keep-alive, 256 connections", {256, 1, false, 1}},
    {"pipelined x16, 64 connections", {64, 16, false, 1}},
    {"a connection per request, 64 at once", {64, 1, true, 1}},
};
// The order of the turns, or its reverse.
constexpr rival_index turns[] = {raw_epoll, ours_epoll, nginx, ours_uring, raw_uring};

struct figures {
    std::vector<double> thousands, cpu_us, p99_us;
    std::uint64_t errors = 0;
};

void measure_once(const server_process& server, const load& how, figures& into) {
    const std::uint64_t before = server.cpu_ns();
    const load_result result = wrk(server.port(), how).result();
    const auto used = static_cast<double>(server.cpu_ns() - before);
    into.thousands.push_back(result.per_second / 1e3);
    into.cpu_us.push_back(used / 1e3 / static_cast<double>(result.requests));
    into.p99_us.push_back(result.p99_us);
    into.errors += result.errors;
}

using server_processes = std::unique_ptr<server_process>[std::size(rivals)];

// Takes one sample of every rival's processor time, beginning with `first`.
void measure_in_slices(const server_processes& servers, load how, std::size_t first,
                       std::vector<figures>& all) {
    constexpr int slice_us = 50'000;
    constexpr int slices = 30;  // of each
    how.seconds = std::size(rivals) * slices * slice_us * 1e-6 + 1;
    std::unique_ptr<wrk> clients[std::size(rivals)];
    std::uint64_t before[std::size(rivals)] = {};
    for (std::size_t r = 0; r != std::size(rivals); ++r) {
        if (!servers[r]->ready()) continue;
        before[r] = servers[r]->cpu_ns();
        clients[r] = std::make_unique<wrk>(servers[r]->port(), how);
        ::usleep(30'000);  // it connects
        clients[r]->pause();
    }
    for (std::size_t i = 0; i != std::size(rivals) * slices; ++i) {
        const auto& client = clients[turns[(first + i) % std::size(turns)]];
        if (client == nullptr) continue;
        client->go_on();
        ::usleep(slice_us);
        client->pause();
    }
    for (const auto& client : clients) {
        if (client != nullptr) client->go_on();
    }
    for (std::size_t r = 0; r != std::size(rivals); ++r) {
        if (clients[r] == nullptr) continue;
        const load_result result = clients[r]->result();
        const auto used = static_cast<double>(servers[r]->cpu_ns() - before[r]);
        all[r].cpu_us.push_back(used / 1e3 / static_cast<double>(result.requests));
        all[r].errors += result.errors;
    }
}

void print_row(const char* scenario_name, const char* name, const figures& f, double floor,
               const bench::options& options) {
    if (f.cpu_us.empty()) {
        std::printf("  %-18s not installed\n", name);
        return;
    }
    const auto [low, high] = std::minmax_element(f.cpu_us.begin(), f.cpu_us.end());
    std::printf(
        "  %-18s %8.1f k/s  p99 %6.0f us  %6.2f us CPU (%.2f to %.2f)  x %.2f  "
        "errors %llu\n",
        name, median(f.thousands), median(f.p99_us), median(f.cpu_us), *low, *high,
        median(f.cpu_us) / floor, static_cast<unsigned long long>(f.errors));
    bench::write(options,
                 bench::of_samples(scenario_name, name, "us of processor per request", f.cpu_us));
    bench::write(options,
                 bench::of_samples(scenario_name, name, "thousand per s", f.thousands, true));
    bench::write(options, bench::of_samples(scenario_name, name, "p99, us", f.p99_us));
}

void print_budget(const bench::options& options, const char* what, double measured, double budget,
                  bool at_most) {
    bench::write_budget(options, what, measured, budget, at_most);
    const bool met = at_most ? measured <= budget : measured >= budget;
    std::printf("  budget: %-58s %6.2f, %s %.2f: %s\n", what, measured,
                at_most ? "at most" : "at least", budget, met ? "met" : "missed");
}

// Measures all rivals in one scenario, and judges our budgets there.
void compare(const scenario& s, const bench::options& options) {
    const int repetitions = (s.how.close || s.in_slices ? 1 : 4) * options.repetitions;
    std::printf("%s\n", s.name);
    std::vector<figures> all(std::size(rivals));
    server_processes servers;
    const auto warm = [&](std::size_t r) {
        servers[r] = std::make_unique<server_process>(rivals[r].serve);
        if (servers[r]->ready()) (void)wrk(servers[r]->port(), s.how).result();
    };
    for (std::size_t r = 0; r != std::size(rivals); ++r) warm(r);
    for (int i = 0; i != repetitions; ++i) {
        std::fprintf(stderr, "\r%s: repetition %d of %d ", s.name, i + 1, repetitions);
        for (std::size_t turn = 0; turn != std::size(turns); ++turn) {
            const std::size_t r = turns[i % 2 == 0 ? turn : std::size(turns) - 1 - turn];
            if (s.how.close && i != 0) warm(r);  // ports limit the connections per minute
            if (servers[r]->ready()) measure_once(*servers[r], s.how, all[r]);
        }
    }
    if (s.in_slices) {
        for (figures& f : all) f.cpu_us.clear();
        const int samples = 3 * options.repetitions;
        for (int i = 0; i != samples; ++i) {
            std::fprintf(stderr, "\r%s: sample %d of %d ", s.name, i + 1, samples);
            measure_in_slices(servers, s.how, static_cast<std::size_t>(i), all);
        }
    }
    std::fprintf(stderr, "\n");
    for (std::size_t r = 0; r != std::size(rivals); ++r) {
        const double floor = median(all[static_cast<std::size_t>(rivals[r].floor)].cpu_us);
        print_row(s.name, rivals[r].name, all[r], floor, options);
    }
    if (s.how.close) return;
    for (const rival_index i : {ours_epoll, ours_uring}) {
        const figures& ours = all[i];
        const figures& raw = all[static_cast<std::size_t>(rivals[i].floor)];
        const std::string name = rivals[i].name;
        if (s.how.pipeline > 1) {
            print_budget(options, (name + ": requests/s, ratio to the raw loop").c_str(),
                         median(bench::ratios(ours.thousands, raw.thousands)), 0.85, false);
        } else if (s.how.connections == 64) {
            bench::judge(options, name + ": CPU per request, ratio to the raw loop",
                         bench::ratios(ours.cpu_us, raw.cpu_us), 1.05);
            if (!all[nginx].cpu_us.empty()) {
                bench::judge(options, name + ": CPU per request, ratio to nginx",
                             bench::ratios(ours.cpu_us, all[nginx].cpu_us), 1);
            }
        } else {
            bench::judge(options, name + ": p99, ratio to the raw loop",
                         bench::ratios(ours.p99_us, raw.p99_us), 1.2);
        }
    }
    std::fflush(stdout);
}

void idle_memory(const bench::options& options) {
    constexpr int connections = 10'000;
    std::printf("memory of %d idle connections\n", connections);
    for (const rival& r : rivals) {
        const server_process server(r.serve);
        if (!server.ready()) continue;
        const long kib = idle_kib(server, connections);
        if (kib < 0) {
            std::printf("  %-18s could not be measured: a connection failed\n", r.name);
            continue;
        }
        std::printf("  %-18s %8.2f MiB\n", r.name, static_cast<double>(kib) / 1024);
        if (r.serve == serve_coppice_epoll || r.serve == serve_coppice_uring) {
            print_budget(options, "MB of 10,000 idle connections",
                         static_cast<double>(kib) * 1.024e-3, 3, true);
        }
        const double mib = static_cast<double>(kib) / 1024;
        bench::write(options, {"10,000 idle connections", r.name, "MiB", mib, mib, mib});
    }
}

// Chapter 8 of the thesis: workloads in the models, with a connection per request as there.
struct thesis_test {
    const char* name;
    const char* target;
    std::vector<rival> models;
};

void chapter_8(const bench::options& options) {
    const int repetitions = (options.repetitions + 1) / 2;
    const rival single{"single", serve_model_single}, multi{"multi", serve_model_multi},
        worker{"worker", serve_model_worker}, async{"async", serve_model_async};
    const thesis_test tests[] = {{"static content", "/plaintext", {single, multi, worker, async}},
                                 {"CPU-bound", "/cpu", {single, multi, worker, async}},
                                 {"I/O-bound", "/io", {single, multi, worker, async}},
                                 {"I/O-bound async", "/io-async", {single, multi, worker, async}}};
    double worker_io = 0, async_io = 0;
    for (const thesis_test& t : tests) {
        for (const int connections : {16, 64, 256}) {
            std::printf("%s, %d connections: ms average, deviation, maximum; requests/s\n", t.name,
                        connections);
            std::vector<std::vector<load_result>> all(t.models.size());
            for (int i = 0; i != repetitions; ++i) {
                for (std::size_t m = 0; m != t.models.size(); ++m) {
                    const server_process server(t.models[m].serve, processors::all);
                    load how{connections, 1, true, options.quick ? 1.0 : 2.0};
                    how.target = t.target;
                    all[m].push_back(wrk(server.port(), how).result());
                }
            }
            const auto middle = [&](std::size_t m, double load_result::* figure) {
                std::vector<double> values;
                for (const load_result& r : all[m]) values.push_back(r.*figure);
                return median(values);
            };
            for (std::size_t m = 0; m != t.models.size(); ++m) {
                const double rate = middle(m, &load_result::per_second);
                std::printf("  %-8s %9.2f %9.2f %9.2f %10.0f\n", t.models[m].name,
                            middle(m, &load_result::average_us) / 1e3,
                            middle(m, &load_result::deviation_us) / 1e3,
                            middle(m, &load_result::max_us) / 1e3, rate);
                const std::string title =
                    std::string(t.name) + ", " + std::to_string(connections) + " connections";
                const auto write = [&](const char* unit, double load_result::* figure, double scale,
                                       bool more) {
                    std::vector<double> samples;
                    for (const load_result& r : all[m]) samples.push_back(r.*figure * scale);
                    bench::write(options,
                                 bench::of_samples(title, t.models[m].name, unit, samples, more));
                };
                write("average, ms", &load_result::average_us, 1e-3, false);
                write("deviation, ms", &load_result::deviation_us, 1e-3, false);
                write("maximum, ms", &load_result::max_us, 1e-3, false);
                write("requests/s", &load_result::per_second, 1, true);
                if (connections != 256) continue;
                if (t.target == std::string("/io") && m == 2) worker_io = rate;
                if (t.target == std::string("/io-async") && m == 3) async_io = rate;
            }
            if (t.target == std::string("/cpu") && connections == 64) {
                print_budget(
                    options, "CPU-bound: worker's average, ratio to multi's",
                    middle(2, &load_result::average_us) / middle(1, &load_result::average_us), 1.05,
                    true);
                print_budget(
                    options, "CPU-bound: worker's deviation, ratio to multi's",
                    middle(2, &load_result::deviation_us) / middle(1, &load_result::deviation_us),
                    1, true);
                print_budget(options, "CPU-bound: worker's maximum, ratio to multi's",
                             middle(2, &load_result::max_us) / middle(1, &load_result::max_us), 1,
                             true);
            }
            std::fflush(stdout);
        }
    }
    print_budget(options, "I/O-bound, 256: async's requests/s (on a timer) to worker's",
                 async_io / worker_io, 25, false);
}

// Runs everything whose name contains `only`.
int full(const bench::options& options, const std::string& only) {
    const auto wanted = [&](const std::string& name) { return name.find(only) != name.npos; };
    for (const scenario& s : scenarios) {
        if (wanted(s.name)) compare(s, options);
    }
    if (wanted("idle memory")) idle_memory(options);
    if (wanted("models")) chapter_8(options);
    return 0;
}

std::uint64_t hash_of(const std::string& bytes) {  // FNV-1a
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return hash;
}

int tiny() {
    std::uint64_t expected = 0;
    int failures = 0;
    for (const rival& r : rivals) {
        if (r.serve == serve_nginx) continue;  // its package may be missing
        const server_process server(r.serve);
        std::string bodies;
        for (int i = 0; i != 20 && server.ready(); ++i) bodies += fetch(server.port(), 1 + i % 16);
        const std::uint64_t hash = hash_of(bodies);
        if (expected == 0) expected = hash;
        std::printf("workload plaintext (%s) hash %016llx\n", r.name,
                    static_cast<unsigned long long>(hash));
        if (bodies.empty() || hash != expected) ++failures;
    }
    if (failures != 0) std::printf("the rivals disagree\n");
    return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    std::string only;
    std::vector<char*> shared;  // arguments that all benchmarks have
    for (int i = 0; i < argc; ++i) {
        if (std::strcmp(argv[i], "--serve") == 0 && i + 1 < argc) {
            // In this process, for profilers.
            for (const rival& r : rivals) {
                if (std::strcmp(argv[i + 1], r.name) == 0) r.serve();
            }
            return 2;
        }
        if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            only = argv[++i];  // part of a scenario's name, "idle memory" or "models"
        } else {
            shared.push_back(argv[i]);
        }
    }
    bench::options options = bench::parse(static_cast<int>(shared.size()), shared.data());
    if (options.tiny) return tiny();
    options.repetitions = options.quick ? 2 : std::min(options.repetitions, 5);
    return full(options, only);
}
