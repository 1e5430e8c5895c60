// The contexts of servers: certificates by name, protocols, tickets, and certificates of clients.
#include "contexts.hpp"

#include <openssl/sha.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <utility>

namespace coppice::tls {

using namespace internal;

server_context::server_context(const server_options& options)
    : state_(std::make_shared<server_state>(options, nullptr)) {}
server_context::server_context(const server_options& options, const server_context& before)
    : state_(std::make_shared<server_state>(options, before.state_.get())) {}

void server_context::rotate_ticket_key() const {
    state_->tickets().rotate();
}

namespace internal {

namespace {

// The identity that a ticket is bound to. It resumes only on a context that asks clients for the
// same certificates, and refuses the same ones.
std::array<unsigned char, SHA256_DIGEST_LENGTH> identity_of(const server_options& options) {
    std::string text = std::to_string(static_cast<int>(options.clients));
    text += ' ' + std::to_string(options.client_authorities.size()) + ' ';
    text += options.client_authorities;
    text += options.client_revocations;
    std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
    ::SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
    return digest;
}

void add_names_of(X509& leaf, std::vector<std::string>& names) {
    auto* const all = static_cast<GENERAL_NAMES*>(
        ::X509_get_ext_d2i(&leaf, NID_subject_alt_name, nullptr, nullptr));
    const std::unique_ptr<GENERAL_NAMES, freed_by<&GENERAL_NAMES_free>> owned(all);
    for (int i = 0; i < sk_GENERAL_NAME_num(all); ++i) {
        const GENERAL_NAME* const each = sk_GENERAL_NAME_value(all, i);
        if (each->type != GEN_DNS) continue;
        const unsigned char* const data = ::ASN1_STRING_get0_data(each->d.dNSName);
        names.emplace_back(reinterpret_cast<const char*>(data),
                           static_cast<std::size_t>(::ASN1_STRING_length(each->d.dNSName)));
    }
}

}  // namespace

server_state::server_state(const server_options& options, const server_state* before)
    : protocols_(encode_protocols(options.protocols)),
      known_names_only_(options.known_names_only),
      tickets_(before == nullptr ? ticket_keys(options.ticket_key_age)
                                 : ticket_keys(options.ticket_key_age, before->tickets_)) {
    if (options.certificates.empty())
        throw std::invalid_argument("tls::server_context: there is no certificate");
    if (options.clients != client_certificates::ignore && options.client_authorities.empty())
        throw std::invalid_argument(
            "tls::server_context: certificates of clients need client_authorities");
    if (options.clients == client_certificates::ignore && !options.client_revocations.empty())
        throw std::invalid_argument(
            "tls::server_context: client_revocations need certificates of clients");
    for (const certificate& each : options.certificates) add(each, options);
}

void server_state::add(const certificate& own, const server_options& options) {
    const std::string what =
        "tls::server_context: certificate " + std::to_string(contexts_.size() + 1);
    owned_context made =
        make_context(::TLS_server_method(), options.version_min, options.keep_buffers);
    SSL_CTX& c = *made;
    load_certificate(c, own, what);
    SSL_CTX_set_app_data(&c, this);
    SSL_CTX_set_tlsext_servername_callback(&c, &server_state::on_server_name);
    SSL_CTX_set_tlsext_servername_arg(&c, this);
    if (!protocols_.empty()) ::SSL_CTX_set_alpn_select_cb(&c, &server_state::on_protocols, this);
    if (!own.ocsp.empty()) {
        responses_.push_back(std::make_unique<std::string>(own.ocsp));
        SSL_CTX_set_tlsext_status_cb(&c, &server_state::on_status);
        SSL_CTX_set_tlsext_status_arg(&c, responses_.back().get());
    }
    // Tickets only: nothing of a session stays here.
    SSL_CTX_set_session_cache_mode(&c, SSL_SESS_CACHE_OFF);
    if (options.ticket_key_age <= coppice::internal::duration::zero()) {
        ::SSL_CTX_set_options(&c, SSL_OP_NO_TICKET);
        check_made(::SSL_CTX_set_num_tickets(&c, 0) == 1, "tls: tickets");
    } else {
        const int set = ::SSL_CTX_set_tlsext_ticket_key_evp_cb(&c, &ticket_keys::on_ticket);
        check_made(set == 1, "tls: tickets");
        using std::chrono::seconds;
        const auto life = std::chrono::duration_cast<seconds>(options.ticket_key_age).count();
        ::SSL_CTX_set_timeout(&c, std::max<long>(1, std::min<long>(life, 7 * 24 * 3600)));
    }
    ask_clients(c, options);
    contexts_.push_back(std::move(made));
    name(c, own);
}

void server_state::ask_clients(SSL_CTX& context, const server_options& options) {
    const auto identity = identity_of(options);
    check_made(::SSL_CTX_set_session_id_context(&context, identity.data(), identity.size()) == 1,
               "tls: identity");
    if (options.clients == client_certificates::ignore) return;
    trust(context, options.client_authorities, "tls::server_context: client_authorities");
    if (!options.client_revocations.empty())
        refuse_revoked(context, options.client_revocations,
                       "tls::server_context: client_revocations");
    int mode = SSL_VERIFY_PEER;
    if (options.clients == client_certificates::require) mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    ::SSL_CTX_set_verify(&context, mode, nullptr);
    // The names of the authorities tell a client which of its certificates to show.
    STACK_OF(X509_OBJECT)* const all =
        ::X509_STORE_get0_objects(::SSL_CTX_get_cert_store(&context));
    for (int i = 0; i < sk_X509_OBJECT_num(all); ++i) {
        X509* const authority = ::X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i));
        if (authority != nullptr)
            check_made(::SSL_CTX_add_client_CA(&context, authority) == 1, "tls: authorities");
    }
}

