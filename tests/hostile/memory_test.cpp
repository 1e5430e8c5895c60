// Clients that each send half a body, against a program with little address space.
#include "sanitizers.hpp"
#include "served.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace {

using coppice::test::client;
using coppice::test::served;

constexpr std::size_t mebibyte = 1u << 20;

// Returns how much of the machine's memory a process has, in bytes.
std::size_t memory_of(pid_t process) {
    std::ifstream status("/proc/" + std::to_string(process) + "/status");
    std::size_t resident = 0;
    for (std::string word; status >> word;) {
        if (word == "VmRSS:") status >> resident;
    }
    return resident * 1024;
}

void raise_file_limit() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

struct way {
    const char* ring;
    const char* model;
};
class little_memory : public testing::TestWithParam<way> {};
INSTANTIATE_TEST_SUITE_P(ways, little_memory,
                         testing::Values(way{"epoll", "multi"}, way{"uring", "multi"},
                                         way{"epoll", "worker"}, way{"uring", "worker"}),
                         [](const auto& instance) {
                             return std::string(instance.param.ring) + "_" + instance.param.model;
                         });

// Sends what the socket takes at once, up to `most` bytes; less if the server refuses it.
void send_at_once(const client& c, const std::string& piece, std::size_t most) {
    for (std::size_t sent = 0; sent < most;) {
        const ssize_t n = ::send(c.fd(), piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n <= 0) return;
        sent += static_cast<std::size_t>(n);
    }
}

TEST_P(little_memory, half_received_bodies_of_2000_clients_do_not_end_a_server_and_are_given_back) {
    if (coppice::test::sanitized) GTEST_SKIP() << "a sanitizer needs more address space";
    raise_file_limit();  // the server inherits it
    served s(COPPICE_HOSTILE_SERVER,
             {GetParam().ring, GetParam().model, "/", std::to_string(400 * mebibyte)});
    ASSERT_NE(s.port(), 0) << s.err();
    const auto answers = [&] { return s.get("/plain").find("\r\n\r\nplain") != std::string::npos; };
    ASSERT_TRUE(answers());
    const std::size_t before = memory_of(s.pid());
    {
        const std::string head =
            "POST /size HTTP/1.1\r\nHost: a\r\nContent-Length: 8388608\r\n\r\n";
        const std::string piece(64 * 1024, 'x');
        std::vector<std::unique_ptr<client>> clients;
        for (int i = 0; i != 2000; ++i) {
            clients.push_back(std::make_unique<client>(s.port()));
            const client& c = *clients.back();
            if (clients.back()->send(head)) send_at_once(c, piece, mebibyte);
            if (i % 100 == 99) ASSERT_TRUE(answers()) << "beside " << i + 1 << " clients";
        }
        // Requests that were let in continue.
        for (int round = 0; round != 3; ++round) {
            for (const auto& c : clients) send_at_once(*c, piece, mebibyte);
            ASSERT_TRUE(answers()) << "in round " << round;
        }
        for (const auto& c : clients) c->reset();
    }
    // The server sees the resets a little later. It must then have about what it had before, plus
    // what it keeps for the next connections.
    constexpr std::size_t kept = 64 * mebibyte;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (std::size_t now; (now = memory_of(s.pid())) > before + kept;) {
        ASSERT_LT(std::chrono::steady_clock::now(), deadline)
            << before << " bytes before, now " << now;
        ASSERT_TRUE(answers());
    }
}

}  // namespace
