// When http::client uses a connection again: never after its server has said something unasked.
#include <coppice/http/client.hpp>
#include <coppice/io/socket.hpp>

#include "scripted_server.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <unistd.h>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace {

using namespace coppice;
using namespace coppice::test;

std::string answer_of(std::string_view body) {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
           std::string(body);
}
void send_to(int fd, std::string_view text) {
    EXPECT_EQ(::send(fd, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
}

// A server that is asked for "/1", says `unasked` on that connection while another server is asked
// something, and is asked for "/2" on whatever connection.
class talkative_server {
public:
    talkative_server(std::string unasked, bool closes)
        : listener_(listen_anywhere(where)), other_listener_(listen_anywhere(elsewhere)) {
        thread_ = std::thread([this, unasked = std::move(unasked), closes] {
            int first = ::accept(listener_, nullptr, nullptr);
            EXPECT_TRUE(receive_request(first).starts_with("GET /1 "));
            send_to(first, answer_of("first"));
            const int other = ::accept(other_listener_, nullptr, nullptr);
            EXPECT_TRUE(receive_request(other).starts_with("GET /other "));
            // On this machine it has arrived when the call returns.
            if (!unasked.empty()) send_to(first, unasked);
            if (closes) ::close(std::exchange(first, -1));
            send_to(other, answer_of("other"));
            // The request comes on a new connection, or, if nothing was said, on the first.
            const bool kept = unasked.empty() && !closes;
            const int second = kept ? first : ::accept(listener_, nullptr, nullptr);
            EXPECT_TRUE(receive_request(second).starts_with("GET /2 "));
            send_to(second, answer_of("second"));
            for (const int fd : {first, other, kept ? -1 : second}) ::close(fd);
        });
    }
    ~talkative_server() {
        thread_.join();
        ::close(listener_);
        ::close(other_listener_);
    }
    io::endpoint where, elsewhere;

private:
    int listener_, other_listener_;
    std::thread thread_;
};

class client_reuse : public testing::TestWithParam<io::backend> {};
INSTANTIATE_TEST_SUITE_P(rings, client_reuse,
                         testing::Values(io::backend::epoll, io::backend::uring),
                         [](const auto& instance) {
                             return instance.param == io::backend::epoll ? "epoll" : "uring";
                         });

// Gives the number of connections.
task<std::size_t> ask(io::context& loop, io::endpoint where, io::endpoint elsewhere) {
    http::client client(loop);
    EXPECT_EQ((co_await client.get(where, "/1")).body(), "first");
    EXPECT_EQ((co_await client.get(elsewhere, "/other")).body(), "other");
    EXPECT_EQ((co_await client.get(where, "/2")).body(), "second");
    co_return client.connections_made();
}

TEST_P(client_reuse, what_a_server_says_unasked_is_never_the_next_answer) {
    const std::string unasked[] = {
        answer_of("unasked"),
        answer_of("unasked") + answer_of("again"),
        "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "\r\n",
        "H",
        std::string(100'000, 'x')};
    for (const std::string& each : unasked) {
        for (const bool closes : {false, true}) {
            SCOPED_TRACE(each.substr(0, 40) + (closes ? " and the end" : ""));
            talkative_server server(each, closes);
            network net(GetParam());
            std::size_t made = 0;
            net.run([](io::context& loop, const talkative_server& s, std::size_t& m) -> task<> {
                m = co_await ask(loop, s.where, s.elsewhere);
            }(net.loop, server, made));
            EXPECT_EQ(made, 3u);
        }
    }
}

TEST_P(client_reuse, a_connection_is_used_again_unless_its_server_has_ended_it) {
    for (const bool closes : {false, true}) {
        talkative_server server("", closes);
        network net(GetParam());
        std::size_t made = 0;
        net.run([](io::context& loop, const talkative_server& s, std::size_t& m) -> task<> {
            m = co_await ask(loop, s.where, s.elsewhere);
        }(net.loop, server, made));
        EXPECT_EQ(made, closes ? 3u : 2u);
    }
}

}  // namespace
