// http::server over TLS, on real sockets, in every model and on every ring.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/http/websocket.hpp>

#include "file_root.hpp"
#include "secure_parts.hpp"
#include "websocket_client.hpp"

#include <array>
#include <optional>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;

class secure_server_on : public testing::TestWithParam<way> {};
INSTANTIATE_TEST_SUITE_P(ways, secure_server_on, testing::ValuesIn(every_way), name_of_way);

TEST_P(secure_server_on, every_kind_of_handler_answers_over_one_connection) {
    running_server server(secure(options_of(GetParam())), routes_of_all_kinds());
    network net(GetParam().backend);
    net.run([](io::context& loop, std::string base) -> task<> {
        http::client client(loop, secure_client());
        for (int i = 0; i != 3; ++i) co_await ask_for_all_kinds(client, base);
        EXPECT_EQ(client.connections_made(), 1u);
    }(net.loop, secure_url(*server, "")));
    EXPECT_EQ(server->statistics().accepted, 1u);
    EXPECT_EQ(server->statistics().exceptions, 0u);
}

TEST_P(secure_server_on, a_file_arrives_whole_and_in_part) {
    file_root root;
    const std::string content = long_text(300'000);
    root.write("large.txt", content);
    http::router r;
    r.get("/static/{path...}", http::files(root.path.string()));
    running_server server(secure(options_of(GetParam())), std::move(r));
    network net(GetParam().backend);
    net.run([](io::context& loop, std::string url, std::string_view text) -> task<> {
        http::client client(loop, secure_client());
        http::client_request ask = asks(url);
        EXPECT_TRUE((co_await client.send(ask)).body() == text);
        ask.fields = "Range: bytes=100000-299999\r\n";
        const http::client_response part = co_await client.send(ask);
        EXPECT_EQ(part.status(), 206);
        EXPECT_TRUE(part.body() == text.substr(100'000, 200'000));
    }(net.loop, secure_url(*server, "/static/large.txt"), content));
}

TEST_P(secure_server_on, plain_and_encrypted_listeners_share_handlers) {
    http::server_options o = options_of(GetParam());
    o.more_listeners.push_back({io::loopback(0), context_of_server()});
    running_server server(std::move(o), routes_of_all_kinds());
    ASSERT_NE(server->port(0), server->port(1));
    network net(GetParam().backend);
    net.run([](io::context& loop, http::server& s) -> task<> {
        http::client client(loop, secure_client());
        EXPECT_EQ((co_await client.get(s.local(0), "/plain")).body(), "in the clear");
        const std::string at = "127.0.0.1:" + std::to_string(s.port(1)) + "/plain";
        EXPECT_EQ((co_await client.get("https://" + at)).body(), "secure");
        // A server of TLS cannot answer what is not encrypted.
        EXPECT_TRUE(co_await error_of(client, asks("http://" + at)));
    }(net.loop, *server));
}

// One side of TLS by hand.
class secure_peer {
public:
    secure_peer(io::context& loop, std::vector<std::string> protocols = {"http/1.1"})
        : stream_(io::tcp::socket(loop), context_of_client(std::move(protocols)), "127.0.0.1") {}
    task<> connect(io::endpoint to) {
        co_await stream_.next().connect(to);
        co_await stream_.handshake();
    }
    task<> send(std::string_view text) {
        co_await stream_.send_all(std::as_bytes(std::span(text)));
    }
    // Receives until the end that TLS has; throws where it has none.
    task<std::string> receive_all() {
        std::string all;
        std::array<char, 4096> some;
        while (const std::size_t n =
                   co_await stream_.receive(std::as_writable_bytes(std::span(some)))) {
            all.append(some.data(), n);
        }
        co_return all;
    }
    tls::stream<>& stream() { return stream_; }

private:
    tls::stream<> stream_;
};

TEST_P(secure_server_on, pipelined_requests_are_answered_in_order_and_end_with_close_notify) {
    running_server server(secure(options_of(GetParam())), routes_of_all_kinds());
    network net(GetParam().backend);
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        secure_peer peer(loop);
        co_await peer.connect(to);
        EXPECT_EQ(peer.stream().agreed().protocol(), "http/1.1");
        co_await peer.send(
            "GET /task HTTP/1.1\r\nHost: a\r\n\r\nGET /plain HTTP/1.1\r\nHost: a\r\n\r\n"
            "GET /close HTTP/1.1\r\nHost: a\r\n\r\n");
        const std::string all = co_await peer.receive_all();
        const std::size_t task = all.find("waited"), plain = all.find("secure");
        EXPECT_LT(task, plain);
        EXPECT_LT(plain, all.find("bye"));
        EXPECT_TRUE(all.ends_with("bye"));
    }(net.loop, server->local()));
}

