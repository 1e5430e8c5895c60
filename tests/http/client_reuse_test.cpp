// When http::client reuses a connection: never after its server has sent something unasked.
#include <coppice/exec/when_all.hpp>
#include <coppice/http/client.hpp>
#include <coppice/io/socket.hpp>

#include "asking.hpp"
#include "scripted_server.hpp"

#include <gtest/gtest.h>

#include <poll.h>
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

// A server gets a request for "/1" and sends `unasked` on that connection while another server gets
// a request. It then gets a request for "/2" on any connection.
class talkative_server {
public:
    talkative_server(std::string unasked, bool closes)
        : listener_(listen_anywhere(where)), other_listener_(listen_anywhere(elsewhere)) {
        thread_ = std::thread([this, unasked = std::move(unasked), closes] {
            int first = ::accept(listener_, nullptr, nullptr);
            EXPECT_TRUE(read_request(first).starts_with("GET /1 "));
            send_to(first, answer_of("first"));
            const int other = ::accept(other_listener_, nullptr, nullptr);
            EXPECT_TRUE(read_request(other).starts_with("GET /other "));
            // On the loopback, the bytes have arrived when the call returns.
            if (!unasked.empty()) send_to(first, unasked);
            if (closes) ::close(std::exchange(first, -1));
            send_to(other, answer_of("other"));
            // The request comes on a new connection, or, if nothing was said, on the first.
            const bool kept = unasked.empty() && !closes;
            const int second = kept ? first : ::accept(listener_, nullptr, nullptr);
            EXPECT_TRUE(read_request(second).starts_with("GET /2 "));
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
                         testing::Values(io::backend::epoll, io::backend::uring), name_of_ring);

// Gives the number of connections.
task<std::size_t> ask(io::context& loop, io::endpoint where, io::endpoint elsewhere) {
    http::client client(loop);
    EXPECT_EQ((co_await client.get(where, "/1")).body(), "first");
    EXPECT_EQ((co_await client.get(elsewhere, "/other")).body(), "other");
    EXPECT_EQ((co_await client.get(where, "/2")).body(), "second");
    co_return client.connections_made();
}

TEST_P(client_reuse, what_a_server_sends_unasked_is_never_the_next_answer) {
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

TEST_P(client_reuse, a_connection_is_reused_unless_its_server_has_ended_it) {
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

TEST_P(client_reuse, rfc9112_9_6_a_connection_that_was_asked_to_close_is_not_reused) {
    for (const std::string_view close :
         {"Connection: close\r\n", "X: y\r\nconnection: CLOSE\r\n"}) {
        const server_of server(
            [](accepted& a) {
                a.receive_head();
                a.send(answer_of("whole"));
                a.wait_for_end();
            },
            2);
        network net(GetParam());
        net.run([](io::context& loop, io::endpoint to, std::string_view fields) -> task<> {
            http::client client(loop);
            http::client_request r = asks(to);
            r.fields = fields;
            const http::client_response got = co_await client.send(r);
            EXPECT_EQ(got.body(), "whole");
            EXPECT_EQ(client.idle_connections(), 0u);
            http::client_answer opened = co_await client.open(r);
            for (;;) {
                const std::string_view piece = co_await opened.read();
                if (piece.empty()) break;
            }
            EXPECT_EQ(client.idle_connections(), 0u);
            EXPECT_EQ(client.connections_made(), 2u);
        }(net.loop, server.where, close));
    }
}

// Both connections were closed by a server that shows it only at the next request.
TEST_P(client_reuse, a_closed_connection_is_replaced_by_a_new_one_and_not_by_another_kept_one) {
    for (const std::size_t connections_max : {0, 2}) {
        SCOPED_TRACE(connections_max);
        io::endpoint where;
        const int listener = listen_anywhere(where);
        int asked_again = 0;
        std::thread server([&] {
            pollfd fds[] = {{-1, POLLIN, 0}, {-1, POLLIN, 0}, {listener, POLLIN, 0}};
            for (int i : {0, 1}) fds[i].fd = ::accept(listener, nullptr, nullptr);
            for (int i : {0, 1}) EXPECT_TRUE(read_request(fds[i].fd).starts_with("GET / "));
            for (int i : {0, 1}) send_to(fds[i].fd, answer_of("first"));
            while (::poll(fds, 3, -1) >= 0 && fds[2].revents == 0) {
                for (int i : {0, 1}) {
                    if (fds[i].revents == 0) continue;
                    if (!read_request(fds[i].fd).empty()) ++asked_again;
                    ::close(std::exchange(fds[i].fd, -1));
                }
            }
            const int last = ::accept(listener, nullptr, nullptr);
            EXPECT_TRUE(read_request(last).starts_with("GET / "));
            send_to(last, answer_of("second"));
            for (const int fd : {fds[0].fd, fds[1].fd, last}) ::close(fd);
        });
        network net(GetParam());
        net.run([](io::context& loop, io::endpoint to, std::size_t most) -> task<> {
            http::client_options o;
            o.connections_per_host_max = most;
            http::client client(loop, o);
            const auto get = [](http::client& c, io::endpoint at, const char* body) -> task<> {
                EXPECT_EQ((co_await c.get(at, "/")).body(), body);
            };
            co_await execution::when_all(get(client, to, "first"), get(client, to, "first"));
            EXPECT_EQ(client.idle_connections(), 2u);
            co_await get(client, to, "second");
            EXPECT_EQ(client.connections_made(), 3u);
            EXPECT_EQ(client.idle_connections(), 2u);
        }(net.loop, where, connections_max));
        server.join();
        ::close(listener);
        EXPECT_EQ(asked_again, 1);
    }
}

}  // namespace
