// One side of TLS by OpenSSL over a blocking socket: it ends in ways that a tls::stream does not.
#pragma once

#include "client.hpp"
#include "secure_parts.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>

namespace coppice::test {

using openssl_context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

// A client that verifies nothing; nothing newer than `version`.
inline openssl_context openssl_client(int version) {
    openssl_context made(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
    SSL_CTX_set_max_proto_version(made.get(), version);
    return made;
}
inline openssl_context openssl_server(int version) {
    openssl_context made(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
    const tls::certificate own = the_authority().issue({.names = "IP:127.0.0.1"});
    const auto memory = [](const std::string& pem) {
        return std::unique_ptr<BIO, decltype(&BIO_free)>(
            BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
    };
    X509* const shown = PEM_read_bio_X509(memory(own.chain).get(), nullptr, nullptr, nullptr);
    EVP_PKEY* const key = PEM_read_bio_PrivateKey(memory(own.key).get(), nullptr, nullptr, nullptr);
    EXPECT_EQ(SSL_CTX_use_certificate(made.get(), shown), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(made.get(), key), 1);
    X509_free(shown);
    EVP_PKEY_free(key);
    SSL_CTX_set_max_proto_version(made.get(), version);
    return made;
}

// What a side does when it sends nothing more.
enum class ending { notify_and_fin, fin, notify, reset };
inline constexpr ending every_ending[] = {ending::notify_and_fin, ending::fin, ending::notify,
                                          ending::reset};
inline const char* name_of(ending e) {
    static constexpr const char* names[] = {"close_notify and FIN", "FIN", "close_notify", "reset"};
    return names[static_cast<int>(e)];
}

inline std::string name_of_ring_and_version(
    const testing::TestParamInfo<std::tuple<io::backend, int>>& instance) {
    const auto [ring, version] = instance.param;
    return std::string(ring == io::backend::epoll ? "epoll" : "uring") +
           (version == TLS1_2_VERSION ? "_tls_1_2" : "_tls_1_3");
}

// Every wait is bounded, as in client.
class openssl_peer {
public:
    // A client of the server at this port. After the handshake it sends by flush() alone.
    openssl_peer(const openssl_context& context, std::uint16_t port)
        : openssl_peer(context, client(port).fd()) {
        EXPECT_EQ(call(SSL_connect), 1);
        write_to_memory();
    }
    // A server; has a duplicate of the descriptor.
    openssl_peer(const openssl_context& context, const accepted& a) : openssl_peer(context, a.fd) {
        EXPECT_EQ(call(SSL_accept), 1);
        write_to_memory();
    }
    openssl_peer(const openssl_peer&) = delete;
    ~openssl_peer() { close(); }

    void send(std::string_view text) {
        EXPECT_GT(call(SSL_write, text.data(), static_cast<int>(text.size())), 0);
        flush();
    }
    // Ends its sending. `junk` follows in the same segment, not encrypted.
    void end(ending how, std::string_view junk = {}) {
        if (how == ending::notify || how == ending::notify_and_fin) (void)call(SSL_shutdown);
        flush(junk);
        if (how == ending::fin || how == ending::notify_and_fin) ::shutdown(fd_, SHUT_WR);
        if (how != ending::reset) return;
        // A reset destroys what has not arrived.
        int unread = 1;
        while (::ioctl(fd_, SIOCOUTQ, &unread) == 0 && unread != 0) std::this_thread::yield();
        const linger now{1, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        close();
    }
    // Receives what is in the next record.
    std::string receive_piece() {
        std::string piece;
        (void)receive_some(piece);
        return piece;
    }
    // Receives until the text ends so, or nothing more comes.
    std::string receive_until(std::string_view last) {
        std::string all;
        while (!all.ends_with(last) && receive_some(all)) {
        }
        return all;
    }
    // Receives until the end, which must be a close_notify and a FIN.
    std::string receive_to_end() {
        std::string all;
        while (receive_some(all)) {
        }
        EXPECT_EQ(end_, SSL_ERROR_ZERO_RETURN);
        char more = 0;
        ssize_t n = 0;
        do {
            n = ::recv(fd_, &more, 1, 0);
        } while (n < 0 && errno == EINTR);
        EXPECT_EQ(n, 0);
        return all;
    }
    // Receives and drops what comes, whatever its end is.
    void drop_all() {
        std::string all;
        while (receive_some(all)) all.clear();
    }

private:
    openssl_peer(const openssl_context& context, int fd)
        : fd_(::dup(fd)), ssl_(SSL_new(context.get()), &SSL_free) {
        SSL_set_fd(ssl_.get(), fd_);
        // What the other side sends is soon more than fits.
        const int bytes = 512 * 1024;
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    }
    // Calls a function of OpenSSL, again if a signal has interrupted it; end_ says how it ended.
    template <class... Args>
    int call(int (*function)(SSL*, Args...), std::type_identity_t<Args>... args) {
        for (;;) {
            ERR_clear_error();
            errno = 0;
            const int returned = function(ssl_.get(), args...);
            end_ = SSL_get_error(ssl_.get(), returned);
            if (end_ != SSL_ERROR_WANT_READ || errno != EINTR) return returned;
        }
    }
    void write_to_memory() { SSL_set0_wbio(ssl_.get(), BIO_new(BIO_s_mem())); }
    void flush(std::string_view more = {}) {
        std::string all = text_in(SSL_get_wbio(ssl_.get()));
        (void)BIO_reset(SSL_get_wbio(ssl_.get()));
        all += more;
        EXPECT_TRUE(accepted{fd_}.send(all));
    }
    bool receive_some(std::string& to) {
        char some[16 * 1024];
        const int n = call(SSL_read, some, static_cast<int>(sizeof some));
        if (n > 0) to.append(some, static_cast<std::size_t>(n));
        return n > 0;
    }
    void close() {
        if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    }

    int fd_;
    std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
    int end_ = 0;
};

}  // namespace coppice::test
