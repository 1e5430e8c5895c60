// Which clients the server lets in, which connections it closes for them, and where it listens.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/http/pause.hpp>

#include "running_server.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;
using http::request;
using http::response;

constexpr std::string_view get_plain = "GET /plain HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr std::string_view get_wait = "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n";

atomic<int> waiting{0};

http::router routes() {
    waiting.store(0, relaxed);
    http::router r;
    r.get("/plain", [](request&) {
         return response::text("plain");
     }).get("/wait", [](request& q) -> task<response> {
        waiting.fetch_add(1, relaxed);
        co_await http::pause(q, 1h);
        co_return response::text("late");
    });
    return r;
}
// The test's timeout bounds this wait.
template <class F>
void wait_until(F done) {
    while (!done()) std::this_thread::yield();
}
bool is_served(client& c) {
    return c.send(get_plain) && body_of(c.receive()) == "plain";
}

class accepting : public testing::TestWithParam<way> {};
INSTANTIATE_TEST_SUITE_P(ways, accepting, testing::ValuesIn(every_way), name_of_way);

TEST_P(accepting, a_new_client_takes_the_place_of_the_longest_idle_connection) {
    http::server_options o = options_of(GetParam());
    o.connections_max = 4;
    running_server server(std::move(o), routes());
    std::vector<std::unique_ptr<client>> clients;
    for (int i = 0; i != 20; ++i) {
        clients.push_back(std::make_unique<client>(server.port()));
        ASSERT_TRUE(is_served(*clients.back())) << i;
        // The closed connection may belong to another loop, which is told a little later.
        wait_until([&] { return server->statistics().open <= 4; });
    }
    const http::server_statistics s = server->statistics();
    EXPECT_GE(s.shed, 16u);  // a loop that waits for another may ask it twice
    EXPECT_EQ(s.refused, 0u);
    if (loops_of(GetParam()) == 1) EXPECT_EQ(s.shed, 16u);
    // A worker sends the answer before the loop knows that the connection is idle.
    if (loops_of(GetParam()) == 1 && GetParam().model != http::model::worker) {
        for (std::size_t i = 0; i != 20; ++i) {
            if (i < 16) EXPECT_TRUE(clients[i]->ended()) << i;
            if (i >= 16) EXPECT_TRUE(is_served(*clients[i])) << i;
        }
    }
}

TEST_P(accepting, a_new_client_gets_503_if_all_others_are_busy) {
    http::server_options o = options_of(GetParam());
    o.connections_max = 3;
    running_server server(std::move(o), routes());
    std::vector<std::unique_ptr<client>> busy;
    for (int i = 0; i != 3; ++i) {
        busy.push_back(std::make_unique<client>(server.port()));
        ASSERT_TRUE(busy.back()->send(get_wait));
    }
    wait_until([] { return waiting.load(relaxed) == 3; });
    for (int i = 0; i != 4; ++i) {
        client next(server.port());
        const std::string answer = next.receive();
        EXPECT_TRUE(has_status(answer, 503)) << answer;
        EXPECT_NE(answer.find("\r\nRetry-After: 1\r\n"), answer.npos);
        EXPECT_TRUE(next.ended());
    }
    EXPECT_EQ(server->statistics().stopped, 0u);
    busy.back()->reset();
    wait_until([&] { return server->statistics().open < 3; });
    client after(server.port());
    EXPECT_TRUE(is_served(after));
    // Another loop may only now see what a refused client has asked for.
    EXPECT_EQ(server->statistics().shed, 0u);
}

TEST_P(accepting, clients_on_this_machine_are_not_counted_by_default) {
    http::server_options o = options_of(GetParam());
    o.connections_max = 32;  // an eighth, and at least 8, would be 8 for each address
    running_server server(std::move(o), routes());
    std::vector<std::unique_ptr<client>> clients;
    for (int i = 0; i != 24; ++i) {
        clients.push_back(std::make_unique<client>(server.port()));
        EXPECT_TRUE(is_served(*clients.back())) << i;
    }
    EXPECT_EQ(server->statistics().shed + server->statistics().refused, 0u);
}

TEST_P(accepting, no_connection_is_accepted_if_none_is_allowed) {
    http::server_options o = options_of(GetParam());
    o.connections_max = 0;
    running_server server(std::move(o), routes());
    client c(server.port());
    EXPECT_TRUE(has_status(c.receive(), 503));
    EXPECT_TRUE(c.ended());
}

// Restores the limits of descriptors at the end.
class descriptor_limit {
public:
    descriptor_limit() { ::getrlimit(RLIMIT_NOFILE, &before_); }
    ~descriptor_limit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
    rlim_t hard() const { return before_.rlim_max; }
    static rlim_t soft() {
        rlimit now{};
        ::getrlimit(RLIMIT_NOFILE, &now);
        return now.rlim_cur;
    }
    void set_soft(rlim_t n) const {
        const rlimit l{n, before_.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &l);
    }

private:
    rlimit before_{};
};

TEST(descriptors, a_server_raises_the_soft_limit_or_warns_that_it_is_low) {
    const descriptor_limit limit;
    if (limit.hard() < 2048) GTEST_SKIP() << "the hard limit is low";
    std::vector<std::string> warnings;
    http::server_options o;
    o.endpoint = io::loopback(0);
    o.model = http::model::single;
    o.threads = 1;
    o.connections_max = 1000;
    o.on_warning = [&](std::string_view text) { warnings.emplace_back(text); };
    limit.set_soft(256);
    {
        const http::server raised(o, routes());
        EXPECT_GE(descriptor_limit::soft(), 1000u);
        EXPECT_TRUE(warnings.empty());
    }
    limit.set_soft(256);
    {
        http::server_options modest = o;
        modest.connections_max = 100;
        const http::server kept(modest, routes());
        EXPECT_EQ(descriptor_limit::soft(), 256u);
        EXPECT_TRUE(warnings.empty());
    }
    {
        http::server_options low = o;
        low.raise_descriptor_limit = false;
        const http::server kept(low, routes());
        EXPECT_EQ(descriptor_limit::soft(), 256u);
    }
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings[0].find("256"), std::string::npos) << warnings[0];
    {
        http::server_options endless = o;
        endless.connections_max = std::numeric_limits<std::size_t>::max();
        const http::server most(endless, routes());
        EXPECT_EQ(descriptor_limit::soft(), limit.hard());
    }
    EXPECT_EQ(warnings.size(), limit.hard() == RLIM_INFINITY ? 1u : 2u);
}

