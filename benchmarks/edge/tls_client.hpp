// The client of the TLS measurements, by OpenSSL: handshakes, idle connections, and single answers.
#pragma once
// `openssl s_time` is not used: it makes one connection at a time, so that the server sleeps and
// wakes for each message, and it resumes no session of TLS 1.3, whose tickets come after the
// handshake.

#include <openssl/ssl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace bench_edge {

enum class tls_version { v1_2, v1_3 };

struct handshake_result {
    double seconds = 0;
    std::uint64_t resumed = 0;  // of the connections
    std::uint64_t failures = 0;
};

// A client of the server at one port. Verifies no certificate: the server's work is measured.
class tls_client {
public:
    tls_client(int port, tls_version version);
    tls_client(const tls_client&) = delete;
    ~tls_client();

    // Makes `count` connections, 16 at once, with one handshake each; waits for a ticket of TLS
    // 1.3; and closes them with close_notify. `resume`: all of them resume one earlier session.
    handshake_result shake_hands(int count, bool resume);
    // Returns the status and the body of one answer on a new connection; "" if there is none.
    std::string fetch(const std::string& target);
    // Opens a connection that is silent after one answered request. Returns its descriptor, or -1.
    // Its keys are forgotten: the client keeps no memory for it. Threads: any, also concurrently.
    int open_idle();

private:
    struct connection;
    using owned_ssl = std::unique_ptr<SSL, void (*)(SSL*)>;

    owned_ssl begin(int fd);
    void learn_session();
    bool step(connection& c);
    std::string ask(SSL* ssl, const std::string& target);

    int port_;
    bool sends_tickets_late_;  // TLS 1.3
    SSL_CTX* context_;
    SSL_SESSION* session_ = nullptr;
};

// Returns a blocking socket that is connected to the port of 127.0.0.1, or -1.
int connect_to_loopback(int port);

}  // namespace bench_edge
