// What an http::server does when a client of TLS ends its sending, or resets, at any moment.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/http/websocket.hpp>

#include "openssl_peer.hpp"
#include "websocket_client.hpp"

#include <future>
#include <system_error>
#include <tuple>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;
using http::request;
using http::response;

// Does not fit into the buffers of both kernels.
constexpr std::size_t big_bytes = std::size_t{6} * 1024 * 1024;

std::string asking_for(std::string_view path) {
    return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n";
}

class client_end : public testing::TestWithParam<std::tuple<io::backend, int>> {
protected:
    http::router routes() {
        http::router r;
        r.get("/plain", [](request&) { return response::text("plain"); })
            .get("/close", [](request&) { return response::text("bye").close(); })
            .get("/big", [](request&) { return response::text(std::string(big_bytes, 'x')); })
            .get("/short",
                 [this](request& q) -> task<response> {
                     enter();
                     co_await http::pause(q, 20ms);  // the end comes meanwhile
                     co_return response::text("short");
                 })
            .get("/waits",
                 [this](request& q) -> task<response> {
                     enter();
                     co_await http::pause(q, 1h);
                     co_return response::text("never");
                 })
            .get("/stream",
                 [this](request&) {
                     const auto produce = [this](http::body_writer& out) -> task<> {
                         const std::string piece(16 * 1024, 'x');
                         while (out.written() != big_bytes) {
                             try {
                                 co_await execution::timeout(out.write(piece), 20ms);
                             } catch (const std::system_error&) {  // what was taken is sent later
                                 blocked.store(true, release);
                             }
                         }
                         blocked.store(true, release);  // a socket that takes all
                         co_await out.flush();
                     };
                     return response(200).body(http::stream(produce));
                 })
            .post("/collect",
                  [this](request&) {
                      enter();
                      return response::text("never");
                  })
            .post("/read", http::read_body([this](request& q) -> task<response> {
                      while (!(co_await q.incoming().read()).empty()) enter();
                      co_return response::text("never");
                  }));
        return r;
    }
    http::server_options options() const {
        http::server_options o = secure(options_of(every_way[0]));
        o.backend = std::get<0>(GetParam());
        return o;
    }
    void enter() { entered.fetch_add(1, release); }
    void wait_for_entry() {
        while (entered.load(acquire) == 0) std::this_thread::yield();
        entered.store(0, relaxed);
    }
    static void wait_for_end(running_server& s) {
        while (s->statistics().open != 0) std::this_thread::yield();
    }
    openssl_context context = openssl_client(std::get<1>(GetParam()));
    atomic<int> entered{0};
    atomic<bool> blocked{false};  // the client has not read for a while
};
INSTANTIATE_TEST_SUITE_P(rings, client_end,
                         testing::Combine(testing::Values(io::backend::epoll, io::backend::uring),
                                          testing::Values(TLS1_2_VERSION, TLS1_3_VERSION)),
                         name_of_ring_and_version);

TEST_P(client_end, without_an_open_request_is_answered_with_the_servers_end) {
    running_server server(options(), routes());
    for (const bool asks_first : {false, true}) {
        for (const ending how : every_ending) {
            SCOPED_TRACE(name_of(how));
            openssl_peer peer(context, server.port());
            if (asks_first) {
                peer.send(asking_for("/plain"));
                EXPECT_TRUE(peer.receive_until("plain").ends_with("plain"));
            }
            peer.end(how);
            if (how != ending::reset) EXPECT_EQ(peer.receive_to_end(), "");
            wait_for_end(server);
        }
    }
    EXPECT_EQ(server->statistics().requests, 4u);
}

TEST_P(client_end, in_a_head_or_in_a_body_is_not_answered_and_stops_the_bodys_reader) {
    running_server server(options(), routes());
    for (const ending how : every_ending) {
        SCOPED_TRACE(name_of(how));
        for (const std::string_view part :
             {"GET /plain HT", "GET /plain HTTP/1.1\r\nHost: a\r\n",
              "POST /collect HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345",
              "POST /collect HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
              "chunked\r\n\r\n5\r\n12345\r\n",
              "POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345",
              "POST /read HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
              "chunked\r\n\r\n5\r\n12345\r\n"}) {
            const std::uint64_t stopped = server->statistics().stopped;
            openssl_peer peer(context, server.port());
            peer.send(part);
            const bool reads = part.starts_with("POST /read");
            if (reads) wait_for_entry();
            peer.end(how);
            if (how != ending::reset) EXPECT_EQ(peer.receive_to_end(), "");
            wait_for_end(server);
            EXPECT_EQ(server->statistics().stopped, stopped + (reads ? 1 : 0)) << part;
        }
    }
    EXPECT_EQ(entered.load(acquire), 0);
    EXPECT_EQ(server->statistics().requests, 0u);
}

