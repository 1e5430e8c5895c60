// coppice-notes over a PostgreSQL server that does not answer. The tests play the server, which
// speaks enough of the protocol (version 3.0) to fall silent at a chosen place.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/io/endpoint.hpp>

#include "served.hpp"

#include <gtest/gtest.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace std::string_literals;
using coppice::test::client;
using coppice::test::served;

// Answers each statement without rows, unless told otherwise. Threads: its own and the test's.
class fake_server {
public:
    enum class manner {
        answers,
        silent_to_statements,  // greets, and never answers a statement
        silent,                // accepts, and never sends anything
        hangs_up,              // greets, and closes the connection at a statement
    };
    explicit fake_server(manner m) : manner_(m) {
        const coppice::io::endpoint any = coppice::io::loopback(0);
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        EXPECT_EQ(::bind(listener_, any.data(), any.size()), 0);
        EXPECT_EQ(::listen(listener_, 100), 0);
        EXPECT_EQ(::pipe(wake_), 0);
        thread_ = std::thread([this] { run(); });
    }
    ~fake_server() {
        ::close(wake_[1]);
        thread_.join();
        ::close(wake_[0]);
        ::close(listener_);
    }
    void behave(manner m) { manner_.store(m, coppice::internal::seq_cst); }
    // Returns how many statements have come so far.
    int statements() const { return statements_.load(coppice::internal::seq_cst); }
    std::string url() const {
        sockaddr_in at{};
        socklen_t size = sizeof at;
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size);
        return "postgresql://notes@127.0.0.1:" + std::to_string(ntohs(at.sin_port)) +
               "/notes?sslmode=disable&gssencmode=disable";
    }

private:
    struct session {
        int socket;
        std::string input;
        bool greeted = false;
    };

    void run() {
        std::vector<session> sessions;
        for (;;) {
            std::vector<pollfd> waits{{wake_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
            for (const session& s : sessions) waits.push_back({s.socket, POLLIN, 0});
            ::poll(waits.data(), waits.size(), -1);
            if (waits[0].revents != 0) break;
            for (std::size_t i = sessions.size(); i-- != 0;) {
                if (waits[i + 2].revents == 0 || go_on(sessions[i])) continue;
                ::close(sessions[i].socket);
                sessions.erase(sessions.begin() + static_cast<std::ptrdiff_t>(i));
            }
            if (waits[1].revents != 0) {
                sessions.push_back({::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC), {}});
            }
        }
        for (const session& s : sessions) ::close(s.socket);
    }
    // Returns false if the connection has ended.
    bool go_on(session& s) {
        char bytes[4096];
        const ssize_t n = ::recv(s.socket, bytes, sizeof bytes, 0);
        if (n <= 0) return false;
        s.input.append(bytes, static_cast<std::size_t>(n));
        const manner m = manner_.load(coppice::internal::seq_cst);
        if (m == manner::silent) return true;
        if (!s.greeted) {
            s.greeted = true;  // the whole greeting comes in one piece here
            s.input.clear();
            say(s, "R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I"s);
            return true;
        }
        if (!s.input.ends_with("S\0\0\0\x04"s)) return true;
        s.input.clear();
        statements_.fetch_add(1, coppice::internal::seq_cst);
        if (m == manner::hangs_up) return false;
        if (m == manner::answers) {
            say(s,
                "1\0\0\0\x04"s            // parsed
                "2\0\0\0\x04"s            // bound
                "n\0\0\0\x04"s            // no data
                "C\0\0\0\x0dSELECT 0\0"s  // done
                "Z\0\0\0\x05I"s);         // ready
        }
        return true;
    }
    static void say(const session& s, const std::string& what) {
        ::send(s.socket, what.data(), what.size(), MSG_NOSIGNAL);
    }

    coppice::internal::atomic<manner> manner_;
    coppice::internal::atomic<int> statements_{0};
    int listener_ = -1;
    int wake_[2] = {-1, -1};
    std::thread thread_;
};

using manner = fake_server::manner;

bool has_status(const std::string& answer, int status) {
    return answer.starts_with("HTTP/1.1 " + std::to_string(status) + " ");
}