// A request whose handler asks for the client's address after the connection has gone and its
// descriptor belongs to another connection.
TEST_P(accepting, a_request_never_gets_the_address_of_the_next_client) {
    if (GetParam().model == http::model::single || GetParam().model == http::model::multi) return;
    atomic<bool> entered{false}, go_on{false}, answered{false};
    std::string told;
    http::router r = routes();
    r.get("/deaf", [&](request& q) {
        entered.store(true, release);
        while (!go_on.load(acquire)) std::this_thread::yield();  // both orders: told follows go_on
        told = q.peer().to_string();
        answered.store(true, release);
        return response(204);
    });
    http::server_options o = options_of(GetParam());
    o.timeouts.handler = 100ms;
    o.timeouts.handler_stop = 100ms;
    running_server server(std::move(o), std::move(r));
    client first(server.port());
    sockaddr_storage at{};
    socklen_t size = sizeof at;
    ::getsockname(first.fd(), reinterpret_cast<sockaddr*>(&at), &size);
    const std::string own = io::endpoint::from(reinterpret_cast<sockaddr*>(&at), size).to_string();
    ASSERT_TRUE(first.send("GET /deaf HTTP/1.1\r\nHost: a\r\n\r\n"));
    wait_until([&] { return entered.load(acquire); });
    (void)first.receive_all();  // the 503, and then the end of the connection
    first.reset();
    client second(server.port());
    EXPECT_TRUE(second.connected());
    go_on.store(true, release);
    wait_until([&] { return answered.load(acquire); });
    EXPECT_TRUE(told == own || told == io::endpoint().to_string()) << told;
}

// A folder for this test only, and clients of the socket in it.
class unix_endpoint : public testing::TestWithParam<way> {
protected:
    void SetUp() override {
        char folder[] = "/tmp/coppice-unix-XXXXXX";
        ASSERT_NE(::mkdtemp(folder), nullptr);
        folder_ = folder;
        path_ = folder_ + "/s";
    }
    void TearDown() override {
        ::unlink(path_.c_str());
        ::rmdir(folder_.c_str());
    }
    http::server_options options() const {
        http::server_options o = options_of(GetParam());
        o.endpoint = io::endpoint::unix_path(path_).value();
        return o;
    }
    bool exists() const {
        struct stat s;
        return ::lstat(path_.c_str(), &s) == 0;
    }
    // A descriptor bound to the path.
    int bound() const {
        const int s = ::socket(AF_UNIX, SOCK_STREAM, 0);
        const io::endpoint at = io::endpoint::unix_path(path_).value();
        EXPECT_EQ(::bind(s, at.data(), at.size()), 0);
        return s;
    }
    std::string asked() const {
        const int s = ::socket(AF_UNIX, SOCK_STREAM, 0);
        const io::endpoint at = io::endpoint::unix_path(path_).value();
        std::string answer;
        if (::connect(s, at.data(), at.size()) == 0) {
            const std::string_view text =
                "GET /plain HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
            (void)!::write(s, text.data(), text.size());
            char buffer[4096];
            for (ssize_t n; (n = ::read(s, buffer, sizeof buffer)) > 0;) {
                answer.append(buffer, static_cast<std::size_t>(n));
            }
        }
        ::close(s);
        return answer;
    }
    std::string folder_, path_;
};
INSTANTIATE_TEST_SUITE_P(ways, unix_endpoint, testing::ValuesIn(every_way), name_of_way);

TEST_P(unix_endpoint, every_thread_accepts_clients_and_the_server_removes_its_path) {
    {
        running_server server(options(), routes());
        for (int i = 0; i != 40; ++i) EXPECT_EQ(body_of(asked()), "plain");
        EXPECT_EQ(server->statistics().accepted, 40u);
    }
    EXPECT_FALSE(exists());
}

TEST_P(unix_endpoint, a_path_without_a_listener_is_taken_over) {
    ::close(bound());
    ASSERT_TRUE(exists());
    {
        running_server server(options(), routes());
        EXPECT_EQ(body_of(asked()), "plain");
    }
    EXPECT_FALSE(exists());
}

TEST_P(unix_endpoint, a_path_that_is_in_use_or_not_a_socket_is_left_alone) {
    {
        running_server living(options(), routes());
        EXPECT_THROW(http::server(options(), routes()), std::system_error);
        EXPECT_EQ(body_of(asked()), "plain");
    }
    std::ofstream(path_) << "kept";
    EXPECT_THROW(http::server(options(), routes()), std::system_error);
    std::string text;
    std::ifstream(path_) >> text;
    EXPECT_EQ(text, "kept");
}

TEST_P(unix_endpoint, a_path_that_now_belongs_to_another_server_is_left_alone) {
    auto first = std::make_unique<running_server>(options(), routes());
    EXPECT_EQ(body_of(asked()), "plain");
    ::unlink(path_.c_str());
    running_server second(options(), routes());
    first.reset();
    EXPECT_EQ(body_of(asked()), "plain");
}

}  // namespace