TEST_P(secure_server_on, a_drain_says_close_notify_to_idle_clients) {
    std::optional<running_server> server(std::in_place, secure(options_of(GetParam())),
                                         routes_of_all_kinds());
    network net(GetParam().backend);
    net.run([](io::context& loop, http::server& s) -> task<> {
        secure_peer first(loop), second(loop);
        for (secure_peer* const peer : {&first, &second}) {
            co_await peer->connect(s.local());
            co_await peer->send("GET /plain HTTP/1.1\r\nHost: a\r\n\r\n");
            std::array<std::byte, 1000> answer;
            EXPECT_NE(co_await peer->stream().receive(answer), 0u);
        }
        s.drain(10s);
        for (secure_peer* const peer : {&first, &second}) {
            EXPECT_EQ(co_await peer->receive_all(), "");
        }
    }(net.loop, **server));
}

TEST_P(secure_server_on, a_body_that_is_cut_off_is_an_error) {
    atomic<int> whole{0}, ended{0};
    http::router r;
    r.post("/read", http::read_body([&](http::request& q) -> task<http::response> {
               const scope_exit count([&] { ended.fetch_add(1, release); });
               while (!(co_await q.incoming().read()).empty()) {
               }
               whole.fetch_add(1, relaxed);
               co_return http::response(204);
           }));
    running_server server(secure(options_of(GetParam())), std::move(r));
    network net(GetParam().backend);
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        for (const bool with_notify : {true, false}) {
            secure_peer peer(loop);
            co_await peer.connect(to);
            co_await peer.send("POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345");
            if (with_notify) co_await peer.stream().shutdown_send();
            peer.stream().next().shutdown_send();
            try {
                EXPECT_EQ(co_await peer.receive_all(), "");
            } catch (const std::system_error&) {  // its end may come without close_notify
            }
        }
    }(net.loop, server->local()));
    while (ended.load(acquire) != 2) std::this_thread::yield();
    EXPECT_EQ(whole.load(relaxed), 0);
}

TEST_P(secure_server_on, a_target_in_the_clear_is_misdirected) {
    running_server server(secure(options_of(GetParam())), routes_of_all_kinds());
    network net(GetParam().backend);
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        secure_peer peer(loop);
        co_await peer.connect(to);
        co_await peer.send(
            "GET https://a/plain HTTP/1.1\r\nHost: a\r\n\r\n"
            "GET http://a/plain HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        const std::string all = co_await peer.receive_all();
        EXPECT_TRUE(all.starts_with("HTTP/1.1 200 "));
        EXPECT_NE(all.find("HTTP/1.1 421 "), all.npos);
    }(net.loop, server->local()));
}

class secure_server : public testing::TestWithParam<way> {};
constexpr way single_ways[] = {every_way[0], every_way[1]};
INSTANTIATE_TEST_SUITE_P(ways, secure_server, testing::ValuesIn(single_ways), name_of_way);

TEST_P(secure_server, a_protocol_that_is_not_http_1_ends_the_connection) {
    http::server_options o = options_of(GetParam());
    o.security = context_of_server("IP:127.0.0.1", {"h2", "http/1.1"});
    running_server server(std::move(o), routes_of_all_kinds());
    network net(GetParam().backend);
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        secure_peer peer(loop, {"h2"});
        bool ended = false;
        try {
            co_await peer.connect(to);
            ended = (co_await peer.receive_all()).empty();
        } catch (const std::system_error&) {
            ended = true;
        }
        EXPECT_TRUE(ended);
    }(net.loop, server->local()));
    EXPECT_EQ(server->statistics().requests, 0u);
}

