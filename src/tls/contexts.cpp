// What contexts of servers and clients have in common, and the contexts of clients.
#include "contexts.hpp"

#include <openssl/pem.h>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace coppice::tls {

using namespace internal;

namespace {

std::string read_named_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    if (!in || text.empty()) {
        const int error = errno != 0 && !in ? errno : EINVAL;
        throw std::system_error(error, std::system_category(), "tls: cannot read " + path);
    }
    return text;
}

// A key with a password is refused: nothing may ask at the terminal.
int no_password(char*, int, int, void*) noexcept {
    return -1;
}

// Throws the error that ended the reading of a PEM text, unless that was the end of the text.
void check_read_to_end(const std::string& what) {
    if (ERR_GET_REASON(::ERR_peek_last_error()) != PEM_R_NO_START_LINE) throw_error(what);
    ::ERR_clear_error();
}

owned_bio bio_of(std::string_view text) {
    owned_bio bio(::BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
    if (bio == nullptr) throw std::bad_alloc();
    return bio;
}

// Calls `use` with each object that `next` reads from a PEM text, and returns how many there are.
// Errors: std::system_error, which names `what`, for malformed text and for text without any.
template <class Next, class Use>
std::size_t for_each_in(std::string_view pem, const std::string& what, Next next, Use use) {
    ::ERR_clear_error();
    const owned_bio text = bio_of(pem);
    std::size_t count = 0;
    for (; const auto each = next(text.get()); ++count) use(*each);
    if (count == 0) throw_error(what);
    check_read_to_end(what);
    return count;
}

owned_certificate next_certificate(BIO* text) {
    return owned_certificate(::PEM_read_bio_X509_AUX(text, nullptr, &no_password, nullptr));
}

std::chrono::sys_seconds time_of(const ASN1_TIME* time, const std::string& what) {
    std::tm parts{};
    if (::ASN1_TIME_to_tm(time, &parts) != 1) {
        throw std::system_error(std::make_error_code(std::errc::invalid_argument), what);
    }
    return std::chrono::sys_seconds(std::chrono::seconds(::timegm(&parts)));
}

}  // namespace

certificate certificate::from_files(const std::string& chain_path, const std::string& key_path,
                                    const std::string& ocsp_path) {
    errno = 0;
    certificate own{.chain = read_named_file(chain_path), .key = read_named_file(key_path)};
    if (!ocsp_path.empty()) own.ocsp = read_named_file(ocsp_path);
    return own;
}

validity certificate::valid() const {
    const std::string what = "tls: the chain of a certificate";
    validity all{std::chrono::sys_seconds::min(), std::chrono::sys_seconds::max()};
    for_each_in(chain, what, &next_certificate, [&](X509& each) {
        all.from = std::max(all.from, time_of(::X509_get0_notBefore(&each), what));
        all.until = std::min(all.until, time_of(::X509_get0_notAfter(&each), what));
    });
    return all;
}

client_context::client_context(const client_options& options)
    : state_(std::make_shared<client_state>(options)) {}