TEST_P(client_end, stops_no_handler_of_a_whole_request_unless_it_is_a_reset) {
    running_server server(options(), routes());
    for (const ending how : every_ending) {
        SCOPED_TRACE(name_of(how));
        openssl_peer peer(context, server.port());
        if (how == ending::reset) {
            peer.send(asking_for("/waits"));
            wait_for_entry();
            peer.end(how);
        } else {
            peer.send(asking_for("/short") + asking_for("/plain") + "GET /never HT");
            wait_for_entry();
            peer.end(how);
            const std::string all = peer.receive_to_end();
            EXPECT_NE(all.find("short"), all.npos);
            EXPECT_TRUE(all.ends_with("plain")) << all;
        }
        wait_for_end(server);
    }
    EXPECT_EQ(server->statistics().stopped, 1u);
    EXPECT_EQ(server->statistics().requests, 6u);
}

TEST_P(client_end, stops_a_handler_if_the_options_say_so) {
    http::server_options o = options();
    o.end_of_input_stops = true;
    running_server server(std::move(o), routes());
    for (const ending how : every_ending) {
        SCOPED_TRACE(name_of(how));
        openssl_peer peer(context, server.port());
        peer.send(asking_for("/waits"));
        wait_for_entry();
        peer.end(how);
        if (how != ending::reset) EXPECT_EQ(peer.receive_to_end(), "");
        wait_for_end(server);
    }
    EXPECT_EQ(server->statistics().stopped, 4u);
}

TEST_P(client_end, leaves_an_answer_whole_that_the_client_does_not_read_yet) {
    running_server server(options(), routes());
    for (const std::string_view path : {"/big", "/stream"}) {
        for (const ending how : every_ending) {
            SCOPED_TRACE(std::string(path) + " " + name_of(how));
            const std::uint64_t stopped = server->statistics().stopped;
            openssl_peer peer(context, server.port());
            blocked.store(false, relaxed);
            peer.send(asking_for(path));
            EXPECT_TRUE(peer.receive_piece().starts_with("HTTP/1.1 200 OK"));
            while (path == "/stream" && !blocked.load(acquire)) std::this_thread::yield();
            peer.end(how);
            if (how != ending::reset) {
                const std::string all = peer.receive_to_end();
                EXPECT_GE(all.size(), big_bytes - 16 * 1024);
                EXPECT_TRUE(all.ends_with(path == "/stream" ? "x\r\n0\r\n\r\n" : "x"));
            }
            wait_for_end(server);
            const bool told = how == ending::reset && path == "/stream";
            EXPECT_EQ(server->statistics().stopped, stopped + (told ? 1 : 0));
        }
    }
    EXPECT_EQ(server->statistics().timed_out, 0u);
}

TEST_P(client_end, after_the_last_answer_ends_the_connection) {
    running_server server(options(), routes());
    for (const ending how : every_ending) {
        SCOPED_TRACE(name_of(how));
        openssl_peer peer(context, server.port());
        peer.send(asking_for("/close"));
        EXPECT_TRUE(peer.receive_to_end().ends_with("bye"));
        peer.end(how);
        wait_for_end(server);
    }
    EXPECT_EQ(server->statistics().timed_out, 0u);
}

TEST_P(client_end, what_follows_close_notify_is_ignored) {
    running_server server(options(), routes());
    for (const ending how : {ending::notify_and_fin, ending::notify}) {
        for (const bool asks_first : {false, true}) {
            openssl_peer peer(context, server.port());
            if (asks_first) {
                peer.send(asking_for("/short"));
                wait_for_entry();
            }
            peer.end(how, std::string("\x17\x03\x03\x00\x05xxxxx", 10) + asking_for("/plain"));
            EXPECT_EQ(peer.receive_to_end().ends_with("short"), asks_first);
            wait_for_end(server);
        }
    }
    EXPECT_EQ(server->statistics().requests, 2u);
    EXPECT_EQ(server->statistics().stopped, 0u);
}

TEST_P(client_end, of_a_websocket_is_seen_by_receive_as_in_the_clear) {
    std::promise<unsigned> code;
    http::router r;
    r.get("/", http::websocket_handler([&](http::websocket& socket) -> task<> {
              while (const auto m = co_await socket.receive()) co_await socket.send(*m);
              code.set_value(socket.close_code());
          }));
    running_server server(options(), std::move(r));
    for (const ending how : every_ending) {
        for (const bool in_a_frame : {false, true}) {
            SCOPED_TRACE(name_of(how));
            code = {};
            std::future<unsigned> received = code.get_future();
            openssl_peer peer(context, server.port());
            peer.send(upgrade_request() + text_frame("hello"));
            EXPECT_TRUE(peer.receive_until("hello").ends_with("hello"));
            if (in_a_frame) peer.send(text_frame(std::string(100, 'x')).substr(0, 50));
            peer.end(how);
            EXPECT_EQ(received.get(), 1006u);
            if (how != ending::reset) peer.drop_all();
            wait_for_end(server);
        }
    }
}

}  // namespace