TEST_P(secure_server, connections_keep_the_certificate_that_they_began_with) {
    const auto slot = std::make_shared<tls::server_context_slot>(context_of_server("DNS:old"));
    http::server_options o = options_of(GetParam());
    o.security = tls::server_security_of(slot);
    running_server server(std::move(o), routes_of_all_kinds());
    network net(GetParam().backend);
    net.run([](io::context& loop, io::endpoint to, tls::server_context_slot& context) -> task<> {
        http::client client(loop, secure_client());
        http::client_request old = asks("https://old/plain");
        old.to = to;
        EXPECT_EQ((co_await client.send(old)).body(), "secure");
        context.set(context_of_server("DNS:new"));
        EXPECT_EQ((co_await client.send(old)).body(), "secure");  // on the kept connection
        http::client_request fresh = asks("https://new/plain");
        fresh.to = to;
        EXPECT_EQ((co_await client.send(fresh)).body(), "secure");
        EXPECT_EQ(client.connections_made(), 2u);
        client.close_idle();
        EXPECT_EQ(co_await error_of(client, old), tls::errc::wrong_host);
    }(net.loop, server->local(), *slot));
}

TEST_P(secure_server, a_request_in_the_clear_ends_the_connection_and_is_not_answered) {
    running_server server(secure(options_of(GetParam())), routes_of_all_kinds());
    for (const std::string_view sent : {"GET /plain HTTP/1.1\r\nHost: a\r\n\r\n",
                                        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\n", "\x16"}) {
        client peer(server.port());
        ASSERT_TRUE(peer.send(sent));
        peer.finish_sending();
        bool reset = true;
        const std::string got = peer.receive_all(&reset);
        EXPECT_FALSE(reset);
        // Nothing, or an alert in the clear: it has 7 bytes.
        EXPECT_TRUE(got.empty() || (got[0] == 21 && got.size() == 7)) << got;
    }
    EXPECT_EQ(server->statistics().requests, 0u);
}

TEST_P(secure_server, a_hello_of_tls_where_nothing_is_encrypted_is_answered_with_400) {
    running_server server(options_of(GetParam()), routes_of_all_kinds());
    tls::engine engine(context_of_client(), "localhost");
    std::string room(tls::engine::room_min, '\0');
    engine.output(std::as_writable_bytes(std::span(room)));
    ASSERT_EQ(engine.handshake().what, tls::step::needs_input);
    client peer(server.port());
    ASSERT_TRUE(peer.send(std::string_view(room).substr(0, engine.written())));
    bool reset = true;
    EXPECT_TRUE(has_status(peer.receive_all(&reset), 400));
    EXPECT_FALSE(reset);
}

TEST_P(secure_server, a_connection_counts_for_its_address_before_it_has_shaken_hands) {
    http::server_options o = secure(options_of(GetParam()));
    o.connections_per_address_max = 2;
    running_server server(std::move(o), routes_of_all_kinds());
    const client silent[] = {client(server.port()), client(server.port())};
    client third(server.port());
    EXPECT_EQ(third.receive_all(), "");  // it is closed without a word in the clear
    EXPECT_EQ(server->statistics().refused, 1u);
}

TEST_P(secure_server_on, a_websocket_echoes) {
    http::router r;
    r.get("/", http::websocket_handler([](http::websocket& socket) -> task<> {
              while (const auto m = co_await socket.receive()) co_await socket.send(*m);
          }));
    running_server server(secure(options_of(GetParam())), std::move(r));
    network net(GetParam().backend);
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        io::tcp::socket socket(loop);
        co_await socket.connect(to);
        tls::stream stream(std::move(socket), context_of_client(), "localhost");
        co_await stream.handshake();
        const std::string ask = upgrade_request() + text_frame("over TLS") + close_frame(1000);
        co_await stream.send_all(std::as_bytes(std::span(ask)));
        std::string all;
        std::array<std::byte, 4096> buffer;
        while (const std::size_t n = co_await stream.receive(buffer)) {
            all.append(reinterpret_cast<const char*>(buffer.data()), n);
        }
        EXPECT_TRUE(all.ends_with("\x81\x08over TLS\x88\x02\x03\xe8")) << all;
    }(net.loop, server->local()));
}

}  // namespace
