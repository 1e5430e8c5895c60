// Processes, their processor time and memory, and what wrk prints.
#include "processes.hpp"

#include "../harness.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

namespace bench_http {

namespace {

// Servers and idle clients need more open files than a shell permits.
rlimit raise_file_limit() {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    return files;
}

int connect_to(int port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    const timeval bound{5, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    if (::connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0) return fd;
    ::close(fd);
    return -1;
}

// Returns "467.00us", "1.96ms", or "1.20s" in microseconds.
double microseconds(const char* text) {
    char* unit = nullptr;
    const double value = std::strtod(text, &unit);
    if (std::strncmp(unit, "us", 2) == 0) return value;
    return std::strncmp(unit, "ms", 2) == 0 ? value * 1e3 : value * 1e6;
}

}  // namespace

server_process::server_process(void (*serve)(), processors where) {
    int out[2];
    if (::pipe(out) != 0) return;
    std::fflush(nullptr);  // so that the child does not write what is buffered here
    pid_ = ::fork();
    if (pid_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::dup2(out[1], STDOUT_FILENO);
        ::close(out[0]);
        ::close(out[1]);
        if (where == processors::first) bench::pin(0);
        raise_file_limit();
        serve();
        std::_Exit(0);
    }
    ::close(out[1]);
    std::FILE* const lines = ::fdopen(out[0], "r");
    int port = 0;
    if (std::fscanf(lines, "listening on http://127.0.0.1:%d", &port) != 1) port = 0;
    std::fclose(lines);
    // nginx prints its port before it listens.
    for (int tries = 0; port != 0 && tries != 200; ++tries) {
        const int fd = connect_to(port);
        if (fd >= 0) {
            ::close(fd);
            port_ = port;
            return;
        }
        ::usleep(10'000);
    }
}

server_process::~server_process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    std::error_code ignored;  // most rivals have none
    std::filesystem::remove_all(scratch_directory(pid_), ignored);
}

std::string scratch_directory(pid_t server) {
    return "/tmp/coppice-bench-" + std::to_string(server);
}

int free_port() {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    if (::bind(fd, reinterpret_cast<sockaddr*>(&at), size) != 0 ||
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
        std::exit(1);
    }
    ::close(fd);
    return ntohs(at.sin_port);
}

std::uint64_t server_process::cpu_ns() const {
    clockid_t clock{};
    timespec used{};
    if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
    return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(used.tv_nsec);
}

std::uint64_t server_process::memory_kib() const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string word; status >> word;) {
        std::uint64_t kib = 0;
        if (word == "VmRSS:" && status >> kib) return kib;
    }
    return 0;
}

wrk::wrk(int port, const load& how) : how_(how) {
    std::string command = "exec taskset -c $(($(nproc) - 1)) wrk -t1 --timeout 30s --latency";
    if (how.pipeline > 1) {
        char script[] = "/tmp/coppice-bench-wrk-XXXXXX";
        const int fd = ::mkstemp(script);
        const std::string lua =
            "init = function(args) local r = {} for i = 1, " + std::to_string(how.pipeline) +
            " do r[i] = wrk.format('GET', '/plaintext') end all = table.concat(r) end\n"
            "request = function() return all end\n";
        if (fd < 0 || ::write(fd, lua.data(), lua.size()) < 0) std::exit(1);
        ::close(fd);
        script_ = script;
        command += " -s " + script_;
    }
    if (how.close) command += " -H 'Connection: close'";
    command += " -c" + std::to_string(how.connections) + " -d" +
               std::to_string(static_cast<int>(how.seconds)) + (how.secure ? "s https" : "s http") +
               "://127.0.0.1:" + std::to_string(port) + how.target + " 2>&1";
    int out[2];
    if (::pipe2(out, O_CLOEXEC) != 0) std::exit(1);
    pid_ = ::fork();
    if (pid_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::dup2(out[1], STDOUT_FILENO);
        ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
        std::_Exit(127);
    }
    ::close(out[1]);
    output_ = out[0];
}

wrk::~wrk() {
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    if (output_ >= 0) ::close(output_);
    if (!script_.empty()) ::unlink(script_.c_str());
}

