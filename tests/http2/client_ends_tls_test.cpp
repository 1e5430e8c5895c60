// What the server does when a client of HTTP/2 over TLS ends its sending, or resets.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/http2.hpp>

#include "../http/openssl_peer.hpp"
#include "client.hpp"

#include <tuple>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;

class http2_client_end : public testing::TestWithParam<std::tuple<io::backend, int>> {};
INSTANTIATE_TEST_SUITE_P(rings, http2_client_end,
                         testing::Combine(testing::Values(io::backend::epoll, io::backend::uring),
                                          testing::Values(TLS1_2_VERSION, TLS1_3_VERSION)),
                         name_of_ring_and_version);

TEST_P(http2_client_end, ends_the_connection_and_stops_its_handlers) {
    atomic<int> entered{0}, ended{0};
    http::server_options o = options_of(every_way[0]);
    o.backend = std::get<0>(GetParam());
    o.http2 = http2::for_server();
    o.security = context_of_server("IP:127.0.0.1", {"h2"});
    http::router r;
    r.get("/", [&](http::request& q) -> task<http::response> {
        const scope_exit count([&] { ended.fetch_add(1, release); });
        entered.fetch_add(1, release);
        co_await http::pause(q, std::chrono::hours(1));
        co_return http::response::text("never");
    });
    running_server server(std::move(o), std::move(r));
    const openssl_context context = openssl_client(std::get<1>(GetParam()));
    const unsigned char h2[] = {2, 'h', '2'};
    ASSERT_EQ(SSL_CTX_set_alpn_protos(context.get(), h2, sizeof h2), 0);
    const std::string ask =
        frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM | NGHTTP2_FLAG_END_HEADERS, 1,
              literal(":method", "GET") + literal(":scheme", "https") + literal(":path", "/") +
                  literal(":authority", "a"));
    int round = 0;
    for (const ending how : every_ending) {
        for (const bool asks : {false, true}) {
            SCOPED_TRACE(name_of(how));
            openssl_peer peer(context, server.port());
            peer.send(asks ? preface() + ask : preface());
            if (asks) ++round;
            while (entered.load(acquire) != round) std::this_thread::yield();
            peer.end(how);
            if (how != ending::reset) peer.drop_all();
            while (server->statistics().open != 0) std::this_thread::yield();
        }
    }
    while (ended.load(acquire) != round) std::this_thread::yield();
    EXPECT_EQ(server->statistics().timed_out, 0u);
}

}  // namespace
