// Messages about keys in the middle of a stream, from peers that flood with them or break them up.
#include "streams.hpp"

#include <gtest/gtest.h>

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/ssl.h>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;

using bytes_of_key = std::vector<unsigned char>;

// HKDF-Expand-Label of RFC 8446 with SHA-256 and no context.
bytes_of_key expand(const bytes_of_key& secret, const std::string& label, std::size_t size) {
    const std::string full = "tls13 " + label;
    std::string info{'\0', static_cast<char>(size), static_cast<char>(full.size())};
    info += full + '\0';
    EVP_KDF* const kdf = EVP_KDF_fetch(nullptr, "HKDF", nullptr);
    EVP_KDF_CTX* const context = EVP_KDF_CTX_new(kdf);
    int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
    char digest[] = "SHA256";
    bytes_of_key key = secret;
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, key.data(), key.size()),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
        OSSL_PARAM_construct_end()};
    bytes_of_key out(size);
    EXPECT_EQ(EVP_KDF_derive(context, out.data(), size, params), 1);
    EVP_KDF_CTX_free(context);
    EVP_KDF_free(kdf);
    return out;
}

// OpenSSL's client, which shakes hands; after that the records are made here, as no TLS library
// would make them.
class wild_client {
public:
    explicit wild_client(io::tcp::socket socket)
        : socket_(std::move(socket)),
          context_(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free),
          ssl_(nullptr, &SSL_free) {
        SSL_CTX_set_ciphersuites(context_.get(), "TLS_AES_128_GCM_SHA256");
        SSL_CTX_set_keylog_callback(context_.get(), &note_secret);
        ssl_.reset(SSL_new(context_.get()));
        SSL_set_app_data(ssl_.get(), this);
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
        key_ = expand(secret_, "key", 16);
        iv_ = expand(secret_, "iv", 12);
    }
    // Sends a record of that type: 22 for a handshake, 23 for bytes.
    task<> send_record(std::string content, char type) {
        content += type;
        const std::string record = seal(content);
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
    static void note_secret(const SSL* ssl, const char* line) {
        const std::string_view text = line;
        if (!text.starts_with("CLIENT_TRAFFIC_SECRET_0 ")) return;
        const std::string hex(text.substr(text.rfind(' ') + 1));
        bytes_of_key& secret = static_cast<wild_client*>(SSL_get_app_data(ssl))->secret_;
        for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
            secret.push_back(static_cast<unsigned char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
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
    std::string seal(const std::string& content) {
        std::string record{'\x17', '\x03', '\x03', '\0', static_cast<char>(content.size() + 16)};
        const auto* const plain = reinterpret_cast<const unsigned char*>(content.data());
        const auto* const head = reinterpret_cast<const unsigned char*>(record.data());
        bytes_of_key nonce = iv_;
        nonce.back() = static_cast<unsigned char>(nonce.back() ^ sequence_++);
        std::vector<unsigned char> sealed(content.size() + 16);
        EVP_CIPHER_CTX* const c = EVP_CIPHER_CTX_new();
        int size = 0;
        EVP_EncryptInit_ex(c, EVP_aes_128_gcm(), nullptr, key_.data(), nonce.data());
        EVP_EncryptUpdate(c, nullptr, &size, head, 5);
        EVP_EncryptUpdate(c, sealed.data(), &size, plain, static_cast<int>(content.size()));
        EVP_EncryptFinal_ex(c, sealed.data() + size, &size);
        EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, 16, sealed.data() + content.size());
        EVP_CIPHER_CTX_free(c);
        record.append(sealed.begin(), sealed.end());
        return record;
    }

    io::tcp::socket socket_;
    std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
    std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
    BIO* in_ = nullptr;
    BIO* out_ = nullptr;
    bytes_of_key secret_, key_, iv_;
    unsigned char sequence_ = 0;
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