void wrk::pause() const {
    ::kill(pid_, SIGSTOP);
}
void wrk::go_on() const {
    ::kill(pid_, SIGCONT);
}

load_result wrk::result() {
    std::FILE* const output = ::fdopen(std::exchange(output_, -1), "r");
    load_result result;
    char line[256];
    while (output != nullptr && std::fgets(line, sizeof line, output) != nullptr) {
        unsigned long long n = 0, connect = 0, read = 0, write = 0, timeout = 0;
        char text[32];
        char deviation[32];
        char most[32];
        if (result.max_us == 0 &&
            std::sscanf(line, " Latency %31s %31s %31s", text, deviation, most) == 3 &&
            std::strncmp(text, "Dist", 4) != 0) {
            result.average_us = microseconds(text);
            result.deviation_us = microseconds(deviation);
            result.max_us = microseconds(most);
        }
        if (std::sscanf(line, " %llu requests in", &n) == 1) result.requests = n;
        if (std::sscanf(line, "Requests/sec: %lf", &result.per_second) == 1) continue;
        if (std::sscanf(line, " 50%% %31s", text) == 1) result.p50_us = microseconds(text);
        if (std::sscanf(line, " 99%% %31s", text) == 1) result.p99_us = microseconds(text);
        if (std::sscanf(line, " Socket errors: connect %llu, read %llu, write %llu, timeout %llu",
                        &connect, &read, &write, &timeout) == 4) {
            // wrk counts a connection that the server closes, as announced, as a read error.
            result.errors += connect + write + timeout + (how_.close ? 0 : read);
        }
        if (std::sscanf(line, " Non-2xx or 3xx responses: %llu", &n) == 1) result.errors += n;
    }
    if (output != nullptr) std::fclose(output);
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    if (status != 0 || result.requests == 0) {
        std::fprintf(stderr, "bench_http: wrk did not run: is the package wrk installed?\n");
        std::exit(1);
    }
    return result;
}

long idle_kib(const server_process& server, int connections) {
    const rlimit files = raise_file_limit();
    if (files.rlim_cur < static_cast<rlim_t>(connections) + 100) return -1;
    const std::string request = "GET /plaintext HTTP/1.1\r\nHost: a\r\n\r\n";
    std::vector<int> open;
    const auto add = [&] {
        const int fd = connect_to(server.port());
        char answer[512];
        open.push_back(fd);
        return fd >= 0 && ::send(fd, request.data(), request.size(), MSG_NOSIGNAL) > 0 &&
               ::recv(fd, answer, sizeof answer, 0) > 0;
    };
    bool good = true;
    // Pays the costs that only the first connections and the first thousand requests have.
    for (int i = 0; i != 64; ++i) good = add() && good;
    for (int i = 0; i != 20; ++i) fetch(server.port(), 50);
    const std::uint64_t before = server.memory_kib();
    for (int i = 0; i != connections; ++i) good = add() && good;
    const std::uint64_t after = server.memory_kib();
    for (const int fd : open) ::close(fd);
    return good ? static_cast<long>(after) - static_cast<long>(before) : -1;
}

std::string fetch(int port, int requests) {
    const int fd = connect_to(port);
    std::string all;
    for (int i = 0; i != requests; ++i) {
        all += "GET /plaintext HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    }
    std::string bodies;
    std::string input;
    if (fd >= 0 && ::send(fd, all.data(), all.size(), MSG_NOSIGNAL) > 0) {
        for (int answers = 0; answers != requests;) {
            char buffer[4096];
            const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
            if (n <= 0) break;
            input.append(buffer, static_cast<std::size_t>(n));
            for (std::size_t end; (end = input.find("\r\n\r\n")) != input.npos; ++answers) {
                const std::size_t at = input.find("Content-Length: ");
                const auto length = static_cast<std::size_t>(std::atoi(input.c_str() + at + 16));
                if (at > end || input.size() < end + 4 + length) break;
                bodies += input.substr(0, 12) + input.substr(end + 4, length);
                input.erase(0, end + 4 + length);
            }
        }
    }
    ::close(fd);
    return bodies;
}

}  // namespace bench_http
