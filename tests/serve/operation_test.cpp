// coppice-serve under a service manager and behind a load balancer: what it tells the manager, and
// how connections end while a drain is coming.
#include "served.hpp"

#include <coppice/io/endpoint.hpp>

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

namespace fs = std::filesystem;
using coppice::test::client;
using coppice::test::served;

// Receives what a service tells its manager. While it lives, programs that are started find it.
class manager {
public:
    manager() {
        EXPECT_EQ(::bind(socket_, at_.data(), at_.size()), 0);
        const timeval patience{.tv_sec = 60, .tv_usec = 0};  // only a hang takes that long
        ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        ::setenv("NOTIFY_SOCKET", at_.path().c_str(), 1);
    }
    manager(const manager&) = delete;
    ~manager() {
        ::unsetenv("NOTIFY_SOCKET");
        ::close(socket_);
    }
    std::string told() const {
        char some[4096];
        const ssize_t n = ::recv(socket_, some, sizeof some, 0);
        return n < 0 ? "nothing" : std::string(some, static_cast<std::size_t>(n));
    }
    bool was_told_more() const {
        char some;
        return ::recv(socket_, &some, 1, MSG_DONTWAIT) >= 0;
    }

private:
    const coppice::io::endpoint at_ =
        coppice::io::endpoint::unix_path("@coppice-manager-" + std::to_string(::getpid())).value();
    const int socket_ = ::socket(AF_UNIX, SOCK_DGRAM, 0);
};

TEST(serve_operation, tells_the_manager_of_its_start_its_reloads_and_its_end) {
    const manager m;
    const fs::path directory =
        fs::temp_directory_path() / ("coppice-serve-told-" + std::to_string(::getpid()));
    const fs::path log = directory / "there/log";
    fs::create_directories(log.parent_path());
    served s(COPPICE_SERVE, {"--port", "0", "--threads", "1", "--drain-delay", "1h", "--access-log",
                             log.string()});
    EXPECT_EQ(m.told(), "READY=1\nSTATUS=serving");
    const auto reload = [&] {
        s.signal(SIGHUP);
        EXPECT_TRUE(m.told().starts_with("RELOADING=1\nMONOTONIC_USEC="));
        return m.told();
    };
    EXPECT_EQ(reload(), "READY=1\nSTATUS=serving");
    fs::rename(directory / "there", directory / "gone");
    const std::string failed = reload();
    EXPECT_TRUE(failed.starts_with("READY=1\nSTATUS=serving, but the last reload failed: " +
                                   log.string() + " cannot be opened again"))
        << failed;
    EXPECT_EQ(failed.find('\n'), failed.rfind('\n')) << failed;
    fs::rename(directory / "gone", directory / "there");
    EXPECT_EQ(reload(), "READY=1\nSTATUS=serving");
    s.signal(SIGTERM);
    EXPECT_EQ(m.told(), "STOPPING=1\nSTATUS=draining");
    // A reload in a drain is not told: READY=1 would take the end back.
    for (const char* const line :
         {"opened again", "cannot be opened again", "opened again", "draining"}) {
        const std::string said = s.err_line();
        EXPECT_NE(said.find(line), said.npos) << said;
    }
    s.signal(SIGHUP);
    EXPECT_EQ(s.err_line(), "coppice-serve: SIGHUP: opened again");
    s.signal(SIGTERM);
    EXPECT_EQ(s.exit_status(), 128 + SIGTERM);
    EXPECT_FALSE(m.was_told_more());
    fs::remove_all(directory);
}

TEST(serve_operation, each_answer_closes_its_connection_while_a_drain_is_delayed) {
    for (const char* const model : {"single", "multi", "worker", "async"}) {
        served s(COPPICE_SERVE, {"--port", "0", "--model", model, "--drain-delay", "1h"});
        const std::string request = "GET /plaintext HTTP/1.1\r\nHost: a\r\n\r\n";
        const auto closes = [](const std::string& answer) {
            return answer.find("\r\nConnection: close\r\n") != answer.npos;
        };
        client kept(s.port());
        kept.send(request);
        EXPECT_FALSE(closes(kept.receive())) << model;
        s.signal(SIGTERM);
        EXPECT_EQ(s.err_line(), "coppice-serve: draining");
        kept.send(request);
        const std::string last = kept.receive();
        EXPECT_TRUE(last.starts_with("HTTP/1.1 200 ")) << model << last;
        EXPECT_TRUE(closes(last)) << model << last;
        EXPECT_TRUE(kept.ended()) << model;
        // Others are served as before, and told the same: handlers, refusals, and files alike.
        for (const char* const target : {"/plaintext", "/none", "/readyz", "/io-async?ms=0"}) {
            client another(s.port());
            another.send("GET " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n\r\n");
            EXPECT_TRUE(closes(another.receive())) << model << target;
            EXPECT_TRUE(another.ended()) << model << target;
        }
        s.signal(SIGTERM);
        EXPECT_EQ(s.exit_status(), 128 + SIGTERM);
    }
}

}  // namespace