class silent_database : public testing::Test {
protected:
    void SetUp() override {
#ifndef NOTES_WITH_POSTGRESQL
        GTEST_SKIP() << "coppice-notes was built without libpq (scripts/packages.sh postgresql)";
#endif
    }
    static std::vector<std::string> flags(const fake_server& database, const char* timeout) {
        return {"--port", "0", "--threads", "2", "--database", database.url(), "--database-timeout",
                timeout};
    }
    // Returns clients that have each asked for the notes.
    static std::vector<std::unique_ptr<client>> ask(served& s, int count) {
        std::vector<std::unique_ptr<client>> all;
        for (int i = 0; i != count; ++i) {
            all.push_back(std::make_unique<client>(s.port()));
            EXPECT_TRUE(all.back()->send("GET /notes HTTP/1.1\r\nHost: a\r\n\r\n"));
        }
        return all;
    }
    static constexpr int connections_max = 8;  // of coppice-notes to its database
};

TEST_F(silent_database, a_server_that_never_greets_is_refused_at_the_start) {
    const fake_server database(manner::silent);
    served s(COPPICE_NOTES, flags(database, "100ms"));
    EXPECT_EQ(s.exit_status(), 2);
    EXPECT_NE(s.err().find("coppice-notes: PostgreSQL did not answer in time"), std::string::npos);
}

class silent_database_by : public silent_database,
                           public testing::WithParamInterface<fake_server::manner> {};
std::string name_of_manner(const testing::TestParamInfo<manner>& instance) {
    static constexpr const char* names[] = {"answers", "silent_to_statements", "silent",
                                            "hangs_up"};
    return names[static_cast<int>(instance.param)];
}
INSTANTIATE_TEST_SUITE_P(manners, silent_database_by,
                         testing::Values(manner::silent_to_statements, manner::silent,
                                         manner::hangs_up),
                         name_of_manner);

// Each gets its answer within the 10 s that a client of these tests waits.
TEST_P(silent_database_by, every_request_gets_503_within_the_timeout_and_later_ones_are_answered) {
    fake_server database(manner::answers);
    served s(COPPICE_NOTES, flags(database, "2s"));
    EXPECT_TRUE(has_status(s.get("/notes"), 200));
    database.behave(GetParam());
    // More than the connections: the others wait for a turn.
    for (const auto& c : ask(s, 3 * connections_max)) {
        const std::string answer = c->receive();
        EXPECT_TRUE(has_status(answer, 503)) << answer;
        EXPECT_NE(answer.find("\r\nRetry-After: "), answer.npos);
    }
    EXPECT_TRUE(has_status(s.get("/healthz"), 200)) << "the loops are free";
    database.behave(manner::answers);
    for (const auto& c : ask(s, 3 * connections_max)) {
        EXPECT_TRUE(has_status(c->receive(), 200));
    }
}

TEST_F(silent_database, requests_whose_clients_have_gone_hold_no_connection) {
    fake_server database(manner::answers);
    served s(COPPICE_NOTES, flags(database, "1m"));
    ASSERT_NE(s.port(), 0);
    const int before = database.statements();
    database.behave(manner::silent_to_statements);
    std::vector<std::unique_ptr<client>> gone = ask(s, 2 * connections_max);
    while (database.statements() != before + connections_max) std::this_thread::yield();
    for (const auto& c : gone) c->reset();
    database.behave(manner::answers);
    EXPECT_TRUE(has_status(s.get("/notes"), 200));
}

TEST_F(silent_database, a_server_drains_while_its_database_hangs) {
    fake_server database(manner::answers);
    served s(COPPICE_NOTES, flags(database, "2s"));
    ASSERT_NE(s.port(), 0);
    const int before = database.statements();
    database.behave(manner::silent_to_statements);
    const std::vector<std::unique_ptr<client>> waiting = ask(s, 2 * connections_max);
    while (database.statements() != before + connections_max) std::this_thread::yield();
    s.signal(SIGTERM);
    for (const auto& c : waiting) {
        const std::string answer = c->receive();
        // A request that the server had not read yet is not answered.
        EXPECT_TRUE(has_status(answer, 503) || answer.empty()) << answer;
        c->reset();
    }
    EXPECT_EQ(s.exit_status(), 0);
}

}  // namespace