namespace internal {

owned_context make_context(const SSL_METHOD* method, version version_min, bool keep_buffers) {
    ::ERR_clear_error();
    owned_context made(::SSL_CTX_new(method));
    check_made(made != nullptr, "tls: SSL_CTX_new");
    SSL_CTX* const c = made.get();
    const int least = version_min == version::tls_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION;
    check_made(SSL_CTX_set_min_proto_version(c, least) == 1, "tls: version_min");
    ::SSL_CTX_set_options(c, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    // These ciphers have forward secrecy and authenticated encryption.
    check_made(::SSL_CTX_set_cipher_list(c, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1, "tls: ciphers");
    ::SSL_CTX_set_security_level(c, std::max(2, ::SSL_CTX_get_security_level(c)));
    ::SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_NO_AUTO_CHAIN);
    if (keep_buffers) {
        ::SSL_CTX_clear_mode(c, SSL_MODE_RELEASE_BUFFERS);
    } else {
        ::SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS);
    }
    ::SSL_CTX_set_verify_depth(c, 10);
    return made;
}

void load_certificate(SSL_CTX& context, const certificate& own, const std::string& what) {
    const owned_bio chain = bio_of(own.chain);
    const owned_certificate leaf(
        ::PEM_read_bio_X509_AUX(chain.get(), nullptr, &no_password, nullptr));
    if (leaf == nullptr || ::SSL_CTX_use_certificate(&context, leaf.get()) != 1)
        throw_error(what + ": the certificate");
    while (
        owned_certificate next{::PEM_read_bio_X509(chain.get(), nullptr, &no_password, nullptr)}) {
        if (SSL_CTX_add0_chain_cert(&context, next.get()) != 1) throw_error(what + ": the chain");
        (void)next.release();
    }
    check_read_to_end(what + ": the chain");

    const owned_bio text = bio_of(own.key);
    const owned_key key(::PEM_read_bio_PrivateKey(text.get(), nullptr, &no_password, nullptr));
    if (key == nullptr || ::SSL_CTX_use_PrivateKey(&context, key.get()) != 1 ||
        ::SSL_CTX_check_private_key(&context) != 1)
        throw_error(what + ": the key");
}

std::size_t trust(SSL_CTX& context, std::string_view pem, const std::string& what) {
    X509_STORE* const store = ::SSL_CTX_get_cert_store(&context);
    return for_each_in(pem, what, &next_certificate, [&](X509& each) {
        if (::X509_STORE_add_cert(store, &each) != 1) throw_error(what);
    });
}

void refuse_revoked(SSL_CTX& context, std::string_view pem, const std::string& what) {
    X509_STORE* const store = ::SSL_CTX_get_cert_store(&context);
    const auto next = [](BIO* text) {
        return owned_revocations(::PEM_read_bio_X509_CRL(text, nullptr, &no_password, nullptr));
    };
    for_each_in(pem, what, next, [&](X509_CRL& each) {
        if (::X509_STORE_add_crl(store, &each) != 1) throw_error(what);
    });
    check_made(
        ::X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL) == 1,
        "tls: X509_STORE_set_flags");
}

std::string encode_protocols(const std::vector<std::string>& protocols) {
    std::string encoded;
    for (const std::string& each : protocols) {
        if (each.empty() || each.size() > 255)
            throw std::invalid_argument("tls: an ALPN protocol has 1 to 255 bytes, not \"" + each +
                                        '"');
        encoded += static_cast<char>(each.size());
        encoded += each;
    }
    if (encoded.size() > 65535)
        throw std::invalid_argument(
            "tls: too many ALPN protocols: they take more than 65,535 bytes");
    return encoded;
}

std::string plain_name(std::string_view name) {
    if (name.ends_with('.')) name.remove_suffix(1);
    std::string plain(name);
    for (char& c : plain) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return plain;
}

client_state::client_state(const client_options& options)
    : context_(make_context(::TLS_client_method(), options.version_min, options.keep_buffers)),
      asks_for_ocsp_(options.ask_for_ocsp) {
    SSL_CTX* const c = context();
    ::SSL_CTX_set_verify(c, SSL_VERIFY_PEER, nullptr);
    if (options.system_authorities)
        check_made(::SSL_CTX_set_default_verify_paths(c) == 1, "tls: the system's authorities");
    if (!options.authorities.empty()) trust(*c, options.authorities, "tls: client authorities");
    if (!options.authorities_path.empty()) {
        errno = 0;
        trust(*c, read_named_file(options.authorities_path), "tls: " + options.authorities_path);
    }
    if (!options.own.chain.empty()) load_certificate(*c, options.own, "tls: client");
    if (!options.protocols.empty()) {
        const std::string encoded = encode_protocols(options.protocols);
        // Returns 0 for success, unlike the other functions of OpenSSL.
        check_made(
            ::SSL_CTX_set_alpn_protos(c, reinterpret_cast<const unsigned char*>(encoded.data()),
                                      static_cast<unsigned>(encoded.size())) == 0,
            "tls: protocols");
    }
    // The engine keeps sessions itself.
    SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    ::SSL_CTX_sess_set_new_cb(c, &on_new_session);
}

}  // namespace internal

}  // namespace coppice::tls
