// The states behind server_context and client_context, and what their contexts have in common.
#pragma once

#include "openssl.hpp"
#include "tickets.hpp"

#include <coppice/tls/context.hpp>

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace coppice::tls::internal {

// Makes a context with the versions, ciphers, and options that this library allows.
owned_context make_context(const SSL_METHOD* method, version version_min, bool keep_buffers);
// Loads the certificate, its chain, and its key. Errors: std::system_error, which names `what`.
void load_certificate(SSL_CTX& context, const certificate& own, const std::string& what);
// Adds the certificates of a PEM text to what the context trusts. Returns how many there are.
std::size_t trust(SSL_CTX& context, std::string_view pem, const std::string& what);
// Adds the lists of revoked certificates of a PEM text, and asks for one of each authority.
void refuse_revoked(SSL_CTX& context, std::string_view pem, const std::string& what);
// Returns ALPN protocols in the form in which they are sent. Errors: std::invalid_argument.
std::string encode_protocols(const std::vector<std::string>& protocols);
// Returns a host's name in lower case, without the dot at its end.
std::string plain_name(std::string_view name);

class server_state {
public:
    server_state(const server_options& options, const server_state* before);
    server_state(const server_state&) = delete;
    server_state& operator=(const server_state&) = delete;

    SSL_CTX* context() const noexcept { return contexts_.front().get(); }
    ticket_keys& tickets() noexcept { return tickets_; }

private:
    void add(const certificate& own, const server_options& options);
    void name(SSL_CTX& context, const certificate& own);
    void ask_clients(SSL_CTX& context, const server_options& options);
    SSL_CTX* find(std::string_view host) const noexcept;
    static int on_server_name(SSL* ssl, int* alert, void* self) noexcept;
    static int on_protocols(SSL* ssl, const unsigned char** chosen, unsigned char* size,
                            const unsigned char* offered, unsigned offered_size,
                            void* self) noexcept;
    static int on_status(SSL* ssl, void* response) noexcept;

    std::vector<owned_context> contexts_;  // one for each certificate
    // By the whole name, and by what follows the first label of a name with "*".
    std::unordered_map<std::string, SSL_CTX*> by_name_;
    std::unordered_map<std::string, SSL_CTX*> by_domain_;
    std::vector<std::unique_ptr<std::string>> responses_;
    std::string protocols_;
    bool known_names_only_;
    ticket_keys tickets_;
};

class client_state {
public:
    explicit client_state(const client_options& options);

    SSL_CTX* context() const noexcept { return context_.get(); }
    bool asks_for_ocsp() const noexcept { return asks_for_ocsp_; }

private:
    owned_context context_;
    bool asks_for_ocsp_;
};

// OpenSSL's callback: keeps a session for the engine of the connection.
int on_new_session(SSL* ssl, SSL_SESSION* session) noexcept;

// Returns the state of a server's connection.
inline server_state& state_of(const SSL* ssl) noexcept {
    return *static_cast<server_state*>(SSL_CTX_get_app_data(::SSL_get_SSL_CTX(ssl)));
}

}  // namespace coppice::tls::internal
