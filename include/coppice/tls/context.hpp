// The contexts of servers and clients: certificates, trust, and what a handshake may agree on.
#pragma once
// A context is a cheap handle: copies share one immutable state, which lives until the last copy
// and the last connection that uses it are gone. To reload a certificate, make a new context and
// put it into a server_context_slot: new connections take it, and the others keep theirs.
// Threads: any, also concurrently. Only TLS 1.2 and 1.3 exist here, without renegotiation,
// compression, or early data. TLS 1.2 has ciphers with forward secrecy and authenticated encryption
// only.

#include <coppice/base/clock.hpp>
#include <coppice/io/secure_engine.hpp>
#include <coppice/tls/internal/namespaces.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace coppice::tls {

namespace internal {

class server_state;
class client_state;

}  // namespace internal

// The versions of the protocol.
enum class version { tls_1_2, tls_1_3 };

// The first and the last second of a time, in UTC.
struct validity {
    std::chrono::sys_seconds from;
    std::chrono::sys_seconds until;
};

// A certificate, and the key that proves it.
struct certificate {
    std::string chain;  // PEM: the certificate, then the intermediate ones
    std::string key;    // PEM, without a password
    // An OCSP response (DER) that a server staples to its handshakes. Empty: none.
    std::string ocsp = {};
    // For a server with several certificates: the host names for which this one is chosen, with
    // "*.example.org" for one label. Empty: the names that the certificate itself has.
    std::vector<std::string> names = {};

    // Reads the files, PEM and PEM, and DER for OCSP if its path is not empty.
    // Blocks: while it reads. Errors: std::system_error, which names the file.
    static certificate from_files(const std::string& chain_path, const std::string& key_path,
                                  const std::string& ocsp_path = {});
    // Returns the time in which all certificates of the chain are valid. `from` is later than
    // `until` if there is none. Errors: std::system_error for a chain that cannot be read.
    validity valid() const;
};

// What a server does about certificates of its clients.
enum class client_certificates {
    ignore,   // asks for none
    request,  // asks for one; refuses a bad certificate, but not a client without any
    require,  // refuses a client without a valid certificate
};

// How a server shakes hands.
struct server_options {
    // At least one. The first is for clients that name no host, or one that no other is for.
    std::vector<certificate> certificates = {};
    // Refuses a client that names a host for which there is no certificate (unrecognized_name).
    bool known_names_only = false;
    // ALPN protocols, the preferred one first: {"h2", "http/1.1"}. A client that offers only
    // others is refused; a client that offers none is accepted without one.
    std::vector<std::string> protocols = {};
    version version_min = version::tls_1_2;
    // What to do about certificates of clients, and the authorities (PEM) that may have issued
    // them; required unless they are ignored.
    client_certificates clients = client_certificates::ignore;
    std::string client_authorities = {};
    // The lists of certificates that were revoked (CRL, PEM). If there are any, each authority in
    // the chain of a client's certificate needs one, the authority that ends it too. Otherwise, or
    // if the list is older than it says that it may be, the certificate is refused. Another text
    // in a successor makes the tickets of clients no good, so that they are judged again.
    std::string client_revocations = {};
    // Resumption by tickets, which the server keeps no state for. The key that encrypts them is
    // replaced when it is this old, and opens them for as long again. 0: no tickets.
    internal::duration ticket_key_age = std::chrono::hours(1);
    // Keeps OpenSSL's two buffers, 33 KiB for each connection, while nothing is under way.
    // Otherwise they are allocated when bytes come, and freed when they are taken.
    bool keep_buffers = false;
};

// What a server's connections have in common.
class server_context {
public:
    // Errors: std::system_error of tls_category() that names the certificate or the option;
    // std::invalid_argument if an option contradicts another; std::bad_alloc.
    explicit server_context(const server_options& options);
    // Makes a successor: takes over the keys of `before` for tickets, so that clients resume what
    // they have begun with it.
    server_context(const server_options& options, const server_context& before);
    // Makes a new key for tickets the present one. The previous key opens tickets until the next
    // call. Errors: std::system_error if there is no randomness.
    void rotate_ticket_key() const;

    // Returns what makes the connections of a server secure: `options.security = context` for
    // http::server. Cost: one allocation.
    operator std::shared_ptr<const io::server_security>() const;

    // For the engine.
    const std::shared_ptr<internal::server_state>& state() const noexcept { return state_; }

private:
    std::shared_ptr<internal::server_state> state_;
};

// The context of new connections, which may be replaced at any time; for reloads.
class server_context_slot {
public:
    // Holds `first` until set() is called.
    explicit server_context_slot(server_context first) noexcept : context_(std::move(first)) {}
    // Returns a handle of the present context. Cost: a mutex and an atomic increment.
    server_context get() const {
        const std::lock_guard lock(mutex_);
        return context_;
    }
    // Replaces it. Connections keep the context that they were made with.
    void set(server_context next) {
        const std::lock_guard lock(mutex_);
        std::swap(context_, next);
    }

private:
    mutable std::mutex mutex_;
    server_context context_;
};

// Returns the same as the conversion of a server_context, for a context that is replaced: each
// connection gets the slot's present one. Cost: one allocation.
std::shared_ptr<const io::server_security> server_security_of(
    std::shared_ptr<const server_context_slot> slot);

// What a client trusts, and how it shakes hands.
struct client_options {
    // Trusts the authorities that the system trusts.
    bool system_authorities = true;
    // Further authorities to trust: PEM, and the path of a file of PEM.
    std::string authorities = {};
    std::string authorities_path = {};
    // What the client shows to a server that asks; an empty chain: nothing.
    certificate own = {};
    // ALPN protocols that it offers, the preferred one first.
    std::vector<std::string> protocols = {};
    version version_min = version::tls_1_2;
    // Asks for an OCSP response, which engine::ocsp() then returns. It is not verified.
    bool ask_for_ocsp = false;
    bool keep_buffers = false;  // see server_options
};

// What a client's connections have in common.
class client_context {
public:
    // Blocks: while it reads files. Errors: as server_context.
    explicit client_context(const client_options& options = {});

    // Returns what makes the connections of a client secure: `options.security = context` for
    // http::client. Such connections are verified. Cost: one allocation.
    operator std::shared_ptr<const io::client_security>() const;

    // For the engine.
    const std::shared_ptr<internal::client_state>& state() const noexcept { return state_; }

private:
    std::shared_ptr<internal::client_state> state_;
};

// A tag for clients that accept any certificate; see stream.hpp.
struct no_verification_t {
    explicit no_verification_t() = default;
};
inline constexpr no_verification_t no_verification{};

}  // namespace coppice::tls