// The first certificate that has a name gets it.
void server_state::name(SSL_CTX& context, const certificate& own) {
    std::vector<std::string> names = own.names;
    if (names.empty()) add_names_of(*::SSL_CTX_get0_certificate(&context), names);
    for (const std::string& each : names) {
        const std::string plain = plain_name(each);
        if (plain.starts_with("*.")) {
            by_domain_.emplace(plain.substr(2), &context);
        } else {
            by_name_.emplace(plain, &context);
        }
    }
}

SSL_CTX* server_state::find(std::string_view host) const noexcept {
    try {
        const std::string plain = plain_name(host);
        if (const auto exact = by_name_.find(plain); exact != by_name_.end()) return exact->second;
        const std::size_t dot = plain.find('.');
        if (dot == 0 || dot == std::string::npos) return nullptr;
        const auto domain = by_domain_.find(plain.substr(dot + 1));
        return domain == by_domain_.end() ? nullptr : domain->second;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

int server_state::on_server_name(SSL* ssl, int* alert, void* of) noexcept {
    const server_state& self = *static_cast<const server_state*>(of);
    const char* const host = ::SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    if (host == nullptr) return SSL_TLSEXT_ERR_NOACK;
    SSL_CTX* const found = self.find(host);
    if (found == nullptr) {
        if (!self.known_names_only_) return SSL_TLSEXT_ERR_NOACK;
        *alert = SSL_AD_UNRECOGNIZED_NAME;
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    if (found == ::SSL_get_SSL_CTX(ssl) || ::SSL_set_SSL_CTX(ssl, found) != nullptr)
        return SSL_TLSEXT_ERR_OK;
    *alert = SSL_AD_INTERNAL_ERROR;
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

// The server's order of preference decides.
int server_state::on_protocols(SSL*, const unsigned char** chosen, unsigned char* size,
                               const unsigned char* offered, unsigned offered_size,
                               void* of) noexcept {
    const std::string& own = static_cast<const server_state*>(of)->protocols_;
    unsigned char* found = nullptr;
    const int result =
        ::SSL_select_next_proto(&found, size, reinterpret_cast<const unsigned char*>(own.data()),
                                static_cast<unsigned>(own.size()), offered, offered_size);
    if (result != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_ALERT_FATAL;
    *chosen = found;
    return SSL_TLSEXT_ERR_OK;
}

int server_state::on_status(SSL* ssl, void* of) noexcept {
    const std::string& response = *static_cast<const std::string*>(of);
    auto* const copy =
        static_cast<unsigned char*>(::OPENSSL_memdup(response.data(), response.size()));
    if (copy == nullptr) return SSL_TLSEXT_ERR_NOACK;
    SSL_set_tlsext_status_ocsp_resp(ssl, copy, static_cast<long>(response.size()));
    return SSL_TLSEXT_ERR_OK;
}

}  // namespace internal

}  // namespace coppice::tls
