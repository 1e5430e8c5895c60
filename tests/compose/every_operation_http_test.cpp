// The client's requests in every phase, and the waits of handlers, stopped in every way.
#include <coppice/http.hpp>
#include <coppice/io/simulation.hpp>

#include "../io/rings.hpp"
#include "every_operation.hpp"

#include <unistd.h>
#include <array>
#include <memory>
#include <string>

namespace {

using namespace coppice;
using namespace coppice::test;
using namespace std::chrono_literals;
using http::request;
using http::response;

using part = std::function<task<>(io::context& loop, io::endpoint to)>;

// A server, and a test body that runs on the same loop and then ends the server.
class every_operation_of_http : public testing::TestWithParam<io::backend> {
protected:
    void serve(http::router routes, part beside, io::endpoint at = io::loopback(0)) {
        io::simulation world(7, io::simulated_faults::none());
        std::optional<http::server> server;
        bool ended = false;
        ex::counting_scope scope;
        const auto run = [&](io::context& loop) -> task<> {
            co_await beside(loop, server->local());
            ended = true;
            server->drain(0s);
        };
        http::server_options o;
        o.endpoint = at;
        o.model = http::model::single;
        if (real) {
            o.backend = GetParam();
        } else {
            o.simulation = &world;
        }
        o.on_loop = [&](io::context& loop) {
            ex::spawn(ex::starts_on(loop.get_scheduler(), run(loop)) |
                          ex::upon_error([](auto&&) noexcept { std::abort(); }),
                      scope.get_token());
        };
        server.emplace(std::move(o), std::move(routes));
        server->run();
        EXPECT_TRUE(ended);
        this_thread::sync_wait(scope.join());
    }
    const bool real = GetParam() != io::backend::sim;
};
INSTANTIATE_TEST_SUITE_P(rings, every_operation_of_http, test::all_rings, test::ring_name);

http::router plain_routes() {
    http::router routes;
    routes.get("/plain", [](request&) { return response::text("plain"); })
        .get("/stalls", [](request& q) {
            const auto produce = [loop = &q.loop()](http::body_writer& out) -> task<> {
                co_await out.write("a part");
                co_await out.flush();
                co_await io::timer(*loop).wait_for(1h);
            };
            return response(200).body(http::stream(produce));
        });
    return routes;
}

// A request that waits in one of its phases.
enum class phase { head, body, sink, sending, source, writing };
constexpr phase phases[] = {phase::head,    phase::body,   phase::sink,
                            phase::sending, phase::source, phase::writing};
const std::string large(16u << 20, 'x');

http::client_request waiting_in(phase p, io::context& loop, io::endpoint to, io::endpoint silent) {
    http::client_request r;
    r.to = p == phase::body || p == phase::sink ? to : silent;
    r.target = p == phase::body ? "/stalls" : "/plain";
    if (p == phase::sink) {
        r.sink = [&loop](std::string_view) -> task<> { co_await io::timer(loop).wait_for(1h); };
    } else if (p == phase::sending) {
        r.method = "POST";
        r.body = large;
    } else if (p == phase::source || p == phase::writing) {
        const bool waits = p == phase::source;
        r.method = "POST";
        r.source = http::stream([&loop, waits](http::body_writer& out) -> task<> {
            co_await out.write("a part");
            if (waits) co_await io::timer(loop).wait_for(1h);
            for (;;) co_await out.write(large);
        });
    }
    return r;
}

TEST_P(every_operation_of_http, requests_end_by_every_kind_of_stop) {
    serve(plain_routes(), [this](io::context& loop, io::endpoint to) -> task<> {
        http::client client(loop);
        io::tcp::acceptor silent(loop, io::loopback(0));
        const io::endpoint nobody = silent.local();
        co_await stop_in_every_way(loop,
                                   waits_never_again(
                                       "client::get", [&] { return client.get(nobody, "/"); },
                                       [&] { return client.get(to, "/plain"); }),
                                   real);
        co_await stop_in_every_way(
            loop,
            waits_never_again(
                "client::post", [&] { return client.post(nobody, "/", "body"); },
                [&] { return client.get(to, "/plain"); }),
            real);
        for (const phase p : phases) {
            const std::string name = "client::send, phase " + std::to_string(static_cast<int>(p));
            co_await stop_in_every_way(
                loop,
                waits_never_again(
                    name, [&, p] { return client.send(waiting_in(p, loop, to, nobody)); },
                    [&] { return client.get(to, "/plain"); }),
                real);
        }
        EXPECT_LE(client.idle_connections(), 1u);
    });
}

TEST_P(every_operation_of_http, reading_an_answer_by_pieces_ends_by_every_kind_of_stop) {
    bool more = false;
    http::router routes;
    routes.get("/", [&more](request& q) {
        const auto produce = [loop = &q.loop(), &more](http::body_writer& out) -> task<> {
            io::timer timer(*loop);
            for (;;) {
                co_await out.write("a piece");
                co_await out.flush();
                while (!more) co_await timer.wait_for(1ms);
                more = false;
            }
        };
        return response(200).body(http::stream(produce));
    });
    serve(std::move(routes), [this, &more](io::context& loop, io::endpoint to) -> task<> {
        http::client client(loop);
        io::tcp::acceptor silent(loop, io::loopback(0));
        const io::endpoint nobody = silent.local();
        const auto asks = [](io::endpoint where) {
            http::client_request r;
            r.to = where;
            return r;
        };
        http::client_answer answer = co_await client.open(asks(to));
        const std::string_view first = co_await answer.read();
        EXPECT_EQ(first, "a piece");
        co_await stop_in_every_way(loop,
                                   waits(
                                       "client_answer::read", [&] { return answer.read(); },
                                       [&]() -> task<> {
                                           more = true;
                                           co_return;
                                       }),
                                   real);
        more = true;
        const std::string_view last = co_await answer.read();
        EXPECT_EQ(last, "a piece");
        EXPECT_EQ(client.connections_made(), 1u);
        more = true;
        co_await stop_in_every_way(loop,
                                   waits_never_again(
                                       "client::open", [&] { return client.open(asks(nobody)); },
                                       [&] { return client.open(asks(to)); }),
                                   real);
        // A request that waits for a connection to its host.
        http::client_options one;
        one.connections_per_host_max = 1;
        http::client limited(loop, one);
        std::optional<http::client_answer> holds(co_await limited.open(asks(to)));
        co_await stop_in_every_way(
            loop,
            waits(
                "client::open, in its turn", [&] { return limited.open(asks(to)); },
                [&]() -> task<> {
                    holds.reset();
                    co_return;
                }),
            real);
        EXPECT_EQ(limited.connections_made(), 2u);
    });
}

TEST_P(every_operation_of_http, a_handlers_pause_ends_by_every_kind_of_stop) {
    http::router routes;
    routes.get("/", [this](request& q) -> task<response> {
        co_await stop_in_every_way(
            q.loop(),
            waits_never_again(
                "pause", [&q] { return http::pause(q, 1h); }, [&q] { return http::pause(q, 1ms); }),
            real);
        co_return response::text("whole");
    });
    serve(std::move(routes), [](io::context& loop, io::endpoint to) -> task<> {
        http::client client(loop);
        const http::client_response answer = co_await client.get(to, "/");
        EXPECT_EQ(answer.body(), "whole");
    });
}

// The client sends its body when the handler has been stopped in every way.
TEST_P(every_operation_of_http, reading_a_body_ends_by_every_kind_of_stop) {
    std::optional<io::tcp::socket> client;
    http::router routes;
    routes.post("/", http::read_body([&](request& q) -> task<response> {
                    co_await stop_in_every_way(
                        q.loop(),
                        waits(
                            "body_reader::read", [&q] { return q.incoming().read(); },
                            [&]() -> task<> { co_await client->send_all(bytes_of("x")); }),
                        real);
                    const std::string_view end = co_await q.incoming().read();
                    EXPECT_EQ(end, "");
                    co_return response::text("whole");
                }));
    serve(std::move(routes), [&](io::context& loop, io::endpoint to) -> task<> {
        client.emplace(loop);
        co_await client->connect(to);
        for (int i = 0; i != 2; ++i) {  // the connection can be used again
            co_await client->send_all(
                bytes_of("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"));
            std::string answer;
            std::array<std::byte, 512> memory;
            while (!answer.ends_with("whole")) {
                const std::size_t n = co_await client->receive(memory);
                if (n == 0) break;
                answer += text_of(std::span(memory).first(n));
            }
            EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK")) << answer;
        }
        client.reset();
    });
}

// The client sends a message when the handler has been stopped in every way.
TEST_P(every_operation_of_http, receiving_a_message_ends_by_every_kind_of_stop) {
    std::optional<io::tcp::socket> client;
    http::router routes;
    routes.get("/", http::websocket_handler([&](http::websocket& socket) -> task<> {
                   co_await stop_in_every_way(
                       socket.loop(),
                       waits(
                           "websocket::receive", [&socket] { return socket.receive(); },
                           [&]() -> task<> {
                               constexpr std::string_view x("\x81\x81\0\0\0\0x", 7);
                               co_await client->send_all(bytes_of(x));
                           }),
                       real);
               }));
    serve(std::move(routes), [&](io::context& loop, io::endpoint to) -> task<> {
        client.emplace(loop);
        co_await client->connect(to);
        co_await client->send_all(
            bytes_of("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: "
                     "Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
                     "dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"));
        std::string answer;
        std::array<std::byte, 512> memory;
        while (!answer.ends_with("\x88\x02\x03\xe8")) {
            const std::size_t n = co_await client->receive(memory);
            if (n == 0) break;
            answer += text_of(std::span(memory).first(n));
        }
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 101 ")) << answer;
        EXPECT_TRUE(answer.ends_with("\x88\x02\x03\xe8"));
        client.reset();
    });
}

// The client sends the rest of a form when the handler has been stopped in every way.
TEST_P(every_operation_of_http, reading_a_form_ends_by_every_kind_of_stop) {
    const std::string begin = "--B\r\nContent-Disposition: form-data; name=a\r\n\r\n";
    const std::string rest = "x\r\n--B--\r\n";
    std::optional<io::tcp::socket> client;
    const auto send = [&](std::string_view text) {
        return [&client, text]() -> task<> { co_await client->send_all(bytes_of(text)); };
    };
    http::router routes;
    routes.post(
        "/", http::read_body([&](request& q) -> task<response> {
            http::multipart_reader parts(q);
            co_await stop_in_every_way(
                q.loop(),
                waits("multipart_reader::next", [&] { return parts.next(); }, send(begin)), real);
            std::string_view piece;
            const auto read = [&]() -> task<> { piece = co_await parts.read(); };
            co_await stop_in_every_way(q.loop(), waits("multipart_reader::read", read, send(rest)),
                                       real);
            EXPECT_EQ(piece, "x");
            const std::string_view end = co_await parts.read();
            EXPECT_EQ(end, "");
            const http::multipart_head* const last = co_await parts.next();
            EXPECT_EQ(last, nullptr);
            co_return response::text("whole");
        }));
    // A stop loses the parts that these keep. Here no part has arrived yet.
    routes.post(
        "/kept", http::read_body([&](request& q) -> task<response> {
            const auto both = [&]() -> task<> {
                co_await client->send_all(bytes_of(begin));
                co_await client->send_all(bytes_of(rest));
            };
            co_await stop_in_every_way(
                q.loop(),
                waits("read_multipart", [&] { return http::read_multipart(q); }, both), real);
            co_return response::text("whole");
        }));
    serve(std::move(routes), [&](io::context& loop, io::endpoint to) -> task<> {
        const std::string length = std::to_string(begin.size() + rest.size());
        for (const char* const path : {"/", "/kept"}) {
            client.emplace(loop);
            co_await client->connect(to);
            const std::string head = std::string("POST ") + path +
                                     " HTTP/1.1\r\nHost: a\r\nContent-Length: " + length +
                                     "\r\nContent-Type: multipart/form-data; boundary=B\r\n\r\n";
            co_await client->send_all(bytes_of(head));
            std::string answer;
            std::array<std::byte, 512> memory;
            while (!answer.ends_with("whole")) {
                const std::size_t n = co_await client->receive(memory);
                if (n == 0) break;
                answer += text_of(std::span(memory).first(n));
            }
            EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK")) << answer;
        }
        client.reset();
    });
}

// No accepted byte is lost, and the framing holds: the client receives one whole body.
TEST_P(every_operation_of_http, writing_a_body_ends_by_every_kind_of_stop) {
    // A Unix socket, because bytes that the client does not read fill a buffer of known size.
    const std::string name = "@coppice-every-operation-http-" + std::to_string(::getpid());
    bool reading = false;
    http::router routes;
    routes.get("/", [&](request& q) {
        const auto produce = [&, loop = &q.loop()](http::body_writer& out) -> task<> {
            const std::string piece(16 * 1024, 'x');
            const auto fill = [&]() -> task<> {
                reading = false;
                for (bool full = false; !full;)
                    full = co_await times_out(any_operation(out.write(piece)));
            };
            const auto read = [&]() -> task<> {
                reading = true;
                co_return;
            };
            co_await fill();
            co_await stop_in_every_way(
                *loop, waits("body_writer::write", [&] { return out.write(piece); }, read), real);
            co_await fill();
            co_await stop_in_every_way(
                *loop, waits("body_writer::flush", [&] { return out.flush(); }, read), real);
            co_await out.write("the end");
        };
        return response(200).body(http::stream(produce));
    });
    routes.get("/plain", [](request&) { return response::text("plain"); });
    serve(
        std::move(routes),
        [&](io::context& loop, io::endpoint to) -> task<> {
            http::client client(loop);
            http::client_request r;
            r.to = to;
            bool good = true;
            std::string last;
            r.sink = [&](std::string_view received) -> task<> {
                io::timer timer(loop);
                while (!reading) co_await timer.wait_for(1ms);
                const std::size_t end = received.find_first_not_of('x');
                good = good && (end == received.npos || last.size() < 7);
                if (end != received.npos) last += received.substr(end);
            };
            (void)co_await client.send(std::move(r));
            EXPECT_TRUE(good);
            EXPECT_EQ(last, "the end");
            const http::client_response after = co_await client.get(to, "/plain");
            EXPECT_EQ(after.body(), "plain");
            EXPECT_EQ(client.connections_made(), 1u);
        },
        *io::endpoint::unix_path(name));
}

}  // namespace
