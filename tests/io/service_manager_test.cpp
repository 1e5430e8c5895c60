// io/service_manager.hpp: sockets that were passed, in a child whose descriptors are its own; and
// messages to a manager.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/io/service_manager.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

namespace {

using namespace coppice;
using namespace std::chrono_literals;

int listening(const io::endpoint& at, int type = SOCK_STREAM, bool listens = true) {
    const int s = ::socket(at.family(), type, 0);
    EXPECT_EQ(::bind(s, at.data(), at.size()), 0);
    if (listens && type == SOCK_STREAM) EXPECT_EQ(::listen(s, 1), 0);
    return s;
}

// Runs `check` in a child that was passed `first` and `second` (-1: none) as 3 and 4. Returns what
// it returns, or what activated_sockets() throws.
std::string in_child(int first, int second, const char* count, const char* names,
                     const std::function<std::string()>& check, bool own_pid = true) {
    int said[2];
    EXPECT_EQ(::pipe(said), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const int out = ::fcntl(said[1], F_DUPFD, 100);
        const int a = ::fcntl(first, F_DUPFD, 100), b = ::fcntl(second, F_DUPFD, 100);
        for (int fd = 3; fd != 100; ++fd) ::close(fd);
        if (a >= 0) ::dup2(a, 3);
        if (b >= 0) ::dup2(b, 4);
        ::setenv("LISTEN_PID", std::to_string(own_pid ? ::getpid() : ::getppid()).c_str(), 1);
        ::setenv("LISTEN_FDS", count, 1);
        if (names != nullptr) ::setenv("LISTEN_FDNAMES", names, 1);
        std::string text;
        try {
            text = check();
        } catch (const std::runtime_error& e) {
            text = e.what();
        }
        (void)!::write(out, text.data(), text.size());
        ::_exit(0);
    }
    ::close(said[1]);
    std::string text;
    char some[512];
    for (ssize_t n; (n = ::read(said[0], some, sizeof some)) > 0;) {
        text.append(some, static_cast<std::size_t>(n));
    }
    ::close(said[0]);
    ::waitpid(child, nullptr, 0);
    return text;
}

std::string describe_sockets() {
    std::string text;
    for (const io::activated_socket& s : io::activated_sockets()) {
        text += std::to_string(s.descriptor) + " " + s.name + " " + s.local.to_string();
        if ((::fcntl(s.descriptor, F_GETFD) & FD_CLOEXEC) == 0) text += " leaks";
        if ((::fcntl(s.descriptor, F_GETFL) & O_NONBLOCK) == 0) text += " blocks";
        text += ";";
    }
    for (const char* v : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) {
        if (std::getenv(v) != nullptr) text += std::string(" ") + v;
    }
    return text;
}

TEST(activated_sockets, are_those_that_listen_and_leave_the_environment) {
    const auto name = io::endpoint::unix_path("@coppice-test-" + std::to_string(::getpid()));
    const int local = listening(name.value());
    const int tcp = listening(io::loopback(0));
    const auto in = [&](const char* count, const char* names) {
        return in_child(local, tcp, count, names, describe_sockets);
    };
    const std::string at = "unix:" + name.value().path();
    EXPECT_EQ(in("1", nullptr), "3  " + at + ";");
    EXPECT_TRUE(in("2", "a:").starts_with("3 a " + at + ";4  127.0.0.1:")) << in("2", "a:");
    EXPECT_EQ(in("0", nullptr), "");
    EXPECT_EQ(in_child(local, tcp, "2", nullptr, describe_sockets, false),
              " LISTEN_PID LISTEN_FDS");  // for another process
    EXPECT_EQ(in("2", "a"), "activated_sockets: LISTEN_FDNAMES has 1 names, but LISTEN_FDS is 2");
    for (const char* wrong : {"", "x", "-1", "1 ", "99999999999999999999"}) {
        EXPECT_TRUE(in(wrong, nullptr).starts_with("LISTEN_FDS is '")) << wrong;
    }
    EXPECT_EQ(in_child(local, -1, "2", "a:b", describe_sockets),
              "activated_sockets: descriptor 4 (b) is no open socket: check LISTEN_FDS");
    const int datagrams = listening(io::loopback(0), SOCK_DGRAM);
    const int bound = listening(io::loopback(0), SOCK_STREAM, false);
    const int file = ::open("/dev/null", O_RDONLY);
    EXPECT_NE(in_child(datagrams, -1, "1", nullptr, describe_sockets).find("no stream socket"),
              std::string::npos);
    EXPECT_NE(in_child(bound, -1, "1", nullptr, describe_sockets).find("no stream socket"),
              std::string::npos);
    EXPECT_NE(in_child(file, -1, "1", nullptr, describe_sockets).find("no open socket"),
              std::string::npos);
    for (const int fd : {local, tcp, datagrams, bound, file}) ::close(fd);
}

TEST(notify_service_manager, sends_datagrams_to_paths_and_abstract_names_only) {
    const auto at = io::endpoint::unix_path("@coppice-notify-" + std::to_string(::getpid()));
    const int manager = listening(at.value(), SOCK_DGRAM);
    const auto received = [manager] {
        char some[256];
        const ssize_t n = ::recv(manager, some, sizeof some, MSG_DONTWAIT);
        return n < 0 ? "nothing" : std::string(some, static_cast<std::size_t>(n));
    };
    EXPECT_FALSE(io::notify_service_manager("READY=1"));
    ::setenv("NOTIFY_SOCKET", at.value().path().c_str(), 1);
    EXPECT_FALSE(io::notify_service_manager("READY=1\nSTATUS=serves"));
    EXPECT_EQ(received(), "READY=1\nSTATUS=serves");
    EXPECT_FALSE(io::notify_service_manager("RELOADING=1"));
    EXPECT_TRUE(received().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    EXPECT_FALSE(io::notify_service_manager("STATUS=a\nRELOADING=1\nX=1"));
    EXPECT_TRUE(received().starts_with("STATUS=a\nRELOADING=1\nX=1\nMONOTONIC_USEC="));
    for (const char* const other : {"STATUS=RELOADING=1", "RELOADING=10", "", "\n"}) {
        EXPECT_FALSE(io::notify_service_manager(other));
        EXPECT_EQ(received(), other);
    }
    ::setenv("NOTIFY_SOCKET", "relative", 1);
    EXPECT_EQ(io::notify_service_manager("READY=1"), std::errc::invalid_argument);
    ::setenv("NOTIFY_SOCKET", ("/" + std::string(200, 'x')).c_str(), 1);
    EXPECT_EQ(io::notify_service_manager("READY=1"), std::errc::invalid_argument);
    ::setenv("NOTIFY_SOCKET", "/nonexistent/socket", 1);
    EXPECT_EQ(io::notify_service_manager("READY=1"), std::errc::no_such_file_or_directory);
    ::unsetenv("NOTIFY_SOCKET");
    EXPECT_EQ(received(), "nothing");
    ::close(manager);
}

// A manager whose queue is full, at a path or under an abstract name.
class busy_manager {
public:
    explicit busy_manager(const std::string& name)
        : at_(io::endpoint::unix_path(name).value()), socket_(listening(at_, SOCK_DGRAM)) {
        ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
        // The queue is full when a new socket cannot send: until then, it is the sender's buffer.
        for (bool has_sent = true; has_sent;) {
            has_sent = false;
            const int filler = ::socket(AF_UNIX, SOCK_DGRAM, 0);
            while (::sendto(filler, "X=1", 3, MSG_DONTWAIT, at_.data(), at_.size()) == 3) {
                has_sent = true;
            }
            EXPECT_EQ(errno, EAGAIN);
            ::close(filler);
        }
    }
    busy_manager(const busy_manager&) = delete;
    ~busy_manager() {
        ::unsetenv("NOTIFY_SOCKET");
        ::close(socket_);
    }
    // Reads until there is nothing. Returns the messages that did not fill the queue.
    std::string take_all() const {
        std::string told;
        char some[256];
        for (ssize_t n; (n = ::recv(socket_, some, sizeof some, MSG_DONTWAIT)) >= 0;) {
            const std::string message(some, static_cast<std::size_t>(n));
            if (message != "X=1") told += message + ";";
        }
        return told;
    }

private:
    const io::endpoint at_;
    const int socket_;
};

class full_queue : public testing::TestWithParam<const char*> {
protected:
    const std::string name = GetParam() + std::to_string(::getpid());
    ~full_queue() override { ::unlink(name.c_str()); }
};
INSTANTIATE_TEST_SUITE_P(names, full_queue, testing::Values("@coppice-busy-", "/tmp/coppice-busy-"),
                         [](const auto& of) { return *of.param == '@' ? "abstract" : "path"; });

struct sent_message {
    std::error_code ec;
    std::string told;
};
// Sends READY=1 on another thread, calls `meanwhile` with it, and reads the queue until that thread
// has ended.
template <class Meanwhile>
sent_message send_while_read(const busy_manager& manager, Meanwhile meanwhile) {
    sent_message s;
    internal::atomic<bool> ended{false};
    std::thread service([&] {
        s.ec = io::notify_service_manager("READY=1");
        ended.store(true, internal::relaxed);
    });
    meanwhile(service, ended);
    while (!ended.load(internal::relaxed)) s.told += manager.take_all();
    service.join();
    s.told += manager.take_all();
    return s;
}

// Tries until the reader was not so late that the time for the message had passed.
template <class Meanwhile>
void expect_that_it_arrives(const std::string& name, Meanwhile meanwhile) {
    for (int tries = 0; tries != 30; ++tries) {
        const sent_message s = send_while_read(busy_manager(name), meanwhile);
        ::unlink(name.c_str());
        if (!s.ec) {
            EXPECT_EQ(s.told, "READY=1;");
            return;
        }
        EXPECT_EQ(s.ec, std::errc::resource_unavailable_try_again);
        EXPECT_EQ(s.told, "");
    }
    ADD_FAILURE() << "each time the queue was full for too long";
}

TEST_P(full_queue, of_the_manager_loses_no_message_if_it_is_read_in_time) {
    expect_that_it_arrives(name, [](std::thread&, const internal::atomic<bool>&) {});
}

TEST_P(full_queue, is_waited_for_although_signals_interrupt) {
    static internal::atomic<int> signals;
    struct sigaction counting{}, before{};
    counting.sa_handler = [](int) { signals.fetch_add(1, internal::relaxed); };
    ::sigaction(SIGUSR1, &counting, &before);
    // The first signals may come before the wait. Each of the later ones interrupts it.
    expect_that_it_arrives(name, [](std::thread& service, const internal::atomic<bool>& ended) {
        signals.store(0, internal::relaxed);
        for (int i = 0; i != 50 && !ended.load(internal::relaxed); ++i) {
            ::pthread_kill(service.native_handle(), SIGUSR1);
            while (signals.load(internal::relaxed) <= i && !ended.load(internal::relaxed))
                std::this_thread::yield();
        }
    });
    ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_P(full_queue, that_stays_full_is_an_error_after_a_bounded_time) {
    const busy_manager manager(name);
    EXPECT_EQ(io::notify_service_manager("READY=1"), std::errc::resource_unavailable_try_again);
    EXPECT_EQ(manager.take_all(), "");
    EXPECT_FALSE(io::notify_service_manager("READY=1"));
    EXPECT_EQ(manager.take_all(), "READY=1;");
}

TEST(watchdog_time, is_that_of_this_process) {
    EXPECT_EQ(io::watchdog_time(), std::nullopt);
    ::setenv("WATCHDOG_USEC", "3000000", 1);
    EXPECT_EQ(io::watchdog_time(), std::optional<std::chrono::nanoseconds>(3s));
    ::setenv("WATCHDOG_PID", std::to_string(::getpid() + 1).c_str(), 1);
    EXPECT_EQ(io::watchdog_time(), std::nullopt);
    ::setenv("WATCHDOG_PID", std::to_string(::getpid()).c_str(), 1);
    EXPECT_EQ(io::watchdog_time(), std::optional<std::chrono::nanoseconds>(3s));
    ::setenv("WATCHDOG_USEC", "soon", 1);
    EXPECT_THROW((void)io::watchdog_time(), std::runtime_error);
    ::unsetenv("WATCHDOG_USEC");
    ::unsetenv("WATCHDOG_PID");
}

}  // namespace
