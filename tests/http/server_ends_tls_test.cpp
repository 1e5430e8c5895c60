// What http::client makes of a server of TLS that ends its sending, or resets, at any moment.
#include "openssl_peer.hpp"

#include <functional>
#include <optional>
#include <tuple>

namespace {

using namespace coppice;
using namespace coppice::test;

class server_end : public testing::TestWithParam<std::tuple<io::backend, int>> {
protected:
    // Returns the body of the answer, or nothing if the request ends with an error. The server
    // sends `answer`, and ends.
    std::optional<std::string> body_of_answer(std::string_view answer, ending how) {
        std::optional<std::string> body;
        server_of server([&](accepted& a) {
            openssl_peer peer(context, a);
            EXPECT_NE(peer.receive_until("\r\n\r\n"), "");
            if (!answer.empty()) peer.send(answer);
            // Both descriptors of the socket end with the reset.
            if (how == ending::reset) ::close(std::exchange(a.fd, -1));
            peer.end(how);
            if (how != ending::reset) peer.drop_all();
        });
        network net(std::get<0>(GetParam()));
        net.run([](io::context& loop, std::string url, std::optional<std::string>& into) -> task<> {
            http::client client(loop, secure_client());
            try {
                const http::client_response got = co_await client.get(url);
                into = std::string(got.body());
            } catch (const std::system_error&) {
            }
            // What has ended, or is about to, is not used again.
            client.close_idle();
        }(net.loop, "https://" + server.where.to_string() + "/", body));
        return body;
    }
    openssl_context context = openssl_server(std::get<1>(GetParam()));
};
INSTANTIATE_TEST_SUITE_P(rings, server_end,
                         testing::Combine(testing::Values(io::backend::epoll, io::backend::uring),
                                          testing::Values(TLS1_2_VERSION, TLS1_3_VERSION)),
                         name_of_ring_and_version);

TEST_P(server_end, in_an_answer_is_an_error_and_behind_a_whole_one_is_none) {
    for (const ending how : every_ending) {
        SCOPED_TRACE(name_of(how));
        EXPECT_FALSE(body_of_answer("", how));
        EXPECT_FALSE(body_of_answer("HTTP/1.1 200 OK\r\nContent-Le", how));
        EXPECT_FALSE(body_of_answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345", how));
        EXPECT_FALSE(body_of_answer(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n", how));
        EXPECT_EQ(body_of_answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345", how),
                  "12345");
        EXPECT_EQ(body_of_answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                 "5\r\n12345\r\n0\r\n\r\n",
                                 how),
                  "12345");
        EXPECT_EQ(body_of_answer("HTTP/1.1 204 No Content\r\n\r\n", how), "");
    }
}

TEST_P(server_end, of_an_answer_without_a_length_is_its_end_only_if_close_notify_says_so) {
    for (const ending how : every_ending) {
        SCOPED_TRACE(name_of(how));
        const bool is_said = how == ending::notify || how == ending::notify_and_fin;
        const auto body = body_of_answer("HTTP/1.1 200 OK\r\n\r\n12345", how);
        EXPECT_EQ(body, is_said ? std::optional<std::string>("12345") : std::nullopt);
    }
}

TEST_P(server_end, of_its_sending_leaves_the_rest_of_a_request_to_be_sent) {
    const std::string text = long_text(8 * 1024 * 1024);
    for (const ending how : {ending::notify_and_fin, ending::fin, ending::notify}) {
        SCOPED_TRACE(name_of(how));
        server_of server([&](accepted& a) {
            openssl_peer peer(context, a);
            EXPECT_NE(peer.receive_piece(), "");
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345");
            peer.end(how);
            peer.drop_all();
        });
        network net(std::get<0>(GetParam()));
        net.run([](io::context& loop, std::string url, std::string_view body) -> task<> {
            http::client client(loop, secure_client());
            EXPECT_EQ((co_await client.post(url, body)).body(), "12345");
        }(net.loop, "https://" + server.where.to_string() + "/", text));
    }
}

}  // namespace
