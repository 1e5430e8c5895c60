// Messages about keys in the middle of a stream, from peers that flood with them or break them up.
#include "records.hpp"
#include "streams.hpp"

#include <gtest/gtest.h>

#include <openssl/ssl.h>
#include <array>
#include <memory>
#include <string>

namespace {

using namespace coppice;
using namespace coppice::test;

// OpenSSL's client, which shakes hands; after that the records are made here, as no TLS library
// would make them.
class wild_client {
public:
    explicit wild_client(io::tcp::socket socket)
        : socket_(std::move(socket)),
          context_(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free),
          ssl_(nullptr, &SSL_free) {
        record_maker::watch(*context_);
        ssl_.reset(SSL_new(context_.get()));
        records_.watch(*ssl_);
        in_ = BIO_new(BIO_s_mem());
        out_ = BIO_new(BIO_s_mem());
        SSL_set_bio(ssl_.get(), in_, out_);
        SSL_set_connect_state(ssl_.get());
    }
    task<> shake() {
        while (SSL_do_handshake(ssl_.get()) != 1) {
            co_await flush();
            co_await come();
        }
        co_await flush();
    }
    // Sends a record of that type: 22 for a handshake, 23 for bytes.
    task<> send_record(std::string content, char type) {
        const std::string record = records_.seal(std::move(content), type);
        co_await socket_.send_all(bytes_in(record));
    }
    task<std::string> receive(std::size_t size) {
        std::string text;
        std::array<char, 4000> some;
        while (text.size() < size) {
            const int n = SSL_read(ssl_.get(), some.data(), static_cast<int>(some.size()));
            if (n > 0) {
                text.append(some.data(), static_cast<std::size_t>(n));
            } else {
                co_await come();
            }
        }
        co_return text;
    }
    // Makes records of key updates, each of which asks for one, and then some bytes.
    std::string flood(int updates, std::string_view text) {
        for (int i = 0; i != updates; ++i) {
            SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_REQUESTED);
            SSL_do_handshake(ssl_.get());
        }
        SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size()));
        std::string all = text_in(out_);
        (void)BIO_reset(out_);
        return all;
    }
    io::tcp::socket& socket() { return socket_; }

private:
    task<> flush() {
        const std::string text = text_in(out_);
        (void)BIO_reset(out_);
        co_await socket_.send_all(bytes_in(text));
    }
    task<> come() {
        std::array<char, 4000> some;
        const std::size_t n = co_await socket_.receive(std::as_writable_bytes(std::span(some)));
        BIO_write(in_, some.data(), static_cast<int>(n));
    }

    io::tcp::socket socket_;
    std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
    std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
    BIO* in_ = nullptr;
    BIO* out_ = nullptr;
    record_maker records_;
};

struct wild_pair {
    explicit wild_pair(io::context& loop, const usual& u) : wild_pair(joined_sockets(loop), u) {}
    wild_pair(joined_sockets sockets, const usual& u)
        : client(std::move(sockets.near)),
          server(std::move(sockets.far), tls::server_context(u.server)) {}
    wild_client client;
    tls::stream<> server;
};

const std::string half_update("\x18\x00\x00\x01", 4);  // of a key update that asks for one
const std::string rest_of_update("\x01", 1);

task<> answer(tls::stream<>& server) {
    co_await server.send_all(bytes_in("answer"));
}
task<> some_turns(io::context& loop) {
    for (int i = 0; i != 20; ++i)
        co_await loop.get_scheduler().schedule_after(std::chrono::milliseconds(1));
}

TEST(tls_key_messages, a_send_waits_for_the_rest_of_a_message_beside_a_receive) {
    io::context loop(io::backend::sim);
    wild_pair both(loop, usual());
    ASSERT_TRUE(run_on(loop, ex::when_all(both.client.shake(), both.server.handshake())));
    const auto finish = [&]() -> task<> {
        co_await both.client.send_record(half_update, '\x16');
        co_await some_turns(loop);
        co_await both.client.send_record(rest_of_update, '\x16');
        EXPECT_EQ(co_await both.client.receive(6), "answer");
    };
    const auto serve = [&]() -> task<> {
        std::array<std::byte, 10> bytes;
        const auto late_answer = [&]() -> task<> {
            co_await loop.get_scheduler().schedule_after(std::chrono::milliseconds(8));
            co_await answer(both.server);
        };
        // the receive finds nothing: only the stop of when_any ends it
        co_await ex::when_any(both.server.receive(bytes) | ex::then([](std::size_t) noexcept {}),
                              late_answer());
    };
    ASSERT_TRUE(run_on(loop, ex::when_all(finish(), serve())));
}

TEST(tls_key_messages, a_send_alone_receives_the_rest_of_a_message_itself) {
    io::context loop(io::backend::sim);
    wild_pair both(loop, usual());
    ASSERT_TRUE(run_on(loop, ex::when_all(both.client.shake(), both.server.handshake())));
    std::array<std::byte, 10> bytes;
    const auto half = [&]() -> task<> {
        co_await both.client.send_record(half_update, '\x16');
        co_await some_turns(loop);
    };
    const auto receive = [&]() -> task<> { co_await both.server.receive(bytes); };
    ASSERT_TRUE(run_on(loop, ex::when_any(half(), receive())));  // half of it has come
    const auto finish = [&]() -> task<> {
        co_await some_turns(loop);
        co_await both.client.send_record(rest_of_update, '\x16');
        EXPECT_EQ(co_await both.client.receive(6), "answer");
    };
    ASSERT_TRUE(run_on(loop, ex::when_all(answer(both.server), finish())));
    // and a receive that begins meanwhile waits for it
    ASSERT_TRUE(run_on(loop, both.server.shutdown_send()));
}

TEST(tls_key_messages, a_flood_of_key_updates_beside_much_that_is_sent_loses_nothing) {
    for (const io::backend kind : {io::backend::sim, io::backend::epoll}) {
        io::context loop(kind);
        wild_pair both(loop, usual());
        ASSERT_TRUE(run_on(loop, ex::when_all(both.client.shake(), both.server.handshake())));
        const std::string flood = both.client.flood(2000, "after");
        const std::string much(600'000, 'x');
        const auto send_flood = [&]() -> task<> {
            co_await both.client.socket().send_all(bytes_in(flood));
        };
        const auto take = [&]() -> task<> {
            EXPECT_TRUE(co_await both.client.receive(much.size() + 3) == much + "end");
        };
        const auto take_text = [&]() -> task<> {
            EXPECT_EQ(co_await receive_some(both.server), "after");
        };
        const auto serve = [&]() -> task<> {
            co_await ex::when_all(take_text(), send_text(both.server, much));
            co_await send_text(both.server, "end");
        };
        ASSERT_TRUE(run_on(loop, ex::when_all(send_flood(), take(), serve())));
    }
}

}  // namespace
