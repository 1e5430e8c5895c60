// Echo servers in processes of their own, and the client that drives them.
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <vector>

namespace bench_echo {

// A rival in a process on processor 0. The destructor kills it.
class server_process {
public:
    explicit server_process(void (*serve)());
    server_process(const server_process&) = delete;
    ~server_process();
    int port() const { return port_; }  // 0 if it did not start
    std::uint64_t cpu_ns() const;       // so far

private:
    pid_t pid_ = -1;
    int port_ = 0;
};

// Runs the calling thread on the last processor.
void pin_client();

// Connections to a server, each with one message in flight at a time.
class clients {
public:
    clients(int port, int count);
    clients(const clients&) = delete;
    ~clients();
    // Sends `messages` messages in all and receives the echoes. Returns a hash of them.
    std::uint64_t ping(std::size_t messages);

private:
    std::uint64_t ping_alone(std::size_t messages);
    std::uint64_t ping_many(std::size_t messages);
    std::vector<int> connections_;
    int epoll_ = -1;
};

}  // namespace bench_echo
