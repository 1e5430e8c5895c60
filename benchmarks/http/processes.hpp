// Server processes and wrk, as the HTTP benchmark uses them.
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <string>

namespace bench_http {

// The processors on which a server's threads may run.
enum class processors { first, all };

// A rival in a process of its own. The destructor kills it.
class server_process {
public:
    explicit server_process(void (*serve)(), processors where = processors::first);
    server_process(const server_process&) = delete;
    ~server_process();

    bool ready() const { return port_ != 0; }
    int port() const { return port_; }
    std::uint64_t cpu_ns() const;      // of all its threads, so far
    std::uint64_t memory_kib() const;  // resident now

private:
    pid_t pid_ = -1;
    int port_ = 0;
};

// Returns the directory in which a server process may put files. It is removed after its end.
std::string scratch_directory(pid_t server);

// Returns a port that was free a moment ago: nginx does not tell which one the kernel gave it.
int free_port();

// The figures of one run of wrk.
struct load_result {
    std::uint64_t requests = 0;
    double per_second = 0;
    double p50_us = 0;
    double p99_us = 0;
    double average_us = 0;
    double deviation_us = 0;
    double max_us = 0;
    std::uint64_t errors = 0;
};

struct load {
    int connections = 64;
    int pipeline = 1;
    bool close = false;
    double seconds = 2;
    const char* target = "/plaintext";
    bool secure = false;  // over TLS
};

// wrk with one thread on the last processor, for how.seconds from now. Exits the program if wrk is
// not installed.
class wrk {
public:
    wrk(int port, const load& how);
    wrk(const wrk&) = delete;
    ~wrk();

    void pause() const;
    void go_on() const;
    // Blocks until its time has passed, which includes the pauses.
    load_result result();

private:
    load how_;
    pid_t pid_ = -1;
    int output_ = -1;
    std::string script_;  // empty if there is none
};

// Opens connections that are silent after one answered request each. Returns how many KiB the
// server has grown, or -1 if the machine does not let this process open so many files.
long idle_kib(const server_process& server, int connections);

// Sends one request, or several at once, on a fresh blocking connection. Returns the bodies.
std::string fetch(int port, int requests);

}  // namespace bench_http
